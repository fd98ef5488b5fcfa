"""`calibrant demo`: a realistic, reproducible data set with a known miscalibration, evaluated."""

from __future__ import annotations

from functools import partial

import click

from calibrant.cli.evaluate import next_command, show_evaluation
from calibrant.cli.options import as_json, examples, file_option
from calibrant.cli.output import page_heading, page_out, print_note, write_page
from calibrant.demo import TRUTH, demonstration
from calibrant.errors import MissingDependencyError
from calibrant.evaluation.evaluate import evaluate
from calibrant.files import atomic_write


@click.command(epilog=examples("calibrant demo --csv loans.csv"))
@click.option(
    "--rows", type=click.IntRange(1, 10_000_000), default=20_000, help="How many loans to generate."
)
@click.option("--seed", default=1, help="Seed of the generated loans.")
@partial(page_out, default="calibrant-demo.html", words="Report to write; an empty name writes none.")
@file_option(
    "--csv", "table", default="calibrant-demo.csv",
    help="Where to write the loans, for trying other commands on; an empty name writes none.",
)  # fmt: skip
@as_json
def demo(rows: int, seed: int, html: str | None, table: str, json_: bool) -> None:
    """Generate loans with predicted default probabilities, evaluate them, and write both to files."""
    data = demonstration(rows, seed)
    print_note(f"calibrant demo: {rows:,} generated loans, seed {seed}. {TRUTH}")
    groups = {name: data[name] for name in ("employment", "region")}
    heading = page_heading(f"Generated loans: {rows:,} predicted default probabilities")
    evaluation = evaluate(data["default"], data["p"], groups=groups, **heading)
    next_step = next_command(evaluation.verdict, [table], ["-y", "default", "-p", "p"]) if table else ""
    show_evaluation(evaluation, json_, next_step=next_step)
    if table:
        lines = zip(*(column.tolist() for column in data.values()), strict=True)
        text = "\n".join([",".join(data), *(",".join(map(str, line)) for line in lines), ""])
        print_note(f"loans: {atomic_write(table, text)}")
    try:
        if html:
            write_page(html, evaluation)
    except MissingDependencyError as error:  # the table above needs none of the packages that the page needs
        print_note(f"no report: {error}")
