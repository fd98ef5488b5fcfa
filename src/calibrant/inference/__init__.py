"""Is it real? Tests, intervals, comparison, planning and monitoring, on top of the measures."""
