"""scikit-learn estimators: Recalibrated, a classifier with one map, and Recalibrator, the map alone."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from calibrant.errors import InvalidInputError
from calibrant.recalibration.methods.table import recalibrations
from calibrant.recalibration.recalibrate import recalibrate
from calibrant.recalibration.result import Recalibration, RecalibrationWarning
from calibrant.recalibration.samples import probabilities_of_logits
from calibrant.results import Array

FOLDS = 5


class Recalibrated(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a classifier, and one map fitted to predictions on rows that it did not see.

    The predictions of `cv` folds fit one map, and the classifier is refitted to all rows: one map to ship,
    not an average of several. A FrozenEstimator is not refitted: all rows then fit the map, and must be new
    to it. Warnings of the fit are in `recalibration_.notes`.

    Parameters
    ----------
    estimator : classifier, optional
        Logistic regression when absent.
    method : str
        A name of `calibrant.recalibrations()`, or "auto".
    cv : int, splitter or iterable, optional
        How out-of-fold predictions are made; 5 stratified folds when absent.
    response : {"auto", "predict_proba", "decision_function"}
        What is recalibrated; auto takes the decision function, as logits, where there is one.
    options : mapping, optional
        Options of the method; {"weights": "frequency"} makes a row of weight 2 count as two rows.
    random_state : int, optional
        Seed of the folds of auto.

    Attributes
    ----------
    estimator_ : classifier
        Fitted to all rows.
    recalibration_ : Recalibration
        The map, with its assessment.
    classes_ : ndarray
        Class labels.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "auto",
        cv: Any = None,
        response: str = "auto",
        options: Mapping[str, Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.response = response
        self.options = options
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the classifier and the map; X goes to the classifier as it is."""
        check_classification_targets(y)
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        base, kind = self._base(), type_of_target(y)
        several = kind != "binary" and not isinstance(base, FrozenEstimator)  # one that knows its classes
        if several and not get_tags(self).classifier_tags.multi_class:
            rule = f"takes two classes. Only binary classification is supported. The type of y is {kind}"
            raise InvalidInputError(f"method {self.method!r}", rule)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X)
            if len(np.unique(y[sample_weight > 0])) < 2:
                raise ValueError("Recalibrated needs at least 2 classes with positive weight; got fewer")
        routed = _routed(self, sample_weight, params)
        frozen = isinstance(base, FrozenEstimator)
        self.estimator_ = base if frozen else clone(base).fit(X, y, **routed.estimator.fit)
        self.classes_ = self.estimator_.classes_
        if len(self.classes_) < 2:
            raise ValueError("Recalibrated needs samples of at least 2 classes; got 1 class")
        if frozen:
            held, outcome, weight = self._response(base, X), y, sample_weight
        else:
            held, outcome, weight = self._out_of_fold(base, X, y, sample_weight, routed)
        self.recalibration_ = self._fitted_map(held, outcome, weight)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _out_of_fold(
        self, base: Any, X: Any, y: Any, sample_weight: Any, routed: Any
    ) -> tuple[Any, Any, Any]:
        """Return predictions for every row that some fold holds out, by a clone that did not see it."""
        labels, counts = np.unique(y, return_counts=True)
        folds = self.cv
        if folds is None:
            folds = StratifiedKFold(max(2, min(FOLDS, int(counts.min()))))
        splitter = check_cv(folds, y, classifier=True)
        parts, rows = [], []
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            for train, test in splitter.split(X, y, **routed.splitter.split):
                fitted = clone(base).fit(
                    _safe_indexing(X, train), y[train], **_rows(routed.estimator.fit, train, len(y))
                )
                part = self._response(fitted, _safe_indexing(X, test))
                parts.append(_aligned(part, fitted.classes_, labels))
                rows.append(test)
        order = np.concatenate(rows)
        weight = None if sample_weight is None else sample_weight[order]
        return np.concatenate(parts), y[order], weight

    def _response(self, fitted: Any, X: Any) -> Any:
        if self.response not in ("auto", "predict_proba", "decision_function"):
            got = f"got {self.response!r}"
            raise ValueError(f"response must be auto, predict_proba or decision_function; {got}")
        if self.response == "predict_proba" or not hasattr(fitted, "decision_function"):
            table = np.asarray(fitted.predict_proba(X), dtype=np.float64)
        else:
            rates = probabilities_of_logits(fitted.decision_function(X))
            table = rates if rates.ndim == 2 else np.column_stack([1.0 - rates, rates])
        table = np.clip(table, 0.0, 1.0)
        return table / table.sum(axis=1, keepdims=True)

    def _fitted_map(self, held: Any, y: Any, sample_weight: Any) -> Recalibration:
        strange = np.setdiff1d(y, self.classes_)
        if len(strange):  # of a FrozenEstimator: searchsorted would take it for a neighbor
            got = f"got {strange[0]!r}"
            raise ValueError(
                f"y must hold classes that the estimator was fitted to, {list(self.classes_)}; {got}"
            )
        place = np.searchsorted(self.classes_, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecalibrationWarning)  # in `recalibration_.notes`
            return recalibrate(
                place,
                held[:, 1] if len(self.classes_) == 2 else held,
                method=self.method,
                sample_weight=sample_weight,
                seed=self.random_state,
                **dict(self.options or {}),
            )

    def predict_proba(self, X: Any) -> Any:
        """Return recalibrated probabilities, one column per class."""
        check_is_fitted(self)
        table = self._response(self.estimator_, X)
        if len(self.classes_) > 2:
            return self.recalibration_.predict(table)
        rates = self.recalibration_.predict(table[:, 1])
        return np.column_stack([1.0 - rates, rates])

    def predict(self, X: Any) -> Any:
        """Return the class with the largest recalibrated probability."""
        rates = self.predict_proba(X)
        return self.classes_[rates.argmax(axis=1)]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return where sample weights, groups and other parameters go."""
        router = MetadataRouter(owner=self.__class__.__name__)
        router = router.add_self_request(self)
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = router.add(estimator=self._base(), method_mapping=to_fit)
        if self.cv is not None and hasattr(self.cv, "split"):
            router = router.add(
                splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split")
            )
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        method = recalibrations().get(self.method)
        if method is not None and method.fit_classes is None:
            tags.classifier_tags.multi_class = False
        return tags


def _routed(owner: Recalibrated, sample_weight: Any, params: dict[str, Any]) -> Any:
    from sklearn import get_config
    from sklearn.utils import Bunch
    from sklearn.utils.validation import has_fit_parameter

    if get_config()["enable_metadata_routing"]:
        given = params if sample_weight is None else {**params, "sample_weight": sample_weight}
        routed = process_routing(owner, "fit", **given)
        if "splitter" not in routed:
            routed["splitter"] = Bunch(split={})
        return routed
    split = {"groups": params.pop("groups")} if "groups" in params else {}
    fit = dict(params)
    if sample_weight is not None and has_fit_parameter(owner._base(), "sample_weight"):
        fit["sample_weight"] = sample_weight
    return Bunch(estimator=Bunch(fit=fit), splitter=Bunch(split=split))


def _rows(params: Mapping[str, Any], rows: Any, count: int) -> dict[str, Any]:
    """Return parameters of some rows: what has one value per row is cut, all else stays."""
    return {
        name: _safe_indexing(value, rows) if hasattr(value, "__len__") and len(value) == count else value
        for name, value in params.items()
    }


def _aligned(table: Any, known: Any, labels: Any) -> Any:
    if len(known) == len(labels):
        return table
    full = np.zeros((len(table), len(labels)))
    full[:, np.searchsorted(labels, known)] = table
    return full


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
        try:
            self.recalibration_: Recalibration = recalibrate(
                y,
                X,
                method=self.method,
                sample_weight=sample_weight,
                seed=self.random_state,
                **dict(self.options or {}),
            )
        except InvalidInputError as error:
            if error.option is None or error.option[0] != "pos_label":
                raise
            raise error.with_parts(hint=f"pass options={dict([error.option])}") from None
        return self

    def predict(self, X: Any) -> Array:
        """Return recalibrated predictions."""
        check_is_fitted(self)
        return self.recalibration_.predict(X)

    def transform(self, X: Any) -> Array:
        """Return recalibrated predictions, as `predict` does."""
        return self.predict(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.positive_only = True
        return tags
