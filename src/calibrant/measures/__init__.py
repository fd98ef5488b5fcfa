"""One family of measures a file; a measure is one short function of Forecasts and one registry row."""
