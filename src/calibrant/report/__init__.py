"""What people see: evaluations, charts and the report page."""
