"""Write docs/reference/command-line.md from the commands themselves: run it after adding or changing one."""

from __future__ import annotations

from collections import Counter
from inspect import cleandoc
from pathlib import Path

import click

from calibrant.cli.config import SECTIONS, command_named

TARGET = Path(__file__).parent / "reference" / "command-line.md"
EVERYWHERE = ("--decimal", "--percent", "--table", "--query", "--format", "--quiet", "--config")
SHARED_BY = 4  # commands that describe an option alike: it is described once, at the end of the page
HEAD = """# Command line

[Use the command line](../howto/shell.md) explains files, formats, defaults, completion and exit codes.
Options that many commands share are described [at the end](#shared-options).
"""

TAKEN_BY_ALL = """All commands take `--format`, `--quiet` and `--config`; those that read files of rows also
take `--decimal`, `--percent`, `--table` and `--query`.
"""


def page() -> str:
    """Return the page."""
    commands = {name: command_named(name) for names in SECTIONS.values() for name in names}
    count = Counter(_line(option) for command in commands.values() for option in _options(command))
    shared = [line for line, times in count.items() if times >= SHARED_BY]
    parts = [HEAD]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts.extend(_entry(name, commands[name], shared) for name in names)
    parts += ["## Shared options\n", TAKEN_BY_ALL, "\n".join(sorted(shared)) + "\n"]
    return "\n".join(parts)


def _options(command: click.Command) -> list[click.Option]:
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


def _entry(name: str, command: click.Command, shared: list[str]) -> str:
    arguments = [p.human_readable_name for p in command.params if isinstance(p, click.Argument)]
    examples = cleandoc(str(command.epilog or "").replace("\b\nExamples:\n", "", 1))
    described = {option.opts[0]: option for option in _options(command)}
    own = [_line(one) + " Required." * one.required for one in described.values() if _line(one) not in shared]
    others = [f"`{key}`" for key, one in described.items() if _line(one) in shared and key not in EVERYWHERE]
    parts = [
        f"### calibrant {' '.join((name, *arguments))}",
        cleandoc(str(command.help)),
        f"```console\n{examples}\n```" if examples else "",
        "\n".join(own),
        f"Shared: {', '.join(others)}." if others else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _line(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    choices = isinstance(option.type, click.Choice) and " or ".join(f"`{c}`" for c in option.type.choices)
    shown = isinstance(option.default, str | int | float) and not option.is_flag and option.default != ""
    default = f" Default: `{option.default}`." if shown else ""
    help_ = (option.help or "").partition("  [default")[0].rstrip(".")
    return f"- {names}{f' ({choices})' if choices else ''}: {help_}.{default}"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
