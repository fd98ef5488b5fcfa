"""calibrant: measure, test and audit the calibration of predicted probabilities."""

__version__ = "0.1.0"
