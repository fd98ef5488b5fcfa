"""ReliabilityDisplay: the smoothed reliability diagram on matplotlib axes, as scikit-learn's displays are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from calibrant.errors import InvalidInputError, MissingDependencyError
from calibrant.forecasts import Forecasts
from calibrant.metrics.calling import as_forecasts
from calibrant.metrics.convolved import SmoothedReliability, smoothed_reliability

DIAGONAL = "calibrated"  # label of the diagonal


class ReliabilityDisplay:
    """A reliability diagram without bins; made by `from_predictions` or `from_estimator`.

    Attributes
    ----------
    curve : SmoothedReliability
        What is drawn.
    low, high : float
        Smallest and largest prediction: the curve is drawn between them.
    line_, ax_, figure_
        The matplotlib objects, once drawn.
    """

    line_: Any
    ax_: Any
    figure_: Any

    def __init__(self, curve: SmoothedReliability, low: float, high: float, name: str | None = None) -> None:
        self.curve, self.low, self.high, self.name = curve, low, high, name

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> ReliabilityDisplay:
        """Draw outcomes and predictions, or Forecasts; further options are those of the line.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> shown = ReliabilityDisplay.from_predictions(["no", "yes"], [0.2, 0.7], pos_label="yes")
        >>> shown.ax_.get_xlabel()
        'Predicted probability'
        """
        made: Forecasts = as_forecasts(y_true, y_prob, sample_weight, pos_label=pos_label)
        ends = float(made.values[0]), float(made.values[-1])
        return cls(smoothed_reliability(made), *ends, name).plot(ax, **line)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> ReliabilityDisplay:
        """Draw a fitted classifier of two classes; `pos_label` is the second of them by default."""
        check_is_fitted(estimator)
        if not is_classifier(estimator) or len(estimator.classes_) != 2:
            raise InvalidInputError("estimator", "must be a classifier of two classes", f"got {estimator!r}")
        classes = list(estimator.classes_)
        label = classes[1] if pos_label is None else pos_label
        if label not in classes:
            raise InvalidInputError("pos_label", f"must be one of the classes {classes}", f"got {label!r}")
        p = estimator.predict_proba(X)[:, classes.index(label)]
        shown = type(estimator).__name__ if name is None else name
        return cls.from_predictions(
            y, p, sample_weight=sample_weight, pos_label=label, name=shown, ax=ax, **line
        )

    def plot(self, ax: Any = None, **line: Any) -> ReliabilityDisplay:
        """Draw on matplotlib axes, new ones if none are given, and return the display."""
        ax = _axes() if ax is None else ax
        inside = (self.curve.prediction >= self.low) & (self.curve.prediction <= self.high)
        if not inside.any():  # all predictions lie between two points of the grid
            inside = np.abs(self.curve.prediction - self.low) <= 1 / len(self.curve.prediction)
        if not any(drawn.get_label() == DIAGONAL for drawn in ax.get_lines()):  # overlaid displays share it
            ax.plot([0, 1], [0, 1], linestyle=":", color="gray", label=DIAGONAL)
        options = {"label": self.name or "predictions", **line}
        (self.line_,) = ax.plot(self.curve.prediction[inside], self.curve.outcome[inside], **options)
        ax.set(xlabel="Predicted probability", ylabel="Observed rate", xlim=(0, 1), ylim=(0, 1))
        ax.set_aspect("equal")
        ax.legend(loc="upper left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _axes() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        hint = "pip install matplotlib"
        raise MissingDependencyError("ReliabilityDisplay", "needs matplotlib", hint=hint) from None
    return pyplot.subplots()[1]
