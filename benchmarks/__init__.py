"""Measurements: our times beside a yardstick or a peer, in one run, as ratios."""
