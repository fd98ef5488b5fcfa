"""Recalibrator: a map of one column of predictions, as a scikit-learn regressor and transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from calibrant.recalibration.recalibrate import recalibrate
from calibrant.recalibration.result import Recalibration
from calibrant.results import Array


class Recalibrator(TransformerMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Recalibrate predictions in [0, 1]; like IsotonicRegression, it takes one column.

    Parameters
    ----------
    method : str
        A name of `calibrant.recalibrations()`, or "auto".
    options : mapping, optional
        Options of the method.
    random_state : int, optional
        Seed of the folds of auto.

    Attributes
    ----------
    recalibration_ : Recalibration
        The fitted map, with its assessment and its exports.

    Examples
    --------
    >>> fitted = Recalibrator("isotonic").fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> fitted.predict([0.5]).tolist()
    [0.5]
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        options: Mapping[str, Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.method = method
        self.options = options
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map to predictions X and outcomes y."""
        self.recalibration_: Recalibration = recalibrate(
            y,
            X,
            method=self.method,
            sample_weight=sample_weight,
            seed=self.random_state,
            **dict(self.options or {}),
        )
        return self

    def predict(self, X: Any) -> Array:
        """Return recalibrated predictions."""
        check_is_fitted(self)
        return self.recalibration_.predict(X)

    def transform(self, X: Any) -> Array:
        """Return recalibrated predictions, as `predict` does."""
        return self.predict(X)

    def __sklearn_tags__(self) -> Any:
        """Say that X is one column of numbers in [0, 1]."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.positive_only = True
        return tags
