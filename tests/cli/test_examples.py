"""Every command shows examples in its help, with options that exist."""

from __future__ import annotations

import shlex

import click
import pytest

from calibrant.cli.config import COMMANDS
from calibrant.cli.examples import EXAMPLES
from calibrant.cli.main import calibrant as program


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_examples_that_parse(name):
    parent = click.Context(program, **program.context_settings)  # click keeps the first help option: -h too
    command = program.get_command(parent, name)
    shown = command.get_help(click.Context(command, parent, info_name=name))
    assert "Examples:" in shown
    options = {option for parameter in command.params for option in parameter.opts}
    for line in EXAMPLES[name]:
        assert line in shown
        words = shlex.split(line)
        assert words[:2] == ["calibrant", name]
        assert {word for word in words if word.startswith("-")} <= options
