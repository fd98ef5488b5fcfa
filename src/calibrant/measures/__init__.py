"""One family of measures per file; a measure is one short function of Forecasts and one registry row."""
