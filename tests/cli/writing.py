"""One call of every command, the files it reads, and every option that makes it write a file.

The options come from the commands themselves, so that a new one is attacked as soon as it exists.
"""

from __future__ import annotations

import click
import pytest
from cli.typed import calibrant

from calibrant import Sketch, recalibrate
from calibrant.cli.config import command_named
from calibrant.cli.options import CHARTS, writes_files

COLUMNS = ["-y", "y", "-p", "p"]
FEW = ["--draws", "19"]
# Arguments of each command before any output
CALLS = {
    "abstain": ["rows.csv", *COLUMNS, "--risk", "0.9", *FEW],
    "apply": ["map.json", "rows.csv", "-p", "p"],
    "audit": ["rows.csv", *COLUMNS, "--groups", "g", *FEW],
    "check": ["rows.csv", *COLUMNS, "--max", "brier=1"],
    "classes": ["rows.csv", "-y", "c", "-p", "p", "-p", "r", *FEW],
    "compare": ["rows.csv", "-y", "y", "-p", "p", "-p", "q", *FEW],
    "demo": ["--rows", "500"],
    "distinguish": ["rows.csv", *COLUMNS, "--covariates", "g", *FEW],
    "distributions": ["rows.csv", "-y", "q", "--members", "p,r", *FEW],
    "evaluate": ["rows.csv", *COLUMNS, *FEW],
    "measures": [],
    "merge": ["a.sketch", "b.sketch"],
    "monitor": ["rows.csv", *COLUMNS],
    "plan": ["rows.csv", "-p", "p"],
    "recalibrate": ["rows.csv", *COLUMNS, "--method", "patch", "--rules", "rules.json", "--force"],
    "sketch": ["rows.csv", *COLUMNS],
    "stream": ["rows.csv", *COLUMNS],
    "test": ["rows.csv", *COLUMNS, *FEW],
    "truthful": ["rows.csv", "-p", "p", "--measure", "brier", *FEW],
    "verify": ["report.json", "rows.csv"],
}
CHART = {"abstain": "risk", "compare": "reliability", "distributions": "pit", "evaluate": "reliability"}
NEEDED = {"apply": ["-o", "needed.csv"], "merge": ["-o", "needed.sketch"], "sketch": ["-o", "needed.sketch"]}
ENDINGS = {"--html": ".html", "--chart": ".svg", "--junit": ".xml", "--csv": ".csv", "--rules": ".json"}


def outputs(command: str) -> list[click.Parameter]:
    """Return the options of a command that name files to write."""
    return [option for option in command_named(command).params if writes_files(option)]


def words(command: str, option: click.Parameter, path: str) -> list[str]:
    """Return the words that make a command write a file."""
    return [option.opts[0], f"{CHART[command]}={path}" if option.name == CHARTS else path]


def ending(command: str, option: click.Parameter) -> str:
    if "--output" in option.opts:
        return {"sketch": ".sketch", "merge": ".sketch", "apply": ".csv", "stream": ".csv"}.get(
            command, ".txt"
        )
    return ENDINGS.get(option.opts[0], ".json")


def files_read(command: str) -> list[str]:
    return [word for word in CALLS[command] if word.endswith((".csv", ".json", ".sketch"))]


def make_inputs(folder) -> dict[str, bytes]:
    """Make one of every kind of file that a command reads; return their contents."""
    lines = ["y,p,q,r,g,c"]
    for k in range(200):
        p = (k % 10 + 0.5) / 10
        lines.append(f"{int(k % 7 < 3)},{p},{(k % 8) / 8},{1 - p:g},{'uv'[k % 2]},{'pr'[k % 2]}")
    (folder / "rows.csv").write_text("\n".join([*lines, ""]))
    recalibrate([0, 1] * 30, [0.2, 0.4, 0.6] * 20, method="platt").save(folder / "map.json")
    for name, y in (("a", [0, 1]), ("b", [1, 1])):
        Sketch.from_arrays(y, [0.3, 0.6]).save(folder / f"{name}.sketch")
    made = calibrant("audit", "rows.csv", *COLUMNS, "--groups", "g", "--rules", "rules.json", cwd=folder)
    assert made.returncode == 0, made.stderr
    made = calibrant("evaluate", "rows.csv", *COLUMNS, *FEW, "--json", "-o", "report.json", cwd=folder)
    assert made.returncode == 0, made.stderr
    (folder / "c.toml").write_text("[tool.calibrant]\nquiet = true\n")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module", name="inputs")
def contents_of_inputs(tmp_path_factory):
    return make_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(name="folder")
def folder_of_inputs(inputs, tmp_path, monkeypatch):
    """A folder of fresh copies of these files, the one in which commands run."""
    for name, data in inputs.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    return tmp_path
