"""The Spark recipe runs as it is printed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

RECIPE = Path(__file__).parents[2] / "examples" / "spark" / "days.py"


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_recipe_for_spark_runs(spark_session, tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("days", RECIPE)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    whole = recipe.main(spark_session, tmp_path)
    assert whole.n == recipe.DAYS * recipe.ROWS
    errors = {country: sketch.measure("smooth").lower for country, sketch in whole.groups.items()}
    assert sorted(errors) == ["de", "fr", "it"]
    assert errors["it"] > 0.02 > max(errors["de"], errors["fr"])
    assert "it: smooth" in capsys.readouterr().out
