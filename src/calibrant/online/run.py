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
    """

    predictions: Array
    certificate: Array | None
    bound: Array | None
    steered: npt.NDArray[np.bool_]
    weights: Array | None = None

    def __len__(self) -> int:
        return len(self.predictions)

    def __repr__(self) -> str:
        last = [_last(name, getattr(self, name)) for name in ("certificate", "bound")]
        return f"Run(rows={len(self):,}, {', '.join(last)}, steered={int(self.steered.sum()):,})"

    def to_dict(self) -> dict[str, Any]:
        """Return all columns as lists, ready for JSON."""
        names = ("predictions", "certificate", "bound", "steered", "weights")
        columns = {name: getattr(self, name) for name in names}
        return {name: None if column is None else column.tolist() for name, column in columns.items()}


def _last(name: str, column: Array | None) -> str:
    return f"{name}={'none' if column is None or not len(column) else format(column[-1], '.6g')}"
