"""evaluate: the numbers, tests, verdict and page of one evaluation; the gate; and verify."""
