"""What people see: charts, and self-contained HTML pages."""
