"""Monitor and GroupMonitor: watch streams for as long as you like; a false alarm ever has probability alpha.

Bets against calibration each multiply their stake by 1 in expectation while forecasts are calibrated. A bet
(f, d) supposes that the true log odds are those predicted plus d f(v). On outcome y it pays the likelihood
ratio exp(d f y) / (1 - v + v exp(d f)), which is 1 + lambda(v) (y - v) with
lambda(v) = (exp(d f) - 1) / (1 - v + v exp(d f)). Its mean is 1 under calibration whatever v is, and at
most 1 for fractional y. On the scale of log odds one set of stakes serves rare events and even chances.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.errors import InvalidInputError, reject_name
from calibrant.formatting import pluralize, pvalue_phrase, pvalue_text
from calibrant.inputs import check_aligned, open_share, row_labels, to_array
from calibrant.online.inputs import EVERYBODY, list_of_names, rows_by_name
from calibrant.online.state import Fields, Saved, not_a_state, parsed
from calibrant.records import check_records, warn_if_swapped
from calibrant.results import Array, Result, Table, html_paragraphs, number_cell, text_cell

KNOTS = np.array([-5.0, -2.5, 0.0, 2.5, 5.0])  # log odds at which the hats peak
STAKES = np.array([-1.0, -0.4, -0.15, -0.05, 0.05, 0.15, 0.4, 1.0])
SHAPES = ("shift", "spread", *(f"near {1 / (1 + np.exp(-k)):.2g}" for k in KNOTS))
IMPOSSIBLE_LOG_PAY = 700.0  # log of the pay when something happens that was predicted to be impossible
IMPOSSIBLE = (
    "certainty: something happened that was predicted to be impossible (a prediction of exactly 0 or 1)"
)


def bet_name(bet: int) -> str:
    """Return what a bet supposes, in words, by its place in the order of `log_pays`."""
    shape, stake = SHAPES[bet // len(STAKES)], STAKES[bet % len(STAKES)]
    if shape == "spread":  # f is the logit / 2.5, so its factor is a slope
        kind = f"predictions are {'not extreme enough' if stake > 0 else 'too extreme'}"
        size = f"slope {1 + stake / 2.5:.2g}"
    else:
        kind = f"events come {'more' if stake > 0 else 'less'} often than predicted"
        size = f"odds {np.exp(stake):.2g} times those predicted"
    return f"{shape}: {kind} (a bet on {size}, no estimate)"


def log_pays(outcomes: Array, predictions: Array) -> Array:
    """Return the log of what every bet (columns) pays on every record (rows)."""
    with np.errstate(divide="ignore"):
        odds = np.log(predictions) - np.log1p(-predictions)
    odds = np.clip(odds, KNOTS[0], KNOTS[-1])[:, None]
    hats = np.maximum(0.0, 1 - np.abs(odds - KNOTS) / (KNOTS[1] - KNOTS[0]))
    shapes = np.concatenate([np.ones((len(odds), 1)), odds / 2.5, hats], axis=1)
    v, y = predictions[:, None, None], outcomes[:, None, None]
    lifts = shapes[:, :, None] * STAKES
    logs: Array = (lifts * y - np.log1p(v * np.expm1(lifts))).reshape(len(predictions), -1)
    impossible = ((predictions == 0) & (outcomes > 0)) | ((predictions == 1) & (outcomes < 1))
    logs[impossible] = IMPOSSIBLE_LOG_PAY
    return logs


@dataclass(frozen=True, slots=True, repr=False)
class Reading(Result):
    """What a monitor knows after some records.

    `log_evalue` is the log of the evidence against calibration now, `pvalue` 1 over the largest evidence so
    far (valid at any time, however often you look). `alarm` stays on once raised, at record `alarm_at`.
    `onset` is the record after which the bet that gained most so far began to gain, and `suspicion` what that
    bet is on; both may move on after an alarm, and are None until there is evidence to speak of.
    """

    n: int
    log_evalue: float
    pvalue: float
    alarm: bool
    alarm_at: int | None
    onset: int | None
    suspicion: str | None

    DERIVED: ClassVar[tuple[str, ...]] = ("approximate",)
    approximate: ClassVar[tuple[str, ...]] = ()  # the p-value is valid at any time

    def __str__(self) -> str:
        kind = "" if self.suspicion is None else f" Strongest evidence for: {self.suspicion}."
        since = "" if self.onset is None else f" The strongest evidence begins after record {self.onset:,}."
        p = f"{pvalue_phrase(self.pvalue)}, valid at any time"
        if self.alarm:
            seen = f"{pluralize(self.n, 'record')}, {p}"
            return f"Alarm at record {self.alarm_at:,}: evidence against calibration ({seen}).{kind}{since}"
        return f"No alarm after {pluralize(self.n, 'record')} ({p}).{kind}{since}"


STAKING_INTERVAL = 512  # records between two stakings
VERSION = 4  # from 4 on, files must have their checksum
READABLE_VERSIONS = (2, 3, 4)  # 2 had the wealth itself, whose last digits depended on the batches
BETS = len(SHAPES) * len(STAKES)
_COUNT_FIELDS = ("n", "stakings", "stake_at")
_LEVEL_FIELDS = ("pay", "lowest", "highest", "rise")
_MOMENT_FIELDS = ("lowest_at", "rise_from")
RATES = np.array([1, 1 / 8, 1 / 64, 1 / 512, 1 / 4096, 1 / 32768])  # of a purse's cash, staked each time
LOG_PURSES = np.log([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])  # log of the money in each purse at the start


class Monitor(Saved):
    """An anytime-valid test of calibration over a stream (an e-process), in bounded memory.

    Money is bet against calibration in many ways at once. Because trouble may start at any time it is kept in
    purses: every 512 records each stakes a fixed rate of the cash it has left, one all of it at the start,
    others less and less. Calibrated forecasts make the wealth a non-negative martingale from 1, so it ever
    reaches 1 / alpha with probability at most alpha (Ville). Each prediction must be fixed before its outcome
    is known.

    `a + b` is the monitor of a's records followed by b's; see `__add__` for what that guarantees.

    >>> monitor = Monitor(alpha=0.01)
    >>> monitor.update([1] * 50, [0.5] * 50).alarm
    True
    """

    def __init__(self, *, alpha: float = 0.05) -> None:
        self.alpha = open_share("alpha", alpha)
        self.n = 0
        self.stakings = 0  # how often cash was staked
        self.stake_at = 0  # records seen when it is staked next
        self.alarm_at: int | None = None
        self.peak = 0.0  # largest log evidence so far
        self.ahead: Array = np.full((len(RATES), BETS), -np.inf)  # log wealth of a purse of 1, above `pay`
        self.pay: Array = np.zeros(BETS)  # log, since the start
        self.lowest: Array = np.zeros(BETS)  # `pay` so far
        self.highest: Array = np.zeros(BETS)
        self.rise: Array = np.zeros(BETS)  # the largest, of `pay` above what was lowest before
        self.lowest_at = np.zeros(BETS, dtype=np.int64)  # records seen when it was
        self.rise_from = np.zeros(BETS, dtype=np.int64)  # records seen when that rise began

    def update(self, y_true: Any, y_prob: Any) -> Reading:
        """Process the next records, possibly none, and return the current state."""
        outcomes, predictions = checked_records(y_true, y_prob)
        start = 0
        while start < len(outcomes):
            if self.n >= self.stake_at:  # when and how much is staked depends on no outcome and no batch
                staked = self._cash + np.log(RATES)
                self.ahead = np.logaddexp(self.ahead, staked[:, None] - self.pay)
                self.stakings += 1
                self.stake_at = self.n + STAKING_INTERVAL
            stop = start + self.stake_at - self.n
            self._take(outcomes[start:stop], predictions[start:stop])
            start = stop
        return self.reading()

    def _take(self, outcomes: Array, predictions: Array) -> None:
        # adding up from what was paid before, record by record, leaves no trace of the batches
        pays = np.cumsum(np.vstack([self.pay, log_pays(outcomes, predictions)]), axis=0)[1:]
        evidence = self._evidence(pays)
        self._remember(pays)
        self.pay = pays[-1].copy()
        self.peak = max(self.peak, float(evidence.max()))
        if self.alarm_at is None and self.peak >= -math.log(self.alpha):
            self.alarm_at = self.n + 1 + int(np.argmax(evidence >= -math.log(self.alpha)))
        self.n += len(outcomes)

    @property
    def wealth(self) -> Array:
        """Log of what a purse that began with 1 has staked, and won or lost since, on each bet."""
        return np.asarray(self.ahead + self.pay)

    def _evidence(self, pays: Array) -> Array:
        """Return the log of all the money, cash included, when the bets have paid so much (rows)."""
        staked = np.logaddexp.reduce(LOG_PURSES[:, None] + self.ahead, axis=0)
        cash = np.logaddexp.reduce(LOG_PURSES + self._cash)
        return np.asarray(np.logaddexp(_log_mean(staked + pays), cash))

    @property
    def _cash(self) -> Array:
        """Log of what a purse that began with 1 has not staked yet."""
        with np.errstate(divide="ignore", under="ignore"):
            return np.asarray(np.log((1 - RATES) ** self.stakings))

    def _remember(self, pays: Array) -> None:
        """Note the stretch in which each bet's pay rose most: there the trouble was."""
        rises = pays - np.minimum(np.minimum.accumulate(pays), self.lowest)
        peaks, bets = rises.argmax(axis=0), np.arange(BETS)
        for bet in np.flatnonzero(rises[peaks, bets] > self.rise):
            before = pays[: peaks[bet] + 1, bet]
            low = int(before.argmin())
            self.rise[bet] = rises[peaks[bet], bet]
            self.rise_from[bet] = self.n + 1 + low if before[low] < self.lowest[bet] else self.lowest_at[bet]
        lows = pays.argmin(axis=0)
        self.lowest_at = np.where(pays[lows, bets] < self.lowest, self.n + 1 + lows, self.lowest_at)
        self.lowest = np.minimum(self.lowest, pays[lows, bets])
        self.highest = np.maximum(self.highest, pays.max(axis=0))

    @property
    def log_evalue(self) -> float:
        """Log of the evidence now: 0 is none, log 20 suffices at alpha = 0.05."""
        return float(self._evidence(self.pay[None, :])[0])

    def reading(self) -> Reading:
        """Return the current state."""
        best = int(np.argmax(self.rise))
        has_evidence = self.peak > 1.0
        # a wrong prediction of 0 or 1 pays all bets alike
        suspicion = IMPOSSIBLE if self.rise.min() > IMPOSSIBLE_LOG_PAY - 1 else bet_name(best)
        return Reading(
            n=self.n,
            log_evalue=self.log_evalue,
            pvalue=min(1.0, math.exp(-self.peak)),
            alarm=self.alarm_at is not None,
            alarm_at=self.alarm_at,
            onset=int(self.rise_from[best]) if has_evidence else None,
            suspicion=suspicion if has_evidence else None,
        )

    def __repr__(self) -> str:
        alarm = "no alarm" if self.alarm_at is None else f"alarm at record {self.alarm_at:,}"
        return f"Monitor(alpha={self.alpha:g}, n={self.n:,}, {alarm})"

    def _repr_html_(self) -> str:
        return html_paragraphs(str(self))

    def __str__(self) -> str:
        return f"{self.reading()} Alarms falsely with probability {self.alpha:g} at most."

    def __add__(self, later: Monitor) -> Monitor:
        """Return the monitor of this one's records followed by those of `later`.

        The evidence is that of one monitor that saw both and staked again where `later` began: a martingale
        along the records in this order, so `total = total + today` may go on for ever, with a look after
        each. The two must share no record, and predictions of `later` must be calibrated given all records
        here, too. Merge a part once, when it is complete: summing parts again as they grow reorders the past,
        and only a single look at such a sum is covered.

        An alarm here stays on, at its record. Evidence that rose and fell within `later` is not seen, and an
        alarm of `later` alone counts only if the joint evidence still bears it out. The smaller alpha holds.
        """
        if not isinstance(later, Monitor):
            return NotImplemented
        joined = Monitor(alpha=min(self.alpha, later.alpha))
        joined.n, joined.stakings = self.n + later.n, self.stakings + later.stakings
        joined.stake_at = self.n + later.stake_at if later.n else self.stake_at
        joined.ahead = np.logaddexp(self.ahead, self._cash[:, None] + later.ahead - self.pay)
        joined.pay = self.pay + later.pay
        low, high = self.pay + later.lowest, self.pay + later.highest
        joined.lowest = np.minimum(self.lowest, low)
        joined.lowest_at = np.where(low < self.lowest, self.n + later.lowest_at, self.lowest_at)
        joined.highest = np.maximum(self.highest, high)
        rises = np.stack([self.rise, high - self.lowest, later.rise])  # within, across, within
        begun = np.stack([self.rise_from, self.lowest_at, self.n + later.rise_from])
        joined.rise, joined.rise_from = rises.max(axis=0), begun[rises.argmax(axis=0), np.arange(BETS)]
        first = self if self.n else later  # whose peak and alarm are kept; else what is here now counts
        bar = -math.log(joined.alpha)
        joined.peak = max(first.peak, joined.log_evalue)
        if first.peak >= bar:  # with a stricter alpha than its own all that is known is: by its end
            joined.alarm_at = first.alarm_at if first.alpha == joined.alpha else first.n
        elif joined.peak >= bar:
            joined.alarm_at = joined.n
        return joined

    def to_json(self) -> str:
        """Return the whole state as JSON text: some ten kilobytes, whatever the length of the stream."""
        return json.dumps(self._state(), allow_nan=False)

    def _state(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in ("alpha", "peak", "alarm_at", *_COUNT_FIELDS)}
        arrays = {name: getattr(self, name).tolist() for name in ("ahead", *_LEVEL_FIELDS, *_MOMENT_FIELDS)}
        arrays["ahead"] = [[None if math.isinf(x) else x for x in purse] for purse in arrays["ahead"]]
        return {"calibrant_monitor": VERSION, **state, **arrays}

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the monitor whose state this is; every field is checked."""
        return cls._from_state(parsed(text, "Monitor"))

    @classmethod
    def _from_state(cls, state: Any) -> Self:
        if not isinstance(state, dict) or "calibrant_monitor" not in state:
            raise not_a_state("Monitor", state)
        version = state["calibrant_monitor"]
        if version not in READABLE_VERSIONS:
            got, rule = f"got {version!r}", f"must be of version {READABLE_VERSIONS[0]} to {VERSION}"
            raise InvalidInputError("state", rule, got)
        fields = Fields(state, "Monitor")
        self = cls(alpha=fields.take("alpha"))
        self.n, self.stakings, self.stake_at = (fields.count(name) for name in _COUNT_FIELDS)
        self.peak = fields.number("peak", 0)
        self.alarm_at = None if fields.take("alarm_at") is None else fields.count("alarm_at", self.n)
        for name in _LEVEL_FIELDS:
            setattr(self, name, np.array(fields.numbers(name, BETS)))
        for name in _MOMENT_FIELDS:
            setattr(self, name, np.array(fields.counts(name, BETS), dtype=np.int64))
        purses = "wealth" if version == READABLE_VERSIONS[0] else "ahead"
        rows = fields.items(purses)
        if len(rows) != len(RATES) or not all(isinstance(row, list) for row in rows):
            raise fields.refused(purses, f"must be {len(RATES)} lists, one per purse")
        filled = [Fields({purses: [0.0 if x is None else x for x in row]}, "Monitor") for row in rows]
        logs = np.array([row.numbers(purses, BETS) for row in filled])
        staked = np.array([[x is not None for x in row] for row in rows])
        self.ahead = np.where(staked, logs, -np.inf) - (self.pay if purses == "wealth" else 0.0)
        for name, rule, wrong in self._contradictions(purses):
            if np.any(wrong):
                raise fields.refused(name, rule)
        return self

    def _contradictions(self, purses: str) -> Iterator[tuple[str, str, Any]]:
        """Yield field, rule and whether it is broken; an edited peak or alarm would stay silent for ever."""
        silenced = (self.alarm_at is None) == (self.peak >= -math.log(self.alpha))
        yield "alarm_at", "must be given when, and only when, the peak reached 1 / alpha", silenced
        hidden = self.log_evalue > self.peak + 1e-9 * (1 + abs(self.peak))
        yield "peak", "must not be less than the evidence now", hidden
        early = self.stake_at < self.n or (self.n > 0) != (self.stakings > 0)
        yield "stake_at", "must not lie before the records seen", early
        outside = (self.lowest > np.minimum(self.pay, 0)) | (self.highest < np.maximum(self.pay, 0))
        yield "pay", "must lie between its lowest and highest", outside
        too_fast = np.maximum(-self.lowest, self.highest) > IMPOSSIBLE_LOG_PAY * self.n
        yield "pay", "must not grow by more than a bet pays per record", too_fast
        slack = 1e-9 * (1 + self.highest - self.lowest)
        last, largest = self.pay - self.lowest, self.highest - self.lowest
        no_rise = (self.rise < last - slack) | (self.rise > largest + slack)
        yield "rise", "must lie between the last rise and the largest", no_rise
        least = np.log(RATES)[:, None] + self.pay  # the first stake stays in play
        unearned = (self.wealth < least - slack) | (self.wealth > last + slack)
        rule = "must follow from the stakes and the pay of the bets"
        yield purses, rule, unearned if self.stakings else np.isfinite(self.wealth)
        for name in _MOMENT_FIELDS:
            yield name, "must not lie after the records seen", getattr(self, name) > self.n


def checked_records(y_true: Any, y_prob: Any) -> tuple[Array, Array]:
    if to_array(y_true, "y_true").shape == to_array(y_prob, "y_prob").shape == (0,):
        return np.empty(0), np.empty(0)  # an empty batch is valid in a stream
    checked = check_records(y_true, y_prob)
    warn_if_swapped(checked)
    return checked.outcome.astype(np.float64), checked.prediction


def _log_mean(logs: Array) -> Array:
    top = logs.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.mean(np.exp(logs - safe[:, None]), axis=1)))


class GroupMonitor(Saved):
    """Watch groups of a stream at once: the chance of any false alarm is at most alpha.

    Each monitor gets an equal part of alpha. The labels 1, 1.0 and "1" name the same group; None and NaN are
    the group "(missing)", declared as None. `a + b` adds up monitor by monitor, as Monitor does.

    >>> watch = GroupMonitor(["north", "south"])
    >>> sorted(watch.update([1] * 60, [0.5] * 60, ["north"] * 60))
    ['everybody', 'north', 'south']
    """

    EVERYBODY = EVERYBODY

    def __init__(self, groups: Iterable[Any], *, alpha: float = 0.05) -> None:
        names = list_of_names(groups)
        if not names:
            raise InvalidInputError("groups", "must name a group or more", "got none")
        share = open_share("alpha", alpha) / (len(names) + 1)
        self.monitors = {name: Monitor(alpha=share) for name in [self.EVERYBODY, *names]}

    def update(self, y_true: Any, y_prob: Any, groups: Any) -> Mapping[str, Reading]:
        """Take the next records (or none) with the group of each, and return every monitor's reading."""
        for data, name in ((y_true, "y_true"), (y_prob, "y_prob")):
            check_aligned(groups, row_labels(data), ("groups", name))
        outcomes, predictions = checked_records(y_true, y_prob)
        rows = rows_by_name(groups, outcomes, ("groups", "y_true"))
        for name in rows:
            if name not in self.monitors or name == self.EVERYBODY:
                raise reject_name("group", name, self.groups)
        self.monitors[self.EVERYBODY].update(outcomes, predictions)
        for name, own in rows.items():
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
        lines = []
        for name, reading in self.readings().items():
            alarm = f"at record {reading.alarm_at:,}" if reading.alarm_at is not None else "no"
            onset = "" if reading.onset is None else f"after record {reading.onset:,}"
            records = number_cell(reading.n, f"{reading.n:,}")
            pvalue = number_cell(reading.pvalue, pvalue_text(reading.pvalue))
            cells = (text_cell(text) for text in (onset, reading.suspicion or ""))
            lines.append((text_cell(name), records, text_cell(alarm), pvalue, *cells))
        return Table(("group", "records", "alarm", "p-value", "onset", "suspicion"), tuple(lines))

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
            own, other = (f"{part.groups} at alpha {part.alpha:g}" for part in (self, later))
            rule = "must have the same groups and alpha to be added"
            raise InvalidInputError("GroupMonitors", rule, f"got {own} and {other}")
        return self._holding({name: m + later.monitors[name] for name, m in self.monitors.items()})

    @classmethod
    def _holding(cls, monitors: dict[str, Monitor]) -> Self:
        self = cls.__new__(cls)
        self.monitors = monitors
        return self

    def to_json(self) -> str:
        """Return the state of all monitors as JSON text."""
        states = {name: monitor._state() for name, monitor in self.monitors.items()}
        return json.dumps(states, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the monitors whose state this is; every field is checked."""
        states = parsed(text, "GroupMonitor")
        if cls.EVERYBODY not in states or len(states) < 2:
            raise not_a_state("GroupMonitor", states)
        monitors = {name: Monitor._from_state(state) for name, state in states.items()}
        rule = ""
        if len({monitor.alpha for monitor in monitors.values()}) > 1:
            rule = "must give every group the same part of alpha"
        elif sum(monitor.n for monitor in monitors.values()) != 2 * monitors[cls.EVERYBODY].n:
            rule = "must count each record for everybody and for one group"
        if rule:
            raise InvalidInputError("state", rule, hint="it may have been edited")
        return cls._holding(monitors)
