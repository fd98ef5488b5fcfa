"""class_table and `calibrant classes`: the same numbers as class by class, and wrong classes are named."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant as cb
from calibrant.cli.main import calibrant as command

RNG = np.random.default_rng(6)
NAMES = ["cat", "dog", "owl"]
TRUE = RNG.dirichlet([1, 1, 1], 900)
LABEL = np.array([RNG.choice(3, p=row) for row in TRUE])
GOOD = np.round(TRUE, 4)
GOOD[:, 2] = 1 - GOOD[:, :2].sum(axis=1)
BAD = np.column_stack([TRUE[:, 0] * 0.5, TRUE[:, 1] + TRUE[:, 0] * 0.5, TRUE[:, 2]])


def test_it_is_class_by_class():
    found = cb.class_table(LABEL, GOOD, seed=1)
    every = cb.class_wise(LABEL, GOOD)
    for one, (name, forecasts) in zip(found.classes, every.items(), strict=True):
        assert one.name == str(name)
        assert one.value == pytest.approx(cb.smooth_calibration_error(forecasts), rel=1e-12)
        assert one.pvalue == cb.calibration_test(forecasts, draws=199, seed=1).pvalue
        assert one.adjusted >= one.pvalue
    assert found.mean == pytest.approx(np.mean([one.value for one in found.classes]))
    assert found.top.value == cb.smooth_calibration_error(cb.top_label(LABEL, GOOD))
    assert found.wrong == ()
    assert len(found.to_frame("pandas")) == 4


def test_wrong_classes_are_named_and_gaps_are_counted():
    labels = np.array(NAMES, dtype=object)[LABEL]
    labels[5] = None
    with pytest.raises(cb.CalibrantError, match=r'y_true must not be missing.*missing="drop"'):
        cb.class_table(labels, BAD, classes=NAMES)
    found = cb.class_table(labels, BAD, classes=NAMES, missing="drop", seed=1)
    assert {one.name for one in found.wrong} == {"cat", "dog"}
    assert found.dropped == 1
    assert "2 of 3 classes are off beyond chance" in str(found)
    assert "899 rows (1 with missing values dropped)" in str(found)


def test_many_wrong_classes_are_found_in_spite_of_the_adjustment():
    """199 draws give p-values of 1/200 at least, and Holm makes 12/200 of them."""
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(600, 12))
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (rng.random((600, 1)) > true.cumsum(axis=1)).sum(axis=1)
    bold = np.exp(4 * logits) / np.exp(4 * logits).sum(axis=1, keepdims=True)
    found = cb.class_table(labels, bold, seed=1)
    assert found.draws == 239
    assert len(found.wrong) == 12
    assert cb.class_table(labels, bold, draws=499, seed=1).draws == 499
    gaps = {one.name: abs(one.happened - one.predicted) for one in found.wrong}
    first = sorted(gaps, key=lambda name: -gaps[name])[:3]
    said = re.findall(r"class (\d+) \(", str(found))
    assert said == first != ["0", "1", "2"]


@pytest.mark.parametrize("kind", ["names", "numbers", "labels"])
def test_the_command_line_reads_names_numbers_and_labels(tmp_path, kind):
    path = tmp_path / "animals.csv"
    said = {"names": [NAMES[k] for k in LABEL], "numbers": LABEL, "labels": [10 * k for k in LABEL]}[kind]
    rows = "".join(f"{y},{a!r},{b!r},{c!r}\n" for y, (a, b, c) in zip(said, GOOD.tolist(), strict=True))
    path.write_text("y,cat,dog,owl\n" + rows)
    extra = ["--labels", "0,10,20"] if kind == "labels" else []
    columns = ["-y", "y", "-p", "cat", "-p", "dog", "-p", "owl"]
    arguments = ["classes", str(path), *columns, "--seed", "1", *extra]
    found = json.loads(CliRunner().invoke(command, [*arguments, "--json"], catch_exceptions=False).stdout)
    same = cb.class_table(LABEL, GOOD, seed=1)
    assert [one["value"] for one in found["classes"]] == [one.value for one in same.classes]
    text = CliRunner().invoke(command, arguments).stdout
    assert text.startswith("The most probable class is right in ")
    assert "top label" in text


def test_one_row_is_too_little_to_call_classes_calibrated():
    text = str(cb.class_table(["cat"], [[0.5, 0.3, 0.2]], classes=NAMES, seed=1))
    assert "50.0% were predicted: too little data to say (p = 1.00)" in text
    assert "calibrated within noise" in str(cb.class_table(LABEL, GOOD, seed=1))
