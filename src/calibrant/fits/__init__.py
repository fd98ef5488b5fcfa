"""Pure fits on levels, below measures and recalibration: numbers in, numbers out, no scikit-learn."""
