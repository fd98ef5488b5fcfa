"""`calibrant distinguish`: can anything in a file tell its outcomes from draws with the predictions?"""

from __future__ import annotations

from typing import Any

import click

from calibrant.cli import options as opt
from calibrant.cli.output import page_heading, page_out, print_result, show_json, show_table, write_page
from calibrant.cli.rows import read_checked, refuse_many, shown_name
from calibrant.groups import distinguisher as learned
from calibrant.io.read import FileNames


@click.command(
    epilog=opt.examples("calibrant distinguish loans.csv -y default -p p --covariates employment,region,age")
)
@opt.rows_in
@opt.column_options
@opt.columns_option("--covariates", required=True, help="Columns that the auditor may learn from.")
@opt.columns_option("--nominal", help="Covariates that are numbers without an order.")
@opt.option_of(learned.distinguish, "--draws", help="Simulated data sets for each p-value.")
@opt.option_of(learned.distinguish, "--confidence", help="Of the interval.")
@page_out
@opt.seed
@opt.as_json
def distinguish(
    file: FileNames, covariates: list[str], nominal: list[str] | None, draws: int, confidence: float,
    html: str | None, seed: int | None, json_: bool, **columns: Any,
) -> None:  # fmt: skip
    """Let a model learn from the covariates in FILE where the predictions fail, and test what it learned.

    It learns from one half of the rows and is tested on the other, in turns. The question is more than
    calibration: do the covariates know anything that the predictions do not?
    """
    refuse_many(file, 4)  # about 460 bytes per row
    y, p, weights, others = read_checked(file, covariates, **columns)
    distinguished = learned.distinguish(
        y, p, others, sample_weight=weights, draws=draws, confidence=confidence, nominal=nominal or [],
        missing=columns["missing"], seed=seed,
    )  # fmt: skip
    if html:
        from calibrant.report.pages import distinguisher_page

        heading = page_heading(f"Learned auditor: {columns['prediction']} in {shown_name(file)}")
        write_page(html, distinguisher_page(distinguished, **heading))
    if json_:
        show_json(distinguished.to_dict())
        return
    print_result(f"{distinguished}\n")
    lines = [
        [f"{one.size:,}", f"{one.share:.1%}", f"{one.gap:+.4f}", f"{one.carried:+.5f}", one.rule]
        for one in distinguished.rules
    ]
    title = "What the auditor learned, as groups; those that carry most of the advantage first"
    show_table(["rows", "share", "mean residual", "carried", "group"], lines, title)
