"""The command line, run as a user runs it: exit codes, streams, and never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from cli.typed import calibrant

import calibrant as cb


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(7)
    p = rng.random(400).round(3)
    frame = pd.DataFrame({"y": (rng.random(400) < p).astype(int), "p": p, "w": rng.random(400)})
    path = tmp_path_factory.mktemp("files")
    frame.to_csv(path / "good.csv", index=False)
    frame.to_parquet(path / "good.parquet", index=False)
    frame.assign(p=frame.p.where(frame.index != 41)).to_csv(path / "missing.csv", index=False)
    frame.assign(p=frame.p.where(frame.index != 41, 1.7)).to_csv(path / "range.csv", index=False)
    frame.assign(p=frame.p.astype(object).where(frame.index != 41, "oops")).to_csv(
        path / "text.csv", index=False
    )
    frame.assign(y=np.where(frame.y == 1, "bad", "good")).to_csv(path / "labels.csv", index=False)
    frame.rename(columns={"p": 'a "b"; drop table'}).to_csv(path / "hostile.csv", index=False)
    (path / "empty.csv").write_text("")
    (path / "header.csv").write_text("y,p\n")
    (path / "notes.docx").write_text("x")
    (path / "broken.parquet").write_bytes(b"PAR1 this is not parquet")
    return path


@pytest.mark.parametrize("name", ["good.csv", "good.parquet"])
def test_evaluate_prints_what_the_library_measures(folder, name):
    done = calibrant(
        "evaluate", folder / name, "--outcome", "y", "--prediction", "p", "--weight", "w", "--json"
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    frame = pd.read_csv(folder / "good.csv")
    kuiper = next(m for m in data["measures"] if m["name"] == "kuiper")
    assert kuiper["value"] == pytest.approx(
        cb.kuiper_error(frame.y, frame.p, sample_weight=frame.w), abs=1e-12
    )


def test_evaluate_prints_a_table(folder):
    done = calibrant("evaluate", folder / "good.csv", "-y", "y", "-p", "p")
    assert done.returncode == 0
    assert "400 records" in done.stdout
    table = done.stdout.split("\n\n")[1].splitlines()[1:]
    assert [line.split()[0] for line in table] == ["ECE", "smooth", "Brier", "slope"]


def test_the_page_is_written_even_if_nobody_reads_what_is_printed(folder, tmp_path, monkeypatch):
    def gone(*_):
        raise BrokenPipeError

    monkeypatch.setattr("calibrant.cli.evaluate.show_evaluation", gone)
    page = tmp_path / "report.html"
    calibrant("evaluate", folder / "good.csv", "-y", "y", "-p", "p", "--seed", 1, "--html", page)
    assert page.exists()


def test_hostile_column_names_are_only_names(folder):
    done = calibrant("evaluate", folder / "hostile.csv", "-y", "y", "-p", 'a "b"; drop table')
    assert done.returncode == 0, done.stderr


def test_dropped_rows_are_counted(folder):
    done = calibrant("evaluate", folder / "missing.csv", "-y", "y", "-p", "p", "--missing", "drop", "--json")
    assert json.loads(done.stdout)["facts"]["dropped"] == 1


BAD = [
    (
        "missing.csv",
        "p",
        r"column 'p' must not be missing; got nan in row 41 (1 row), line 43 of missing.csv. Hint",
    ),
    ("range.csv", "p", "column 'p' must lie in [0, 1]; got 1.7 in row 41 (1 row)"),
    ("text.csv", "p", "column 'p' must be numeric; got the text 'oops' in row 41 (1 row)"),
    ("labels.csv", "p", "column 'y' must be numeric; got the text"),
    ("good.csv", "q", "must be one of y, p, w; got 'q'"),
    ("absent.csv", "p", "must exist; got no such file"),
    ("empty.csv", "p", "must not be empty; got 0 bytes"),
    ("header.csv", "p", "must not be empty; got no rows"),
    ("notes.docx", "p", "must end in one of .csv"),
    ("broken.parquet", "p", "must be readable as parquet"),
    (".", "p", "must"),
]


@pytest.mark.parametrize(("name", "prediction", "message"), BAD)
def test_bad_input_is_one_message_and_exit_code_2(folder, name, prediction, message):
    done = calibrant("evaluate", folder / name, "-y", "y", "-p", prediction)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("calibrant: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_usage_errors_are_exit_code_2():
    for arguments in (["evaluate"], ["nonsense"], ["evaluate", "x.csv", "--outcome"]):
        done = calibrant(*arguments)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_measures_lists_the_registry():
    assert [m["name"] for m in json.loads(calibrant("measures", "--json").stdout)["measures"]] == list(
        cb.measures()
    )
    lines = calibrant("measures").stdout.splitlines()
    keys = [line.split()[0] for line in lines if line[:1].strip()]
    assert keys == ["key", *cb.measures()] * 2
    assert max(map(len, lines)) <= 100


def test_demo_writes_the_loans_of_load_demo(tmp_path):
    path = tmp_path / "loans.csv"
    calibrant("demo", "--rows", 300, "--html", "", "--csv", path)
    written, loaded = pd.read_csv(path, dtype=str), cb.load_demo(300)
    assert [float(cell) for cell in written["p"]] == loaded["p"].tolist()
    others = loaded.drop(columns="p")
    assert written.drop(columns="p").to_numpy().tolist() == others.astype(str).to_numpy().tolist()


def test_demo_prints_what_evaluate_prints_of_its_loans(tmp_path):
    path = tmp_path / "loans.csv"
    shown = calibrant("demo", "--rows", 2000, "--html", "", "--csv", path).stdout
    same = calibrant("evaluate", path, "-y", "default", "-p", "p", "--groups", "employment,region").stdout
    assert shown.splitlines()[:20] == same.splitlines()[:20]


def test_demo_is_reproducible_and_finds_its_own_fault():
    first, second = (
        calibrant("demo", "--rows", 3000, "--seed", 5, "--json", "--html", "", "--csv", "") for _ in range(2)
    )
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    slope = next(m for m in json.loads(first.stdout)["measures"] if m["name"] == "slope")
    assert slope["value"] == pytest.approx(0.8, abs=0.15)


def test_version_and_help():
    assert cb.__version__ in calibrant("--version").stdout
    assert "evaluate" in calibrant("--help").stdout


def test_evaluate_by_points(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text("y,p,x,g\n0,0.4,a,u\n1,0.4,a,v\n1,0.4,b,u\n1,0.6,c,v\n0,0.6,d,u\n0,0.6,d,v\n")
    arguments = ("evaluate", file, "-y", "y", "-p", "p", "--id", "x", "--seed", 1)
    assert "Distance to calibration over 4 points: 0.100." in calibrant(*arguments).stdout
    found = json.loads(calibrant(*arguments, "--groups", "g", "--json").stdout)["distances"]["related"][0]
    assert (found["name"], round(found["value"], 12)) == ("distance", 0.1)


def test_no_hint_names_what_cannot_be_typed(tmp_path):
    (tmp_path / "signs.csv").write_text("y,p\n-1,0.2\n1,0.7\n")
    done = calibrant("test", tmp_path / "signs.csv", "-y", "y", "-p", "p")
    assert done.stderr.endswith("Hint: of labels -1 and 1, name the one that counts as 1: --pos-label 1.\n")


def test_a_command_loads_only_what_it_needs(folder):
    code = "import sys; from calibrant.cli.main import run_command; run_command(); print(*sys.modules)"
    words = ["evaluate", folder / "good.csv", "-y", "y", "-p", "p", "--quiet"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    loaded = {name.removeprefix("calibrant.") for name in done.stdout.split() if "calibrant." in name}
    assert "evaluation.evaluate" in loaded
    assert not {"logs", "report.charts", "report.rendering", "abstention"} & loaded
