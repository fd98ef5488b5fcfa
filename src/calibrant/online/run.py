"""What a run over many rounds returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The forecasts of many rounds and the account after each of them.

    Attributes
    ----------
    predictions : array
        One forecast per row.
    certificate : array or None
        The certificate after each row; None where it is not kept (no guard; decision loss).
    bound : array or None
        What is promised after each row; None where nothing is.
    steered : array of bool
        Whether the answer left the cell or bin of the guide.
    weights : array of shape (rows, 5) or None
        The experts' weights that each row was mixed with (OnlineCalibrator).
    learnt_before : int
        How many outcomes had been learnt before the first row; the account includes them.
    """

    predictions: Array
    certificate: Array | None
    bound: Array | None
    steered: npt.NDArray[np.bool_]
    weights: Array | None = None
    learnt_before: int = 0

    @property
    def rounds(self) -> npt.NDArray[np.int64]:
        """How many outcomes had been learnt after each row, in all."""
        return self.learnt_before + np.arange(1, len(self) + 1)

    def taken(self, rows: npt.NDArray[np.bool_]) -> Run:
        """Return some of the rows, such as those whose outcome is known."""
        columns = (self.certificate, self.bound, self.weights)
        certificate, bound, weights = (None if column is None else column[rows] for column in columns)
        return Run(
            self.predictions[rows], certificate, bound, self.steered[rows], weights, self.learnt_before
        )

    def __len__(self) -> int:
        return len(self.predictions)

    def __repr__(self) -> str:
        last = [_last(name, getattr(self, name)) for name in ("certificate", "bound")]
        return f"Run(rows={len(self):,}, {', '.join(last)}, steered={int(self.steered.sum()):,})"

    def to_dict(self) -> dict[str, Any]:
        """Return all columns as lists, ready for JSON."""
        names = ("predictions", "certificate", "bound", "steered", "weights")
        columns = {name: getattr(self, name) for name in names}
        lists = {name: None if column is None else column.tolist() for name, column in columns.items()}
        return {**lists, "learnt_before": self.learnt_before}


def _last(name: str, column: Array | None) -> str:
    return f"{name}={'none' if column is None or not len(column) else format(column[-1], '.6g')}"
