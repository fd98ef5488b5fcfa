"""`calibrant stream`: calibrate the predictions of a file as if its outcomes came in one by one."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import numpy as np

from calibrant.cli import options as opt
from calibrant.cli import output
from calibrant.cli import rows as ordered
from calibrant.cli.rows import OrderedRows
from calibrant.errors import InvalidInputError
from calibrant.files import atomic_write, lock_file
from calibrant.formatting import pluralize
from calibrant.io.read import FileNames, read_cells
from calibrant.metrics.distance.lower import lower_distance
from calibrant.metrics.smooth import smooth_calibration_error
from calibrant.online.base import Run
from calibrant.online.calibrator import NAMES as EXPERTS
from calibrant.online.calibrator import OnlineCalibrator
from calibrant.online.inputs import batch_ends
from calibrant.online.state import sealed
from calibrant.results import Array

MAX_DISTANCE_ROWS = 100_000  # rows up to which the lower distance is computed while one waits


@click.command(epilog=opt.examples("calibrant stream loans.csv -y default -p p -o calibrated.csv"))
@opt.rows_in
@opt.outcome_option
@opt.prediction_option
@opt.order_option
@opt.column_option("--by", help="Column of segments, each of which gets a calibrator of its own.")
@opt.column_option(
    "--batch-by", help="Column such as a date: its rows are calibrated before any outcome is learned."
)
@click.option("--delay", type=int, help="Late outcomes that the Brier promise must cover.  [default: 0]")
@click.option("--guard/--no-guard", default=True, help="Keep the certificate.")
@opt.flag("--forget-missing", help="Calibrate rows without outcome too, and learn nothing from them.")
@opt.file_option("--state", help="File that keeps the calibrator between runs.")
@opt.file_option("--output", "-o", "--out", "out", help="CSV file to write, in the order of FILE.")
@opt.columns_option("--keep", help="More columns for --output, an id say.")
@output.page_out
@opt.same_option
@opt.as_json
def stream(
    file: FileNames, outcome: str, prediction: str, order: str | None, by: str | None, batch_by: str | None,
    delay: int | None, guard: bool, forget_missing: bool, state: str | None, out: str | None,
    keep: list[str] | None, html: str | None, same: bool, json_: bool,
) -> None:  # fmt: skip
    """Calibrate the predictions in FILE in order, each with what was known before it.

    Writes a CSV file with the columns named here, copies of those of --keep, and the column `calibrated`, in
    the order of FILE; prints the certificate, and the scores of raw and calibrated predictions. The state is
    written last and as a whole: a run that is stopped early changes nothing and can be repeated. Rows that
    the state has learned are refused unless --same learns them again.
    """
    if out and Path(out).suffix.lower() != ".csv":
        raise InvalidInputError("--output", "must end in .csv", f"got {out!r}")
    hint = (
        "pass --forget-missing to calibrate such rows without learning from them; once their outcomes "
        "are known, give stream a file of these rows alone, with the same --state"
    )
    others = [name for name in (by, batch_by) if name]
    ordered.refuse_many(file, 2, "split FILE, and pass the parts in turn with --state")  # 300 bytes per row
    rows = ordered.read_ordered(file, outcome, prediction, order, others, None if forget_missing else hint)
    with lock_file(state) if state else nullcontext():
        calibrator = _opened(state, by, delay, guard)
        parts = ordered.counted_parts(state, "OnlineCalibrator")
        parts = ordered.register_batch(parts, rows, same, state)
        segments = rows.columns[by] if by else None
        batches = rows.columns[batch_by] if batch_by else None
        batch_ends(batches, len(rows), f"column {batch_by!r}")  # refuses it by the name that the user knows
        if np.isnan(rows.outcome).any():
            run = _stepped(calibrator, rows, segments, batches)
        else:
            run = calibrator.run(rows.outcome, rows.prediction, by=segments, batches=batches)
        if out:
            named = {*rows.columns, outcome, prediction}
            copied = [*(name for name in keep or () if name not in named), *rows.columns]
            cells = read_cells(file, copied) if copied else {}
            atomic_write(out, _as_csv(rows, run, outcome, prediction, cells))
        summary = _summary(calibrator, rows, run)
        if html:
            known = ~np.isnan(rows.outcome)
            if not known.any():
                raise InvalidInputError("--html", "needs an outcome that is known", "got none")
            from calibrant.report.pages import stream_page

            seen = rows.outcome[known], rows.prediction[known], run.taken(known)
            heading = output.page_heading(ordered.shown_name(file))
            output.write_page(html, stream_page(*seen, summary, **heading))
        _show(summary, json_)
        output.deliver_results()
        if state:
            atomic_write(state, sealed(ordered.with_parts(calibrator.to_json(), parts)))


def _opened(state: str | None, by: str | None, delay: int | None, guard: bool) -> OnlineCalibrator:
    if state is None or not Path(state).exists():
        return OnlineCalibrator(by=by, guard=guard, delay=delay or 0)
    calibrator = ordered.loaded(OnlineCalibrator.from_json, state)
    for option, given, kept in (
        ("--by", by, calibrator.by),
        ("--delay", calibrator.delay if delay is None else delay, calibrator.delay),
        ("--guard", guard if opt.typed("guard") else calibrator.guard, calibrator.guard),
    ):
        if given != kept:
            rule = f"must be that of the state, {kept!r}"
            raise InvalidInputError(option, rule, f"got {given!r}")
    return calibrator


def _stepped(calibrator: OnlineCalibrator, rows: OrderedRows, segments: Any, batches: Any) -> Run:
    """Calibrate batch by batch, forgetting what is unknown; a row that is forgotten changes no account."""
    size, before = len(rows), calibrator.rounds
    labels = [None] * size if segments is None else segments.tolist()
    out, steered, weights = np.empty(size), np.zeros(size, dtype=np.bool_), np.empty((size, len(EXPERTS)))
    account = np.empty((2, size))
    begin = 0
    for end in batch_ends(batches, size).tolist():
        for t in range(begin, end):
            moved = calibrator.steered
            weights[t] = list(calibrator.weights(labels[t]).values())
            out[t] = calibrator.transform_one(float(rows.prediction[t]), by=labels[t], key=t)
            steered[t] = calibrator.steered > moved
        for t in range(begin, end):
            if np.isnan(rows.outcome[t]):
                calibrator.forget(t)
            else:
                calibrator.learn_one(rows.outcome[t], key=t)
            account[:, t] = calibrator.certificate or 0.0, calibrator.bound() or 0.0
        begin = end
    certificate, bound = account if calibrator.guard else (None, None)
    return Run(out, certificate, bound, steered, weights, before)


def _as_csv(
    rows: OrderedRows, run: Run, outcome: str, prediction: str, copied: Mapping[str, list[str | None]]
) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*copied, outcome, prediction, "calibrated"])
    order = slice(None) if rows.place is None else np.argsort(rows.place)
    outcomes = ["" if y != y else int(y) for y in rows.outcome[order].tolist()]
    numbers = (column[order].tolist() for column in (rows.prediction, run.predictions))
    writer.writerows(zip(*copied.values(), outcomes, *numbers, strict=True))
    return text.getvalue()


def _summary(calibrator: OnlineCalibrator, rows: OrderedRows, run: Run) -> dict[str, Any]:
    known = ~np.isnan(rows.outcome)
    y = rows.outcome[known]
    accounts = ("rounds", "delay", "most_pending", "segments", "steered", "certificate")
    return {
        "rows": len(rows),
        "learnt": int(known.sum()),
        **{name: getattr(calibrator, name) for name in accounts},
        "bound": calibrator.bound(),
        "brier_bound": calibrator.brier_bound(),
        "raw": _scores(y, rows.prediction[known]),
        "calibrated": _scores(y, run.predictions[known]),
    }


def _scores(y: Array, p: Array) -> dict[str, float | None]:
    known = len(y) > 0
    return {
        "brier": float(np.mean((y - p) ** 2)) if known else None,
        "smooth": float(smooth_calibration_error(y, p)) if known else None,
        "lower": float(lower_distance(y, p)) if 0 < len(y) <= MAX_DISTANCE_ROWS else None,
    }


def _show(summary: Mapping[str, Any], json_: bool) -> None:
    if json_:
        output.show_json(summary)
        return
    table = [
        [name, *("" if value is None else output.readable_number(value) for value in summary[name].values())]
        for name in ("raw", "calibrated")
    ]
    if summary["learnt"]:
        output.show_table(["predictions", "Brier score", "smooth error", "lower distance"], table)
    else:
        output.print_result("No outcome is known yet, so nothing was learned and there are no scores.")
    output.print_note(*_promises(summary))


def _promises(summary: Mapping[str, Any]) -> list[str]:
    rounds, certificate, bound = (summary[name] for name in ("rounds", "certificate", "bound"))
    in_all = "" if rounds == summary["learnt"] else f" ({rounds:,} in all)"
    read = f"{pluralize(summary['rows'], 'row')}, {pluralize(summary['learnt'], 'outcome')} learned{in_all}"
    lines = [f"{read}, {summary['steered']:,} steered"]
    unknown = summary["rows"] - summary["learnt"]
    if unknown:
        rows = pluralize(unknown, "row was calibrated without an outcome", "rows were calibrated without one")
        lines.append(f"{rows}; scores and promises do not cover them")
    if certificate is not None and rounds:
        promised = f" (at most {bound / rounds:.4f} whatever happens)" if bound < rounds else ""
        lines.append(
            f"distance to calibration of the learned rows at most {certificate / rounds:.4f}{promised}"
        )
    if summary["brier_bound"] is not None:
        lines.append(f"total Brier score at most {summary['brier_bound']:.3f} above raw, whatever happens")
        return lines
    reasons, options, without = [], [], ""
    if summary["most_pending"] > summary["delay"] + 1:
        reasons.append(f"{summary['most_pending']:,} outcomes were unknown at once")
        options.append(f"--delay {summary['most_pending'] - 1}")
    if summary["steered"]:
        reasons.append(f"the guard moved {pluralize(summary['steered'], 'prediction')}")
        options.append("--no-guard")
        without = ", without the bound on the distance"
    if reasons:
        remedy = f"{' '.join(options)} gives one{without}"
        lines.append(f"no promise on the Brier score: {' and '.join(reasons)} ({remedy})")
    return lines
