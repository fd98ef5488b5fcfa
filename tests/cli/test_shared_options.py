"""What every command has: several files, formats, output files, quiet, databases, defaults, completion."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import shlex
import struct
import sys
import termios
from pathlib import Path

import duckdb
import numpy as np
import pytest
from click.shell_completion import ShellComplete

from calibrant.cli import main
from calibrant.cli.config import COMMANDS, SECTIONS, command_named
from calibrant.cli.output import print_note

ROWS = ["-y", "y", "-p", "p"]
SEED = ["--seed", "1"]
OVERWRITES = "--output must not be the file of FILE"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("shared")
    rng = np.random.default_rng(3)
    for name in ("a", "b"):
        p = rng.random(150).round(2)
        lines = [f"{int(rng.random() < v)},{v},{1 - v:.2f},g{k % 2},{k % 3}" for k, v in enumerate(p)]
        (here / f"{name}.csv").write_text('y,p,q,"g,h",k\n' + "\n".join(lines) + "\n")
    both = (here / "a.csv").read_text() + (here / "b.csv").read_text().partition("\n")[2]
    (here / "both.csv").write_text(both)
    with duckdb.connect(str(here / "base.duckdb")) as connection:
        connection.execute(f"CREATE TABLE rows AS SELECT * FROM read_csv('{here}/both.csv')")
        connection.execute("CREATE SCHEMA s; CREATE VIEW s.v AS SELECT * FROM rows WHERE p > 0.5")
    return here


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """Run a command line inside the folder; return exit code, stdout and stderr."""
    monkeypatch.chdir(folder)

    def _run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["calibrant", *map(str, arguments)])
        found = main.run_command()
        out, err = capsys.readouterr()
        assert found == code, (arguments, out, err)
        assert "Traceback" not in err
        assert "defect" not in err
        return out, err

    return _run


FILE_COMMANDS = {
    "evaluate": [*ROWS, *SEED],
    "test": [*ROWS, *SEED, "--draws", "99"],
    "audit": [*ROWS, *SEED, "--groups", "k", "--draws", "19"],
    "compare": [*ROWS, "-p", "q", *SEED, "--draws", "19"],
    "recalibrate": [*ROWS, *SEED, "--method", "platt"],
    "stream": ROWS,
    "monitor": ROWS,
    "classes": ["-y", "y", "-p", "q", "-p", "p", "--labels", "0,1", *SEED],
    "abstain": [*ROWS, "--risk", "0.3", "--confidence", "0.6", *SEED],
    "distributions": ["-y", "y", "--members", "p,q", "--draws", "19", *SEED],
    "distinguish": [*ROWS, *SEED, "--covariates", "k", "--draws", "19"],
    "truthful": ["-p", "p", "-m", "smooth", *SEED, "--draws", "19"],
    "plan": ["-p", "p", "--records", "200", *SEED, "--draws", "99"],
}
TABLE_COMMANDS = {
    command: ["both.csv", *options] for command, options in FILE_COMMANDS.items() if command != "plan"
}
TABLE_COMMANDS |= {"check": ["both.csv", *ROWS, *SEED, "--max", "smooth=0.9"], "measures": []}


@pytest.mark.parametrize("command", FILE_COMMANDS)
def test_several_files_are_one_data_set_for_every_command(run, command):
    extra = [*FILE_COMMANDS[command], "--json"]
    found = json.loads(run(command, "a.csv", "b.csv", *extra)[0])
    whole = json.loads(run(command, "both.csv", *extra)[0])
    for one in (found, whole):
        one.pop("title", None)
    assert found == whole


def test_sketches_are_merged_and_do_not_mix_with_rows(run, folder):
    for name in ("a", "b", "both"):
        run("sketch", f"{name}.csv", *ROWS, "-o", f"{name}.sketch")
    values = [
        [row["value"] for row in json.loads(run("evaluate", *files, *SEED, "--json")[0])["measures"]]
        for files in (["a.sketch", "b.sketch"], ["both.sketch"])
    ]
    assert values[0] == values[1]
    assert "either sketches or rows" in run("evaluate", "a.sketch", "b.csv", *ROWS, code=2)[1]


def test_apply_takes_several_files(run, folder):
    run("recalibrate", "both.csv", *ROWS, "--method", "platt", "-o", "map.json", "--force", *SEED)
    run("apply", "map.json", "a.csv", "b.csv", "-p", "p", "-o", "applied.csv")
    run("apply", "map.json", "both.csv", "-p", "p", "-o", "applied2.csv")
    assert (folder / "applied.csv").read_bytes() == (folder / "applied2.csv").read_bytes()
    before = (folder / "a.csv").read_bytes()
    assert OVERWRITES in run("apply", "map.json", "a.csv", "-p", "p", "-o", "a.csv", code=2)[1]
    assert (folder / "a.csv").read_bytes() == before


def test_verify_takes_several_files(run, folder):
    run("evaluate", "a.csv", "b.csv", *ROWS, *SEED, "--title", "two", "--html", "two.html")
    for files in (("a.csv", "b.csv"), ("both.csv",)):
        assert run("verify", "two.html", *files)[0].startswith("Verified: all")
    assert run("verify", "two.html", "a.csv", code=1)[0].startswith("Not verified: ")


def test_the_next_command_names_every_file_as_it_was_typed(run):
    shown = run("evaluate", "./a.csv", "b.csv", *ROWS, *SEED)[0]
    assert shlex.split(shown.partition("Next: ")[2])[2:4] == ["./a.csv", "b.csv"]


def test_csv_is_tables_alone_and_markdown_is_markdown(run):
    out, err = run(
        "evaluate", "a.csv", *ROWS, *SEED, "--format", "csv", "--groups", "k", "--measures", "smooth"
    )
    tables = [list(csv.reader(io.StringIO(part))) for part in out.split("\n\n")]
    assert len(tables) == 2
    assert [len({len(line) for line in table}) for table in tables] == [1, 1]
    assert tables[0][1][0] == "smooth calibration error"
    assert "records" in err
    out, _ = run("check", "a.csv", *ROWS, *SEED, "--max", "smooth=0.9", "--format", "markdown")
    assert "| smooth | pass |" in out
    assert "--json or --format" in run("measures", "--json", "--format", "csv", code=2)[1]


@pytest.mark.parametrize("command", ["evaluate", "audit"])
def test_csv_has_the_numbers_of_json(run, command):
    asked = (command, "a.csv", *ROWS, *SEED, "--groups", "k", "--draws", 39)
    out, _ = run(*asked, "--format", "csv")
    known = json.loads(run(*asked, "--json")[0])
    tables = [list(csv.DictReader(io.StringIO(part))) for part in out.split("\n\n")]
    if command == "evaluate":
        measures = {row["name"]: row for row in known["measures"]}
        for line in tables[0]:
            same(line, measures[line["key"]], ("value", "by_chance", "pvalue", "low", "high"))
        known = known["groups"]
    groups = {row["name"]: row for row in known["groups"]}
    assert len(tables[-1]) == len(groups) > 2
    for line in tables[-1]:
        same(line, groups[line["group"]], ("size", "kuiper", "z", "pvalue", "difference", "low", "high"))
        assert line["pvalue_is_bound"] in ("true", "false")


def same(line, known, names):
    assert {name: float(line[name]) if line[name] else None for name in names} == {
        name: known[name] for name in names
    }


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
@pytest.mark.parametrize("command", TABLE_COMMANDS)
def test_every_format_of_every_command_that_prints_a_table(run, command, form):
    out, _ = run(command, *TABLE_COMMANDS[command], "--format", form)
    if form == "json":
        json.loads(out)
    elif form == "csv":
        tables = [list(csv.reader(io.StringIO(part))) for part in out.split("\n\n")]
        assert all(len({len(line) for line in table}) == 1 < len(table) for table in tables), out
    else:
        assert ("| ---" in out or "|---" in out) == (form == "markdown"), out


def test_output_is_written_whole_and_only_for_results(run, folder):
    shown, _ = run("evaluate", "a.csv", *ROWS, *SEED)
    out, _ = run("evaluate", "a.csv", *ROWS, *SEED, "--output", "result.txt")
    assert out == ""
    assert (folder / "result.txt").read_text() == shown
    run("check", "a.csv", *ROWS, "--max", "smooth=0", "--confidence", 0, "--output", "gate.txt", code=1)
    assert "FAIL" in (folder / "gate.txt").read_text()
    run("evaluate", "a.csv", "-y", "y", "-p", "none", "--output", "gate.txt", code=2)
    assert "FAIL" in (folder / "gate.txt").read_text()
    assert OVERWRITES in run("evaluate", "a.csv", *ROWS, "-o", "a.csv", code=2)[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_can_be_asked_for_by_its_letter(run, command):
    assert "Usage:" in run(command, "-h")[0]


def test_quiet_leaves_notes_out_and_errors_in(run):
    page = ("--html", "page.html")
    assert "report: page.html" in run("evaluate", "a.csv", *ROWS, *SEED, *page)[1]
    assert run("evaluate", "a.csv", *ROWS, *SEED, *page, "--quiet")[1] == ""
    assert "must exist" in run("evaluate", "none.csv", *ROWS, "-q", code=2)[1]


def test_names_with_commas_are_quoted(run):
    found = json.loads(run("evaluate", "a.csv", *ROWS, *SEED, "--groups", '"g,h", k', "--json")[0])
    assert any("g,h" in group["rule"] for group in found["groups"]["groups"])
    run("sketch", "a.csv", *ROWS, "--by", '"g,h"', "-o", "by.sketch")


def test_a_database_is_read_by_table_or_query(run):
    whole = run("evaluate", "both.csv", *ROWS, *SEED, "--measures", "smooth,kuiper")[0]
    found = run("evaluate", "base.duckdb", *ROWS, *SEED, "--measures", "smooth,kuiper", "--table", "rows")[0]
    next_command = "calibrant evaluate both.csv "
    assert whole.count(next_command) == 1
    assert found == whole.replace(next_command, "calibrant evaluate base.duckdb --table rows ")
    half = run("evaluate", "base.duckdb", *ROWS, *SEED, "--table", "s.v", "--measures", "smooth")[0]
    for query in ("SELECT * FROM rows WHERE p > 0.5;", "FROM rows WHERE p > 0.5 -- ä;\n; /* ; */ -- more"):
        found = run("evaluate", "base.duckdb", *ROWS, *SEED, "--query", query, "--measures", "smooth")[0]
        assert found == half


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ([], "it has rows, s.v"),
        (["--table", "none"], "must be one of rows, s.v"),
        (["--query", "DROP TABLE rows"], "must be one SELECT"),
        (["--query", "SELECT 1; SELECT 2"], "must be one SELECT"),
        (["--query", "SELECT * FROM read_csv('a.csv')"], "disabled by configuration"),
        (["--query", "SELECT * FROM 'both.csv'"], "database"),
        (["--query", "SELEC"], "--query must be a SELECT that the database can run"),
        (["--query", "SELECT absent FROM rows"], "--query must be a SELECT that the database can run"),
        (["--table", "rows", "--query", "SELECT 1"], "must not be given together"),
    ],
)
def test_a_database_is_locked_down(run, folder, selection, message):
    before = (folder / "base.duckdb").read_bytes()
    assert message in run("evaluate", "base.duckdb", *ROWS, *selection, code=2)[1]
    assert (folder / "base.duckdb").read_bytes() == before
    assert not [name for name in os.listdir(folder) if name.endswith(".wal")]


def test_tables_and_queries_need_a_database(run):
    assert "with a .duckdb file" in run("evaluate", "a.csv", *ROWS, "--table", "rows", code=2)[1]


def test_defaults_of_all_commands_and_of_one(run, folder):
    config = folder / "defaults.toml"
    config.write_text(
        '[tool.calibrant]\noutcome = "y"\nprediction = "p"\nseed = 7\nmax-group-z = 50\n'
        '[tool.calibrant.evaluate]\nmeasures = ["smooth", "kuiper"]\ngroups = ["g,h"]\n'
        "[tool.calibrant.check]\nmax = {smooth = 0.9}\n"
    )
    found = json.loads(run("evaluate", "a.csv", "--config", config, "--json")[0])
    assert found["options"]["seed"] == 7
    assert [row["name"] for row in found["measures"]] == ["smooth", "kuiper"]
    run("check", "a.csv", "--config", config, "--groups", "k")
    run("test", "a.csv", "--config", config, "--draws", 99)
    run("plan", "--records", 100, "--draws", 99, "--config", config)
    typed = json.loads(run("evaluate", "a.csv", "--config", config, "--seed", 8, "--json")[0])
    assert typed["options"]["seed"] == 8


@pytest.mark.parametrize(
    "text",
    [
        "[tool.calibrant]\noutcom = 'y'",
        "[tool.calibrant]\nevaluate = 3",
        "[tool.calibrant.evaluate]\nmax = {smooth = 1}",
        "[tool.calibrant.evaluate]\nseed = [1]",
        "[tool.calibrant.evaluate]\nseed = 'x'",
        "[tool.calibrant.evaluate]\ngroups = {a = 1}",
        "[tool.calibrant.evaluat]\nseed = 1",
        "[tool.calibrant.evaluate]\nseed = true",
        "[tool.calibrant.evaluate]\nseed = 1.5",
        "[tool.calibrant.evaluate]\njson = 3",
        "[tool.calibrant.evaluate]\noutcome = true",
    ],
)
def test_defaults_that_no_command_knows_are_refused(run, folder, text):
    (folder / "bad.toml").write_text(text)
    run("evaluate", "a.csv", *ROWS, "--config", "bad.toml", code=2)


def test_no_file_of_defaults_and_odd_ones(run, folder):
    (folder / "pyproject.toml").write_text("[tool.calibrant.measures]\njson = true\n")
    assert run("measures", "slope")[0].startswith("{")
    assert not run("measures", "slope", "--config", os.devnull)[0].startswith("{")
    for odd in ("/dev/zero", "", "absent.toml"):
        assert "of --config must be a file" in run("measures", "--config", odd, code=2)[1]


def test_help_shows_the_front_door_first_and_cuts_nothing(run):
    out, _ = run("--help")
    places = [out.index(f"\n  {name} ") for name in SECTIONS["Start here"]]
    assert places == sorted(places)
    assert "..." not in out.partition("Start here")[2]
    shown = [name for names in SECTIONS.values() for name in names]
    astray = sorted(set(shown) ^ set(COMMANDS))
    assert sorted(shown) == sorted(COMMANDS), f"cli/config.py: {astray} must be in SECTIONS once"


def completed(words, incomplete):
    shell = ShellComplete(main.calibrant, {}, "calibrant", "_CALIBRANT_COMPLETE")
    return [(item.type, item.value) for item in shell.get_completions(words, incomplete)]


def test_files_and_measures_complete_in_the_shell():
    assert completed(["evaluate"], "") == [("file", "")]
    assert completed(["apply", "map.json"], "x") == [("file", "x")]
    assert ("plain", "smooth") in completed(["test", "x.csv", "--measure"], "smo")
    assert ("plain", "smooth,kuiper") in completed(["evaluate", "x.csv", "--measures"], "smooth,kui")
    assert ("plain", "smooth=") in completed(["check", "x.csv", "--max"], "smo")


def test_the_same_sketch_twice_is_noticed(run):
    run("sketch", "a.csv", *ROWS, "-o", "once.sketch")
    run("sketch", "a.csv", *ROWS, "-o", "again.parquet")
    run("sketch", "b.csv", *ROWS, "-o", "other.sketch")
    message = "must be of different records; got the same records in 'once.sketch' and 'again.parquet'"
    assert message in run("merge", "once.sketch", "again.parquet", "-o", "sum.sketch", code=2)[1]
    assert "different records" in run("evaluate", "once.sketch", "again.parquet", code=2)[1]
    assert "must name each file once" in run("evaluate", "once.sketch", "once.sketch", code=2)[1]
    run("merge", "once.sketch", "other.sketch", "-o", "sum.sketch")
    run("merge", "once.sketch", "again.parquet", "--same", "-o", "sum.sketch")


def test_a_file_that_two_names_stand_for_does_not_count_twice(run):
    for words in (
        ("test", "?.csv", "a.csv", *ROWS),
        ("sketch", "?.csv", "a.csv", *ROWS, "-o", "both.sketch"),
    ):
        assert "must be named once each; got 'a.csv' twice" in run(*words, code=2)[1]
    assert not Path("twice.sketch").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("sketch", "?.csv", *ROWS, "-o", "b.csv"),
        ("evaluate", "?.csv", *ROWS, "--html", "b.csv"),
        ("test", "?.csv", *ROWS, "--output", "b.csv"),
        ("stream", "?.csv", *ROWS, "--output", "b.csv"),
        ("monitor", "?.csv", *ROWS, "--state", "b.csv"),
        ("check", "?.csv", *ROWS, "--max", "smooth=1", "--junit", "b.csv"),
        ("recalibrate", "?.csv", *ROWS, "-m", "shift", "-o", "b.csv"),
    ],
)
def test_no_output_takes_the_place_of_a_file_that_a_glob_stands_for(run, words):
    before = Path("b.csv").read_bytes()
    run(*words, code=2)
    assert Path("b.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("evaluate", "a.csv", *ROWS, *SEED, "--html", "one.x", "-o", "one.x"), ("--output", "--html")),
        (("check", "a.csv", *ROWS, "--junit", "one.x", "-o", "./one.x"), ("--output", "--junit")),
        (("demo", "--html", "one.x", "--csv", "one.x"), ("--csv", "--html")),
        (("stream", "a.csv", *ROWS, "--state", "one.x", "--html", "one.x"), ("--html", "--state")),
    ],
)
def test_no_two_options_write_one_file(run, words, options):
    later, earlier = options
    assert f"{later} must not be the file of {earlier}" in run(*words, code=2)[1]
    assert not Path("one.x").exists()


def test_no_output_takes_the_place_of_the_database_that_is_read(run):
    table = ("base.duckdb", "--table", "rows", *ROWS)
    assert OVERWRITES in run("test", *table, "--output", "base.duckdb", code=2)[1]
    run("test", *table)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["compare", "a.csv", "-y", "y", "-p", "p,q"], "these are 2 names; give one at a time, and repeat"),
        (["compare", "a.csv", *ROWS, "-p", "q", "--measure", "log"], "did you mean 'log-loss'"),
        (
            ["evaluate", "a.csv", "-y", "y", "-p", "hundred", "--percent"],
            "percentages must be divided by 100",
        ),
        (["evaluate", "a.csv", "-y", "y", "-p", "hundred"], "percentages must be divided by 100"),
        (["recalibrate", "a.csv", "-y", "k", "-p", "p"], "these look like several classes"),
    ],
)
def test_hints_say_what_to_do(run, folder, words, hint):
    head, *lines = (folder / "a.csv").read_text().splitlines()
    wide = [f"{head},hundred", *(f"{line},{12 + k % 50}" for k, line in enumerate(lines))]
    (folder / "wide.csv").write_text("\n".join(wide) + "\n")
    assert f"Hint: {hint}" in run(*("wide.csv" if word == "a.csv" else word for word in words), code=2)[1]


def test_a_slope_of_certain_predictions_is_not_to_be_clipped(run, folder):
    (folder / "certain.csv").write_text("y,p,q\n0,0,0.1\n1,0.5,0.4\n0,0.3,0.2\n1,1,0.5\n")
    err = run("compare", "certain.csv", *ROWS, "-p", "q", "--measure", "slope", code=2)[1]
    assert "Hint: leave these rows out and say how many they are" in err


PAGES = {
    "evaluate": [*ROWS, "--draws", 19],
    "audit": [*ROWS, "--groups", "k", "--draws", 19],
    "distinguish": [*ROWS, "--covariates", "k", "--draws", 19],
    "stream": ROWS,
    "distributions": ["-y", "y", "--members", "p,q", "--draws", 19],
}


@pytest.mark.parametrize("command", PAGES)
def test_every_page_takes_a_title_and_a_subtitle(run, folder, command):
    given = ["--title", "Autumn <1>", "--subtitle", "for the board", "--html", "titled.html"]
    run(command, "both.csv", *PAGES[command], *given)
    page = (folder / "titled.html").read_text()
    assert "<title>Autumn &lt;1&gt;</title>" in page
    assert "for the board" in page.partition("<script")[0]
    _, err = run(command, "both.csv", *PAGES[command], "--title", "Autumn", code=2)
    assert "--title needs --html" in err


def test_all_commands_that_write_pages_are_tried_above():
    having = {
        name for name in COMMANDS if any("--html" in option.opts for option in command_named(name).params)
    }
    assert having == {*PAGES, "demo"}
    assert all(any("--subtitle" in p.opts for p in command_named(name).params) for name in having)


@pytest.mark.parametrize(("columns", "longest"), [(50, 50), (200, 100), (0, 100)])
def test_notes_fit_a_terminal(monkeypatch, columns, longest):
    """Messages on stderr are broken between words there, and stay one line each in a file."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    note = (
        "a note of many words, " * 12
        + "and_one_word_that_is_longer_than_the_terminal_is_wide_and_stays_whole"
    )
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        print_note(note)
    shown = os.read(ours, 65536).decode().splitlines()
    os.close(ours)
    assert " ".join(shown) == note
    assert max(len(line) for line in shown if " " in line) <= longest
    assert max(map(len, shown)) > longest - 25  # lines are filled

    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    print_note(note)
    assert file.getvalue() == f"{note}\n"
