"""The numbers, tests and verdict of one evaluation; drawing them is in `report`."""
