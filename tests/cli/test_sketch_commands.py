"""`sketch`, `merge` and `evaluate` of a sketch, end to end, and the switch for files of too many rows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant as cb
from calibrant import Sketch
from calibrant.cli import rows as cli_rows
from calibrant.cli.main import calibrant, error_text
from calibrant.errors import CalibrantError, UnreadableFileError
from calibrant.io import read


def run(*arguments: object):
    return CliRunner().invoke(calibrant, [str(a) for a in arguments])


def rows(seed=0, n=400):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(3)
    return p, (rng.random(n) < p).astype(int), rng.integers(0, 3, n)


def csv(path, seed=0):
    lines = [f"{p},{y},g{g}" for p, y, g in zip(*rows(seed), strict=True)]
    path.write_text("\n".join(["p,y,g", *lines]) + "\n")
    return path


COLUMNS = ("-y", "y", "-p", "p")


def test_days_are_sketched_merged_and_evaluated(tmp_path):
    days = []
    for day in range(3):
        days.append(tmp_path / f"day{day}.sketch")
        done = run("sketch", csv(tmp_path / f"day{day}.csv", day), *COLUMNS, "--by", "g", "-o", days[-1])
        assert done.exit_code == 0, done.output
        assert "n=400" in done.output
    month = tmp_path / "month.sketch"
    done = run("merge", *days, "-o", month, "--json")
    assert json.loads(done.stdout)["n"] == 1200
    assert json.loads(done.stdout)["groups"] == 3

    p, y, _ = (np.concatenate(x) for x in zip(*(rows(day) for day in range(3)), strict=True))
    done = run("evaluate", month, "--json", "--seed", 1, "--measures", "kuiper,smooth,ece")
    found = {row["name"]: row for row in json.loads(done.stdout)["measures"]}
    assert found["kuiper"]["value"] == pytest.approx(cb.kuiper_error(y, p), abs=1e-12)
    assert found["smooth"]["value"] == pytest.approx(cb.smooth_calibration_error(y, p), abs=1e-12)
    assert len(json.loads(done.stdout)["sketch_groups"]) == 3

    done = run("evaluate", month, "--seed", 1)
    assert done.exit_code == 0
    assert "1,200 records" in done.output
    assert "Groups by g, largest first" in done.output


def test_a_sketch_is_audited_by_its_groups(tmp_path):
    run("sketch", csv(tmp_path / "a.csv"), *COLUMNS, "--by", "g", "-o", tmp_path / "a.sketch")
    from_rows = run("audit", tmp_path / "a.csv", *COLUMNS, "--groups", "g", "--seed", 1, "--json")
    done = run("audit", tmp_path / "a.sketch", "--seed", 1, "--json")
    assert done.exit_code == 0, done.output
    exact, found = json.loads(from_rows.stdout), json.loads(done.stdout)
    assert found["lower"] <= exact["metric"] <= found["upper"]
    assert {g["rule"] for g in found["groups"]} == {g["rule"] for g in exact["groups"]}
    assert (
        "None of the 3 groups is wrong beyond chance."
        in run("audit", tmp_path / "a.sketch", "--groups", "g", "--seed", 1).output
    )
    page = tmp_path / "a.html"
    done = run("evaluate", tmp_path / "a.sketch", "--html", page, "--json")
    assert len(json.loads(done.stdout)["groups"]["groups"]) == len(found["groups"])
    assert "g = " in page.read_text(encoding="utf-8")


def test_the_next_step_for_groups_of_a_sketch_is_no_command_that_a_sketch_refuses(tmp_path):
    rng = np.random.default_rng(0)
    p, g = rng.random(4_000).round(3), rng.integers(0, 2, 4_000)
    y = (rng.random(4_000) < np.where(g == 1, p**2, np.sqrt(p))).astype(int)
    lines = [f"{a},{b},g{c}" for a, b, c in zip(p, y, g, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["p,y,g", *lines]) + "\n")
    run("sketch", tmp_path / "a.csv", *COLUMNS, "--by", "g", "-o", tmp_path / "a.sketch")
    by_rows, by_sketch = (
        run("evaluate", *words).output.split("Next: ")[1].splitlines()[0]
        for words in ((tmp_path / "a.csv", *COLUMNS, "--groups", "g"), (tmp_path / "a.sketch",))
    )
    assert by_rows.endswith("--groups g -o map.json")
    assert by_sketch == "Recalibrate by g, on records the model was not trained on."


def test_several_files_and_globs_become_one_sketch(tmp_path):
    for day in range(3):
        csv(tmp_path / f"day{day}.csv", day)
    one, two = tmp_path / "one.sketch", tmp_path / "two.parquet"
    assert run("sketch", tmp_path / "*.csv", *COLUMNS, "-o", one).exit_code == 0
    names = [tmp_path / f"day{day}.csv" for day in range(3)]
    assert run("sketch", *names, *COLUMNS, "-o", two, "--cells", 65_536).exit_code == 0
    a, b = Sketch.load(one), Sketch.load(two)
    assert a.n == b.n == 1200
    assert np.array_equal(a.contents.table.keys, b.contents.table.keys)
    np.testing.assert_allclose(a.contents.table.sums, b.contents.table.sums, rtol=1e-12)


def test_a_coarse_sketch_says_what_it_cannot_prove(tmp_path):
    run("sketch", csv(tmp_path / "a.csv"), *COLUMNS, "-o", tmp_path / "a.sketch", "--cells", 10)
    done = run("evaluate", tmp_path / "a.sketch", "--measures", "level-set,kuiper", "--json")
    ece, kuiper = json.loads(done.stdout)["measures"]
    assert ece["value"] is None
    assert "cannot be computed from a sketch" in ece["note"]
    p, y, _ = rows()
    assert kuiper["lower"] <= cb.kuiper_error(y, p) <= kuiper["upper"]
    said = run("evaluate", tmp_path / "a.sketch").output
    assert "cells of a sketch" in said
    assert "cannot be computed from a sketch" in said
    assert ".." not in said


def test_a_file_of_too_many_rows_is_sketched_and_said_so(tmp_path, monkeypatch):
    file = csv(tmp_path / "a.csv")
    assert "from a sketch" not in run("evaluate", file, *COLUMNS).output
    for module in (read, cli_rows):  # the limit, and the note that names it
        monkeypatch.setattr(module, "MAX_EXACT_ROWS", 399)
    done = run("evaluate", file, *COLUMNS, "--json", "--measures", "kuiper")
    assert "a.csv has more than 399 rows: measured from a sketch" in done.stderr
    p, y, _ = rows()
    assert json.loads(done.stdout)["measures"][0]["value"] == pytest.approx(cb.kuiper_error(y, p))


def test_how_many_rows_there_are_at_most(tmp_path, monkeypatch):
    import polars as pl

    pl.DataFrame({"p": [0.1] * 1000}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"p": [0.1] * 500}).write_parquet(tmp_path / "b.parquet")
    assert read.rows_at_most(tmp_path / "*.parquet") == 1500
    assert 400 <= read.rows_at_most(csv(tmp_path / "a.csv")) <= 2000
    with pytest.raises(UnreadableFileError, match="must exist"):
        read.rows_at_most(tmp_path / "none.parquet")
    for limit in (1500, 1499):
        monkeypatch.setattr(read, "MAX_EXACT_ROWS", limit)
        assert read.fits(tmp_path / "*.parquet") == (limit == 1500)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("evaluate", "{csv}"), "Missing option '--outcome'"),
        (("evaluate", "{csv}", "-y", "y"), "Missing option '--prediction'"),
        (("evaluate", "{here}/none.sketch"), "must be a sketch; No such file"),
        (("evaluate", "{sketch}", "--groups", "g"), "columns the sketch was made by"),
        (("audit", "{sketch}"), "must have groups to be audited"),
        (("audit", "{sketch}", "--covariates", "g"), "--covariates needs single rows; got a sketch"),
        (("audit", "{csv}", "--groups", "g"), "Missing option"),
        (("merge", "{sketch}", "{csv}", "-o", "{here}/m.sketch"), "must be a sketch"),
        (("merge", "{sketch}", "-o", "{here}/nowhere/m.sketch"), "must exist"),
        (("sketch", "{csv}", "-y", "y", "-p", "q", "-o", "{here}/m.sketch"), "got 'q'"),
        (
            ("sketch", "{csv}", "-y", "y", "-p", "g", "-o", "{here}/m.sketch"),
            "column 'g' must be numeric; got the text 'g2' in row 0 of '{csv}' (400 rows)",
        ),
        (("sketch", "{csv}", *COLUMNS, "-o", "{here}/m.sketch", "--cells", "0"), "cells must be"),
        (("sketch", "{here}/none.csv", *COLUMNS, "-o", "{here}/m.sketch"), "must exist"),
    ],
)
def test_bad_use_is_told_in_words_and_writes_nothing(tmp_path, arguments, words):
    names = {"here": tmp_path, "csv": csv(tmp_path / "a.csv"), "sketch": tmp_path / "a.sketch"}
    run("sketch", names["csv"], *COLUMNS, "-o", names["sketch"])
    done = run(*(a.format(**names) for a in arguments))
    assert done.exit_code != 0
    assert isinstance(done.exception, (CalibrantError, SystemExit))
    assert words.format(**names) in done.output + str(done.exception)
    assert not (tmp_path / "m.sketch").exists()


def test_bad_rows_are_refused_or_dropped_and_counted(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("p,y\n0.1,0\n,1\n0.3,1\n1.5,1\n0.4,NA\n")
    done = run("sketch", file, *COLUMNS, "-o", tmp_path / "a.sketch", "--missing", "drop")
    assert f"column 'p' must lie in [0, 1]; got 1.5 in row 3 of '{file}' (1 row)" in str(done.exception)
    done = run(
        "sketch", file, *COLUMNS, "-o", tmp_path / "a.sketch",
        "--missing", "drop", "--invalid", "drop", "--json",
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert (found["n"], found["dropped"]) == (2, 3)
    assert found["rejects"]["prediction outside [0, 1]"] == 1


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_a_day_that_was_delivered_twice_is_refused(tmp_path, ending):
    import polars as pl

    for name, seed in [("monday", 0), ("tuesday", 1), ("tuesday-again", 1)]:
        write_rows(pl.read_csv(csv(tmp_path / "rows", seed)), tmp_path / f"{name}.{ending}")
        write_rows(pl.DataFrame({"p": [0.1], "y": [1]})[:0], tmp_path / f"empty-{name}.{ending}")
    days, out = tmp_path / f"*.{ending}", tmp_path / "days.sketch"
    if ending == "jsonl":  # a file without a row is one of 0 bytes, which is refused anyway
        days = tmp_path / f"[!e]*.{ending}"
    done = run("sketch", days, *COLUMNS, "-o", out)
    both = [str(tmp_path / f"{name}.{ending}") for name in ("tuesday-again", "tuesday")]
    assert "got the same contents in '{}' and '{}'".format(*both) in str(done.exception)
    assert not out.exists()
    assert run("sketch", days, *COLUMNS, "-o", out, "--same").exit_code == 0
    assert Sketch.load(out).n == 1200
    Path(both[0]).unlink()
    assert run("sketch", days, *COLUMNS, "-o", out).exit_code == 0


def test_a_day_is_not_merged_into_a_month_that_holds_it(tmp_path):
    days = [tmp_path / f"day{day}.sketch" for day in range(4)]
    for day, name in enumerate(days):
        run("sketch", csv(tmp_path / f"day{day}.csv", day), *COLUMNS, "-o", name)
    month, year, out = (tmp_path / f"{name}.sketch" for name in ("month", "year", "out"))
    assert run("merge", *days[:2], "-o", month).exit_code == 0
    assert run("merge", month, days[2], "-o", year).exit_code == 0
    for given in [
        (month, days[1]),
        (days[0], month),
        (year, days[1]),
        (year, month),
        (days[3], year, days[2]),
    ]:
        done = run("merge", *given, "-o", out)
        assert f"got the same records in '{given[-2]}' and '{given[-1]}'" in str(done.exception)
        assert not out.exists()
        assert "got the same records" in str(run("evaluate", *given).exception)
    assert run("merge", year, days[3], "-o", out).exit_code == 0
    assert run("merge", year, days[1], "--same", "-o", out).exit_code == 0
    assert Sketch.load(out).n == 1600


def test_files_sketched_together_are_known_one_by_one(tmp_path):
    files = [csv(tmp_path / f"day{day}.csv", day) for day in range(2)]
    month, day = tmp_path / "month.sketch", tmp_path / "day.sketch"
    run("sketch", *files, *COLUMNS, "-o", month)
    run("sketch", files[1], *COLUMNS, "-o", day)
    assert "got the same records" in str(run("merge", month, day, "-o", tmp_path / "m").exception)


def write_rows(frame, path):
    {"csv": frame.write_csv, "parquet": frame.write_parquet, "jsonl": frame.write_ndjson}[path.suffix[1:]](
        path
    )


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1.5,1", "7,0"], "column 'p' must lie in [0, 1]; got 1.5 in row 1 of '{}', line 4 (2 rows)"),
        (["0.5,-1", "0.5,1"], "column 'y' must lie in [0, 1]; got -1 in row 1 of '{}', line 4 (1 row)"),
        (["NaN,1", "1.5,0"], "column 'p' must not be missing; got no value in row 1 of '{}', line 4 (1 row)"),
        ([",1", "NA,0"], "column 'p' must not be missing; got no value in row 1 of '{}', line 4 (2 rows)"),
        (
            ["high,1", "low,0"],
            "column 'p' must be numeric; got the text 'high' in row 1 of '{}', line 4 (2 rows)",
        ),
    ],
)
def test_bad_rows_of_several_files_are_named_by_file_and_line(tmp_path, cells, said):
    (tmp_path / "a.csv").write_text("p,y\n0.1,0\n0.2,1\n")
    bad = tmp_path / "b.csv"
    bad.write_text("\n".join(["p,y", "0.1,0", "", *cells]) + "\n")
    for files in [(tmp_path / "*.csv",), (tmp_path / "a.csv", bad), (bad,)]:
        done = run("sketch", *files, *COLUMNS, "-o", tmp_path / "x.sketch")
        assert said.format(bad) in error_text(done.exception, None, {})


def test_killing_a_run_leaves_no_half_written_sketch(tmp_path):
    import duckdb

    file, output = tmp_path / "big.parquet", tmp_path / "big.sketch"
    duckdb.sql(
        f"COPY (SELECT random() p, (random() < 0.5)::INT y FROM range(2000000)) TO '{file}' (FORMAT parquet)"
    )
    command = [
        sys.executable,
        "-c",
        "from calibrant.cli.main import main; main()",
        "sketch",
        file,
        *COLUMNS,
        "-o",
        output,
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(cb.__file__).parents[1])}
    for wait in (0.3, 0.6, 0.9):
        running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        time.sleep(wait)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        assert not output.exists() or Sketch.load(output).n == 2_000_000
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    assert Sketch.load(output).n == 2_000_000
