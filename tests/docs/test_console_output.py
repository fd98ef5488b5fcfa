"""Commands printed in the README, on the home page and in tutorials run, and print what is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FIRST = [ROOT / "README.md", DOCS / "index.md"]
NOTEBOOKS = sorted([DOCS / "confidence.md", *(DOCS / "tutorials").glob("*.md")])
BLOCK = re.compile(r"^```(console|\{code-cell\})\n(?::tags:[^\n]*\n)?(.*?)^```$", re.DOTALL | re.MULTILINE)
SILENT = ("awk ", "pip ")  # commands of others, which print nothing that matters


def steps(page: Path) -> list[tuple[str, str | list[str]]]:
    """Return the cells of a page as ("", code), and its commands as (command, the lines shown below it)."""
    found: list[tuple[str, str | list[str]]] = []
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "{code-cell}":
            found.append(("", block))
            continue
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def run(command: str, folder: Path) -> str:
    """Run one command line as a user would, with this calibrant."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "calibrant").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m calibrant "$@"\n')
    (tools / "calibrant").chmod(0o755)
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env={**os.environ, "PATH": path}, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1, 3), done.stdout
    return done.stdout


def matches(shown: list[str], printed: str) -> bool:
    """Compare what is shown with what is printed; a line of three dots matches any lines."""
    wanted = "\n".join(shown).strip("\n").split("\n")
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in wanted)
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


def check(command: str, shown: list[str], folder: Path) -> None:
    """Run a command, and fail if it prints something else than shown, or tables that are too wide."""
    if command.startswith("pip "):
        return
    printed = run(command, folder)
    if not command.startswith(SILENT):
        assert any(line.strip("." if line == "..." else " ") for line in shown), (
            f"show what this prints:\n$ {command}\n{printed}"
        )
        assert matches(shown, printed), f"$ {command}\n{printed}"
    if command.startswith(("calibrant evaluate", "calibrant audit")):
        tables = [line for line in printed.splitlines() if "  " in line]
        assert max(map(len, tables)) <= 100, f"$ {command}\n{printed}"


@pytest.mark.slow
@pytest.mark.parametrize("page", FIRST, ids=lambda page: page.stem)
def test_commands_print_what_is_shown(page, tmp_path):
    run("calibrant demo --csv loans.csv", tmp_path)
    for command, shown in steps(page):
        check(command, shown, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_tutorials_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALIBRANT_DOCS", str(DOCS))
    names: dict[str, object] = {}
    for command, content in steps(page):
        if command:
            check(command, content, tmp_path)
        else:
            exec(compile(content, str(page), "exec"), names)


def test_what_is_shown_must_be_printed():
    printed = "one\ntwo\n\nthree\n"
    assert matches(["one", "...", "three", ""], printed)
    assert matches(["one", "two", "", "three"], printed)
    assert matches(["...", "three"], printed)
    for shown in (["one"], ["one", "three"], ["one", "...", "thre"], ["two", "..."], ["...", "two"], [""]):
        assert not matches(shown, printed), shown


def test_commands_without_shown_output_are_refused(tmp_path):
    for shown in ([], ["..."], [""]):
        with pytest.raises(AssertionError, match="show what this prints"):
            check("calibrant --version", shown, tmp_path)


def test_the_readme_shows_five_commands_with_output():
    assert len([command for command, lines in steps(FIRST[0]) if any(lines)]) == 5


def test_the_picture_of_the_readme_is_at_most_700_pixels_tall():
    head = (DOCS / "report.png").read_bytes()[16:24]
    assert int.from_bytes(head[4:], "big") <= 700
