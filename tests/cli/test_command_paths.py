"""Commands x paths: no command overwrites a file that it reads, under whichever name."""

from __future__ import annotations

import os

import pytest
from cli import writing
from cli.typed import calibrant
from cli.writing import contents_of_inputs, folder_of_inputs  # noqa: F401 - the fixtures inputs and folder

NAMES = ("itself", "symlink", "hard link", "other spelling")


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


ATTACKS = [
    pytest.param(command, option, target, how, id=f"{command} {option.opts[0]} {target}, {how}")
    for command in writing.CALLS
    for option in writing.outputs(command)
    for target in [*writing.files_read(command), "c.toml"]
    for how in NAMES
]


@pytest.mark.parametrize(("command", "option", "target", "how"), ATTACKS)
def test_no_input_is_overwritten(command, option, target, how, folder, inputs):
    path = named(target, how, folder)
    ended = calibrant(
        command, *writing.CALLS[command], "--config", "c.toml", *needed(command, option),
        *writing.words(command, option, path),
    )  # fmt: skip
    assert ended.returncode == 2, ended.stdout
    assert "must not be the file of" in ended.stderr
    assert {name: (folder / name).read_bytes() for name in inputs} == inputs


def needed(command, option):
    """Return the output that a command requires, unless it is the one that is attacked."""
    return [] if "--output" in option.opts else writing.NEEDED.get(command, [])


@pytest.mark.parametrize("command", [name for name in writing.CALLS if len(writing.outputs(name)) > 1])
def test_two_outputs_are_two_files(command, folder, inputs):
    same = [word for option in writing.outputs(command) for word in writing.words(command, option, "x.csv")]
    ended = calibrant(command, *writing.CALLS[command], *same)
    assert ended.returncode == 2
    assert "must not be the file of" in ended.stderr
    assert sorted(path.name for path in folder.iterdir()) == sorted(inputs)


def test_the_attacks_are_complete():
    """Every command has a call, and most calls work without an attack: refusals alone would show nothing."""
    assert len({attack.values[0] for attack in ATTACKS}) == len(writing.CALLS)
    assert len(ATTACKS) > 250


@pytest.mark.parametrize("key", ["html", "output", "chart"])
def test_a_pyproject_that_was_not_asked_for_sets_no_outputs(key, folder):
    inner = folder / "inner"
    inner.mkdir()
    (folder / "victim.txt").write_text("keep")
    value = '["reliability=../victim.txt"]' if key == "chart" else '"../victim.txt"'
    (inner / "pyproject.toml").write_text(f"[tool.calibrant.evaluate]\n{key} = {value}\n")
    os.chdir(inner)
    ended = calibrant("evaluate", "../rows.csv", *writing.COLUMNS)
    assert ended.returncode == 2
    assert f"{key} in pyproject.toml must not name a file to write" in ended.stderr
    assert (folder / "victim.txt").read_text() == "keep"
