"""The package as a whole: public names, what importing loads, which way imports point."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant as cb

SOURCE = Path(cb.__file__).parent
HEAVY = ["scipy", "numba", "pandas", "polars", "pyarrow", "duckdb", "narwhals", "rich", "altair", "jinja2"]
HEAVY += ["sklearn", "torch", "pyspark"]

ROOMS = ["kernels", "options", "inputs", "seeds", "records", "forecasts", "fits", "measures", "inference"]
ROOMS += ["groups", "recalibration", "online", "truthfulness", "scale", "evaluation", "report", "sklearn"]
ROOMS += ["cli"]
FREE = {"errors", "results", "numerals", "sheets", "calibrant"}
BELOW = {room: set(ROOMS[:rank]) | {room} for rank, room in enumerate(ROOMS)}
BELOW["losses"] = set()  # stands alone, beside PyTorch


def test_public_names_are_sorted_and_exist():
    assert cb.__all__ == sorted(cb.__all__)
    for name in cb.__all__:
        assert getattr(cb, name) is not None
        assert (getattr(cb, name).__doc__ or "").strip(), name


def test_rooms_above_the_measures_load_when_first_used():
    code = "import sys, calibrant; print([m for m in sys.modules if m.startswith('calibrant.groups')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"
    assert set(cb._LATER) <= set(cb.__all__) == set(dir(cb)) - {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        cb.nonsense  # noqa: B018


def test_importing_loads_nothing_heavy():
    code = f"import sys, calibrant; print([m for m in {HEAVY!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def seconds(code: str) -> float:
    """Best of five, in seconds of the processor: a busy machine does not count."""
    timed = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
    runs = [
        float(
            subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout
        )
        for _ in range(5)
    ]
    return min(runs)


def test_importing_is_quick():
    assert seconds("import numpy, calibrant") - seconds("import numpy") < 0.2
    assert seconds("import calibrant.cli.main") - seconds("import numpy") < 0.3


def imported(path: Path) -> set[str]:
    """The rooms of calibrant that a file imports, lazily or not."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "calibrant":
            parts = node.module.split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            rooms |= {a.name.split(".")[1] for a in node.names if a.name.startswith("calibrant.")}
    return rooms


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room in ("__init__", "demonstration", "errors", "results", "numerals", "sheets"):
        return
    allowed = (
        BELOW[room]
        | FREE
        | ({"demonstration", "__version__"} if room in ("cli", "report", "evaluation") else set())
    )
    assert imported(path) <= allowed, imported(path) - allowed


def test_numba_may_be_absent():
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import numpy as np, calibrant as cb\n"
        "rng = np.random.default_rng(0); p = rng.random(30000); y = rng.random(30000) < p\n"
        "f = cb.Forecasts(y, p)\n"
        "print(cb.smooth_calibration_error(f))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert 0 < float(found.stdout) < 0.05
