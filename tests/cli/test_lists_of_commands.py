"""Lists of tests that a new command must join: nothing else would notice that it is missing there."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from calibrant.cli.config import COMMANDS
from calibrant.cli.main import calibrant

TESTS = Path(__file__).parent.parent
DOCS = TESTS.parent / "docs"


WITHOUT_LONG_WORK = {  # commands too short to interrupt: why nothing can be left half done
    "check": "reads, measures and prints like evaluate; its one file is written whole by write_whole",
    "abstain": "reads and prints, like evaluate",
    "classes": "reads and prints, like evaluate",
    "compare": "reads, resamples and prints, like test",
    "demo": "evaluates generated rows and writes the report, like evaluate",
    "distributions": "reads, simulates and prints, like evaluate",
    "distinguish": "reads, learns and prints, like audit; its page is written whole by write_whole",
    "measures": "prints a table",
    "merge": "adds up sketches, which are small, and writes like sketch",
    "plan": "simulates and prints, like test",
    "truthful": "enumerates and prints within a budget of seconds",
    "verify": "reads, measures and prints, like evaluate",
}
ONE_BY_ONE = {  # commands for which several files are not simply the rows of all of them
    "apply": "writes the rows that it reads; tested in the same file",
    "check": "checks each file separately",
    "sketch": "several files are tested with the sketches in the same file",
    "verify": "reads a report before the rows; tested in the same file",
}
WITHOUT_A_TABLE = {
    "apply": "writes a file of rows and prints sentences",
    "demo": "prints what evaluate does",
    "merge": "writes a sketch and prints sentences",
    "plan": "prints one sentence",
    "sketch": "writes a sketch and prints sentences",
    "verify": "prints a sentence, and a line for each number that differs",
}


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def smoke_commands():
    smoke = module_of(TESTS / "smoke.py")
    return {call[0] for call in (*smoke.COMMANDS, *smoke.NEEDS)}


def lacking(known):
    return sorted(set(COMMANDS) - set(known))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_smoke_test_of_the_wheel_calls_every_command(command):
    assert command in smoke_commands(), f"add a call of {command} to COMMANDS (or NEEDS) of tests/smoke.py"


def test_every_command_meets_hostile_options():
    tried = {command for command, _ in module_of(TESTS / "cli" / "test_hostile.py").OPTIONS}
    assert lacking(tried) == [], (
        "add options of these commands, with values to refuse, to OPTIONS of tests/cli/test_hostile.py"
    )


def test_every_command_that_reads_rows_meets_files_that_nobody_can_read():
    hostile = module_of(TESTS / "cli" / "test_hostile.py")
    assert lacking({*hostile.NEW_COMMANDS, *hostile.FIRST_COMMANDS, *hostile.WITHOUT_ROWS}) == [], (
        "add these commands, with the options they need, to NEW_COMMANDS of tests/cli/test_hostile.py, or "
        "say in WITHOUT_ROWS there why they read no rows"
    )


def test_every_command_is_interrupted_or_has_nothing_to_leave_half_done():
    stopped = module_of(TESTS / "cli" / "test_interrupts.py").COMMANDS
    assert lacking({*stopped, *WITHOUT_LONG_WORK}) == [], (
        "add these commands to COMMANDS of tests/cli/test_interrupts.py, or say in WITHOUT_LONG_WORK of this "
        "file why they need no interrupt test"
    )
    assert not set(stopped) & set(WITHOUT_LONG_WORK), "a command is in one of the two lists"


def test_several_files_are_tried_on_every_command_that_reads_rows():
    tried = module_of(TESTS / "cli" / "test_shared_options.py").FILE_COMMANDS
    without_rows = module_of(TESTS / "cli" / "test_hostile.py").WITHOUT_ROWS
    assert lacking({*tried, *ONE_BY_ONE, *without_rows}) == [], (
        "add these commands, with the options that they need, to FILE_COMMANDS of "
        "tests/cli/test_shared_options.py, or say in ONE_BY_ONE of this file why several files are "
        "not one data set for them"
    )


def test_every_format_is_tried_on_every_command_that_prints_a_table():
    tried = module_of(TESTS / "cli" / "test_shared_options.py").TABLE_COMMANDS
    assert lacking({*tried, *WITHOUT_A_TABLE}) == [], (
        "add these commands, with the options that they need, to TABLE_COMMANDS of "
        "tests/cli/test_shared_options.py, or say in WITHOUT_A_TABLE of this file why they print none"
    )
    assert not set(tried) & set(WITHOUT_A_TABLE), "a command is in one of the two lists"


def test_files_of_every_command_are_written_to_odd_places():
    assert lacking(module_of(TESTS / "cli" / "writing.py").CALLS) == [], (
        "add these commands, with arguments for the files made there, to CALLS of tests/cli/writing.py"
    )


def test_every_command_is_shown_names_with_control_characters():
    assert lacking(module_of(TESTS / "cli" / "test_escapes.py").LINES) == [], (
        "add command lines of these commands to LINES of tests/cli/test_escapes.py"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_stands_in_a_page_that_a_user_would_look_at(command):
    pages = [*DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), *DOCS.glob("tutorials/*.md")]
    named = re.compile(rf"calibrant {command}\b")
    assert any(named.search(page.read_text(encoding="utf-8")) for page in pages), (
        f"show `calibrant {command}` in a page of docs/ (docs/paths.md lists tasks), then run "
        "docs/make_command_line.py, which lists its options"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_the_shell_completes_every_command_and_its_options(command):
    completer = BashComplete(calibrant, {}, "calibrant", "_CALIBRANT_COMPLETE")
    named = [item.value for item in completer.get_completions([], command[:3])]
    assert command in named, f"name {command} in SECTIONS of cli/config.py, from which the shell completes"
    offered = [item.value for item in completer.get_completions([command], "--")]
    assert {"--help", "--json", "--config"} <= set(offered), f"{command}: use as_json of cli/options.py"
