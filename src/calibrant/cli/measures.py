"""`calibrant measures`: what can be measured, what each means and promises."""

from __future__ import annotations

import click

from calibrant.cli.options import MEASURE, as_json, examples
from calibrant.cli.output import show_json, show_table
from calibrant.errors import InvalidInputError, reject_name
from calibrant.metrics.bibliography import BESIDE_MEASURES, entry_of
from calibrant.metrics.bibliography import bibtex as bibliography
from calibrant.metrics.lookup import find_measure, measures
from calibrant.metrics.registry import Measure

PROPERTIES = ("continuous", "complete", "sound", "truthful", "certified")


@click.command("measures", epilog=examples("calibrant measures", "calibrant measures --json"))
@click.option(
    "--bibtex", is_flag=True, help="Print the works to cite, with their DOIs; names choose some of them."
)
@click.argument("names", nargs=-1, type=MEASURE, metavar="[MEASURE]...")
@as_json
def list_measures(bibtex: bool, names: tuple[str, ...], json_: bool) -> None:
    """List the measures: what each is called, the key to type, its properties and its meaning."""
    if bibtex:
        click.echo(bibliography(_citations(names)))
        return
    for name in names:
        if name in BESIDE_MEASURES:
            raise InvalidInputError(_beside(name))
    rows = [find_measure(name) for name in names] or list(measures().values())
    if json_:
        show_json({"measures": [_facts(row) for row in rows]})
        return
    marks = [
        [row.words, row.name, *(_mark(getattr(row, p)) for p in PROPERTIES), row.meaning] for row in rows
    ]
    show_table(["measure", "key", *PROPERTIES, "meaning"], marks)


def _beside(name: str) -> str:
    """Explain a name that is not a measure: what computes it and whom to cite."""
    test = f"is a test, no measure: calibrant test FILE --measure {name}"
    net = "is a curve, no measure: calibrant compare FILE --net-benefit 0.1,0.2"
    cite = f"cited as {BESIDE_MEASURES[name]} (calibrant measures --bibtex {name})"
    return f"{name} {net if name == 'net-benefit' else test}; {cite}."


def _citations(names: tuple[str, ...]) -> dict[str, str]:
    """Return the citations of these names, or of all; tests and the net benefit have theirs too."""
    known = {name: row.citation for name, row in measures().items()} | BESIDE_MEASURES
    for name in names:
        if name not in known:
            raise reject_name("measure or test", name, list(known))
    return {name: known[name] for name in names or known}


def _mark(fact: bool | str) -> str:
    if isinstance(fact, str):
        return "-" if fact == "no" else fact
    return "yes" if fact else "-"


def _facts(row: Measure) -> dict[str, object]:
    shown = (
        "name",
        "words",
        "family",
        "meaning",
        *PROPERTIES,
        "sample_complete",
        "sample_sound",
        "valid",
        "consistency",
        "lipschitz",
        "decision",
        "cost",
        "citation",
    )
    entry = entry_of(row.citation)
    return {name: getattr(row, name) for name in shown} | {
        "doi": entry.field("doi") if entry else None,
        "function": row.function.__name__,
    }
