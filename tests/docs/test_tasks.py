"""The tasks that people come with, from their pages alone: every block as printed, in an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import calibrant as cb
from calibrant.cli.main import calibrant

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\{code-cell\}|\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
VERDICTS = ("check", "monitor")  # exit code 1 is an answer there
TASKS = {  # page, and what must have come out of it: files, and words that were printed
    "tutorials/choosing-between-models": (["models.svg"], ["p is better than p_old by Brier score"]),
    "howto/committee": (
        ["audit.html", "repaired.csv"],
        ["Wrong beyond chance for 7 of 24 groups", "helps"],
    ),
    "howto/sites-and-seasons": (
        ["report.html", "calibrated.csv", "seasons.svg"],
        ["The 4 groups of region", "trend along", "Within region, the groups of month"],
    ),
    "howto/operations": (
        ["monitor.json", "both.html"],
        ["no alarm (a false alarm, ever, has a chance of at most 0.01)"],
    ),
    "howto/papers": (
        ["reliability.svg", "figure.pdf", "benefit.svg", "calibration.bib"],
        ["with 10 degrees of freedom", "slope            0.811", "minus", "p - p_old"],
    ),
    "howto/split": (["map.json", "judged.csv"], ["p_recalibrated"]),
    "howto/gate-in-ci": (["gate.xml"], ["smooth"]),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, and the program on the path."""
    program = tmp_path / "bin" / "calibrant"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m calibrant "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    work = tmp_path / "work"
    work.mkdir()
    return work


