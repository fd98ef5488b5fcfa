"""Monitor: watch a stream for as long as you like; a false alarm ever has probability at most alpha."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.columns import check_same_length, check_unit_interval, vector
from calibrant.errors import InvalidInputError, reject_name, reject_rows, sentence
from calibrant.inference.bets import SHAPES, STAKES, bet_names, log_pays
from calibrant.results import Array

CHUNK = 512  # records weighed at once
VERSION = 1
BETS = len(SHAPES) * len(STAKES)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a monitor knows after some records.

    `log_evalue` is the log of the evidence against calibration now, `pvalue` 1 over the largest evidence so
    far (valid at any time, however often you look). `alarm` stays on once raised, at record `alarm_at`.
    `onset` estimates after how many records the trouble began, and `suspicion` what kind it is; both are
    None until there is evidence to speak of.
    """

    n: int
    log_evalue: float
    pvalue: float
    alarm: bool
    alarm_at: int | None
    onset: int | None
    suspicion: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return asdict(self)


class Monitor:
    """An anytime-valid test of calibration over a stream (an e-process), in bounded memory.

    Money is bet against calibration in many ways at once (see bets.py) and, because trouble may start at
    any time, only a share 1 / (k (k + 1)) of it is staked as the k-th 512 records begin. Calibrated
    forecasts make the wealth a non-negative martingale from 1, so it ever reaches 1 / alpha with probability
    at most alpha (Ville). No history is kept: each bet needs its wealth, its pay since the start and
    where that was lowest. Each prediction must be fixed before its outcome is known.

    >>> monitor = Monitor(alpha=0.01)
    >>> monitor.update([1] * 50, [0.5] * 50).alarm
    True
    """

    def __init__(self, *, alpha: float = 0.05) -> None:
        if not 0 < alpha < 1:
            raise InvalidInputError(sentence("alpha", "must lie strictly between 0 and 1", f"got {alpha}"))
        self.alpha = float(alpha)
        self.n = 0
        self.stakings = 0  # how often a share was staked
        self.alarm_at: int | None = None
        self.peak = 0.0  # largest log evidence so far
        self.wealth: Array = np.full(BETS, -np.inf)  # log, of what was staked so far, shared evenly
        self.pay: Array = np.zeros(BETS)  # log, since the start
        self.lowest: Array = np.zeros(BETS)  # of `pay`
        self.lowest_at = np.zeros(BETS, dtype=np.int64)  # records seen when it was

    def update(self, y_true: Any, y_prob: Any) -> Reading:
        """Take the next records, any number of them, and return where things stand."""
        outcomes, predictions = _checked(y_true, y_prob)
        for start in range(0, len(outcomes), CHUNK):
            self._take(outcomes[start : start + CHUNK], predictions[start : start + CHUNK])
        return self.reading()

    def _take(self, outcomes: Array, predictions: Array) -> None:
        if self.n >= self.stakings * CHUNK:
            self.stakings += 1
            share = -math.log(self.stakings) - math.log(self.stakings + 1)
            self.wealth = np.logaddexp(self.wealth, share)
        grown = np.cumsum(log_pays(outcomes, predictions), axis=0)
        evidence = _log_mean(self.wealth + grown)
        self._remember(self.pay + grown)
        self.wealth, self.pay = self.wealth + grown[-1], self.pay + grown[-1]
        evidence = np.logaddexp(evidence, self._idle)
        self.peak = max(self.peak, float(evidence.max()))
        if self.alarm_at is None and self.peak >= -math.log(self.alpha):
            self.alarm_at = self.n + 1 + int(np.argmax(evidence >= -math.log(self.alpha)))
        self.n += len(outcomes)

    def _remember(self, pays: Array) -> None:
        """Note where each bet's pay was lowest: after that its luck turned."""
        at = pays.argmin(axis=0)
        low = pays[at, np.arange(BETS)]
        lower = low < self.lowest
        self.lowest = np.where(lower, low, self.lowest)
        self.lowest_at = np.where(lower, self.n + 1 + at, self.lowest_at)

    @property
    def log_evalue(self) -> float:
        """Log of the evidence now: 0 is none, log 20 suffices at alpha = 0.05."""
        return float(np.logaddexp(_log_mean(self.wealth[None])[0], self._idle))

    def reading(self) -> Reading:
        """Return where things stand."""
        best = int(np.argmax(self.pay - self.lowest))
        spoken = self.peak > 1.0
        return Reading(
            n=self.n,
            log_evalue=self.log_evalue,
            pvalue=min(1.0, math.exp(-self.peak)),
            alarm=self.alarm_at is not None,
            alarm_at=self.alarm_at,
            onset=int(self.lowest_at[best]) if spoken else None,
            suspicion=bet_names()[best] if spoken else None,
        )

    def __add__(self, later: Monitor) -> Monitor:
        """Join two monitors: `later` saw what came after, or another part of the same stream.

        The evidence of the whole is a mean of two, weighed by their records: this one's bets carried on
        through the later records, and the later one's own. Alarms of the parts are not alarms of the whole.
        """
        if not isinstance(later, Monitor):
            return NotImplemented
        joined = Monitor(alpha=min(self.alpha, later.alpha))
        joined.n, joined.stakings = self.n + later.n, self.stakings + later.stakings
        joined.pay, reached = self.pay + later.pay, self.pay + later.lowest
        joined.lowest = np.minimum(self.lowest, reached)
        joined.lowest_at = np.where(reached < self.lowest, self.n + later.lowest_at, self.lowest_at)
        joined.wealth = self._joined_wealth(later)
        joined.peak = max(0.0, joined.log_evalue)
        if joined.peak >= -math.log(joined.alpha):
            joined.alarm_at = joined.n
        return joined

    def _joined_wealth(self, later: Monitor) -> Array:
        if self.n == 0 or later.n == 0:
            return self.wealth if later.n == 0 else later.wealth
        own, other = (math.log(part.n / (self.n + later.n)) for part in (self, later))
        carried = np.logaddexp(self.wealth, self._idle) + later.pay
        both = np.logaddexp(own + carried, other + np.logaddexp(later.wealth, later._idle))
        kept = 1 / (self.stakings + later.stakings + 1)  # not staked, for what is to come
        return np.asarray(both + math.log1p(-kept))

    @property
    def _idle(self) -> float:
        """Log of the share that is not staked yet."""
        return -math.log(self.stakings + 1)

    def to_json(self) -> str:
        """Return the whole state as JSON text: a few kilobytes, whatever the length of the stream."""
        state = {name: getattr(self, name) for name in ("alpha", "n", "stakings", "alarm_at", "peak")}
        arrays = {name: getattr(self, name).tolist() for name in ("wealth", "pay", "lowest", "lowest_at")}
        arrays["wealth"] = [None if math.isinf(x) else x for x in arrays["wealth"]]
        return json.dumps({"calibrant_monitor": VERSION, **state, **arrays})

    @classmethod
    def from_json(cls, text: str) -> Monitor:
        """Return the monitor whose state this is."""
        try:
            state = json.loads(text)
            version = state["calibrant_monitor"]
        except (json.JSONDecodeError, TypeError, KeyError):
            rule = "must be the JSON of a Monitor"
            raise InvalidInputError(sentence("text", rule, f"got {text[:40]!r}")) from None
        if version != VERSION or len(state["pay"]) != BETS:
            raise InvalidInputError(sentence("state", f"must be of version {VERSION}", f"got {version}"))
        self = cls(alpha=state["alpha"])
        self.n, self.stakings, self.alarm_at = state["n"], state["stakings"], state["alarm_at"]
        self.peak = state["peak"]
        self.wealth = np.array([-np.inf if x is None else x for x in state["wealth"]])
        self.pay, self.lowest = np.array(state["pay"]), np.array(state["lowest"])
        self.lowest_at = np.array(state["lowest_at"], dtype=np.int64)
        return self


