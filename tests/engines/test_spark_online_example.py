"""The recipe for Structured Streaming runs as it is printed, and learns every outcome exactly once."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

RECIPE = Path(__file__).parents[2] / "examples" / "spark" / "online.py"


class FakeBatch:
    """A micro-batch without Spark: rows that are sorted and collected."""

    def __init__(self, rows):
        self.rows = rows

    def orderBy(self, name):  # noqa: N802 - Spark's name
        return FakeBatch(sorted(self.rows, key=lambda row: row[name]))

    def collect(self):
        return self.rows


@pytest.fixture
def recipe():
    spec = importlib.util.spec_from_file_location("online_recipe", RECIPE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_batch_that_comes_twice_is_learnt_once(recipe, tmp_path):
    rows = [{"at": t, "region": "north", "p": 0.3, "y": t % 2} for t in range(20)]
    handle = recipe.Calibrating(tmp_path)
    handle(FakeBatch(rows), 0)
    first = handle.state.read_text(), (tmp_path / "calibrated-00000.csv").read_text()
    handle(FakeBatch(rows), 0)
    assert (handle.state.read_text(), (tmp_path / "calibrated-00000.csv").read_text()) == first
    handle(FakeBatch(rows), 1)
    assert handle.opened()[1].rounds == 40


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_recipe_for_streams_runs(recipe, spark_session, tmp_path):
    calibrator = recipe.main(spark_session, tmp_path)
    assert calibrator.rounds == recipe.FILES * recipe.ROWS
    assert calibrator.certificate <= calibrator.bound()
    assert sorted(calibrator.segments) == ["north", "south"]
    written = sorted(tmp_path.glob("calibrated-*.csv"))
    assert len(written) == recipe.FILES
    assert sum(len(path.read_text().splitlines()) - 1 for path in written) == recipe.FILES * recipe.ROWS
    assert calibrator.weights("south")["raw"] < calibrator.weights("north")["raw"]
