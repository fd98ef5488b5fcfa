"""Recalibration from logits and log-probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax

import calibrant as cb


def answers(n=400, k=4, seed=0):
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.normal(size=(n, k))
    truth = softmax(0.5 * logits, axis=1)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return labels, logits


def test_one_temperature_is_recovered_from_logits():
    labels, logits = answers(4_000)
    fitted = cb.recalibrate(labels, logits=logits, method="temperature")
    assert fitted.temperature == pytest.approx(2.0, rel=0.1)
    assert fitted.predict(logits=logits) == pytest.approx(softmax(logits / fitted.temperature, axis=1))


def test_logits_log_probabilities_and_probabilities_give_the_same_map():
    labels, logits = answers()
    fits = [
        cb.recalibrate(labels, logits=logits, method="temperature"),
        cb.recalibrate(labels, logits=logits + 7.0, method="temperature"),
        cb.recalibrate(labels, logits=log_softmax(logits, axis=1), method="temperature"),
        cb.recalibrate(labels, softmax(logits, axis=1), method="temperature"),
    ]
    assert [one.temperature for one in fits] == pytest.approx([fits[0].temperature] * 4)


def test_two_classes_and_one_column():
    rng = np.random.default_rng(1)
    x = rng.normal(0, 2, 500)
    y = (rng.random(500) < expit(x / 2)).astype(int)
    one = cb.recalibrate(y, logits=x, method="platt")
    two = cb.recalibrate(y, logits=np.column_stack([np.zeros(500), x]), method="platt")
    assert one.predict(expit(x)) == pytest.approx(two.predict(expit(x)), abs=1e-9)
    assert one.predict(logits=x) == pytest.approx(one.predict(expit(x)))


def test_a_class_of_probability_zero_is_allowed_and_other_infinities_are_not():
    labels, logits = answers(50)
    logits[3, (labels[3] + 1) % 4] = -np.inf
    assert np.isfinite(cb.recalibrate(labels, logits=logits, method="temperature").temperature)
    logits[4, 0] = np.inf
    with pytest.raises(cb.InvalidInputError, match=r"logits must be below infinity.*row 4"):
        cb.recalibrate(labels, logits=logits, method="temperature")


@pytest.mark.parametrize("bad", [np.array([["a", "b"]]), np.zeros((2, 2, 2)), np.zeros((3, 1))])
def test_other_shapes_and_types_are_refused(bad):
    with pytest.raises(cb.InvalidInputError, match="logits must be numbers"):
        cb.recalibrate([0, 1], logits=bad)


def test_one_of_probabilities_and_logits():
    with pytest.raises(cb.InvalidInputError, match="logits replace y_prob"):
        cb.recalibrate([0, 1], [0.1, 0.9], logits=[0.0, 1.0])
    fitted = cb.recalibrate([0, 1], [0.1, 0.9], method="shift")
    with pytest.raises(cb.InvalidInputError, match="predict needs p or logits"):
        fitted.predict()
