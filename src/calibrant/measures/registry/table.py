"""The table of measures in reading order, gathered from the files of their families.

To add a measure, write its function and its row in the file of its family and, for a new file, name it here.
`calibrant measures`, evaluations, docs, law tests and benchmarks are all made from these rows.
"""

from __future__ import annotations

from calibrant.measures import (
    binned,
    calibration_index,
    convolved,
    curve,
    ece,
    in_the_large,
    kernel,
    low_degree,
    regression,
    scores,
    smooth,
    truthful,
)
from calibrant.measures.decisions import u_calibration, worst_task
from calibrant.measures.distances import interval_error, lower, upper
from calibrant.measures.registry.row import Measure

ROWS: tuple[Measure, ...] = (
    *ece.ROWS,
    *binned.ROWS,
    *curve.ROWS,
    *truthful.ROWS,
    *lower.ROWS,
    *upper.ROWS,
    *interval_error.ROWS,
    *smooth.ROWS,
    *kernel.ROWS,
    *worst_task.ROWS,
    *u_calibration.ROWS,
    *convolved.ROWS,
    *low_degree.ROWS,
    *scores.ROWS,
    *in_the_large.ROWS,
    *regression.ROWS,
    *calibration_index.ROWS,
)
