"""The part of a docstring that all functions of rows share: what outcomes, predictions and weights may be."""

from __future__ import annotations

import inspect

_ARRAYS = """\
y_true : array-like, or Forecasts alone
    Outcomes: 0 or 1, booleans, or fractions between 0 and 1.
y_prob : array-like
    Predicted probabilities in [0, 1].
sample_weight : array-like, optional
    Non-negative weights, one per record.
pos_label : optional
    The label that counts as 1, for outcomes that are text, categories, or -1 and 1.
missing : {"error", "drop"}
    Whether rows with a gap are refused or left out.
"""

_COLUMNS = """\
outcome, prediction, weight : str, optional
    Columns of a frame that is passed in place of `y_true`.
"""

_HEADING = "Parameters\n----------\n"
_RETURNS = "Returns\n-------\n"


def with_shared_parameters(docstring: str | None, *, columns: bool = False) -> str | None:
    """Return the docstring of a function of Forecasts with the parameters of its public form added.

    The options that the docstring lists itself come after them. Python started with -OO has no docstrings.
    """
    if docstring is None:
        return None
    text = inspect.cleandoc(docstring)
    shared = _HEADING + _ARRAYS + (_COLUMNS if columns else "")
    if _HEADING in text:
        return text.replace(_HEADING, shared, 1)
    return text.replace(_RETURNS, f"{shared}\n{_RETURNS}", 1)
