"""Commands printed in the README, on the home page and in tutorials run, and print what is shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOWN = [ROOT / "README.md", ROOT / "docs" / "index.md"]
TUTORIALS = [
    ROOT / "docs" / "tutorials" / f"{n}.md" for n in ("is-my-model-calibrated", "choosing-between-models")
]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def sessions(page: Path) -> list[tuple[str, list[str]]]:
    """Return the commands of a page, each with the lines printed below it."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and not line.startswith("#"):
                found[-1][1].append(line)
    return [(command, lines) for command, lines in found if not command.startswith("pip ")]


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
    """Compare what is shown with what is printed; a line of three dots stands for any lines."""
    pattern = "\n".join(".*" if line == "..." else re.escape(line) for line in shown).strip("\n")
    return re.fullmatch(pattern.replace("\n.*\n", "\n(?:.*\n)?"), printed.strip("\n"), re.DOTALL) is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("console")
    run("calibrant demo --csv loans.csv", made)
    return made


SLOW = [pytest.param(page, marks=pytest.mark.slow) for page in TUTORIALS]  # they fit many maps


@pytest.mark.parametrize("page", [*SHOWN, *SLOW], ids=lambda page: page.stem)
def test_commands_print_what_is_shown(page, folder):
    for command, shown in sessions(page):
        if command.startswith("calibrant demo"):
            continue
        printed = run(command, folder)
        if any(shown):
            assert matches(shown, printed), f"$ {command}\n{printed}"


def test_the_readme_shows_five_commands_with_output():
    assert len([command for command, lines in sessions(SHOWN[0]) if any(lines)]) == 5


def test_the_picture_of_the_readme_is_at_most_700_pixels_tall():
    head = (ROOT / "docs" / "report.png").read_bytes()[16:24]
    assert int.from_bytes(head[4:], "big") <= 700
