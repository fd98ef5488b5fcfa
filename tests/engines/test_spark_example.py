"""The Spark recipe runs as it is printed: from raw days to audited, recalibrated days."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
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


def on_two_workers(*lose):
    """Run the recipe on a master and two workers, all processes of their own; return its numbers."""
    script = RECIPE.parent / "two_workers.py"
    command = [sys.executable, "-W", "ignore", str(script), *lose]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java")
def test_the_loss_of_one_of_two_workers_changes_nothing():
    pytest.importorskip("pyspark.sql")
    kept, bereft = on_two_workers(), on_two_workers("lose")
    assert (kept.pop("lost"), bereft.pop("lost")) == (0, 1)
    assert kept["n"] == 60_000
    assert kept["pvalue"] <= 0.01
    for name, value in kept.items():  # sums may be added in another order
        assert bereft[name] == pytest.approx(value, rel=1e-9)