def run(folder, command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", TASKS)
def test_a_task_is_done_by_its_page_alone(page, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    printed, names = [], {}
    for kind, body in BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8")):
        if kind in ("python", "{code-cell}"):
            exec(compile(body, page, "exec"), names)  # later blocks use the names of earlier ones
            printed.append(capsys.readouterr().out)
        elif kind == "bash":
            (folder / "watch.sh").write_text(body, encoding="utf-8")
        elif kind == "console":
            for line in re.findall(r"^\$ (.*)$", body, re.MULTILINE):
                done = run(folder, ["sh", "-c", line])
                allowed = (0, 1) if line.split()[1] in VERDICTS else (0,)
                assert done.returncode in allowed, f"{line}\n{done.stderr}"
                printed.append(done.stdout + done.stderr)
    files, words = TASKS[page]
    for name in files:
        assert (folder / name).stat().st_size > 0, name
    for word in words:
        assert any(word in text for text in printed), word


def test_the_table_for_a_paper_has_slope_and_intercept_without_certain_predictions(capsys):
    page = (DOCS / "howto" / "papers.md").read_text(encoding="utf-8")
    block = next(body for kind, body in BLOCK.findall(page) if kind == "python" and "to_latex" in body)
    loans = cb.load_demo()[:1500].copy()
    loans.loc[loans["p"] < 0.03, "p"] = 0.0
    certain = int((loans["p"] == 0).sum())
    assert certain > 5
    names = {"cb": cb, "loans": loans}
    exec(compile(block.replace("draws=999", "draws=39"), "papers", "exec"), names)
    said, table = capsys.readouterr().out, names["table"]
    assert f"slope: {certain} predictions of exactly 0 or 1 left out" in said
    inner = loans[loans["p"] > 0]
    assert table.loc["slope", "value"] == pytest.approx(cb.calibration_slope(inner["default"], inner["p"]))
    assert table.loc["slope", "low"] < table.loc["slope", "value"] < table.loc["slope", "high"]
    assert "nan" not in said.lower()


def test_a_recalibration_for_a_paper_is_what_the_page_says_of_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "howto" / "papers.md").read_text(encoding="utf-8")
    blocks = [body for kind, body in BLOCK.findall(page) if kind == "python"]
    loans = cb.load_demo()[::8].copy()
    loans.loc[loans["p"] < 0.03, "p"] = 0.0
    names = {"cb": cb, "loans": loans}
    for body in blocks:
        if "to_latex" in body or "cb.recalibrate" in body:
            exec(compile(body.replace("draws=999", "draws=39"), "papers", "exec"), names)
    said = capsys.readouterr().out
    later = loans["month"] > 8
    certain = int((loans["p"][later] == 0).sum())
    assert f"slope: {certain} predictions of exactly 0 or 1 left out" in said
    assert "Difference(first='recalibrated', second='original'" in said
    y, p, clip = loans["default"][~later], loans["p"][~later], names["fitted"].map.clip
    p = p.clip(clip, 1 - clip)
    rest = y - names["fitted"].predict(p)  # a logistic regression without shrinkage has these sums at 0
    assert rest.mean() == pytest.approx(0, abs=1e-9)
    assert (rest * np.log(p / (1 - p))).mean() == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
def test_the_nightly_script_is_silent_until_there_is_something_to_say(folder):
    page = (DOCS / "howto" / "operations.md").read_text(encoding="utf-8")
    script = next(body for kind, body in BLOCK.findall(page) if kind == "bash")
    (folder / "watch.sh").write_text(script, encoding="utf-8")
    right = "default,p\n" + "".join(f"{k % 2},0.{45 + k % 10}\n" for k in range(100))
    wrong = "default,p\n" + "".join(f"0,0.9{k % 10}\n" for k in range(100))
    for name, text, code in (("a.csv", right, 0), ("b.csv", wrong, 1), ("c.csv", "x\n1\n", 2)):
        (folder / name).write_text(text)
        done = run(folder, ["sh", "watch.sh", name])
        assert done.returncode == code
        assert bool(done.stdout) == (code != 0)
        assert "ALARM" in done.stdout or code != 1
    (folder / "a.csv").write_text(right.replace("0.45", "0.451"))
    assert run(folder, ["sh", "watch.sh", "b.csv"]).stdout.count("--same") == 1
    shutil.copy(folder / "before-b.csv.json", folder / "monitor.json")  # b was wrong: it is taken back
    (folder / "b.csv").write_text(right.replace("0.45", "0.452"))
    assert run(folder, ["sh", "watch.sh", "b.csv"]).returncode == 0


def test_a_night_is_taken_back_in_the_recipe_for_github_actions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "howto" / "operations.md").read_text(encoding="utf-8")
    recipe = yaml.safe_load(next(body for kind, body in BLOCK.findall(page) if kind == "yaml"))
    right = "default,p\n" + "".join(f"{k % 2},0.{45 + k % 10}\n" for k in range(100))
    wrong = "default,p\n" + "".join(f"0,0.9{k % 10}\n" for k in range(100))
    later = right.replace("0.45", "0.451")
    caches = {}
    codes = [night(recipe, caches, k, rows) for k, rows in enumerate((right, wrong, later), start=11)]
    assert codes == [0, 1, 1]
    mended = right.replace("0.45", "0.452")
    assert night(recipe, caches, 14, mended, state="11") == 0
    assert night(recipe, caches, 15, later) == 0
    fresh = {}
    assert [night(recipe, fresh, k, rows) for k, rows in enumerate((right, mended, later))] == [0, 0, 0]
    assert fresh["monitor-2-1"] == caches["monitor-15-1"]
    with pytest.raises(LookupError):
        night(recipe, caches, 16, mended, state="9")


def night(recipe, caches, number, rows, state=""):
    """Do what the runner does with the steps of the recipe; `caches` are its entries, the latest last."""
    known = {"github.run_id": number, "github.run_attempt": 1, "inputs.state": state, "inputs.day": ""}
    known["inputs.state != ''"] = "true" if state else "false"
    path, code = Path("monitor.json"), None
    path.unlink(missing_ok=True)
    for step in recipe["jobs"]["watch"]["steps"]:
        said = {
            k: EXPRESSION.sub(lambda m: str(known[m[1]]), str(v)) for k, v in step.get("with", {}).items()
        }
        if "cache/restore" in step.get("uses", ""):
            assert said["path"] == path.name
            entries = [key for key in caches if key == said["key"] or key.startswith(said["restore-keys"])]
            if entries:
                path.write_text(caches[entries[-1]])
            elif said["fail-on-cache-miss"] == "true":
                raise LookupError
        elif "calibrant monitor" in step.get("run", ""):
            Path("today.csv").write_text(rows)
            code = CliRunner().invoke(calibrant, step["run"].split()[1:]).exit_code
        elif "cache/save" in step.get("uses", ""):
            assert step["if"] == "always()"
            assert said["key"] not in caches  # entries are never replaced
            caches[said["key"]] = path.read_text()
    return code
