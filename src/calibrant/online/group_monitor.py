"""GroupMonitor: watch groups of a stream at once, with one chance of a false alarm for all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.formatting import pluralize, pvalue_text
from calibrant.inputs import check_aligned, check_same_length, row_labels
from calibrant.online.inputs import label_names, list_of_names
from calibrant.online.monitor import Monitor, Reading, checked_alpha, checked_records
from calibrant.online.state import not_a_state, parsed, read_text, save_text
from calibrant.results import Table, TableCell, html_paragraphs, number_cell, text_cell


class GroupMonitor:
    """One Monitor per group and one for everybody; the chance of any false alarm is at most alpha.

    The groups are named beforehand, so that memory is bounded; each monitor gets an equal part of alpha.
    The labels 1, 1.0 and "1" name the same group. None and NaN are missing, a group named "(missing)" that
    is declared as None and never confused with the text "nan".
    `a + b`, of the same groups and alpha, adds up monitor by monitor, as Monitor does.

    >>> watch = GroupMonitor(["north", "south"])
    >>> sorted(watch.update([1] * 60, [0.5] * 60, ["north"] * 60))
    ['everybody', 'north', 'south']
    """

    EVERYBODY = "everybody"

    def __init__(self, groups: Iterable[Any], *, alpha: float = 0.05) -> None:
        names = list_of_names(groups)
        if not names or len(set(names)) < len(names) or self.EVERYBODY in names:
            rule = f"must be different names other than {self.EVERYBODY!r}"
            raise InvalidInputError(sentence("groups", rule, f"got {names}"))
        share = checked_alpha(alpha) / (len(names) + 1)
        self.monitors = {name: Monitor(alpha=share) for name in [self.EVERYBODY, *names]}

    def update(self, y_true: Any, y_prob: Any, groups: Any) -> Mapping[str, Reading]:
        """Take the next records (or none) with the group of each, and return every monitor's reading."""
        for data, name in ((y_true, "y_true"), (y_prob, "y_prob")):
            check_aligned(groups, row_labels(data), ("groups", name))
        outcomes, predictions = checked_records(y_true, y_prob)
        labels = label_names(groups)
        check_same_length(labels, outcomes, ("groups", "y_true"))
        places: dict[str, list[int]] = {}
        for place, name in enumerate(labels.tolist()):
            places.setdefault(name, []).append(place)
        for name in places:
            if name not in self.monitors or name == self.EVERYBODY:
                raise reject_name("group", name, self.groups)
        self.monitors[self.EVERYBODY].update(outcomes, predictions)
        for name, own in places.items():
            self.monitors[name].update(outcomes[own], predictions[own])
        return self.readings()

    @property
    def groups(self) -> list[str]:
        """The names of the groups, without everybody."""
        return [name for name in self.monitors if name != self.EVERYBODY]

    @property
    def alpha(self) -> float:
        """The chance of any false alarm, of any group, at any time."""
        return self.monitors[self.EVERYBODY].alpha * len(self.monitors)

    def readings(self) -> Mapping[str, Reading]:
        """Return the current state overall and for each group."""
        return {name: monitor.reading() for name, monitor in self.monitors.items()}

    def sheet(self) -> Table:
        """Return the current state as a table, one line per monitor."""
        columns = ("group", "records", "alarm", "p-value", "onset", "suspicion")
        return Table(columns, tuple(_line(name, reading) for name, reading in self.readings().items()))

    def __repr__(self) -> str:
        alarms = [name for name, monitor in self.monitors.items() if monitor.alarm_at is not None]
        state = f"alarm: {', '.join(alarms)}" if alarms else "no alarm"
        n = self.monitors[self.EVERYBODY].n
        return f"GroupMonitor({pluralize(len(self.groups), 'group')}, alpha={self.alpha:g}, n={n:,}, {state})"

    def __str__(self) -> str:
        return f"{self!r}\n{self.sheet().as_text()}"

    def _repr_html_(self) -> str:
        return html_paragraphs(repr(self)) + self.sheet().as_html()

    def __add__(self, later: GroupMonitor) -> GroupMonitor:
        """Return the monitors of these records followed by those of `later`, group by group."""
        if not isinstance(later, GroupMonitor):
            return NotImplemented
        shares = [{name: m.alpha for name, m in part.monitors.items()} for part in (self, later)]
        if shares[0] != shares[1]:
            own, other = (_described(part) for part in shares)
            rule = "must have the same groups and alpha to be added"
            raise InvalidInputError(sentence("GroupMonitors", rule, f"got {own} and {other}"))
        return self._holding({name: m + later.monitors[name] for name, m in self.monitors.items()})

    @classmethod
    def _holding(cls, monitors: dict[str, Monitor]) -> GroupMonitor:
        self = cls.__new__(cls)
        self.monitors = monitors
        return self

    def to_json(self) -> str:
        """Return the state of all monitors as JSON text."""
        return json.dumps(
            {name: monitor._state() for name, monitor in self.monitors.items()}, allow_nan=False
        )

    @classmethod
    def from_json(cls, text: str) -> GroupMonitor:
        """Return the monitors whose state this is; every field is checked."""
        states = parsed(text, "GroupMonitor")
        if cls.EVERYBODY not in states or len(states) < 2:
            raise not_a_state("GroupMonitor", states)
        monitors = {name: Monitor._from_state(state) for name, state in states.items()}
        if len({monitor.alpha for monitor in monitors.values()}) > 1:
            rule = "must give every group the same part of alpha"
            raise InvalidInputError(sentence("state", rule, hint="it may have been edited"))
        if sum(monitor.n for monitor in monitors.values()) != 2 * monitors[cls.EVERYBODY].n:
            rule = "must count each record for everybody and for one group"
            raise InvalidInputError(sentence("state", rule, hint="it may have been edited"))
        return cls._holding(monitors)

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole and under a lock."""
        save_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> GroupMonitor:
        """Return the monitors whose state `save` wrote."""
        return cls.from_json(read_text(path))


def _described(shares: Mapping[str, float]) -> str:
    groups = [name for name in shares if name != GroupMonitor.EVERYBODY]
    return f"{groups} at alpha {sum(shares.values()):g}"


def _line(name: str, reading: Reading) -> tuple[TableCell, ...]:
    """Return one line of the table: a group, and what its monitor knows."""
    alarm = f"at record {reading.alarm_at:,}" if reading.alarm_at is not None else "no"
    onset = "" if reading.onset is None else f"after record {reading.onset:,}"
    return (
        text_cell(name),
        number_cell(reading.n, f"{reading.n:,}"),
        text_cell(alarm),
        number_cell(reading.pvalue, pvalue_text(reading.pvalue)),
        text_cell(onset),
        text_cell(reading.suspicion or ""),
    )
