"""A table of hostile command lines: no traceback, no silent number, one message, exit code 2."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from calibrant import evaluate, recalibrate
from calibrant.cli import main
from calibrant.cli.config import COMMANDS, load_command
from calibrant.errors import CalibrantError
from calibrant.io.read import read_table
from calibrant.sketch.sketch import Sketch

COLUMNS = ["-y", "y", "-p", "p"]
OWN_OPTIONS = {
    command: {flag for option in load_command(command).params for flag in option.opts} for command in COMMANDS
}
BAD_NUMBERS = ["nan", "inf", "-1", "x", "", "1e400", "0x10"]
BAD_SEEDS = ["nan", "-1", "x", "", "1.5", "1e3"]
BAD_COUNTS = [*BAD_SEEDS, "99999999999999999999999"]
OPTIONS = {
    ("check", "--max-group-z"): (["--groups", "g"], ["nan", "-1", "x", "", "0x10"]),
    ("check", "--confidence"): (["--max", "smooth=0.5"], [*BAD_NUMBERS, "1", "2"]),
    ("check", "--max"): (
        [],
        ["smooth=nan", "smooth=-1", "smooth=", "smooth", "=1", "smooth=x", "", "none=1"],
    ),
    ("check", "--seed"): (["--max", "smooth=0.5"], BAD_SEEDS),
    ("evaluate", "--seed"): ([], BAD_SEEDS),
    ("evaluate", "--measures"): ([], ["none", "", ",", "smooth,,kuiper"]),
    ("evaluate", "--groups"): ([], ["none", "", ",", "g,,y"]),
    ("evaluate", "--missing"): ([], ["maybe", ""]),
    ("evaluate", "--weight"): ([], ["none", "", "g", "y"]),
    ("test", "--draws"): ([], [*BAD_COUNTS, "0"]),
    ("test", "--confidence"): (["--interval"], [*BAD_NUMBERS, "0", "1"]),
    ("test", "--accept"): (["--reject", "0.2"], BAD_NUMBERS),
    ("test", "--measure"): ([], ["none", ""]),
    ("compare", "--draws"): (["-p", "w"], [*BAD_COUNTS, "0"]),
    ("compare", "--confidence"): (["-p", "w"], [*BAD_NUMBERS, "0", "1"]),
    ("audit", "--draws"): (["--groups", "g"], BAD_COUNTS),
    ("audit", "--depth"): (["--groups", "g"], [*BAD_COUNTS, "0"]),
    ("audit", "--limit"): (["--groups", "g"], [*BAD_COUNTS, "0"]),
    ("audit", "--min-size"): (["--groups", "g"], BAD_COUNTS),
    ("audit", "--min-variance"): (["--groups", "g"], ["nan", "-1", "x", ""]),
    ("audit", "--top"): (["--groups", "g"], ["-1", "x", "1.5", ""]),
    ("audit", "--groups"): ([], ["none", "", ",", "g,,y"]),
    ("sketch", "--cells"): (["-o", "{here}/x.sketch"], [*BAD_COUNTS, "0"]),
    ("sketch", "--by"): (["-o", "{here}/x.sketch"], ["none", "", ","]),
}
WITHOUT_ROWS = {"demo": "generates its rows", "measures": "prints a table", "merge": "reads sketches alone"}
BEFORE_ROWS = {"apply": "map.json", "verify": "report.json"}  # what a command reads first
PLAN, TRUTH, MAP = ["--records", "100"], ["-m", "smooth"], ["-o", "{here}/x.csv"]
OPTIONS |= {
    ("stream", "--delay"): ([], BAD_COUNTS),
    ("stream", "--order"): ([], ["none", ""]),
    ("stream", "--by"): ([], ["none", ""]),
    ("stream", "--batch-by"): ([], ["none", ""]),
    ("stream", "--output"): ([], ["{here}/x.txt", "{here}/rows.csv", "{here}/none/x.csv", "{here}"]),
    ("stream", "--state"): (
        [],
        ["{here}/rows.csv", "{here}/none/s", "{here}", "/dev/null", "{here}/text.sketch"],
    ),
    ("monitor", "--alpha"): ([], [*BAD_NUMBERS, "0", "1", "2"]),
    ("monitor", "--by"): ([], ["none", ""]),
    ("monitor", "--group"): ([], ["a"]),
    ("monitor", "--state"): (
        [],
        ["{here}/rows.csv", "{here}/none/s", "{here}", "/dev/null", "{here}/text.sketch"],
    ),
    ("distinguish", "--covariates"): ([], ["none", "", ",", "w,,g"]),
    ("distinguish", "--draws"): (["--covariates", "w"], BAD_COUNTS),
    ("distinguish", "--confidence"): (["--covariates", "w"], [*BAD_NUMBERS, "0", "1"]),
    ("distinguish", "--nominal"): (["--covariates", "w"], ["none", "", ","]),
    ("distinguish", "--seed"): (["--covariates", "w"], BAD_SEEDS),
    ("recalibrate", "--method"): ([], ["none", ""]),
    ("recalibrate", "--option"): (
        ["--method", "histogram"],
        ["bins", "=1", "bins=0", "bins=x", "bins=nan", "none=1", ""],
    ),
    ("recalibrate", "--prevalence"): ([], [*BAD_NUMBERS, "0", "1", "2"]),
    ("recalibrate", "--covariates"): ([], ["none", "", ","]),
    ("recalibrate", "--clusters"): ([], ["none", ""]),
    ("recalibrate", "--weights"): ([], ["none", ""]),
    ("recalibrate", "--seed"): ([], BAD_SEEDS),
    ("recalibrate", "--output"): (
        [],
        ["{here}/none/x", "{here}", "/dev/full", "{here}/rows.csv", "{here}/pipe"],
    ),
    ("apply", "--prediction"): (MAP, ["none", "", "g"]),
    ("apply", "--as"): (MAP, ["p", "P", ""]),
    ("apply", "--output"): (
        [],
        ["{here}/none/x.csv", "{here}", "/dev/full", "{here}/rows.csv", "{here}/pipe", "x.doc"],
    ),
    ("plan", "--records"): ([], [*BAD_COUNTS, "0"]),
    ("plan", "--distance"): ([], [*BAD_NUMBERS, "0", "2"]),
    ("plan", "--power"): (PLAN, [*BAD_NUMBERS, "0", "1"]),
    ("plan", "--alpha"): (PLAN, [*BAD_NUMBERS, "0", "1"]),
    ("plan", "--draws"): (PLAN, [*BAD_COUNTS, "0"]),
    ("plan", "--accept"): (["--reject", "0.2"], [*BAD_NUMBERS, "0.3"]),
    ("plan", "--measure"): (PLAN, ["none", ""]),
    ("plan", "--seed"): (PLAN, BAD_SEEDS),
    ("truthful", "--measure"): ([], ["none", ""]),
    ("truthful", "--draws"): (TRUTH, [*BAD_COUNTS, "0"]),
    ("truthful", "--seed"): (TRUTH, BAD_SEEDS),
    ("truthful", "--truth"): (TRUTH, ["x", "", "2", "nan"]),
    **{
        (command, "--format"): (extra, ["", "xml"])
        for command, extra in {"evaluate": [], "stream": [], "monitor": [], "truthful": TRUTH}.items()
    },
    ("evaluate", "--output"): (
        [],
        ["{here}/none/x", "{here}", "/dev/full", "{here}/rows.csv", "{here}/pipe"],
    ),
    ("verify", "--outcome"): ([], ["none", "", "g"]),
    ("verify", "--prediction"): ([], ["none", "", "g"]),
    ("verify", "--weight"): ([], ["none", "", "g"]),
    ("verify", "--groups"): ([], ["none", "", ",", "g,,y"]),
    ("verify", "--id"): ([], ["none", ""]),
    ("abstain", "--draws"): (["--risk", "0.1"], [*BAD_COUNTS, "0"]),
    ("abstain", "--risk"): ([], ["none", "", "0", "1", "-1", "nan"]),
    ("abstain", "--confidence"): (["--risk", "0.1"], ["none", "", "0", "1", "nan"]),
    ("distributions", "--draws"): (["--members", "p"], [*BAD_COUNTS, "0"]),
    ("distributions", "--members"): ([], ["none", "", ","]),
    ("distributions", "--quantiles"): ([], ["none", "", "p=2", "p=0", "p=nan"]),
    ("distributions", "--at"): (["--members", "p"], ["none", "", "nan", "2,1"]),
    ("distributions", "--coverage"): (["--lower", "p", "--upper", "p"], ["none", "", "0", "1", "nan"]),
    ("classes", "--draws"): (["-p", "w"], [*BAD_COUNTS, "0"]),
    ("classes", "--measure"): (["-p", "w"], ["none", ""]),
    ("classes", "--labels"): (["-p", "w"], ["a", "a,b,c", "", ","]),
    ("classes", "--weight"): (["-p", "w"], ["none", "", "g"]),
    ("demo", "--rows"): ([], ["nan", "-1", "x", "", "1.5", "0"]),
    ("demo", "--seed"): ([], BAD_SEEDS),
    ("demo", "--html"): ([], ["{here}/none/x.html", "{here}"]),
    ("demo", "--csv"): ([], ["{here}/none/x.csv", "{here}"]),
    ("merge", "--output"): (["{here}/day.sketch"], ["{here}/none/x", "{here}", "/dev/full", "{here}/pipe"]),
    ("measures", "--format"): ([], ["", "xml"]),
    ("measures", "--output"): ([], ["{here}/none/x", "{here}", "/dev/full", "{here}/pipe"]),
    ("evaluate", "--config"): ([], ["{here}/none.toml", "{here}", "{here}/rows.csv", "{here}/latin.csv"]),
}
CASES = [
    (command, *extra, option, value)
    for (command, option), (extra, values) in OPTIONS.items()
    for value in values
]

FILES = {
    "empty.csv": b"",
    "header.csv": b"y,p\n",
    "spaces.csv": b"   \n\n",
    "ragged.csv": b"y,p\n1,0.5\n1\n",
    "quote.csv": b'y,p\n1,"0.5\n',
    "zero.csv": b"y,p\n1,0.5\0\n0,0.5\n",
    "latin.csv": "y,p,é\n1,0.5,1\n".encode("latin-1"),
    "wide.csv": "y,p\n1,0.5\n".encode("utf-16"),
    "twice.csv": b"y,p,p\n1,0.5,0.6\n",
    "bare.csv": b"1,0.5\n0,0.4\n",
    "comma.csv": b"y;p\n1;0,5\n0;0,4\n",
    "percent.csv": b"y,p\n1,50%\n0,40%\n",
    "text.csv": b"y,p\nyes,0.5\nno,0.4\n",
    "inf.csv": b"y,p\n1,inf\n0,0.4\n",
    "gap.csv": b"y,p\n1,\n0,0.4\n",
    "mixed.csv": b"y,p\n1,0.5\r\n0,0.4\n",
    "packed.csv.gz": b"not gzip",
    "packed.csv.zst": b"not zstandard",
    "broken.parquet": b"PAR1xxxxPAR1",
    "broken.json": b'{"y": 1, "p": 0.5',
    "nested.json": b'{"y": 1, "p": [0.5]}\n',
    "deep.json": b"[" * 100_000,
    "list.json": b"[1, 2, 3]",
    "book.xlsx": b"PK\x03\x04xx",
    "base.sqlite": b"SQLite format 3\0",
    "rows.pkl": b"\x80\x04N.",
    "noending": b"y,p\n1,0.5\n",
    "broken.sketch": b"PK\x03\x04xx",
    "text.sketch": b"hello",
}
FAULT_IN_OUTCOMES = {"text.csv"}  # commands without --outcome read the rest
FAULT_IN_PREDICTIONS = {  # commands without --prediction read the rest
    "comma.csv",
    "gap.csv",
    "inf.csv",
    "nested.json",
    "percent.csv",
    "twice.csv",
    "zero.csv",
}
NAMES = [
    "none.csv",
    "",
    ".",
    "/",
    "/dev/null",
    "/dev/zero",
    "*.none",
    "[",
    "a\x1b[31m.csv",
    "~/x.csv",
    "x" * 300,
]
NAMES += [
    "https://example.invalid/x.csv",
    "s3://bucket/x.parquet",
    "file:///etc/passwd",
    "http://localhost/x.csv",
]
TARGETS = ["{here}/none/x", "{here}", "/dev/full", "/dev/null", "{here}/rows.csv", "{here}/pipe"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(5)
    p = rng.random(200).round(2)
    y = (rng.random(200) < p).astype(int)
    rows = [f"{y[k]},{v},{1 - v:.2f},g{k % 3}" for k, v in enumerate(p)]
    (here / "rows.csv").write_text("y,p,w,g\n" + "\n".join(rows) + "\n")
    for name, data in FILES.items():
        (here / name).write_bytes(data)
    os.mkfifo(here / "pipe")
    recalibrate(y, p, method="platt").save(here / "map.json")
    Sketch.from_arrays(y, p).save(here / "day.sketch")
    report = evaluate({"y": y, "p": p}, outcome="y", prediction="p", draws=19)
    (here / "report.json").write_text(json.dumps(report.to_dict()))
    return here


def visible(folder):
    """The files that people see; the empty lock of a state stays by design."""
    return sorted(name for name in os.listdir(folder) if not name.endswith(".lock"))


def columns_of(command):
    """Return the columns a command needs; commands of outcomes alone have no -p, a report names its own."""
    if command == "verify":
        return []
    return [word for k in (0, 2) if COLUMNS[k] in OWN_OPTIONS[command] for word in COLUMNS[k : k + 2]]


def refused(capsys, monkeypatch, folder, *arguments, hint=""):
    """Run a command line and check that it is refused in words for what it says, and writes nothing."""
    before = visible(folder)
    monkeypatch.setattr(
        sys, "argv", ["calibrant", *(str(a).replace("{here}", str(folder)) for a in arguments)]
    )
    code = main.run_command()
    out, err = capsys.readouterr()
    assert code != 0, f"{arguments} was accepted{hint}"
    assert code == 2, (arguments, code, out, err)
    assert out == "", arguments
    others = [words for words in ("No such option", "Missing option") if words in err]
    assert not others, f"it was refused, but not for the value that the test is about: {err}"
    assert "Traceback" not in err
    assert "defect" not in err, err
    assert err.startswith(("calibrant: ", "Usage: ")), err
    assert "\x1b" not in err
    assert visible(folder) == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join((case[0], *case[-2:])))
def test_options_of_a_wrong_kind_are_refused(capsys, monkeypatch, folder, case):
    command, *options = case
    before = [folder / BEFORE_ROWS[command]] if command in BEFORE_ROWS else []
    rows = [] if command in WITHOUT_ROWS else [*before, folder / "rows.csv", *columns_of(command)]
    refused(capsys, monkeypatch, folder, command, *rows, *options)


NEW_COMMANDS = {
    "stream": COLUMNS,
    "monitor": COLUMNS,
    "distinguish": [*COLUMNS, "--covariates", "w"],
    "recalibrate": [*COLUMNS, "-o", "{here}/x.json"],
    "plan": ["-p", "p", "--records", "100"],
    "truthful": ["-p", "p", "-m", "smooth"],
    "apply": ["-p", "p", "-o", "{here}/x.csv"],
    "audit": [*COLUMNS, "--groups", "p"],
    "compare": [*COLUMNS, "-p", "y"],
    "classes": [*COLUMNS, "-p", "y"],
    "abstain": [*COLUMNS, "--risk", "0.1"],
    "distributions": ["-y", "y", "--members", "p"],
    "verify": COLUMNS,
}
FIRST_COMMANDS = ["evaluate", "test", "check", "sketch"]


@pytest.mark.parametrize("command", NEW_COMMANDS)
def test_files_that_no_command_can_read(capsys, monkeypatch, folder, command):
    hint = ": add it to FAULT_IN_OUTCOMES or FAULT_IN_PREDICTIONS if it does not read the column at fault"
    skipped = readable_by(command)
    for name in [*FILES, *NAMES]:
        if name in skipped:
            continue
        file = folder / name if name in FILES else name
        before = [folder / BEFORE_ROWS[command]] if command in BEFORE_ROWS else []
        refused(capsys, monkeypatch, folder, command, *before, file, *NEW_COMMANDS[command], hint=hint)
    assert len(FILES) + len(NAMES) - len(skipped) > 30


def readable_by(command):
    """Return the files in which a command finds no fault."""
    whole = {"header.csv"} if command in ("stream", "monitor", "apply") else set()
    counted = {"zero.csv", "inf.csv", "gap.csv", "comma.csv", "percent.csv"} if command == "apply" else set()
    outcomes = set() if "-y" in OWN_OPTIONS[command] else FAULT_IN_OUTCOMES
    predictions = set() if "-p" in OWN_OPTIONS[command] else FAULT_IN_PREDICTIONS
    return whole | counted | outcomes | predictions


def reads(path, column):
    try:
        read_table([str(path)], [column], [])
    except CalibrantError:
        return False
    return True


def test_faults_in_one_column_do_not_hide_the_other(folder):
    assert {name for name in FILES if reads(folder / name, "y")} == {*FAULT_IN_PREDICTIONS, "header.csv"}
    assert all(reads(folder / name, "p") for name in FAULT_IN_OUTCOMES)


@pytest.mark.parametrize("name", [*FILES, *NAMES], ids=repr)
def test_files_that_are_no_maps_are_refused(capsys, monkeypatch, folder, name):
    file = folder / name if name in FILES else name
    refused(capsys, monkeypatch, folder, "apply", file, folder / "rows.csv", "-p", "p", *MAP)


@pytest.mark.parametrize("command", FIRST_COMMANDS)
@pytest.mark.parametrize("name", [*FILES, *NAMES], ids=repr)
def test_files_that_cannot_be_read_are_refused(capsys, monkeypatch, folder, command, name):
    if (command, name) == ("sketch", "header.csv"):
        pytest.skip("a day without records has a sketch")
    extra = {"check": ["--max", "smooth=0.5"], "sketch": ["-o", "{here}/x.sketch"]}.get(command, [])
    file = folder / name if name in FILES else name
    refused(capsys, monkeypatch, folder, command, file, *COLUMNS, *extra)


@pytest.mark.parametrize("target", TARGETS)
def test_places_that_cannot_be_written_are_refused(capsys, monkeypatch, folder, target):
    rows = [folder / "rows.csv", *COLUMNS]
    refused(capsys, monkeypatch, folder, "evaluate", *rows, "--html", target)
    refused(capsys, monkeypatch, folder, "check", *rows, "--max", "smooth=0.9", "--junit", target)
    refused(capsys, monkeypatch, folder, "sketch", *rows, "-o", target)


CONFIGS = [
    "[tool.calibrant.check]\nmax = 3",
    "[tool.calibrant.check]\nmax = {smooth = 'x'}",
    "[tool.calibrant.check]\nmax = {smooth = nan}",
    "[tool.calibrant.check]\nseed = 'x'",
    "[tool.calibrant.check]\nconfidence = [1]",
    "[tool.calibrant.check]\ngroups = 7",
    "[tool.calibrant.check]\ngroups = [1, 2]",
    "[tool.calibrant.check]\nnonsense = 1",
    "[tool.calibrant]\ncheck = 3",
    "[tool]\ncalibrant = 3",
    "tool = 3",
    "[tool",
]


@pytest.mark.parametrize("text", CONFIGS)
def test_defaults_of_a_wrong_kind_are_refused(capsys, monkeypatch, folder, text, tmp_path):
    config = tmp_path / "pyproject.toml"
    config.write_text(text)
    extra = [] if "max" in text else ["--max", "smooth=0.9"]
    refused(capsys, monkeypatch, folder, "check", folder / "rows.csv", *COLUMNS, "--config", config, *extra)


def run(*arguments, **options):
    code = [sys.executable, "-m", "calibrant", *map(str, arguments)]
    return subprocess.run(code, capture_output=True, text=True, **options)


def test_control_characters_of_names_are_shown_not_obeyed(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("y,p,g\n" + "1,0.9,a\x1b[31mb\n0,0.1,c\u202ed\n" * 30)
    done = run("audit", path, *COLUMNS, "--groups", "g", "--draws", 0)
    assert done.returncode == 0, done.stderr
    assert "c\\u202ed" in done.stdout
    assert not {"\x1b", "\u202e"} & set(done.stdout)


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json"])
def test_control_characters_of_names_are_escaped_in_files_of_results(tmp_path, form):
    path, one, two = tmp_path / "x.csv", "p\x1b[31m\x9b", "q\u202e"
    lines = [f"{int(k % 7 < 3)},{(k % 10) / 10},{(k % 9) / 9:.3f}" for k in range(60)]
    path.write_text("\n".join([f"y,{one},{two}", *lines, ""]))
    words = ("-y", "y", "-p", one, "-p", two, "--draws", 19, "--format", form, "-o", tmp_path / "out")
    done = run("compare", path, *words)
    assert done.returncode in (0, 3), done.stderr
    text = (tmp_path / "out").read_text()
    assert "u001b" in text
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)


def test_a_full_disk_behind_stdout_is_exit_code_2(folder):
    with open("/dev/full", "w") as full:
        code = [sys.executable, "-m", "calibrant", "measures"]
        done = subprocess.run(code, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == "calibrant: could not read or write: No space left on device\n"


@pytest.mark.skipif(os.name == "nt", reason="a shell closes the streams")
def test_closed_streams_are_told_without_a_traceback(folder):
    code = f"exec {sys.executable} -m calibrant monitor rows.csv -y y -p p --state s.json"
    for closed, said in (
        (">&-", "calibrant: could not read or write: Bad file descriptor\n"),
        (">&- 2>&- <&-", ""),
    ):
        done = subprocess.run(["sh", "-c", f"{code} {closed}"], cwd=folder, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (2, said)
        assert not (folder / "s.json").exists()
    done = subprocess.run(["sh", "-c", f"{code} -o out.txt >&- 2>&-"], cwd=folder)
    assert done.returncode in (0, 1)
    assert "everybody" in (folder / "out.txt").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["measures"],
        ["--help"],
        ["check", "rows.csv", *COLUMNS, "--max", "kuiper=1"],
        ["evaluate", "rows.csv", *COLUMNS, "--seed", "1", "--json"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_reader_that_goes_away_is_no_fault_and_no_verdict(folder, arguments):
    code = [sys.executable, "-m", "calibrant", *arguments]
    with subprocess.Popen(
        code, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        running.stdout.close()
        said = running.stderr.read()
    assert running.returncode == 141
    assert "calibrant:" not in said.replace("calibrant: seed", "")
    assert "Traceback" not in said


def reading(shown, file, *words):
    """Return what is shown of the same rows read in another way, which the next command names."""
    typed = f"calibrant evaluate {file} "
    assert shown.count(typed) == 1, shown
    return shown.replace(typed, " ".join(["calibrant", "evaluate", *map(str, words), ""]))


def test_standard_input_is_a_file_whatever_it_holds(folder):
    rows = (folder / "rows.csv").read_bytes()
    named = run("evaluate", folder / "rows.csv", *COLUMNS, "--seed", 1)
    piped = [sys.executable, "-m", "calibrant", "evaluate", "-", *COLUMNS, "--seed", "1"]
    done = subprocess.run(piped, input=rows, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == reading(named.stdout, folder / "rows.csv", "-")
    packed = subprocess.run(piped, input=gzip.compress(rows), capture_output=True)
    assert packed.stdout == done.stdout, packed.stderr
    empty = subprocess.run(piped, input=b"", capture_output=True)
    assert empty.returncode == 2
    assert empty.stderr == b"calibrant: standard input must not be empty; got 0 bytes.\n"


def test_decimal_commas_and_percent_signs_on_the_command_line(folder, tmp_path):
    lines = (folder / "rows.csv").read_text().splitlines()[1:]
    cells = [line.split(",") for line in lines]
    (tmp_path / "x.csv").write_text("y;p\n" + "".join(f"{y};{p.replace('.', ',')}\n" for y, p, *_ in cells))
    (tmp_path / "z.csv").write_text("y,p\n" + "".join(f"{y},{float(p) * 100:.0f} %\n" for y, p, *_ in cells))
    named = run("evaluate", folder / "rows.csv", *COLUMNS, "--seed", 1).stdout
    for file, *words in ((tmp_path / "x.csv", "--decimal", ","), (tmp_path / "z.csv", "--percent")):
        found = run("evaluate", file, *COLUMNS, "--seed", 1, *words).stdout
        assert found == reading(named, folder / "rows.csv", file, *words)
