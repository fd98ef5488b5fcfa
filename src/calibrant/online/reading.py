"""What a monitor says at a moment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from calibrant.numerals import counted, pvalue_phrase
from calibrant.sheets import paragraphs


@dataclass(frozen=True, slots=True)
class Reading:
    """What a monitor knows after some records.

    `log_evalue` is the log of the evidence against calibration now, `pvalue` 1 over the largest evidence so
    far (valid at any time, however often you look). `alarm` stays on once raised, at record `alarm_at`.
    `onset` is the record after which the stretch begins in which a bet gained most so far, and `suspicion`
    what that bet is on: an estimate of where the trouble is worst and of what kind. Both may move on after an
    alarm, and are None until there is evidence to speak of.
    """

    n: int
    log_evalue: float
    pvalue: float
    alarm: bool
    alarm_at: int | None
    onset: int | None
    suspicion: str | None

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately: none, the p-value is valid at any time."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return {**asdict(self), "approximate": list(self.approximate)}

    def __str__(self) -> str:
        kind = "" if self.suspicion is None else f" What pays most to bet on: {self.suspicion}."
        since = "" if self.onset is None else f" The strongest evidence begins after record {self.onset:,}."
        p = f"{pvalue_phrase(self.pvalue)}, valid at any time"
        if self.alarm:
            seen = f"{counted(self.n, 'record')}, {p}"
            return f"Alarm at record {self.alarm_at:,}: evidence against calibration ({seen}).{kind}{since}"
        return f"No alarm after {counted(self.n, 'record')} ({p}).{kind}{since}"

    def _repr_html_(self) -> str:
        return paragraphs(str(self))
