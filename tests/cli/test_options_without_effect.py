"""Options that would mean nothing are refused by name, and odd files are reported in words."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest
from typed import calibrant

from calibrant.files import atomic_write
from calibrant.report import rendering

COLUMNS = ("-y", "y", "-p", "p")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(0)
    p = rng.random(400).round(4)
    y = (rng.random(400) < p).astype(int)
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    path.write_text("y,p,g\n" + "".join(f"{y[i]},{p[i]},{'ab'[i % 2]}\n" for i in range(400)))
    return path


@pytest.fixture(scope="module")
def fitted(rows):
    path = rows.parent / "map.json"
    assert calibrant("recalibrate", rows, *COLUMNS, "-m", "platt", "-o", path, "--force").returncode == 0
    return path


@pytest.fixture(scope="module")
def sketches(rows):
    plain, grouped = rows.parent / "plain.sketch", rows.parent / "grouped.sketch"
    assert calibrant("sketch", rows, *COLUMNS, "-o", plain).returncode == 0
    assert calibrant("sketch", rows, *COLUMNS, "--by", "g", "-o", grouped).returncode == 0
    return {"PLAIN": plain, "GROUPED": grouped, "ROWS": rows}


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (
            ["evaluate", "ROWS", *COLUMNS, "-p", "y"],
            "--prediction must be given once; got it 2 times. Hint: c",
        ),
        (["recalibrate", "ROWS", "-p", "g", *COLUMNS, "-o", "m.json"], "--prediction must be given once"),
        (["test", "ROWS", *COLUMNS, "--outcome", "p"], "--outcome must be given once"),
        (["audit", "ROWS", *COLUMNS, "--groups", "g", "--groups", "y"], "names with commas between them"),
        (
            ["evaluate", "ROWS", *COLUMNS, "--measures", "brier", "--measures", "smooth"],
            "--measures must be giv",
        ),
    ],
)
def test_a_second_name_does_not_silently_replace_the_first(sketches, words, reported):
    result = calibrant(*(sketches.get(word, word) for word in words))
    assert result.returncode == 2
    assert reported in result.stderr
    assert not result.stdout


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["evaluate", "PLAIN", "-y", "nonsense"], "--outcome does not apply to a sketch"),
        (["evaluate", "PLAIN", "-w", "nonsense"], "--weight does not apply to a sketch"),
        (["test", "PLAIN", "--missing", "drop"], "--missing does not apply to a sketch"),
        (["check", "PLAIN", "GROUPED", "-p", "p", "--max", "smooth=1"], "--prediction does not apply to a"),
        (["check", "PLAIN", "--max-group-z", "4"], "--max-group-z needs a sketch with groups"),
        (["audit", "GROUPED", "--nominal", "g"], "--nominal applies to --covariates alone"),
        (["audit", "GROUPED", "-y", "y"], "--outcome does not apply to a sketch"),
    ],
)
def test_options_of_rows_are_refused_beside_a_sketch(sketches, words, reported):
    result = calibrant(*(sketches.get(word, word) for word in words))
    assert result.returncode == 2
    assert reported in result.stderr


def test_a_sketch_and_rows_are_checked_together(sketches):
    words = ("check", sketches["PLAIN"], sketches["ROWS"], "--max", "smooth=1")
    assert calibrant(*words, *COLUMNS).returncode == 0


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["check", "ROWS", *COLUMNS, "--max", "smooth=1", "--groups", "g"], "--groups needs --max-group-z"),
        (["compare", "ROWS", *COLUMNS, "-p", "y", "--ordered"], "--ordered needs --groups"),
        (["compare", "ROWS", *COLUMNS, "--net-benefit", ".2", "-m", "smooth"], "--measure needs two columns"),
        (["evaluate", "ROWS", *COLUMNS, "--chart-text", "both"], "--chart-text needs --chart"),
        (["test", "ROWS", *COLUMNS, "--confidence", ".9"], "--confidence needs --interval, or --accept"),
        (
            ["audit", "ROWS", *COLUMNS, "--groups", "g", "--subpopulations", "9"],
            "applies to --covariates alone",
        ),
        (
            ["audit", "ROWS", *COLUMNS, "--covariates", "g", "--depth", "3"],
            "--depth applies to --groups alone",
        ),
        (
            ["audit", "ROWS", *COLUMNS, "--covariates", "g", "--limit", "3"],
            "--limit applies to --groups alone",
        ),
        (["audit", "ROWS", *COLUMNS, "--groups", "g", "--rho", "3"], "--rho applies to the proportional"),
        (["recalibrate", "ROWS", *COLUMNS, "--weights", "frequency"], "--weights needs --weight"),
        (["plan", "-d", ".1", "--missing", "drop"], "--missing needs FILE"),
        (
            ["plan", "ROWS", "-p", "p", "--accept", ".01", "--reject", ".05"],
            "FILE does not apply to --accept",
        ),
        (
            ["plan", "--accept", ".01", "--reject", ".05", "--power", ".9"],
            "--power does not apply to --accept",
        ),
        (
            ["plan", "-d", ".05", "--confidence", ".9"],
            "--confidence needs FILE, --base-rate",
        ),
        (["plan", "-d", ".05", "--slope-width", ".9"], "--slope-width needs FILE, or --base-rate"),
        (
            ["plan", "--base-rate", ".1", "--c-statistic", ".8", "--power", ".9"],
            "--power applies to --distance",
        ),
        (["truthful", "-m", "smooth", "--draws", "5"], "--draws needs FILE"),
        (["truthful", "ROWS", "-p", "p", "--budget", "5"], "--budget must not be given with FILE"),
        (["recalibrate", "ROWS", *COLUMNS, "--dialect", "spark"], "--dialect needs --sql"),
        (["recalibrate", "MAP", "--sql", "-m", "platt"], "--method does not apply to --sql"),
        (["recalibrate", "ROWS", *COLUMNS, "--option", "missing=1"], "--option must name an option of the"),
        (["evaluate", "ROWS", *COLUMNS, "--id", ""], "'' is an empty name"),
    ],
)
def test_options_without_effect_are_refused(rows, fitted, words, reported):
    places = {"ROWS": rows, "MAP": fitted}
    result = calibrant(*(places.get(word, word) for word in words))
    assert result.returncode == 2
    assert reported in result.stderr


def test_sql_is_json_where_json_is_asked_for(fitted):
    result = calibrant("recalibrate", fitted, "--sql", "--json", "-p", "score")
    assert '"score"' in json.loads(result.stdout)["sql"]


def test_a_state_keeps_its_guard_until_the_option_is_typed(rows, tmp_path):
    for made, other in (("--no-guard", "--guard"), ("--guard", "--no-guard")):
        state = ("--state", tmp_path / f"state{made}.json")
        assert calibrant("stream", rows, *COLUMNS, *state, made).returncode == 0
        assert calibrant("stream", rows, *COLUMNS, *state, "--same").returncode == 0
        reported = calibrant("stream", rows, *COLUMNS, *state, "--same", other)
        assert reported.returncode == 2
        assert "--guard must be that of the state" in reported.stderr


def test_a_state_keeps_its_groups(rows, tmp_path):
    words = ("monitor", rows, *COLUMNS, "--by", "g", "--state", tmp_path / "state.json", "--same")
    assert calibrant(*words).returncode == 0
    assert calibrant(*words, "--group", "b", "--group", "a").returncode == 0
    reported = calibrant(*words, "--group", "a")
    assert reported.returncode == 2
    assert "--group must be those of the state, a, b; got a" in reported.stderr


def test_a_place_that_cannot_be_written_stops_a_stream_before_it_begins(rows, tmp_path):
    out = tmp_path / "out.csv"
    reported = calibrant("stream", rows, *COLUMNS, "-o", out, "--html", tmp_path / "absent" / "page.html")
    assert reported.returncode == 2
    assert "must exist" in reported.stderr
    assert not out.exists()


def test_the_table_of_a_database_may_be_a_default(rows, tmp_path):
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute(f"CREATE TABLE loans AS SELECT * FROM '{rows}'")
    (tmp_path / "pyproject.toml").write_text('[tool.calibrant]\ntable = "loans"\n')
    words = (*COLUMNS, "--max", "smooth=1", "--confidence", "0")
    for config in ((), ("--config", "pyproject.toml")):
        for file in ("rows.duckdb", rows):
            assert calibrant("check", file, *words, *config, cwd=tmp_path).returncode == 0
    query = ("--query", "SELECT y, p FROM loans")
    assert calibrant("check", "rows.duckdb", *words, *query, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("command", [["distinguish"], ["recalibrate", "-m", "hierarchical"]])
def test_errors_name_the_column_where_covariates_are_read(tmp_path, command):
    path = tmp_path / "rows.csv"
    path.write_text("y,p,g\n0,0.2,a\n1,1.7,b\n")
    reported = calibrant(*command, path, *COLUMNS, "--covariates", "g")
    assert reported.returncode == 2
    assert "column 'p' must lie in [0, 1]; got 1.7 in row 1 (1 row), line 3 of rows.csv" in reported.stderr


def test_names_that_are_not_utf8_are_read_and_reported(rows, tmp_path):
    odd = Path(str(tmp_path / "caf") + "\udce9.csv")
    odd.write_bytes(rows.read_bytes())
    junit, text = tmp_path / "junit.xml", tmp_path / "out.txt"
    words = ("--max", "smooth=1", "--confidence", "0", "--junit", junit, "-o", text)
    reported = calibrant("check", odd.name, rows, *COLUMNS, *words, cwd=tmp_path)  # a long name is wrapped
    assert reported.returncode == 0, reported.stderr
    assert "caf\\udce9.csv" in junit.read_text(encoding="utf-8")
    assert "caf\\udce9.csv" in text.read_text(encoding="utf-8")


def test_half_characters_are_written_as_escapes(tmp_path):
    assert atomic_write(tmp_path / "x.txt", "a\ud800").read_bytes() == b"a\\ud800"


def test_a_page_needs_no_home_and_no_whole_cache(monkeypatch, tmp_path):
    def nobody(_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("vl_convert.javascript_bundle", lambda: "vegaEmbed()")  # the true one takes seconds
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = rendering.library.__wrapped__()
    [kept] = (tmp_path / "calibrant").iterdir()
    kept.write_text("")  # a crash between writing and the disk
    assert rendering.library.__wrapped__() == code
    assert kept.read_text(encoding="utf-8") == code
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", classmethod(nobody))
    assert rendering.library.__wrapped__() == code


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (
            ("audit", "--groups", "g", "--min-size", 0),
            "--min-size must be a whole number of at least 1; got 0",
        ),
        (("evaluate", "--draws", 0), "--draws must be a whole number from 1"),
        (("abstain", "--risk", 2), "--risk must lie strictly between 0 and 1"),
        (("recalibrate", "-m", "plat"), "--method must be one of"),
    ],
)
def test_errors_name_the_option_not_the_argument(rows, arguments, named):
    command, *options = arguments
    done = calibrant(command, rows, *COLUMNS, *options)
    assert done.returncode == 2
    assert done.stderr.startswith(f"calibrant: {named}")


def test_labels_of_classes_are_named_as_on_the_command_line(rows, tmp_path):
    path = tmp_path / "three.csv"
    path.write_text("y,a,b,c\n" + "a,0.2,0.3,0.5\nb,0.5,0.25,0.25\n" * 50)
    done = calibrant(
        "recalibrate", path, "-y", "y", "-p", "a,b,c", "--labels", "a,b", "-o", tmp_path / "m.json"
    )
    assert "--labels must name each column once" in done.stderr


def test_merge_and_sketch_say_what_to_do(rows, tmp_path):
    done = calibrant("merge", rows, rows, "-o", tmp_path / "x.sketch")
    assert done.stderr.count("must be a sketch") == 1
    assert "Hint: calibrant sketch makes one of rows" in done.stderr
    words = tmp_path / "words.csv"
    words.write_text(rows.read_text().replace("\n1,", "\nyes,").replace("\n0,", "\nno,"))
    done = calibrant("sketch", words, *COLUMNS, "-o", tmp_path / "x.sketch")
    assert done.returncode == 2
    assert "Hint: pass --pos-label yes if 'yes' counts as 1 and 'no' as 0" in done.stderr
    assert (
        calibrant("sketch", words, *COLUMNS, "--pos-label", "yes", "-o", tmp_path / "x.sketch").returncode
        == 0
    )


def test_too_few_rows_are_too_little_data(rows, tmp_path):
    few = tmp_path / "few.csv"
    few.write_text("".join(rows.read_text().splitlines(keepends=True)[:12]))
    for command in (("audit", "--search"), ("distinguish",)):
        name, *options = command
        done = calibrant(name, few, *COLUMNS, "--covariates", "g", *options)
        assert done.returncode == 3
        assert "needs at least" in done.stderr


def test_a_plan_of_constant_predictions_says_what_it_lacks(tmp_path):
    path = tmp_path / "constant.csv"
    path.write_text("p\n" + "0.5\n" * 50)
    done = calibrant("plan", path, "-p", "p", "--distance", 0.1)
    assert done.returncode == 0
    said = "No records for narrow intervals: the interval of the calibration slope needs two different"
    assert said in done.stderr
