"""Compiled loops: arrays in, arrays out; no checking, no objects."""
