"""Measurements: our times next to a yardstick or a peer, in one run, as ratios."""
