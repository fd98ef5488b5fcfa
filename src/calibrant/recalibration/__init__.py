"""Recalibration: methods as rows of a registry, the chooser, did it help, and export."""
