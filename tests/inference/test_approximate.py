"""What is only approximate is marked as such: in the result, in its JSON and in its words."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cb

FACES = ("calibrant.cli", "calibrant.report", "calibrant.sklearn")  # show results of other packages
ENDS = {"pvalue", "adjusted", "lower", "upper", "low", "high", "null_upper"}
PROVEN = {"Certified", "Measurement", "Distances"}  # bounds by arithmetic on the data at hand, not by a law
MAPS = {"LogisticMap", "Patch", "StepMap"}  # ends of a range of predictions, and of Venn and Abers
PARTS = {  # of a result that speaks for them
    "Difference": "Comparison",
    "GroupLevel": "GroupComparison",
    "GroupDifference": "GroupComparison",
    "Trend": "GroupComparison",
    "WithinGroup": "GroupComparison",
    "Benefit": "NetBenefits",
    "BenefitDifference": "NetBenefits",
    "ValidationRow": "ValidationTable",
    **dict.fromkeys(["Change", "ChangeInterval", "GroupAudit", "GroupGain", "GroupSide"], "Assessment"),
}


# Each has one construction, which its docstring names: exact limits and tests, or Wilson's interval.
ONE_LAW = {"Coverage", "Horizon", "Pit", "Rate", "Threshold"}


def everything():
    for module in pkgutil.walk_packages(cb.__path__, "calibrant."):
        if not module.name.startswith(FACES):
            yield from vars(importlib.import_module(module.name)).values()


def results_with_ends():
    """Yield the result types that have a p-value or the ends of an interval."""
    for kind in {item for item in everything() if isinstance(item, type) and dataclasses.is_dataclass(item)}:
        if hasattr(kind, "to_dict") and {part.name for part in dataclasses.fields(kind)} & ENDS:
            yield kind


def test_every_result_with_a_pvalue_or_an_interval_says_what_is_approximate():
    kinds = {kind.__name__: kind for kind in results_with_ends()}
    assert len(kinds) > 15
    unmarked = {name for name, kind in kinds.items() if not hasattr(kind, "approximate")}
    assert unmarked == PROVEN | MAPS | set(PARTS) | ONE_LAW
    for whole in PARTS.values():
        assert hasattr(getattr(cb, whole), "approximate")


MANY = 30_000  # enough for the limit law of the default test


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    p = 0.2 + 0.6 * rng.random(n)
    return (rng.random(n) < p).astype(float), p, rng


def columns(n, rng):
    return {"site": rng.integers(0, 3, n).astype(str), "age": rng.random(n)}


def exact_results():
    y, p, rng = drawn(300)
    monitor = cb.Monitor()
    monitor.update(y, p)
    yield cb.calibration_test(y, p, method="exact", draws=99, seed=1)
    yield cb.calibration_test(y, p, method="validity")
    yield cb.calibration_test(y, p, draws=99, seed=1, sample_weight=1 + rng.random(300))
    yield cb.tolerance_test(y, p, accept=0.1, reject=0.5)
    yield cb.estimate_decision_loss(y, p, draws=19, seed=1)
    yield cb.class_table(y, np.stack([1 - p, p], axis=1), draws=19, seed=1)
    yield cb.weight_family(y, p, {"one": lambda v: 1.0}, draws=19, seed=1)
    yield cb.dominance(y, p, p**2, draws=0)
    yield monitor.reading()


def approximate_results():
    y, p, rng = drawn(MANY)
    x = columns(300, rng)
    few = y[:300], p[:300]
    frame = {"y": y, "p": p, "site": rng.integers(0, 3, len(p)).astype(str)}
    sketch = cb.Sketch.from_frame(pa.table(frame), outcome="y", prediction="p", by=["site"], cells=64)
    yield cb.calibration_test(y, p)
    yield cb.calibration_test(sketch.forecasts(), measure="smooth", draws=19, seed=1)
    yield cb.calibration_test(*few, method="asymptotic")
    yield cb.calibration_test((y + p)[:300] / 2, p[:300])
    yield cb.confidence_interval(*few, draws=19, seed=1)
    yield cb.tolerance_test(*few, accept=0.1, reject=0.5, method="bootstrap", draws=19, seed=1)
    yield cb.class_table(y, np.stack([1 - p, p], axis=1), draws=19, seed=1)
    yield cb.estimate_decision_loss(sketch.forecasts(), draws=19, seed=1, recalibrator=None)
    yield cb.audit(sketch, groups=["site"], draws=19, seed=1)
    yield cb.audit(2 * y[:300], p[:300], groups=x, variant="real", draws=19, seed=1)
    yield cb.compare(few[0], {"a": few[1], "b": few[1] ** 2}, draws=19, seed=1)
    yield cb.compare_groups(*few, x["site"], draws=19, seed=1)
    yield cb.compare_groups(*few, x["site"], sample_weight=1 + rng.random(300), draws=19, seed=1)
    yield cb.dominance(*few, few[1] ** 2, draws=19, seed=1)
    yield cb.dominance(few[0], few[1], {"square": few[1] ** 2}, draws=19, seed=1)
    yield cb.net_benefits(few[0], {"a": few[1]}, thresholds=[0.2, 0.5])
    yield cb.distinguish(*few, x, draws=19, seed=1)


def test_exact_results_are_not_marked():
    for result in exact_results():
        assert result.approximate == (), result
        assert result.to_dict()["approximate"] == []
        assert "approximate" not in str(result)


def test_an_audit_has_exact_pvalues_and_approximate_intervals():
    y, p, rng = drawn(300)
    found = cb.audit(y, p, groups=columns(300, rng), draws=19, seed=1)
    assert found.approximate == ("low", "high")
    assert found.to_dict()["approximate"] == ["low", "high"]


def test_approximate_results_are_marked_in_fields_json_and_words():
    for result in approximate_results():
        whole = result.to_dict()
        text = json.dumps(whole)
        assert result.approximate, result
        assert whole["approximate"] == list(result.approximate)
        assert all(f'"{name}":' in text or hasattr(result, name) for name in result.approximate), result
        assert "approximate" in str(result), str(result)


@pytest.mark.parametrize(("n", "by_law"), [(200, False), (MANY, True)])
def test_verdicts_and_rows_of_an_evaluation_say_which_law_they_rest_on(n, by_law):
    y, p, _ = drawn(n, 1)
    evaluation = cb.evaluate(y, p, draws=19, seed=1)
    verdict = evaluation.verdict
    assert verdict.approximate == (("pvalue",) if by_law else ())
    assert "approximate" not in verdict.sentence  # it quotes no p-value
    known = evaluation.to_dict()
    assert known["verdict"]["approximate"] == list(verdict.approximate)
    for row, line in zip(evaluation.rows, known["measures"], strict=True):
        rough = {"low", "high"} if row.low is not None else set()
        rough |= {"pvalue"} if row.pvalue is not None and row.pvalue_method != "exact" else set()
        assert set(line["approximate"]) == rough


@pytest.mark.parametrize("confidence", [0, 0.95])
def test_lines_of_the_gate_say_that_their_interval_is_approximate(confidence):
    y, p, _ = drawn(200)
    for finding in cb.assert_calibrated(y, p, max={"smooth": 0.9}, confidence=confidence, draws=19, seed=1):
        assert finding.approximate == (("low", "high") if confidence else ())
        assert finding.to_dict()["approximate"] == list(finding.approximate)
        assert ("approximately" in finding.reason) == bool(confidence)
