"""Python blocks of the pages run as printed; command lines name commands and options that exist."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cb
from calibrant.cli.main import calibrant as program
from calibrant.demo import load_demo

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.glob("*.md"), *(DOCS / "howto").glob("*.md")])
PAGES = [page for page in PAGES if not page.name.endswith(".in.md")]  # what other pages are written from
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ |    )(calibrant .*)$", re.MULTILINE)
OPTIONAL = {"lightgbm", "matplotlib", "mlflow", "optuna", "pyspark", "sklearn", "torch", "wandb", "xgboost"}
FIRST = {"README", "index"}  # what newcomers run: it must work where no library of data frames is installed


def demo_without_frames():
    loans = load_demo(500)
    return {name: loans[name].to_numpy() for name in loans.columns}


def known_names(folder):
    """What pages take for granted: predictions, outcomes, weights, frames, class probabilities, a stream."""
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    country = rng.choice(["de", "fr"], 300)
    days = pl.DataFrame({"y": y, "p": p, "country": country})
    days.write_parquet(folder / "a.parquet")
    monday = cb.Sketch.from_frame(days, outcome="y", prediction="p")
    return {
        **dict.fromkeys(("y", "died"), y),
        **dict.fromkeys(("p", "risk", "physicians", "model", "new_p", "p_old", "p_new", "p_unlabeled"), p),
        "batches": [(y, p)],
        "daily_monitors": [cb.Monitor(alpha=0.01)],
        "monday": monday,
        "tuesday": monday,
        "cb": cb,
        "calibrant": cb,
        "np": np,
        "y_true": y,
        "y_prob": p,
        "w": rng.uniform(1, 2, 300),
        "frame": days,
        "new_frame": days,
        "labels": rng.choice(["cat", "dog", "owl"], 300),
        "probabilities": rng.dirichlet([1, 1, 1], 300),
    }


def pages():
    """Pages that take many seconds run with the slow tests, where most are also followed step by step."""
    for page in PAGES:
        slow = page.stem in {"sites-and-seasons", "papers", "committee", "fix"}
        yield pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("page", list(pages()))
def test_python_blocks_run_as_printed(page, tmp_path, monkeypatch):
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    if not blocks:
        pytest.skip("no Python on this page")
    (tmp_path / "predictions").mkdir()
    cb.Monitor(alpha=0.01).save(tmp_path / "monitor.json")  # the state of earlier nights
    monkeypatch.chdir(tmp_path)
    names = known_names(tmp_path / "predictions")
    if page.stem in FIRST:
        monkeypatch.setattr(cb, "load_demo", demo_without_frames)
    for block in blocks:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of other packages, at whatever version is installed
                exec(compile(block, str(page), "exec"), names)
        except ModuleNotFoundError as error:
            if str(error.name).split(".")[0] not in OPTIONAL:
                raise


def commands():
    for page in PAGES:
        for line in COMMAND.findall(page.read_text(encoding="utf-8")):
            yield pytest.param(line.split("  #")[0], id=f"{page.stem}: {line[:50]}")


@pytest.mark.parametrize("line", list(commands()))
def test_command_lines_name_commands_and_options_that_exist(line):
    words = shlex.split(line.split("||")[0])
    command = program.get_command(None, words[1])
    assert command is not None, words[1]
    options = {name for parameter in command.params for name in parameter.opts}
    for word in words[2:]:
        if word.startswith("-") and word != "-":
            assert word.split("=")[0] in options | {"--help"}, word
