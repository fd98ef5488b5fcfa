"""About how many records would decide a limit that these leave open."""

from __future__ import annotations

import math

from calibrant.numerals import counted

FEWEST = 20  # records; the gate's errors were measured from there on (docs/guarantees.md)
MOST = 1_000  # times the records there are: more would be no help to anybody


def records_needed(records: int, distance: float, low: float, high: float, limit: float) -> str:
    """Say about how many records would decide, if the value stays as it is.

    The ends of an interval come nearer to the value as 1 / sqrt(n); the one beyond the limit has to cross it.
    A value outside its interval is taken for the nearer end, where bias put it. Fewer than
    FEWEST are never advised: by default they decide nothing.

    >>> records_needed(1000, 0.01, 0.0, 0.04, 0.02)
    '; about 9,000 records would decide, if the value stays near 0.01'
    >>> records_needed(1000, 0.02, 0.0, 0.04, 0.02)
    '; the value lies so near the limit that more records may not decide it'
    >>> records_needed(2, 0.3, 0.0, 0.8, 0.75)
    '; about 20 records would decide, if the value stays near 0.3'
    """
    value = min(max(distance, low), high)
    reach = high - value if value <= limit else value - low
    room = abs(limit - value)
    if room <= 0 or (reach / room) ** 2 > MOST:
        return "; the value lies so near the limit that more records may not decide it"
    wanted = max(FEWEST, math.ceil(records * max(1.1, (reach / room) ** 2) - 1e-6))
    unit: int = 10 ** max(0, len(str(wanted)) - 2)
    about = counted(-(-wanted // unit) * unit, "record")
    return f"; about {about} would decide, if the value stays near {value:.2g}"
