"""How numbers are written for people; tests/test_formatting.py shows an example of each."""

from __future__ import annotations

import math
from collections.abc import Sequence


def without_noise(value: float) -> float:
    """Drop the noise of summation: ties in the last digit shown are then rounded alike everywhere."""
    return float(f"{value:.12g}")


def format_mean(value: float) -> str:
    """Write a mean prediction or outcome in four decimals, or in three digits where it is rare."""
    value = without_noise(value)
    return format_value(value) if 0 < abs(value) < 0.01 else f"{value:.4f}"


def format_value(value: float | None, digits: int = 3) -> str:
    """Write a value in a few significant digits, without an exponent unless it is huge."""
    if value is None or math.isnan(value):
        return "–"
    value = without_noise(value)
    if value == 0:
        return "0"
    if abs(value) < 1e-7:
        return "<0.0000001" if value > 0 else ">-0.0000001"
    if abs(value) >= 1e15:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def limits_text(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "any number"
    if math.isinf(high):
        return f"at least {format_value(low)}"
    return (
        f"at most {format_value(high)}" if math.isinf(low) else f"{format_value(low)} to {format_value(high)}"
    )


def format_near_limit(value: float, limit: float, digits: int = 3) -> str:
    """Write a value in as many digits as show on which side of the limit it is."""
    for many in range(digits, 16):
        text = format_value(value, many)
        if text[0] in "<>" or (float(text.replace(",", "")) > limit) == (value > limit):
            return text
    return repr(value)


def format_limit(limit: float) -> str:
    return f"{limit:.12g}"


def pvalue_text(pvalue: float | None, floor: bool = False) -> str:
    """Write a p-value as a decimal; `floor` says that no simulated value reached the observed one."""
    if pvalue is None or math.isnan(pvalue):
        return "–"
    if pvalue < 0.001:
        return "< 0.001"
    short = pvalue >= 0.1 or round(pvalue, 2) == pvalue
    text = f"{pvalue:.2f}" if short else f"{pvalue:.3f}"
    return f"≤ {text}" if floor else text


def format_pvalue(pvalue: float | None, bound: bool = False) -> str:
    """Write a p-value for a table: two digits, or a bound where it is small or no draw reached it."""
    if pvalue is None or math.isnan(pvalue):
        return ""
    if pvalue < 0.001:
        return "<0.001"
    if bound:
        return "<0.01" if 0.001 < pvalue < 0.01 else f"≤{pvalue:.2g}"
    small_or_near_level = round(pvalue, 3) < 0.01 or 0.045 <= pvalue < 0.055  # 0.048 is not 0.05
    return f"{pvalue:.3f}" if small_or_near_level else f"{pvalue:.2f}"


def at_floor(pvalue: float | None, draws: int) -> bool:
    """Return whether no draw reached the observed value, so that the p-value is this or less."""
    return pvalue is not None and draws > 0 and pvalue * (draws + 1) < 1.5


def p_equals(shown: str) -> str:
    """Put "p =", or "p" and the sign of a bound, before a p-value as written by the functions above."""
    return f"p {shown[0]} {shown[1:].lstrip()}" if shown[0] in "<≤" else f"p = {shown}"


def pvalue_phrase(pvalue: float | None, draws: int = 0, *, bound: bool | None = None) -> str:
    """Write a p-value for a sentence; `bound` is given where it is not one of `draws` but adjusted."""
    shown = pvalue_text(pvalue, at_floor(pvalue, draws) if bound is None else bound)
    return p_equals(shown) + (f" with {pluralize(draws, 'draw')}" if shown[0] == "≤" else "")


def percent(share: float) -> str:
    """Write a share as a percentage, with more digits where it is small."""
    share = without_noise(share)
    if 0 < share < 1e-6:
        return "<0.0001%"
    digits = 1 if share == 0 or share >= 0.01 else 2 if share >= 0.001 else 4
    return f"{100 * share:.{digits}f}%"


def format_points(share: float, width: float = 1.0) -> str:
    """Write a difference of shares in points, with its sign, as finely as an interval of `width` needs."""
    fine = 0 < width < 0.005
    digits = min(8, 1 - math.floor(math.log10(100 * width))) if fine else 1
    text = f"{100 * share:+.{digits}f}"
    return text if float(text) else text[1:]


def confidence_text(confidence: float) -> str:
    """Write a confidence as a percentage that is never rounded up to certainty."""
    texts = (f"{100 * confidence:.{digits}g}" for digits in range(6, 18))
    return next((text for text in texts if text != "100"), "100") + "%"


def percent_pair(first: float, second: float) -> tuple[str, str]:
    """Write two shares as percentages with equally many decimals, as few as show their difference."""
    # below 1% two digits, one next to a far larger share; only 1 itself is written as 100%
    gap, most = 100 * abs(first - second), max(first, second)
    rare = 100 * min((share for share in (first, second) if share > 0), default=1.0)
    digits = 0 if gap == 0 or gap >= 5 else max(1, -math.floor(math.log10(gap)))
    if rare < 1:
        far = gap >= 5
        digits = min(max(digits, (0 if far else 1) - math.floor(math.log10(rare))), 2 if far else 6)
    elif digits > 4:  # beyond that no number of records tells them apart
        digits = 1
    while most < 1 and digits < 6 and f"{100 * most:.{digits}f}".startswith("100"):
        digits += 1
    return f"{100 * first:.{digits}f}%", f"{100 * second:.{digits}f}%"


def predicted_observed(predicted: float, observed: float) -> str:
    return "{} predicted, {} observed".format(*percent_pair(predicted, observed))


def percents(shares: Sequence[float]) -> list[str]:
    """Write the shares of a table with equally many decimals: one, or more where a share is small."""
    rare = min((share for share in shares if share > 0), default=1.0)
    digits = 1 if rare >= 0.01 else min(4, 1 - math.floor(math.log10(100 * rare)))
    return [f"{100 * without_noise(share):.{digits}f}%" for share in shares]


def whole_percent(share: float) -> str:
    return f"{100 * share:.12g}%"


def points_text(share: float) -> str:
    """Write an error in percentage points, with two digits."""
    size = 100 * share
    digits = 0 if size >= 10 or size == 0 else 1 - math.floor(math.log10(size))
    return f"{size:.{digits}f} points"


def rounded_ends(start: float, stop: float) -> tuple[float, float]:
    """Round the ends of an interval outward, to a twentieth of its width at the finest."""
    if start == stop:
        return start, stop
    unit = 10 ** max(2, math.ceil(-math.log10(stop - start)) + 1)
    low, high = math.floor(start * unit + 1e-9) / unit, math.ceil(stop * unit - 1e-9) / unit
    return max(0.0, low), min(1.0, high)


def between_text(start: float, stop: float) -> str:
    if start == stop:
        return f"at {whole_percent(start)}"
    return f"between {whole_percent(start)} and {whole_percent(stop)}"


def pluralize(count: int, noun: str, several: str = "") -> str:
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def round_up(count: int) -> int:
    """Round a number of records up to two digits."""
    unit: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // unit) * unit


def dropped_note(dropped: int) -> str:
    return f" ({dropped:,} with missing values dropped)" if dropped else ""
