"""The Spark recipe runs as it is printed: from raw days to audited, recalibrated days."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

RECIPE = Path(__file__).parents[2] / "examples" / "spark" / "days.py"


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark")
@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark")
def test_the_recipe_for_spark_runs(spark_session, tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("days", RECIPE)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    whole, found, after = recipe.main(spark_session, tmp_path)
    assert whole.n == after.n == recipe.DAYS * recipe.ROWS
    assert found.worst.rule.startswith("country = it")
    assert found.pvalue <= 0.01
    assert found.tested == 1 + 3 + 2 + 6
    assert found.lower <= found.metric <= found.upper < found.lower * 1.01
    assert after.measure("smooth").upper < whole.measure("smooth").lower / 3
    printed = capsys.readouterr().out
    assert "Multi-calibration audit of 60,000 rows" in printed
    assert "after: smooth" in printed
