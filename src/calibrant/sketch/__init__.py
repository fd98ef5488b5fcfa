"""Sketches: mergeable summaries of predictions and outcomes in bounded memory, from any engine."""
