"""evaluate: measures, tests, groups and the verdict on one set of forecasts; drawing them is in report."""
