"""What a learned auditor found: its advantage, how sure that is, and what carried it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from calibrant.groups.group import LEVEL, GroupCurve
from calibrant.numerals import at_floor, confidence_text, counted, left_out, pvalue_phrase, pvalue_text

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Half:
    """The advantage on one half of a model that was fitted to the other."""

    advantage: float
    lower: float
    upper: float
    pvalue: float
    n: int


@dataclass(frozen=True, slots=True)
class Telltale:
    """A group in words in which the distinguisher's opinion differs from elsewhere.

    `gap` is the mean residual, outcome minus prediction, and `carried` the part of the advantage that comes
    from its records. Groups are chosen with the outcomes in view: a gap here is a description, not a test.
    """

    rule: str
    size: int
    share: float
    gap: float
    carried: float

    def __str__(self) -> str:
        side = "too low" if self.gap > 0 else "too high"
        return (
            f"{self.rule}: {counted(self.size, 'row')}, predictions {side} by {abs(self.gap):.3g} on average"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Distinguisher:
    """What tells real outcomes from draws with the predicted probabilities.

    `advantage` is E[w (y - v)] of the learned w, the mean over two halves each judged by a model of the
    other, with an interval. `pvalue` is twice the smaller of the two exact p-values. `importance` is each
    column's share of the advantage that is lost when the column is shuffled, `rules` are groups in words
    that describe w, those that carry most first, and `curves` the cumulative curves of the worst of them.
    """

    advantage: float
    lower: float
    upper: float
    pvalue: float
    halves: tuple[Half, ...]
    importance: Mapping[str, float]
    rules: tuple[Telltale, ...]
    curves: tuple[GroupCurve, ...]
    n: int
    dropped: int
    draws: int
    confidence: float
    seed: int

    @property
    def pvalue_is_bound(self) -> bool:
        """Whether no draw came so far in the deciding half, so that the p-value is this or less."""
        return at_floor(self.pvalue / 2.0, self.draws)

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately: the interval; the p-value is exact."""
        return ("lower", "upper")

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the curves, ready for JSON."""
        return {
            "advantage": self.advantage,
            "lower": self.lower,
            "upper": self.upper,
            "pvalue": self.pvalue,
            "pvalue_is_bound": self.pvalue_is_bound,
            "halves": [asdict(half) for half in self.halves],
            "approximate": list(self.approximate),
            "importance": dict(self.importance),
            "rules": [asdict(rule) for rule in self.rules],
            "n": self.n,
            "dropped": self.dropped,
            "draws": self.draws,
            "confidence": self.confidence,
            "seed": self.seed,
        }

    def __repr__(self) -> str:
        p = pvalue_phrase(self.pvalue, self.draws, bound=self.pvalue_is_bound)
        return f"Distinguisher(advantage = {self.advantage:.4g}, {p}, n = {self.n:,})"

    def __str__(self) -> str:
        lines = [
            f"Learned auditor of {counted(self.n, 'row')}{left_out(self.dropped)}",
            f"  advantage  {self.advantage:.4g}   ({confidence_text(self.confidence)} interval "
            f"{self.lower:.4g} to {self.upper:.4g}, approximate)",
            f"  p-value    {pvalue_text(self.pvalue, floor=self.pvalue_is_bound)}   (both halves, "
            f"{counted(self.draws, 'draw')} each, seed {self.seed})",
            f"  verdict    {self.verdict}",
        ]
        carried = ", ".join(f"{name} {share:.0%}" for name, share in self._carriers())
        if carried:
            lines.append(f"  carried by {carried}")
        if self.rules and self.pvalue > LEVEL:
            lines.append("  what it learnt, none of it beyond chance:")
        return "\n".join(lines + [f"    {rule}" for rule in self.rules[:SHOWN]])

    @property
    def verdict(self) -> str:
        """What follows, in words: the null is more than calibration, since it also speaks of covariates."""
        if self.pvalue <= LEVEL:
            return "these outcomes were not drawn with the predicted probabilities, given the covariates"
        return "no evidence that the covariates know more than the predictions"

    def _carriers(self) -> list[tuple[str, float]]:
        return [(name, share) for name, share in self.importance.items() if share >= 0.005][:SHOWN]
