"""Recalibrator and Recalibrated keep scikit-learn's contracts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    parametrize_with_checks,
)

import calibrant as cb
from calibrant.sklearn import Recalibrated, Recalibrator

REASON = "sampling weights sum to the effective number of records, on which the shrinkage of platt depends"
SAMPLING = {f"check_sample_weight_equivalence_on_{kind}_data": REASON for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [Recalibrated(method=name, random_state=0) for name in ("temperature", "platt")],
    expected_failed_checks=lambda estimator: SAMPLING if estimator.method == "platt" else {},
)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks(estimator, check):
    """A map of one column is not among them: scikit-learn has no checks for such (IsotonicRegression)."""
    check(estimator)


@pytest.mark.parametrize(
    "options", [{"weights": "frequency"}, {"shrink": None}], ids=["frequencies", "no shrinkage"]
)
def test_a_row_of_weight_two_is_two_rows_with_frequencies_or_without_shrinkage(options):
    estimator = Recalibrated(method="platt", options=options, random_state=0)
    check_sample_weight_equivalence_on_dense_data("Recalibrated", estimator)


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(600, 8, n_informative=4, random_state=0)
    return X, y


def test_naive_bayes_gets_better(data):
    X, y = data
    found = Recalibrated(GaussianNB(), method="platt", random_state=0).fit(X[:400], y[:400])
    raw = GaussianNB().fit(X[:400], y[:400]).predict_proba(X[400:])[:, 1]
    new = found.predict_proba(X[400:])[:, 1]
    assert cb.log_loss(y[400:], new) < cb.log_loss(y[400:], raw)
    assert found.recalibration_.assessment is not None
    assert (found.predict(X[400:]) == (new > 0.5)).mean() > 0.99


def test_pipeline_grid_search_and_clone(data):
    X, y = data
    model = make_pipeline(StandardScaler(), Recalibrated(LogisticRegression(), random_state=0))
    grid = {"recalibrated__method": ["identity", "platt"], "recalibrated__estimator__C": [0.1, 1.0]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert search.predict_proba(X).min() >= 0
    assert clone(search.best_estimator_)[-1].get_params()["method"] in ("identity", "platt")


def test_a_frozen_estimator_is_not_refitted(data):
    X, y = data
    base = GaussianNB().fit(X[:300], y[:300])
    found = Recalibrated(FrozenEstimator(base), method="isotonic").fit(X[300:], y[300:])
    assert (found.estimator_.predict_proba(X) == base.predict_proba(X)).all()
    assert found.recalibration_.fit.n == 300


def test_decision_functions_and_several_classes():
    X, y = make_classification(400, 8, n_informative=5, n_classes=3, random_state=0)
    for base in (LinearSVC(), RandomForestClassifier(20, random_state=0)):
        q = Recalibrated(base, method="temperature", random_state=0).fit(X, y).predict_proba(X)
        assert q.shape == (400, 3)
        assert q.sum(axis=1) == pytest.approx(np.ones(400))


def test_groups_reach_the_splitter_with_and_without_routing(data):
    X, y = data
    groups = np.arange(600) // 6
    plain = Recalibrated(method="platt", cv=GroupKFold(3), random_state=0).fit(X, y, groups=groups)
    assert plain.recalibration_.fit.n == 600
    with config_context(enable_metadata_routing=True):
        base = LogisticRegression().set_fit_request(sample_weight=True)
        routed = Recalibrated(base, method="platt", cv=GroupKFold(3), random_state=0)
        routed.set_fit_request(sample_weight=True)
        routed.fit(X, y, sample_weight=np.ones(600), groups=groups)
    assert routed.predict_proba(X) == pytest.approx(plain.predict_proba(X), abs=1e-6)


def test_x_is_never_converted():
    """Strings go to the model as they are."""
    from sklearn.feature_extraction.text import CountVectorizer

    texts = ["good film", "bad film", "good plot", "bad plot"] * 30
    y = np.array([1, 0, 1, 0] * 30)
    y[:12] = 1 - y[:12]
    found = Recalibrated(make_pipeline(CountVectorizer(), LogisticRegression()), method="platt").fit(texts, y)
    assert found.predict(["good film"])[0] == 1


def test_recalibrator_is_a_transformer_of_scores():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = (rng.random(500) < p**2).astype(int)
    found = Recalibrator("platt", options={"shrink": None}).fit(p, y)
    assert (
        found.transform(p).tolist() == cb.recalibrate(y, p, method="platt", shrink=None).predict(p).tolist()
    )
    assert found.score(p, y) <= 1


def test_a_class_that_a_frozen_estimator_does_not_know_is_not_taken_for_its_neighbour(data):
    X, y = data
    base = FrozenEstimator(LogisticRegression().fit(X, np.where(y == 1, "yes", "no")))
    names = np.where(y == 1, "yes", "no").astype(object)
    names[:3] = "perhaps"
    with pytest.raises(ValueError, match=r"y must hold classes that the estimator was fitted to.*'perhaps'"):
        Recalibrated(base, method="platt").fit(X, names)
