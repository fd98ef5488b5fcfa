"""What the base install lacks: frames and DuckDB relations without pandas, Polars and PyArrow.

The modules are hidden in a process of its own, before anything is imported; there `import pandas` fails as
it does where pandas is not installed. What needs no frame must give the same numbers as with them; what
does need one says so in the library's words.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HIDDEN = ["pyarrow", "pandas,polars,pyarrow"]
CODE = """
import json, sys
hidden = [name for name in sys.argv[1].split(",") if name]
sys.modules.update(dict.fromkeys(hidden))
import duckdb, numpy as np, calibrant as cb

connection = duckdb.connect()
rows = connection.sql(
    "SELECT (i * 7) % 20 / 20.0 AS p, CAST((i * 13) % 23 > 11 AS INT) AS y, CAST(1 + i % 3 AS DECIMAL(4, 2)) "
    "AS w, CASE WHEN i % 9 = 0 THEN NULL WHEN i % 2 = 0 THEN 'even' ELSE 'odd' END AS g, "
    "DATE '2020-01-01' + CAST(i % 3 AS INT) AS day, i % 5 = 0 AS flag, "
    "CAST(CASE WHEN i % 4 = 0 THEN 'low' ELSE 'high' END AS ENUM ('low', 'high')) AS level "
    "FROM range(300) AS t(i)"
)
columns = {"outcome": "y", "prediction": "p"}
audited = cb.audit(rows, **columns, weight="w", groups=["g", "day", "flag", "level"], draws=19, seed=1)
repaired = cb.recalibrate(rows, **columns, covariates=["g", "w"], method="hierarchical", seed=1)
done = {
    "frame": cb.smooth_calibration_error(cb.Forecasts.from_frame(rows, **columns, weight="w")),
    "test": cb.calibration_test(rows, **columns, seed=1, draws=99).pvalue,
    "audit": {str(group.rule): [group.size, group.z] for group in audited.groups},
    "repair": repaired.to_dict()["map"],
    "sketch": cb.Sketch.from_frame(rows, **columns, by=["g"]).measure("kuiper").value,
    "table": audited.table is not None,
}
y, p = [0, 1] * 20, [0.25, 0.5] * 20
refused, evaluated = {}, cb.evaluate(y, p, measures=["kuiper"], draws=9, seed=1)
for library in ("pandas", "polars", "pyarrow"):
    try:
        evaluated.to_frame(library)
    except cb.MissingDependencyError as error:
        refused[library] = str(error)
print(json.dumps({"done": done, "refused": refused}))
"""


def reported(hidden):
    code = [sys.executable, "-c", CODE, hidden]
    run = subprocess.run(code, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def beside_everything():
    return reported("")


@pytest.mark.parametrize("hidden", HIDDEN)
def test_duckdb_relations_need_no_frames(beside_everything, hidden):
    found = reported(hidden)
    assert found["done"] == beside_everything["done"]
    assert sorted(found["refused"]) == sorted(hidden.split(","))
    for library, message in found["refused"].items():
        assert message == f"this frame needs {library}. Hint: pip install {library}."


def test_no_library_is_refused_where_all_are_there(beside_everything):
    assert beside_everything["refused"] == {}
