"""The verbs of the command line: where each one is, and in which order people meet them."""

from __future__ import annotations

from importlib import import_module

import click

VERBS = {
    "apply": "calibrant.cli.apply:apply",
    "audit": "calibrant.cli.audit:audit",
    "check": "calibrant.cli.check:check",
    "classes": "calibrant.cli.classes:classes",
    "compare": "calibrant.cli.compare:compare",
    "demo": "calibrant.cli.demo:demo",
    "distinguish": "calibrant.cli.distinguish:distinguish",
    "evaluate": "calibrant.cli.evaluate:evaluate",
    "measures": "calibrant.cli.measures:list_measures",
    "merge": "calibrant.cli.merge:merge",
    "monitor": "calibrant.cli.monitor:monitor",
    "plan": "calibrant.cli.plan:plan",
    "recalibrate": "calibrant.cli.recalibrate:recalibrate",
    "sketch": "calibrant.cli.sketch:sketch",
    "stream": "calibrant.cli.stream:stream",
    "test": "calibrant.cli.test:test",
    "truthful": "calibrant.cli.truthful:truthful",
}
SECTIONS = {
    "Start here": ("evaluate", "check", "audit", "recalibrate", "stream"),
    "Repair and watch": ("apply", "monitor"),
    "Test, compare and plan": ("test", "compare", "classes", "distinguish", "plan"),
    "Large data": ("sketch", "merge"),
    "Learn": ("demo", "measures", "truthful"),
}


def bare_verb(name: str) -> click.Command:
    """Import a verb, with the options of its own alone."""
    module, function = VERBS[name].split(":")
    command: click.Command = getattr(import_module(module), function)
    return command
