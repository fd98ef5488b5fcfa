"""Completion in real shells: a column name is never executed, whatever it is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pytest
from terminal import Terminal

HOSTILE = [
    "$(touch PWNED1)", "`touch PWNED2`", ";touch PWNED3", "|touch PWNED4", "&touch PWNED5", "x>PWNED6",
    "\ntouch PWNED7\n", "'$(touch PWNED8)", '"$(touch PWNED9)"', "(touch PWNED10)", "{touch,PWNED11}",
    "zz$(touch PWNED12)", "~root", "=ls", "!touch PWNED13", "z\\$(touch PWNED14)", "<(touch PWNED15)",
    "z\x1b[31m", "#x", "%self", "*", "z b",
]  # fmt: skip
TYPED = ["$", "`", "zz", "x"]
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(_CALIBRANT_COMPLETE=bash_source calibrant)"'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'autoload -Uz compinit; compinit -u -D; eval "$(_CALIBRANT_COMPLETE=zsh_source calibrant)"',
    ),
    "fish": (["fish", "-N", "-i"], "_CALIBRANT_COMPLETE=fish_source calibrant | source"),
}


@pytest.fixture
def folder(tmp_path):
    """Make a folder with a hostile file, and a command `calibrant` on the path."""
    import csv

    with (tmp_path / "comp.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*HOSTILE, "default", "probability"], ["1"] * (len(HOSTILE) + 2)])
    command = tmp_path / "bin" / "calibrant"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\nfrom calibrant_command import main\n\nmain()\n")
    command.chmod(0o755)
    return tmp_path


def environment(folder):
    kept = {name: os.environ[name] for name in ("PYTHONPATH", "LANG", "LC_ALL") if name in os.environ}
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return {**kept, "PATH": path, "HOME": str(folder), "TERM": "xterm", "PS1": "ready> "}


def typed(terminal, line, seconds=20.0):
    """Type a line, ask for completion twice, and run what came of it."""
    marker = f"done{time.monotonic_ns()}"
    terminal.type(line + "\t")
    terminal.read(2.5)
    terminal.type("\t")
    terminal.read(0.5)
    terminal.type("\n")
    terminal.read(0.5)
    terminal.type("\x03")  # out of an open quote
    terminal.read(0.3)
    terminal.type(f"echo {marker[:4]}''{marker[4:]}\n")
    terminal.wait_for(marker, seconds)


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_a_column_name_is_never_executed(shell, folder):
    arguments, setup = SHELLS[shell]
    if shutil.which(arguments[0]) is None:
        pytest.skip(f"{shell} is not installed")
    terminal = Terminal(arguments, folder, environment(folder))
    try:
        terminal.read(1.0)
        terminal.type(setup + "; echo set''up\n")
        assert terminal.wait_for("setup", 30), terminal.output
        terminal.type("calibrant evaluate comp.csv --outcome defa\t")
        assert terminal.wait_for("default", 20), terminal.output  # completion works at all
        terminal.type("\x03")
        terminal.read(0.5)
        for start in TYPED:
            typed(terminal, f"calibrant evaluate comp.csv --outcome {start}")
            typed(terminal, f"calibrant evaluate comp.csv --groups default,{start}")
    finally:
        terminal.close()
    assert [path.name for path in folder.iterdir() if path.name.startswith("PWNED")] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("option", ["--outcome", "--groups"])
def test_only_names_that_no_shell_reads_are_offered(shell, option, folder):
    words = f"calibrant evaluate comp.csv {option} "
    env = {**environment(folder), "_CALIBRANT_COMPLETE": f"{shell}_complete"}
    env |= {"COMP_WORDS": words, "COMP_CWORD": "" if shell == "fish" else "4"}
    offered = subprocess.run(
        [folder / "bin" / "calibrant"], cwd=folder, env=env, capture_output=True, text=True, check=False
    ).stdout
    assert "default" in offered
    assert "probability" in offered
    for name in HOSTILE:
        assert name not in offered
    assert not set("$`;&|<>(){}'\"\\!*?[]~#\x1b") & set(offered)
