"""Methods: one function per method, on records; the fits themselves live in calibrant.fits."""
