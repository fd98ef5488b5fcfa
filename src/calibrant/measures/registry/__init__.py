"""The row type, the two call forms, lookup by name, and what is known of every measure under calibration."""
