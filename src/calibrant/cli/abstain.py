"""`calibrant abstain`: when to answer, with a guaranteed error rate."""

from __future__ import annotations

import click

from calibrant.abstention import choose_threshold, risk_coverage
from calibrant.cli.options import as_json, column_option, examples, missing, option_of, rows_in, seed
from calibrant.cli.output import Charts, charts_out, print_sentences, show_json, show_sheet, write_charts
from calibrant.cli.reading import log_summary
from calibrant.cli.rows import refuse_many
from calibrant.errors import InvalidInputError
from calibrant.inputs import NamedColumn
from calibrant.io.read import FileNames, read_table
from calibrant.records import Missing


@click.command(epilog=examples("calibrant abstain answers.csv -y correct -p confidence --risk 0.1"))
@rows_in
@column_option("--outcome", "-y", required=True, help="Column: 1 if the answer was right, else 0.")
@column_option("--prediction", "-p", required=True, help="Column of the confidence in the answer.")
@click.option("--risk", type=float, required=True, help="Largest error rate to accept among the answers.")
@option_of(choose_threshold, "--confidence", help="Confidence of the guarantee.")
@missing
@charts_out
@option_of(risk_coverage, "--draws", help="Simulated data sets for the comparison with promised risks.")
@seed
@as_json
def abstain(
    file: FileNames, outcome: str, prediction: str, risk: float, confidence: float, missing: Missing,
    charts: Charts, draws: int, seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Choose the confidence above which to answer, so that at most --risk of the answers are wrong.

    Exit code 0: a threshold with this guarantee exists. 3: too little data to guarantee one.
    """
    refuse_many(file)
    read, _ = read_table(file, [outcome, prediction], [], outcome=outcome)
    y, p = (NamedColumn.of(read, name) for name in (outcome, prediction))
    log = log_summary()
    if log is not None and log.clustered:
        got, hint = "got some that belong together", "read them in Python and keep one per cluster"
        raise InvalidInputError("log", "must have independent answers for a guarantee", got, hint)
    chosen = choose_threshold(y, p, risk=risk, confidence=confidence, missing=missing)
    curve = risk_coverage(y, p, missing=missing, confidence=confidence, draws=draws, seed=seed)

    def draw() -> object:
        from calibrant.report.charts.distributions import risk_curve

        return risk_curve(curve)

    write_charts(charts, {"risk": draw})
    if json_:
        show_json({**chosen.to_dict(), "curve": curve.to_dict()})
    else:
        print_sentences(f"{chosen}\n\n{curve}\n")
        show_sheet(curve.sheet())
    if chosen.threshold is None:
        raise SystemExit(3)
