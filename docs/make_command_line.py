"""Write docs/reference/command-line.md from the verbs themselves: run it after adding or changing one."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path

import click

from calibrant.cli.config import SECTIONS
from calibrant.cli.main import verb_named

TARGET = Path(__file__).parent / "reference" / "command-line.md"
EVERYWHERE = ("--decimal", "--percent", "--table", "--query", "--format", "--quiet", "--config")
HEAD = """# Command line

Every verb with the options of its own; this page is made by `docs/make_command_line.py`. [Use the command
line](../howto/shell.md) says what holds for all verbs: files, formats, defaults, completion and exit codes.
"""


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts.extend(_entry(name, verb_named(name)) for name in names)
    parts.append("## Options that verbs share\n")
    parts.append("All verbs take the last three; those that read files of rows take the others too.\n")
    shared = {option.opts[0]: option for option in verb_named("test").params if _shared(option)}
    parts.append("\n".join(_line(shared[name]) for name in EVERYWHERE) + "\n")
    return "\n".join(parts)


def _entry(name: str, verb: click.Command) -> str:
    arguments = [p.human_readable_name for p in verb.params if isinstance(p, click.Argument)]
    own = [p for p in verb.params if isinstance(p, click.Option) and not _shared(p)]
    lines = "\n".join(_line(option) for option in own)
    return f"### calibrant {' '.join((name, *arguments))}\n\n{cleandoc(str(verb.help))}\n\n{lines}\n"


def _shared(option: click.Parameter) -> bool:
    return option.opts[0] in EVERYWHERE


def _line(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    choices = isinstance(option.type, click.Choice) and " or ".join(f"`{c}`" for c in option.type.choices)
    needed = " Required." if option.required else ""
    shown = isinstance(option.default, str | int | float) and not option.is_flag and option.default != ""
    default = f" Default: `{option.default}`." if shown else ""
    help_ = (option.help or "").partition("  [default")[0].rstrip(".")
    return f"- {names}{f' ({choices})' if choices else ''}: {help_}.{needed}{default}"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