class GroupMonitor:
    """One Monitor a group and one for everybody; the chance of any false alarm is at most alpha.

    The groups are named beforehand, so that memory is bounded; each monitor gets an equal part of alpha.

    >>> watch = GroupMonitor(["north", "south"])
    >>> sorted(watch.update([1] * 60, [0.5] * 60, ["north"] * 60))
    ['everybody', 'north', 'south']
    """

    EVERYBODY = "everybody"

    def __init__(self, groups: Iterable[str], *, alpha: float = 0.05) -> None:
        names = [str(name) for name in groups]
        if not names or len(set(names)) < len(names) or self.EVERYBODY in names:
            rule = f"must be different names other than {self.EVERYBODY!r}"
            raise InvalidInputError(sentence("groups", rule, f"got {names}"))
        share = alpha / (len(names) + 1)
        self.monitors = {name: Monitor(alpha=share) for name in [self.EVERYBODY, *names]}

    def update(self, y_true: Any, y_prob: Any, groups: Any) -> Mapping[str, Reading]:
        """Take the next records with the group of each, and return every monitor's reading."""
        outcomes, predictions = _checked(y_true, y_prob)
        labels = np.asarray(groups).astype(str)
        check_same_length(labels, outcomes, ("groups", "y_true"))
        for name in np.unique(labels):
            if name not in self.monitors or name == self.EVERYBODY:
                raise reject_name("group", str(name), [n for n in self.monitors if n != self.EVERYBODY])
        self.monitors[self.EVERYBODY].update(outcomes, predictions)
        for name in np.unique(labels):
            own = labels == name
            self.monitors[str(name)].update(outcomes[own], predictions[own])
        return self.readings()

    def readings(self) -> Mapping[str, Reading]:
        """Return where things stand for everybody and for each group."""
        return {name: monitor.reading() for name, monitor in self.monitors.items()}

    def to_json(self) -> str:
        """Return the state of all monitors as JSON text."""
        return json.dumps({name: json.loads(monitor.to_json()) for name, monitor in self.monitors.items()})

    @classmethod
    def from_json(cls, text: str) -> GroupMonitor:
        """Return the monitors whose state this is."""
        self = cls.__new__(cls)
        self.monitors = {name: Monitor.from_json(json.dumps(s)) for name, s in json.loads(text).items()}
        return self


def _checked(y_true: Any, y_prob: Any) -> tuple[Array, Array]:
    outcomes, predictions = vector(y_true, "y_true"), vector(y_prob, "y_prob")
    check_same_length(outcomes, predictions, ("y_true", "y_prob"))
    for values, name in ((outcomes, "y_true"), (predictions, "y_prob")):
        if values.dtype.kind == "f":
            reject_rows(name, "must not be missing", values, np.isnan(values))
        check_unit_interval(values, name)
    return outcomes.astype(np.float64), predictions.astype(np.float64)


def _log_mean(logs: Array) -> Array:
    """Return the log of the mean of exp(logs) along the bets."""
    top = logs.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.mean(np.exp(logs - safe[:, None]), axis=1)))
