"""The reliability diagram on matplotlib axes."""

from __future__ import annotations

import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.linear_model import LinearRegression, LogisticRegression

import calibrant as cb
from calibrant.sklearn import ReliabilityDisplay

RNG = np.random.default_rng(4)
X = RNG.normal(size=(300, 2))
Y = np.where(RNG.random(300) < 1 / (1 + np.exp(-X[:, 0])), "sick", "well")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def test_the_line_is_the_smoothed_curve_within_the_predictions():
    p = RNG.uniform(0.2, 0.8, 300)
    shown = ReliabilityDisplay.from_predictions(Y, p, pos_label="sick", name="mine")
    x, y = shown.line_.get_data()
    assert p.min() <= x.min() < x.max() <= p.max()
    curve = cb.smoothed_reliability((Y == "sick").astype(int), p)
    assert np.array_equal(y, curve.outcome[np.isin(curve.prediction, x)])
    assert "mine" in [text.get_text() for text in shown.ax_.get_legend().get_texts()]


def test_an_estimator_is_drawn_on_the_axes_given():
    model = LogisticRegression().fit(X, Y)
    _, ax = pyplot.subplots()
    shown = ReliabilityDisplay.from_estimator(model, X, Y, pos_label="sick", ax=ax, color="red")
    assert shown.ax_ is ax
    again = ReliabilityDisplay.from_predictions(Y, model.predict_proba(X)[:, 0], pos_label="sick")
    assert np.array_equal(shown.line_.get_ydata(), again.line_.get_ydata())
    assert shown.line_.get_color() == "red"
    assert ReliabilityDisplay.from_estimator(model, X, Y).name == "LogisticRegression"


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(cb.InvalidInputError, match="must be a classifier of two classes"):
        ReliabilityDisplay.from_estimator(LinearRegression().fit(X, X[:, 0]), X, Y)
    with pytest.raises(cb.InvalidInputError, match="pos_label must be one of the classes"):
        ReliabilityDisplay.from_estimator(LogisticRegression().fit(X, Y), X, Y, pos_label="ill")


def test_one_prediction_is_drawn_too():
    assert len(ReliabilityDisplay.from_predictions([0, 1, 1], [0.3333] * 3).line_.get_xdata()) > 0


def test_without_scikit_learn_the_error_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import calibrant.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingDependencyError: calibrant.sklearn needs scikit-learn" in done.stderr
