"""Files: how they are found, read as SQL, and written with a recalibrated column."""
