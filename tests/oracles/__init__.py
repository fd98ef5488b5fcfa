"""Slow and obviously right: what the fast algorithms are compared with."""
