"""`calibrant monitor`: watch a stream of predictions from cron or continuous integration."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from calibrant import __version__
from calibrant.cli.options import NAME, as_json, examples, files_read, outcome_option, rows_in, same_option
from calibrant.cli.output import deliver_results, print_note, show_json, show_table
from calibrant.cli.rows import (
    OrderedRows,
    counted_parts,
    read_ordered,
    register_batch,
    with_beginning,
    with_parts,
)
from calibrant.errors import InvalidInputError, sentence
from calibrant.files import atomic_write, check_target, lock_file
from calibrant.formatting import pluralize, pvalue_text
from calibrant.io.read import FileNames
from calibrant.online.inputs import label_names
from calibrant.online.monitor import GroupMonitor, Monitor, Reading
from calibrant.online.state import read_text, sealed

ALPHA = 0.05
SCHEMA, SCHEMA_VERSION = "calibrant-monitor", 1
NAMED = 3  # groups named in the line of an alarm
ALARM = 1  # exit code


@click.command("monitor", epilog=examples("calibrant monitor today.csv -y default -p p --state monitor.json"))
@rows_in
@outcome_option
@click.option("--prediction", "-p", type=NAME, required=True, help="Column of predicted probabilities.")
@click.option("--order", type=NAME, help="Column to sort the rows by.  [default: the order of the file]")
@click.option("--by", type=NAME, help="Column of groups, each of which gets a monitor of its own.")
@click.option("--group", "groups", multiple=True, help="A group of --by; repeat.  [default: those of FILE]")
@click.option("--alpha", type=float, help=f"Chance of a false alarm, ever.  [default: {ALPHA:g}]")
@click.option("--state", type=click.Path(dir_okay=False), help="File that keeps the monitor between runs.")
@click.option("--grown", is_flag=True, help="FILE starts at the first record: skip those already seen.")
@same_option
@as_json
def monitor(
    file: FileNames, outcome: str, prediction: str, order: str | None, by: str | None, groups: Sequence[str],
    alpha: float | None, state: str | None, grown: bool, same: bool, json_: bool,
) -> None:  # fmt: skip
    """Watch the records in FILE for loss of calibration, continuing where the state left off.

    Exit code 0: no alarm. 1: the alarm is on, now or since an earlier run. 2: bad input or usage. However
    often you look and however long the stream, a false alarm ever has probability at most alpha. Each
    prediction must have been fixed before its outcome was known. The state is written whole and last of all:
    a run that was stopped before has changed nothing and can be repeated. Rows given again after a complete
    run are refused unless --same counts them again; --grown skips those of a file that grows.
    """
    if grown and not state:
        raise InvalidInputError(sentence("--grown", "needs --state", "got none"))
    if groups and not by:
        raise InvalidInputError(sentence("--group", "needs --by", "got none"))
    if state:
        check_target(state, files_read())
    rows = read_ordered(
        file,
        outcome=outcome,
        prediction=prediction,
        order=order,
        others=[by] if by else [],
        unknown=False,
        hint="leave rows out until their outcome is known",
    )
    with _kept(state) as path:
        watch = _opened(path, rows, by, groups, alpha)
        parts = counted_parts(path, type(watch).__name__)
        parts = (
            with_beginning(parts, rows, _seen(watch)) if grown else register_batch(parts, rows, same, path)
        )
        before = _readings(watch)
        readings = _updated(watch, rows, by, grown)
        if readings[GroupMonitor.EVERYBODY].n == before[GroupMonitor.EVERYBODY].n:
            print_note("no new rows in FILE: nothing was counted")
        _show(readings, before, watch.alpha, json_)
        deliver_results()
        if path is not None:
            atomic_write(path, sealed(with_parts(watch.to_json(), parts)))
    sys.exit(ALARM if any(reading.alarm for reading in readings.values()) else 0)


@contextmanager
def _kept(state: str | None) -> Iterator[Path | None]:
    """Hold the lock of the state, if there is one, so that two runs at once cannot lose records."""
    if state is None:
        yield None
        return
    with lock_file(state):
        yield Path(state)


def _opened(
    path: Path | None, rows: OrderedRows, by: str | None, groups: Sequence[str], alpha: float | None
) -> Monitor | GroupMonitor:
    """Return the monitor that the state holds, or a new one."""
    if path is None or not path.exists():
        level = ALPHA if alpha is None else alpha
        if by is None:
            return Monitor(alpha=level)
        names = groups or _groups(rows, by)
        if not names:
            hint = "name every group that may come with --group, or begin with a file that has them"
            raise InvalidInputError(sentence(f"column {by!r}", "must have groups", "got no rows", hint))
        return GroupMonitor(names, alpha=level)
    kind = Monitor if by is None else GroupMonitor
    try:
        watch = kind.from_json(read_text(path))
    except InvalidInputError as error:
        hint = error.hint or "was it made with another --by"
        raise error.with_parts(subject=f"file {str(path)!r}: {error.subject}", hint=hint) from None
    if alpha is not None and abs(watch.alpha - alpha) > 1e-12:
        rule = f"must be that of the state, {watch.alpha:g}"
        raise InvalidInputError(sentence("--alpha", rule, f"got {alpha:g}"))
    if isinstance(watch, GroupMonitor) and groups and set(groups) != set(watch.groups):
        rule = f"must be those of the state, {', '.join(watch.groups)}"
        raise InvalidInputError(sentence("--group", rule, f"got {', '.join(groups)}", "leave it out"))
    return watch


def _seen(watch: Monitor | GroupMonitor) -> int:
    """Return how many records were counted before."""
    return watch.n if isinstance(watch, Monitor) else watch.monitors[GroupMonitor.EVERYBODY].n


def _readings(watch: Monitor | GroupMonitor) -> dict[str, Reading]:
    """Return what every monitor says."""
    monitors = {GroupMonitor.EVERYBODY: watch} if isinstance(watch, Monitor) else watch.monitors
    return {name: one.reading() for name, one in monitors.items()}


def _updated(
    watch: Monitor | GroupMonitor, rows: OrderedRows, by: str | None, grown: bool
) -> Mapping[str, Reading]:
    """Feed the rows that are new, and return what every monitor says."""
    fresh = rows.after(_seen(watch)) if grown else rows
    if isinstance(watch, Monitor):
        for block in fresh.blocks():
            watch.update(block.outcome, block.prediction)
        return _readings(watch)
    whole_days = _are_whole_days(fresh.columns[str(by)], watch.groups)
    _check_known(fresh, watch.groups, str(by), whole_days)
    for block in fresh.blocks():
        watch.update(block.outcome, block.prediction, _labels(block.columns[str(by)], whole_days))
    return _readings(watch)


def _check_known(rows: OrderedRows, known: Sequence[str], by: str, whole_days: bool) -> None:
    """Refuse groups that the monitors were not started with."""
    others: Counter[str] = Counter()
    for block in rows.blocks():
        others.update(label_names(_labels(block.columns[by], whole_days)).tolist())
    strange = {name: count for name, count in others.items() if name not in set(known)}
    if strange:
        rule = f"must hold the groups that the monitor began with, {', '.join(known)}"
        hint = "begin a new state, with a --group for every group that may come"
        got = f"got {next(iter(strange))!r} ({pluralize(sum(strange.values()), 'row')} of other groups)"
        raise InvalidInputError(sentence(f"column {by!r}", rule, got, hint))


def _groups(rows: OrderedRows, by: str) -> list[Any]:
    """Return the groups of a column in the order in which they appear."""
    whole_days = _are_whole_days(rows.columns[by])
    found: dict[Any, None] = {}
    for block in rows.blocks():
        found |= dict.fromkeys(_labels(block.columns[by], whole_days).tolist())
    return list(found)


def _are_whole_days(column: npt.NDArray[Any], known: Sequence[str] = ()) -> bool:
    """Return whether all times are midnight, unless the state names its groups with a time of day."""
    if column.dtype.kind != "M" or any(name.endswith(" 00:00:00") for name in known):
        return False
    return bool(np.all((column.astype("datetime64[D]") == column) | np.isnat(column)))


def _labels(column: npt.NDArray[Any], whole_days: bool) -> npt.NDArray[Any]:
    """Return the labels of groups; days have no time of day."""
    if not whole_days:
        return column
    labels = column.astype("datetime64[D]").astype(str).astype(object)
    labels[np.isnat(column)] = None
    return labels


def _show(readings: Mapping[str, Reading], before: Mapping[str, Reading], alpha: float, json_: bool) -> None:
    """Print the readings; `before` are those of the state that this run went on from."""
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
    columns = ("records", "new", "p-value", "alarm at", "strongest evidence from", "what pays most to bet on")
    show_table(["group", *columns], [_line(name, one, new[name]) for name, one in readings.items()])
    when = "" if raised else ", raised by an earlier run"
    words = f"ALARM{when}: evidence against calibration{_since(readings)}" if alarm else "no alarm"
    stays = "; it stays on, start over with a new state file" if alarm else ""
    print_note(f"{words} (a false alarm, ever, has a chance of at most {alpha:g}{stays})")


def _since(readings: Mapping[str, Reading]) -> str:
    """Say for whom, and from which record on the evidence is strongest."""
    loud = {name: reading for name, reading in readings.items() if reading.alarm}
    said = [
        ("" if len(readings) == 1 else f" {name}") + f" since record {(reading.onset or 0) + 1:,}"
        for name, reading in loud.items()
    ]
    whose = "" if len(readings) == 1 else " in"
    return whose + ",".join(said[:NAMED]) + (f" and {len(said) - NAMED:,} more" if len(said) > NAMED else "")


def _line(name: str, reading: Reading, new: int) -> list[str]:
    alarm = "" if reading.alarm_at is None else f"record {reading.alarm_at:,}"
    start = "" if reading.onset is None else f"record {reading.onset + 1:,}"  # the one after the onset
    counts = [f"{reading.n:,}", f"{new:,}"]
    return [name, *counts, pvalue_text(reading.pvalue), alarm, start, reading.suspicion or ""]
