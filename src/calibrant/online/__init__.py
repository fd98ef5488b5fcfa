"""Predictions in a stream: monitors, forecasters and calibrators that learn one outcome at a time."""
