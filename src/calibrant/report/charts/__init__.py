"""Charts in Altair: each is a function of Forecasts or of a result, usable alone in a notebook."""
