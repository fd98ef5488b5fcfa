"""Hostile names on a real terminal: no command lets a control character or a forged line through."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.typed import calibrant

from calibrant import Sketch, recalibrate

pytestmark = pytest.mark.slow  # two minutes: every command, on two terminals

DRIVER = Path(__file__).with_name("pty_commands.py")
FORGED = "::error title=forged::x"
EVIL = f"\x1b]0;owned\x07\x1b[31mred\r\x08\x9b2J\u202e\n{FORGED}\nz"
Y, P, Q, G = (f"{letter}{EVIL}" for letter in "ypqg")
ROWS, OUT = f"rows{EVIL}.parquet", f"out{EVIL}"
COLUMNS = ["-y", Y, "-p", P]
LINES = {
    "abstain": [[ROWS, *COLUMNS, "--risk", "0.9", "--draws", "19", "--chart", f"risk={OUT}.svg"]],
    "apply": [["map.json", ROWS, "-p", P, "--as", f"new{EVIL}", "-o", f"{OUT}.csv"]],
    "audit": [
        [ROWS, *COLUMNS, "--groups", f'"{G}"', "--draws", "19", "--top", "5"],
        [ROWS, *COLUMNS, "--covariates", f'"{G}"', "--search", "--draws", "19", "--rules", f"{OUT}.json"],
    ],
    "check": [
        [ROWS, *COLUMNS, "--max", "ece=0.001"],
        [f"x\n{FORGED}", *COLUMNS, "--max", "ece=0.001"],
        [ROWS, *COLUMNS, "--max", f"ece{EVIL}=0.001"],
    ],
    "classes": [[ROWS, "-y", G, "-p", P, "-p", Q, "--labels", f'"u{EVIL}","v{EVIL}"']],
    "compare": [[ROWS, "-y", Y, "-p", P, "-p", Q, "--draws", "19"]],
    "demo": [["--rows", "300", "--html", f"{OUT}.html", "--csv", f"{OUT}.csv"]],
    "distributions": [
        [ROWS, "-y", Q, "--members", f'"{P}","{Q}"', "--groups", f'"{G}"', "--draws", "19"],
        [ROWS, "-y", Q, "--quantiles", f'"{P}=0.5"', "--draws", "19", "--html", f"{OUT}.html"],
    ],
    "distinguish": [[ROWS, *COLUMNS, "--covariates", f'"{G}"']],
    "evaluate": [
        [ROWS, *COLUMNS, "--groups", f'"{G}"', "--html", f"{OUT}.html"],
        [ROWS, "-y", f"none{EVIL}", "-p", P],
        [f"none{EVIL}.csv", *COLUMNS],
        [ROWS, *COLUMNS, f"--wrong{EVIL}"],
        [ROWS, *COLUMNS, "--groups", f'"{G}"', "--format", "markdown"],
        [ROWS, *COLUMNS, "--groups", f'"{G}"', "--format", "csv"],
        [ROWS, *COLUMNS, "--groups", f'"{G}"', "--json"],
        ["by.sketch"],
    ],
    "measures": [[f"none{EVIL}"]],
    "merge": [["by.sketch", "two.sketch", "-o", f"{OUT}.sketch"]],
    "monitor": [[ROWS, *COLUMNS, "--by", G, "--state", f"{OUT}.state"], [ROWS, *COLUMNS, "--order", G]],
    "plan": [[ROWS, "-p", P, "--distance", "0.05"]],
    "recalibrate": [
        [ROWS, *COLUMNS, "--covariates", f'"{G}"', "--method", "hierarchical", "-o", f"{OUT}.json"],
        [ROWS, *COLUMNS, "--method", f"none{EVIL}"],
    ],
    "sketch": [[ROWS, *COLUMNS, "--by", f'"{G}"', "-o", f"{OUT}.sketch"]],
    "stream": [[ROWS, *COLUMNS, "--by", G, "-o", f"{OUT}.csv", "--keep", f'"{G}"']],
    "test": [[ROWS, *COLUMNS, "--draws", "19"]],
    "truthful": [[ROWS, "-p", P, "--measure", "brier"]],
    "verify": [["report.json", ROWS], ["report.json", ROWS, "-y", Q], [f"none{EVIL}.json", ROWS]],
    f"none{EVIL}": [[]],
}
OWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colors, and the cursor of a progress bar


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("escapes")
    values = [f"u{EVIL}", f"v{EVIL}"]
    numbers = range(400)
    rows = {
        Y: [int(k % 7 < 3) for k in numbers],
        P: [(k % 10 + 0.5) / 10 for k in numbers],
        Q: [1 - (k % 10 + 0.5) / 10 for k in numbers],
        G: [values[k % 3 > 0] for k in numbers],
    }
    pq.write_table(pa.table(rows), here / ROWS)
    recalibrate([0, 1] * 30, [0.2, 0.4, 0.6] * 20, method="platt").save(here / "map.json")
    columns = {"y": [0, 1, 1, 0], "p": [0.2, 0.4, 0.6, 0.1], "g": [*values, *values]}
    for name, more in (("by", 0.0), ("two", 0.01)):
        frame = {**columns, "p": [p + more for p in columns["p"]]}
        Sketch.from_frame(frame, outcome="y", prediction="p", by="g").save(here / f"{name}.sketch")
    how = ("--groups", f'"{G}"', "--draws", "19", "--json", "-o", "report.json")
    assert calibrant("evaluate", ROWS, *COLUMNS, *how, cwd=here).returncode == 0
    return here


@pytest.fixture(scope="module")
def printed(folder):
    """Run every command line on a terminal with colors and on one without."""
    lines = [[command, *words] for command, several in LINES.items() for words in several]
    result = {}
    for term in ("xterm-256color", "dumb"):
        env = {**os.environ, "TERM": term, "GITHUB_ACTIONS": "true"}
        run = subprocess.run(
            [sys.executable, "-W", "ignore", str(DRIVER), json.dumps(lines)],
            cwd=folder, env=env, capture_output=True, text=True, check=True,
        )  # fmt: skip
        result[term] = list(zip(lines, json.loads(run.stdout), strict=True))
        for path in folder.iterdir():
            if path.name.startswith("out"):
                path.unlink()
    return result


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_no_control_character_reaches_the_terminal(printed, term):
    bad = []
    for line, (output, code) in printed[term]:
        text = output.encode("latin-1").decode("utf-8", "replace")
        plain = OWN.sub("", text) if term != "dumb" else text
        controls = set(re.findall("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", plain))
        controls |= set(re.findall("\r(?!\n)", plain)) if term == "dumb" else set()
        for sequence in ("\x1b[31mred", "\x9b2J", "\x1b]0;owned"):
            controls |= {sequence} if sequence in text else set()
        forged = [row for row in text.splitlines() if row.strip().startswith("::error title=for")]
        if controls or forged or "Traceback" in text or code not in (0, 1, 2, 3):
            bad.append((line[0], line[1:2], code, controls, forged, text[-300:]))
    assert bad == []


def test_the_commands_do_their_work(printed):
    """Names are hostile, not wrong: a test that only sees refusals would show nothing."""
    codes = {}
    for line, (_, code) in printed["dumb"]:
        codes.setdefault(line[0], []).append(code)
    worked = [command for command, several in codes.items() if min(several) != 2]
    assert len(worked) >= len(LINES) - 4, codes
