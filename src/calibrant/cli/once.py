"""Options that name columns are given once: else the last of several wins and the others are lost."""

from __future__ import annotations

from collections import Counter

import click

from calibrant.cli.option_types import Name, NameList
from calibrant.errors import InvalidInputError, sentence

SEVERAL_PREDICTIONS = "calibrant compare takes several columns, and calibrant classes one for each class"


def refuse_repeated(command: click.Command, parent: click.Context, arguments: list[str]) -> None:
    """Refuse a name typed twice where the verb takes one, before anything is read."""
    try:
        context = click.Context(command, parent=parent)  # click keeps the help option of the first parser
        _, _, order = command.make_parser(context).parse_args(list(arguments))
    except click.UsageError:
        return  # told with the verb's own usage when it parses them
    for option, times in Counter(order).items():
        if times > 1 and isinstance(option, click.Option) and not option.multiple:
            _refuse(option, times)


def _refuse(option: click.Option, times: int) -> None:
    if isinstance(option.type, NameList):
        hint = "write several names with commas between them"
    elif isinstance(option.type, Name):
        hint = SEVERAL_PREDICTIONS if option.name == "prediction" else "leave all but one out"
    else:
        return
    raise InvalidInputError(sentence(option.opts[0], "must be given once", f"got it {times} times", hint))
