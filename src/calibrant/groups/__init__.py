"""For whom? Subpopulations, the multi-calibration metric, its significance, and the audit."""
