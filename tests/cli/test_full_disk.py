"""A full disk: every output of every command fails with one message about that file, and nothing is left."""

from __future__ import annotations

import resource

import pytest
from cli import writing
from cli.typed import calibrant
from cli.writing import contents_of_inputs, folder_of_inputs  # noqa: F401 - the fixtures inputs and folder

LIMIT = 40  # bytes: the system refuses to write beyond them, as it does on a full disk


def on_a_full_disk(*arguments, size=LIMIT):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        return calibrant(*arguments)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


OUTPUTS = [
    pytest.param(command, option, ending, id=f"{command} {option.opts[0]} {ending}")
    for command in writing.CALLS
    for option in writing.outputs(command)
    for ending in ([".csv", ".parquet"] if command == "apply" else [writing.ending(command, option)])
]


@pytest.mark.parametrize(("command", "option", "ending"), OUTPUTS)
def test_an_output_that_does_not_fit_is_named_and_nothing_is_left(command, option, ending, folder, inputs):
    path = f"full{ending}"
    (folder / path).write_text("what was there before")
    if option.name == "state":
        (folder / path).unlink()
    quiet = ["--html", "", "--csv", ""] if command == "demo" else []
    words = [command, *writing.CALLS[command], *quiet, *writing.words(command, option, path)]
    ended = on_a_full_disk(*words)
    assert ended.returncode == 2, ended.stdout
    assert ended.stderr.rstrip().endswith(f"file {path!r} must be a place to write a file; File too large.")
    assert "Traceback" not in ended.stderr
    after = {file.name: file.read_bytes() for file in folder.iterdir()}
    before = inputs if option.name == "state" else {**inputs, path: b"what was there before"}
    assert after == before


def test_a_full_folder_for_standard_input_is_not_blamed_on_the_rows(folder, monkeypatch):
    import io
    import sys

    class Piped:
        buffer = io.BytesIO((folder / "rows.csv").read_bytes())

        def isatty(self):
            return False

    monkeypatch.setattr(sys, "stdin", Piped())
    ended = on_a_full_disk("evaluate", "-", *writing.COLUMNS)
    assert ended.returncode == 2
    assert ended.stderr.startswith("calibrant: standard input must fit into ")
    assert ended.stderr.endswith("; File too large. Hint: TMPDIR names another folder for temporary files.\n")
