"""`calibrant measures`: what can be measured, what each means and promises."""

from __future__ import annotations

import click

from calibrant.cli.options import MEASURE, as_json, examples, flag
from calibrant.cli.output import show_json, show_table, shown_form
from calibrant.errors import reject_name
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
        known = {name: entry.citation for name, entry in measures().items()} | OTHER_PAPERS
        for name in names:
            if name not in known:
                raise reject_name("measure or test", name, list(known))
        click.echo(bibtex({name: known[name] for name in names or known}))
        return
    entries = [find_measure(name) for name in names] or list(measures().values())
    if json_:
        show_json({"measures": [_facts(entry) for entry in entries]})
        return
    facts = [
        [entry.name, entry.words, *(_mark(getattr(entry, name)) for name in PROPERTIES)] for entry in entries
    ]
    if shown_form.get() == "table":  # two tables fit a terminal, one does not
        show_table(["key", "meaning"], [[entry.name, entry.meaning] for entry in entries])
        click.echo()
        show_table(["key", "measure", *PROPERTIES], facts)
        return
    pairs = zip(facts, entries, strict=True)
    table = [[words, key, *marks, entry.meaning] for (key, words, *marks), entry in pairs]
    show_table(["measure", "key", *PROPERTIES, "meaning"], table)


def _mark(fact: bool | str) -> str:
    if isinstance(fact, str):
        return "-" if fact == "no" else fact
    return "yes" if fact else "-"


def _facts(entry: Measure) -> dict[str, object]:
    work = entry_of(entry.citation)
    cited = {"doi": work.field("doi") if work else None, "function": entry.function.__name__}
    return {name: getattr(entry, name) for name in FACTS} | cited
