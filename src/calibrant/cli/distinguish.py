"""`calibrant distinguish`: can anything in a file tell its outcomes from draws with the predictions?"""

from __future__ import annotations

import click

from calibrant.cli.options import NAMES, as_json, columns, examples, files_read, option_of, rows_in, seed
from calibrant.cli.output import print_note, print_result, show_json, show_table
from calibrant.cli.rows import read_checked, shown_name
from calibrant.files import atomic_write, check_target
from calibrant.groups import distinguisher as learned
from calibrant.io.read import FileNames
from calibrant.records import Missing


@click.command(
    epilog=examples("calibrant distinguish loans.csv -y default -p p --covariates employment,region,age")
)
@rows_in
@columns
@click.option(
    "--covariates",
    metavar="A,B,C",
    required=True,
    type=NAMES,
    help="Columns that the auditor may learn from.",
)
@click.option("--nominal", metavar="A,B,C", type=NAMES, help="Covariates that are numbers without an order.")
@option_of(learned.distinguish, "--draws", help="Simulated data sets for each p-value.")
@option_of(learned.distinguish, "--confidence", help="Of the interval.")
@click.option("--html", type=click.Path(dir_okay=False), help="Write the report, one self-contained page.")
@seed
@as_json
def distinguish(
    file: FileNames, outcome: str, prediction: str, weight: str | None, missing: Missing,
    covariates: list[str], nominal: list[str] | None, draws: int, confidence: float, html: str | None,
    seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Let a model learn from the covariates in FILE where the predictions fail, and test what it learned.

    It learns from one half of the rows and is tested on the other, in turns. The question is more than
    calibration: do the covariates know anything that the predictions do not?
    """
    if html:
        check_target(html, files_read())
    y, p, weights, others = read_checked(file, (outcome, prediction, weight), missing, covariates)
    distinguished = learned.distinguish(
        y,
        p,
        others,
        sample_weight=weights,
        draws=draws,
        confidence=confidence,
        nominal=nominal or [],
        missing=missing,
        seed=seed,
    )
    if html:
        from calibrant.report.pages import distinguisher_page

        page = distinguisher_page(distinguished, title=f"Learned auditor: {prediction} in {shown_name(file)}")
        print_note(f"report: {atomic_write(html, page)}")
    if json_:
        show_json(distinguished.to_dict())
        return
    print_result(str(distinguished))
    print_result()
    lines = [
        [f"{one.size:,}", f"{one.share:.1%}", f"{one.gap:+.4f}", f"{one.carried:+.5f}", one.rule]
        for one in distinguished.rules
    ]
    show_table(
        ["rows", "share", "mean residual", "carried", "group"],
        lines,
        "What the auditor learned, as groups; those that carry most of the advantage first",
    )
