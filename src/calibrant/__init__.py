"""Measure, test, audit, repair and monitor the calibration of predicted probabilities."""

import sys

if getattr(sys, "argv", [])[:1] == ["-m"]:  # python -m calibrant: exit quietly on Ctrl-C while the rest loads
    from calibrant_command import stop_quietly

    stop_quietly()

from calibrant.public_names import lazy_names

__version__ = "0.3.0"
__getattr__, __dir__, __all__ = lazy_names(__name__)
