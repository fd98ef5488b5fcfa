"""Commands x paths: no command overwrites a file that it reads, under whichever name."""

from __future__ import annotations

import os

import pytest
from cli.typed import calibrant

from calibrant import Sketch, recalibrate
from calibrant.cli.config import COMMANDS

COLUMNS = ["-y", "y", "-p", "p"]
# For each command: its arguments before any output, and the options that write files
CASES = {
    "apply": (["apply", "map.json", "rows.csv", "-p", "p"], ["-o {}"]),
    "audit": (["audit", "rows.csv", *COLUMNS, "--groups", "g"], ["-o {}", "--html {}", "--rules {}"]),
    "check": (["check", "rows.csv", *COLUMNS, "--max", "ece=1"], ["-o {}", "--junit {}"]),
    "classes": (["classes", "rows.csv", "-y", "c", "-p", "p,q"], ["-o {}"]),
    "compare": (["compare", "rows.csv", "-y", "y", "-p", "p", "-p", "q"], ["-o {}"]),
    "demo": (["demo", "--rows", "500"], ["-o {}", "--html {}", "--csv {}"]),
    "distinguish": (["distinguish", "rows.csv", *COLUMNS, "--covariates", "g"], ["-o {}", "--html {}"]),
    "evaluate": (["evaluate", "rows.csv", *COLUMNS], ["-o {}", "--html {}", "--chart reliability={}"]),
    "measures": (["measures"], ["-o {}"]),
    "merge": (["merge", "a.sketch", "b.sketch"], ["-o {}"]),
    "monitor": (["monitor", "rows.csv", *COLUMNS], ["-o {}", "--state {}"]),
    "plan": (["plan", "rows.csv", "-p", "p"], ["-o {}"]),
    "recalibrate": (
        ["recalibrate", "rows.csv", *COLUMNS, "--method", "patch", "--rules", "rules.json", "--groups", "g"],
        ["-o {}"],
    ),
    "sketch": (["sketch", "rows.csv", *COLUMNS], ["-o {}"]),
    "stream": (["stream", "rows.csv", *COLUMNS], ["-o {}", "--state {}", "--html {}"]),
    "test": (["test", "rows.csv", *COLUMNS, "--draws", "19"], ["-o {}"]),
    "truthful": (["truthful", "rows.csv", "-p", "p"], ["-o {}"]),
}
WITHOUT_CASES = {
    "abstain": "prints like evaluate",
    "distributions": "prints like evaluate",
    "verify": "prints like check",
}
NAMES = ("itself", "symlink", "hard link", "other spelling")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Make one of every kind of file that a command reads."""
    folder = tmp_path_factory.mktemp("inputs")
    lines = [f"{k % 2},{(k % 10) / 10},{(k % 7) / 7},{'uv'[k % 2]},{'pq'[k % 2]}" for k in range(60)]
    (folder / "rows.csv").write_text("\n".join(["y,p,q,g,c", *lines, ""]))
    recalibrate([0, 1] * 30, [0.2, 0.4, 0.6] * 20, method="platt").save(folder / "map.json")
    for name, y in (("a", [0, 1]), ("b", [1, 1])):
        Sketch.from_arrays(y, [0.3, 0.6]).save(folder / f"{name}.sketch")
    (folder / "rules.json").write_text("[]")
    (folder / "c.toml").write_text("[tool.calibrant]\nquiet = true\n")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(inputs, tmp_path, monkeypatch):
    for name, data in inputs.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def named(path, how, folder):
    """Return another name of a file."""
    if how == "itself":
        return path
    if how == "other spelling":
        return f"../{folder.name}/./{path}"
    ending = path[path.rindex(".") :]
    other = f"other{ending}"
    (os.symlink if how == "symlink" else os.link)(folder / path, folder / other)
    return other


def read_by(command):
    return [word for word in CASES[command][0] if "." in word] + ["c.toml"]


ATTACKS = [
    (command, output, target, how)
    for command, (_, outputs) in CASES.items()
    for output in outputs
    for target in read_by(command)
    for how in (NAMES if output == outputs[0] else NAMES[:1])
]


def test_every_command_is_attacked():
    assert set(COMMANDS) - set(WITHOUT_CASES) == set(CASES), "add new commands to CASES"


@pytest.mark.parametrize(("command", "output", "target", "how"), ATTACKS)
def test_no_input_is_overwritten(command, output, target, how, folder, inputs):
    words = [*CASES[command][0], "--config", "c.toml", *output.format(named(target, how, folder)).split(" ")]
    ended = calibrant(*words)
    assert ended.returncode == 2, ended.stdout
    assert "must not be the file of" in ended.stderr
    assert {name: (folder / name).read_bytes() for name in inputs} == inputs


@pytest.mark.parametrize("command", [name for name, (_, outputs) in CASES.items() if len(outputs) > 1])
def test_two_outputs_are_two_files(command, folder, inputs):
    words, outputs = CASES[command]
    ended = calibrant(*words, *(word for output in outputs for word in output.format("x.csv").split(" ")))
    assert ended.returncode == 2
    assert "must not be the file of" in ended.stderr
    assert sorted(path.name for path in folder.iterdir()) == sorted(inputs)


@pytest.mark.parametrize("key", ["html", "output", "chart"])
def test_a_pyproject_that_was_not_asked_for_sets_no_outputs(key, folder):
    inner = folder / "inner"
    inner.mkdir()
    (folder / "victim.txt").write_text("keep")
    value = '["reliability=../victim.txt"]' if key == "chart" else '"../victim.txt"'
    (inner / "pyproject.toml").write_text(f"[tool.calibrant.evaluate]\n{key} = {value}\n")
    os.chdir(inner)
    ended = calibrant("evaluate", "../rows.csv", *COLUMNS)
    assert ended.returncode == 2
    assert f"{key} in pyproject.toml must not name a file to write" in ended.stderr
    assert (folder / "victim.txt").read_text() == "keep"
