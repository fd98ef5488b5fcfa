"""`calibrant truthful`: does a score reward lying, in theory and on your predictions?"""

from __future__ import annotations

import click

from calibrant.cli import options as opt
from calibrant.cli.output import print_note, print_result, readable_number, show_json, show_table
from calibrant.cli.rows import progress_bar, read_predictions
from calibrant.errors import InvalidInputError
from calibrant.formatting import pluralize
from calibrant.io.read import FileNames
from calibrant.metrics.lookup import measures
from calibrant.parallel import DRAWS
from calibrant.records import Missing
from calibrant.truthfulness.gap import Truthfulness, truthfulness_gap, worst_truth
from calibrant.truthfulness.lies import RULES, Incentives
from calibrant.truthfulness.lies import incentives as ask_incentives

EXAMPLE = (0.25, 0.75)  # Table 1 of the truthfulness paper


@click.command(epilog=opt.examples("calibrant truthful -m smooth --truth 0.5,0.5"))
@opt.rows_if_any
@opt.column_option("--prediction", "-p", help="Column of predictions in FILE, taken for the truth.")
@click.option("--measure", "-m", "chosen", type=opt.MEASURE, multiple=True, help="Measure; repeat.")
@opt.flag("--all", "everything", help="Every measure of the registry.")
@click.option("--truth", type=opt.THRESHOLDS, help="Probabilities of a few rounds, with commas: .25,.75")
@click.option("--n", "rounds", type=int, help="Rounds (1 to 3): find the truth that tempts most.")
@opt.flag("--sequential", help="Tell the forecaster each outcome before the next report.")
@opt.option_of(truthfulness_gap, "--budget", help="Seconds to search, per measure.")
@click.option(
    "--draws", type=int, help=f"Replays of the outcomes of FILE; {DRAWS}, fewer for many predictions."
)
@opt.missing
@opt.seed
@opt.as_json
def truthful(
    file: FileNames | None, prediction: str | None, chosen: tuple[str, ...], everything: bool,
    truth: list[float] | None, rounds: int | None, sequential: bool, budget: float, draws: int | None,
    missing: Missing, seed: int | None, json_: bool,
) -> None:  # fmt: skip
    """Say whether a forecaster gains by lying under a measure.

    With --truth or --n: by enumerating all outcomes of a few rounds. With FILE and --prediction: your
    predictions are taken for the truth, and the standard lies are tried on outcomes drawn from them.
    """
    if file is not None or opt.typed("prediction"):
        opt.refuse_typed("must not be given with FILE", "truth", "rounds", "sequential", "budget")
        asked_for = _names(chosen, everything) if chosen or everything else None
        predictions, dropped = read_predictions(file, prediction, missing)
        if dropped:
            print_note(f"{pluralize(dropped, 'row')} without a prediction dropped")
        with progress_bar("drawing outcomes") as progress:
            asked = ask_incentives(predictions, asked_for, draws=draws, seed=seed, progress=progress)
        _show_incentives(asked, json_)
        return
    opt.refuse_typed("needs FILE", "draws", "missing")
    names = _names(chosen, everything)
    if truth is not None and rounds is not None:
        raise InvalidInputError("--truth and --n", "must not be given together")
    if rounds is not None and sequential:
        raise InvalidInputError("--sequential", "needs --truth", "got --n")

    def gap(name: str) -> Truthfulness:
        if rounds is not None:
            return worst_truth(name, rounds, budget=budget, seed=seed or 0)
        return truthfulness_gap(name, truth or EXAMPLE, sequential=sequential, budget=budget, seed=seed or 0)

    _show_gaps([gap(name) for name in names], json_)


def _names(chosen: tuple[str, ...], everything: bool) -> list[str]:
    if everything == bool(chosen):
        raise InvalidInputError(
            "calibrant truthful", "needs either --measure or --all", hint="--measure smooth"
        )
    if chosen:
        return list(chosen)
    return [entry.name for entry in measures().values() if not entry.needs_both_outcomes]


def _show_gaps(results: list[Truthfulness], json_: bool) -> None:
    if json_:
        show_json({"gaps": [found.to_dict() for found in results]})
    elif len(results) == 1:
        print_result(str(results[0]))
    else:
        columns = ["measure", "honest", "best lie", "gap", "report", "proof", "registry"]
        show_table(columns, [_gap_row(found) for found in results])
        print_result("\nA gap found by search is a lower bound: a better lie may exist.")


def _gap_row(found: Truthfulness) -> list[str]:
    numbers = map(readable_number, (found.honest, found.best, found.gap))
    report = ", ".join(f"{r:.4g}" for r in found.report)
    return [found.measure, *numbers, report, found.proof, measures()[found.measure].truthful]


def _show_incentives(asked: Incentives, json_: bool) -> None:
    if json_:
        show_json(asked.to_dict())
        return
    print_result(
        f"Would lying help? {asked.n:,} predictions taken for the truth, {asked.draws:,} replays of their "
        f"outcomes, seed {asked.seed}.\n"
    )
    lines = []
    for row in asked.best.values():
        numbers = map(readable_number, (row.honest, row.expected, row.gain, row.se))
        helps = "yes" if row.helps else "no"
        lines.append([row.measure, row.lie, *numbers, f"{row.wins:.0%}", helps, row.truthful])
    columns = ["measure", "best lie", "honest", "with the lie", "gain", "+-", "wins", "helps", "registry"]
    show_table(columns, lines)
    print_result("\nwins: share of replays in which an honest, perfect forecaster loses to the lie.\n")
    for rule in RULES:
        print_result(rule)
