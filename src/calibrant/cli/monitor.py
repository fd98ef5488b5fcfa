"""`calibrant monitor`: watch a stream of predictions from cron or continuous integration."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from calibrant import __version__
from calibrant.cli import options as opt
from calibrant.cli import rows as ordered
from calibrant.cli.exit_codes import FAILED
from calibrant.cli.output import deliver_results, print_note, show_json, show_table
from calibrant.cli.rows import OrderedRows
from calibrant.errors import InvalidInputError
from calibrant.files import atomic_write, lock_file
from calibrant.formatting import pluralize, pvalue_text
from calibrant.io.read import FileNames
from calibrant.online.inputs import label_names
from calibrant.online.monitor import GroupMonitor, Monitor, Reading
from calibrant.online.state import sealed

ALPHA = 0.05
SCHEMA, SCHEMA_VERSION = "calibrant-monitor", 1
OTHER_KIND = "was it made with another --by?"
MAX_GROUPS_NAMED = 3  # in the line of an alarm


@click.command(epilog=opt.examples("calibrant monitor today.csv -y default -p p --state monitor.json"))
@opt.rows_in
@opt.outcome_option
@opt.prediction_option
@opt.order_option
@opt.column_option("--by", help="Column of groups, each of which gets a monitor of its own.")
@click.option("--group", "groups", multiple=True, help="A group of --by; repeat.  [default: those of FILE]")
@click.option("--alpha", type=float, help=f"Chance of a false alarm, ever.  [default: {ALPHA:g}]")
@opt.file_option("--state", help="File that keeps the monitor between runs.")
@opt.flag("--grown", help="FILE starts at the first record: skip those already seen.")
@opt.same_option
@opt.as_json
def monitor(
    file: FileNames, outcome: str, prediction: str, order: str | None, by: str | None, groups: Sequence[str],
    alpha: float | None, state: str | None, grown: bool, same: bool, json_: bool,
) -> None:  # fmt: skip
    """Watch the records in FILE for loss of calibration, continuing where the state left off.

    Exit code 0: no alarm. 1: the alarm is on, now or since an earlier run. 2: bad input or usage. However
    often you look and however long the stream, a false alarm ever has probability at most alpha. Each
    prediction must have been fixed before its outcome was known. The state is written last and as a whole: a
    run that is stopped early changes nothing and can be repeated. Rows given again after a complete run are
    refused unless --same counts them again; --grown skips those of a file that grows.
    """
    if grown and not state:
        raise InvalidInputError("--grown", "needs --state", "got none")
    if groups and not by:
        raise InvalidInputError("--group", "needs --by", "got none")
    hint = "leave rows out until their outcome is known"
    rows = ordered.read_ordered(file, outcome, prediction, order, [by] if by else [], hint)
    with lock_file(state) if state else nullcontext():  # two runs at once would lose records
        watch = _opened(state, rows, by, groups, alpha)
        before = _readings(watch)
        seen = before[GroupMonitor.EVERYBODY].n
        parts = ordered.counted_parts(state, type(watch).__name__)
        if grown:
            parts = ordered.with_beginning(parts, rows, seen)
        else:
            parts = ordered.register_batch(parts, rows, same, state)
        readings = _updated(watch, rows.after(seen) if grown else rows, by)
        if readings[GroupMonitor.EVERYBODY].n == seen:
            print_note("no new rows in FILE: nothing was counted")
        _show(readings, before, watch.alpha, json_)
        deliver_results()
        if state is not None:
            atomic_write(state, sealed(ordered.with_parts(watch.to_json(), parts)))
    sys.exit(FAILED if any(reading.alarm for reading in readings.values()) else 0)


def _opened(
    state: str | None, rows: OrderedRows, by: str | None, groups: Sequence[str], alpha: float | None
) -> Monitor | GroupMonitor:
    if state is None or not Path(state).exists():
        level = ALPHA if alpha is None else alpha
        if by is None:
            return Monitor(alpha=level)
        names = groups or _groups(rows, by)
        if not names:
            hint = "use --group to name every group that may occur, or begin with a file that has them"
            raise InvalidInputError(f"column {by!r}", "must have groups", "got no rows", hint)
        return GroupMonitor(names, alpha=level)
    read: Callable[[str], Monitor | GroupMonitor] = (Monitor if by is None else GroupMonitor).from_json
    watch = ordered.loaded(read, state, OTHER_KIND)
    if alpha is not None and abs(watch.alpha - alpha) > 1e-12:
        rule = f"must be that of the state, {watch.alpha:g}"
        raise InvalidInputError("--alpha", rule, f"got {alpha:g}")
    if isinstance(watch, GroupMonitor) and groups and set(groups) != set(watch.groups):
        rule = f"must be those of the state, {', '.join(watch.groups)}"
        raise InvalidInputError("--group", rule, f"got {', '.join(groups)}", "leave it out")
    return watch


def _readings(watch: Monitor | GroupMonitor) -> dict[str, Reading]:
    monitors = {GroupMonitor.EVERYBODY: watch} if isinstance(watch, Monitor) else watch.monitors
    return {name: one.reading() for name, one in monitors.items()}


def _updated(watch: Monitor | GroupMonitor, rows: OrderedRows, by: str | None) -> Mapping[str, Reading]:
    if isinstance(watch, GroupMonitor):
        rows = _with_days(rows, str(by), watch.groups)
        found: Counter[str] = Counter()
        for block in rows.blocks():
            found.update(label_names(block.columns[str(by)]).tolist())
        strange = {name: count for name, count in found.items() if name not in set(watch.groups)}
        if strange:
            rule = f"must hold the groups that the monitor began with, {', '.join(watch.groups)}"
            hint = "begin a new state, with a --group for every group that may come"
            got = f"got {next(iter(strange))!r} ({pluralize(sum(strange.values()), 'row')} of other groups)"
            raise InvalidInputError(f"column {by!r}", rule, got, hint)
    for block in rows.blocks():
        watch.update(block.outcome, block.prediction, *([block.columns[by]] if by else []))
    return _readings(watch)


def _groups(rows: OrderedRows, by: str) -> list[Any]:
    found: dict[Any, None] = {}
    for block in _with_days(rows, by).blocks():
        found |= dict.fromkeys(block.columns[by].tolist())
    return list(found)


def _with_days(rows: OrderedRows, by: str, known: Sequence[str] = ()) -> OrderedRows:
    """Turn times that are all midnight into days, unless the state names its groups with a time of day."""
    column = rows.columns[by]
    if column.dtype.kind != "M" or any(name.endswith(" 00:00:00") for name in known):
        return rows
    days = column.astype("datetime64[D]")
    whole = np.all((days == column) | np.isnat(column))
    return replace(rows, columns={**rows.columns, by: days}) if whole else rows


def _show(readings: Mapping[str, Reading], before: Mapping[str, Reading], alpha: float, json_: bool) -> None:
    alarm = any(reading.alarm for reading in readings.values())
    raised = {name for name, reading in readings.items() if reading.alarm and not before[name].alarm}
    new = {name: reading.n - before[name].n for name, reading in readings.items()}
    if json_:
        facts = {
            name: {**reading.to_dict(), "new": new[name], "raised": name in raised}
            for name, reading in readings.items()
        }
        about = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "calibrant_version": __version__}
        show_json({**about, "alarm": alarm, "alpha": alpha, "readings": facts})
        return
    columns = ("records", "new", "p-value", "alarm at", "strongest evidence from", "evidence for")
    show_table(["group", *columns], [_line(name, one, new[name]) for name, one in readings.items()])
    when = "" if raised else ", raised by an earlier run"
    words = f"ALARM{when}: evidence against calibration{_since(readings)}" if alarm else "no alarm"
    stays = "; it stays on until you start over with a new state file" if alarm else ""
    print_note(f"{words} (a false alarm, ever, has a chance of at most {alpha:g}{stays})")


def _since(readings: Mapping[str, Reading]) -> str:
    since = {name: f" since record {(one.onset or 0) + 1:,}" for name, one in readings.items() if one.alarm}
    if len(readings) == 1:
        return "".join(since.values())
    named = ",".join(f" {name}{words}" for name, words in list(since.items())[:MAX_GROUPS_NAMED])
    more = len(since) - MAX_GROUPS_NAMED
    return f" in{named}" + (f" and {more:,} more" if more > 0 else "")


def _line(name: str, reading: Reading, new: int) -> list[str]:
    alarm = "" if reading.alarm_at is None else f"record {reading.alarm_at:,}"
    start = "" if reading.onset is None else f"record {reading.onset + 1:,}"  # the one after the onset
    counts = [f"{reading.n:,}", f"{new:,}"]
    return [name, *counts, pvalue_text(reading.pvalue), alarm, start, reading.suspicion or ""]
