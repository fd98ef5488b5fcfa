"""Distances to calibration: lower, upper, interval, and the bracket that holds them all."""
