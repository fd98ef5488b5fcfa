"""`calibrant measures`: what can be measured, what each means and promises."""

from __future__ import annotations

import click

from calibrant.cli.options import MEASURE, as_json, examples, flag
from calibrant.cli.output import show_json, show_table, shown_form
from calibrant.errors import InvalidInputError, reject_name
from calibrant.metrics.bibliography import OTHER_PAPERS, bibtex, entry_of
from calibrant.metrics.lookup import find_measure, measures
from calibrant.metrics.registry import Measure

PROPERTIES = ("continuous", "complete", "sound", "truthful", "certified")
FACTS = (
    "name", "words", "family", "meaning", *PROPERTIES, "sample_complete", "sample_sound", "valid",
    "consistency", "lipschitz", "decision", "cost", "citation",
)  # fmt: skip


@click.command("measures", epilog=examples("calibrant measures", "calibrant measures --json"))
@flag("--bibtex", "cite", help="Print the works to cite, with their DOIs; names choose some of them.")
@click.argument("names", nargs=-1, type=MEASURE, metavar="[MEASURE]...")
@as_json
def list_measures(cite: bool, names: tuple[str, ...], json_: bool) -> None:
    """List the measures: what each is called, the key to type, its properties and its meaning."""
    if cite:  # tests and the net benefit have citations too
        known = {name: row.citation for name, row in measures().items()} | OTHER_PAPERS
        for name in names:
            if name not in known:
                raise reject_name("measure or test", name, list(known))
        click.echo(bibtex({name: known[name] for name in names or known}))
        return
    for name in names:
        if name in OTHER_PAPERS:
            test = f"is a test, no measure: calibrant test FILE --measure {name}"
            net = "is a curve, no measure: calibrant compare FILE --net-benefit 0.1,0.2"
            work = f"cited as {OTHER_PAPERS[name]} (calibrant measures --bibtex {name})"
            raise InvalidInputError(f"{name} {net if name == 'net-benefit' else test}; {work}.")
    rows = [find_measure(name) for name in names] or list(measures().values())
    if json_:
        show_json({"measures": [_facts(row) for row in rows]})
        return
    marks = [[_mark(getattr(row, name)) for name in PROPERTIES] for row in rows]
    if shown_form.get() == "table":  # two tables fit a terminal, one does not
        show_table(["key", "meaning"], [[row.name, row.meaning] for row in rows])
        click.echo()
        show_table(
            ["key", "measure", *PROPERTIES],
            [[row.name, row.words, *mark] for row, mark in zip(rows, marks, strict=True)],
        )
        return
    table = [[row.words, row.name, *mark, row.meaning] for row, mark in zip(rows, marks, strict=True)]
    show_table(["measure", "key", *PROPERTIES, "meaning"], table)


def _mark(fact: bool | str) -> str:
    if isinstance(fact, str):
        return "-" if fact == "no" else fact
    return "yes" if fact else "-"


def _facts(row: Measure) -> dict[str, object]:
    entry = entry_of(row.citation)
    cited = {"doi": entry.field("doi") if entry else None, "function": row.function.__name__}
    return {name: getattr(row, name) for name in FACTS} | cited
