"""How numbers are written for people."""

from __future__ import annotations

import math


def without_noise(value: float) -> float:
    """Return a value without the noise of summation, so that equal figures are rounded alike everywhere.

    The mean of 20,000 outcomes is often a tie in the fourth decimal; sums taken in another order fall on
    either side of it.

    >>> [f"{x:.4f}" for x in (0.4996500000000053, 0.4996499999999947)]
    ['0.4997', '0.4996']
    >>> [f"{without_noise(x):.4f}" for x in (0.4996500000000053, 0.4996499999999947)]
    ['0.4996', '0.4996']
    """
    return float(f"{value:.12g}")


def format_mean(value: float) -> str:
    """Write a mean prediction or outcome, in four decimals, or in three digits where it is rare.

    >>> format_mean(0.16995000000000001), format_mean(0.5), format_mean(0.000165)
    ('0.1699', '0.5000', '0.000165')
    """
    value = without_noise(value)
    return format_value(value) if 0 < abs(value) < 0.01 else f"{value:.4f}"


def format_value(value: float | None, digits: int = 3) -> str:
    """Write a value in a few significant digits, without an exponent unless it is tiny.

    >>> [format_value(x) for x in (0.0123456, 1.5, -0.00000123, 0.0, None)]
    ['0.0123', '1.50', '-0.00000123', '0', '–']
    >>> format_value(25_300.4), format_value(6.98e-12)
    ('25,300', '6.98e-12')
    """
    if value is None or math.isnan(value):
        return "–"
    value = without_noise(value)
    if value == 0:
        return "0"
    if abs(value) >= 1e9 or abs(value) < 1e-7:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def limits_text(low: float, high: float) -> str:
    """Write an interval; one without an end on one side by the end that it has.

    >>> limits_text(0.1, 0.25), limits_text(2.5, math.inf), limits_text(-math.inf, 0.3)
    ('0.100 to 0.250', 'at least 2.50', 'at most 0.300')
    """
    if math.isinf(low) and math.isinf(high):
        return "any number"
    if math.isinf(high):
        return f"at least {format_value(low)}"
    return (
        f"at most {format_value(high)}" if math.isinf(low) else f"{format_value(low)} to {format_value(high)}"
    )


def format_near_limit(value: float, limit: float, digits: int = 3) -> str:
    """Write a value in as many digits as show on which side of the limit it is.

    >>> format_near_limit(0.0500004, 0.05), format_near_limit(0.04, 0.05), format_near_limit(0.05, 0.05)
    ('0.0500004', '0.0400', '0.0500')
    """
    for many in range(digits, 16):
        text = format_value(value, many)
        if (float(text) > limit) == (value > limit):
            return text
    return repr(value)


def format_limit(limit: float) -> str:
    """Write a limit as it was given.

    >>> format_limit(0.0200001), format_limit(3.0)
    ('0.0200001', '3')
    """
    return f"{limit:.12g}"


def pvalue_text(pvalue: float | None, log_pvalue: float | None = None, floor: bool = False) -> str:
    """Write a p-value; one too small for a float is written from its logarithm.

    `floor` says that no simulated value reached the observed one: the p-value is this or less.

    >>> [pvalue_text(p) for p in (0.0321, 0.6, 2e-13, None)]
    ['0.032', '0.60', '2e-13', '–']
    >>> pvalue_text(0.0, -800.0)
    '4e-348'
    >>> pvalue_text(0.0, -1252.02 * math.log(10))
    '1e-1252'
    >>> pvalue_text(0.005, floor=True)
    '≤ 0.005'
    """
    if floor:
        return f"≤ {pvalue_text(pvalue, log_pvalue)}"
    if pvalue is None or math.isnan(pvalue):
        return "–"
    if pvalue >= 0.1:
        return f"{pvalue:.2f}"
    if pvalue >= 0.001:
        return f"{pvalue:.3f}" if pvalue < 0.01 or round(pvalue, 2) != pvalue else f"{pvalue:.2f}"
    if pvalue > 1e-300:
        return f"{pvalue:.0e}"
    if log_pvalue is None or not math.isfinite(log_pvalue):
        return "below 1e-300"
    exponent = math.floor(log_pvalue / math.log(10))
    digit = round(math.exp(log_pvalue - exponent * math.log(10)))
    return f"{digit}e{exponent}" if digit < 10 else f"1e{exponent + 1}"


def format_pvalue(pvalue: float | None, bound: bool = False) -> str:
    """Write a p-value for a table: two digits, and a bound where it is small or was not reached by any draw.

    >>> [format_pvalue(p) for p in (0.61, 0.0321, 0.0042, 2e-13, None)]
    ['0.61', '0.03', '0.004', '<0.001', '']
    >>> format_pvalue(0.005, bound=True), format_pvalue(0.001, bound=True), format_pvalue(0.05, bound=True)
    ('<0.01', '<0.01', '≤0.05')
    """
    if pvalue is None or math.isnan(pvalue):
        return ""
    if bound:
        return "<0.001" if pvalue < 0.001 else "<0.01" if pvalue < 0.01 else f"≤{pvalue:.2g}"
    return "<0.001" if pvalue < 0.001 else f"{pvalue:.3f}" if pvalue < 0.01 else f"{pvalue:.2f}"


def at_floor(pvalue: float | None, draws: int) -> bool:
    """Return whether no draw reached the observed value, so that the p-value is this or less.

    >>> at_floor(0.005, 199), at_floor(0.01, 199), at_floor(0.005, 0)
    (True, False, False)
    """
    return pvalue is not None and draws > 0 and pvalue * (draws + 1) < 1.5


def pvalue_phrase(
    pvalue: float | None, draws: int = 0, *, log_pvalue: float | None = None, bound: bool | None = None
) -> str:
    """Write a p-value for a sentence; where no draw reached it, as a bound with the number of draws.

    `bound` is given where the p-value is not one of `draws` itself, such as one that was adjusted.

    >>> pvalue_phrase(0.0321), pvalue_phrase(0.005, 199), pvalue_phrase(0.03, 999, bound=True)
    ('p = 0.032', 'p ≤ 0.005 with 199 draws', 'p ≤ 0.03 with 999 draws')
    """
    shown = pvalue_text(pvalue, log_pvalue)
    if at_floor(pvalue, draws) if bound is None else bound:
        return f"p ≤ {shown} with {pluralize(draws, 'draw')}"
    return f"p {shown}" if shown.startswith("below") else f"p = {shown}"


def percent(share: float) -> str:
    """Write a share as a percentage, with more digits where it is small.

    >>> [percent(x) for x in (0.5, 0.1234, 0.00123, 0.0, 1.2e-7)]
    ['50.0%', '12.3%', '0.12%', '0.0%', '1.2e-05%']
    """
    share = without_noise(share)
    if 0 < share < 1e-5:
        return f"{100 * share:.1e}%"
    digits = 1 if share == 0 or share >= 0.01 else 2 if share >= 0.001 else 4
    return f"{100 * share:.{digits}f}%"


def format_points(share: float, width: float = 1.0) -> str:
    """Write a difference of two shares in points, with its sign, as finely as an interval so wide asks for.

    >>> format_points(0.0312), format_points(-0.00004), format_points(-0.00004, 0.0001)
    ('+3.1', '0.0', '-0.004')
    """
    fine = 0 < width < 0.005
    digits = min(8, 1 - math.floor(math.log10(100 * width))) if fine else 1
    text = f"{100 * share:+.{digits}f}"
    return text if float(text) else text[1:]


def confidence_text(confidence: float) -> str:
    """Write a confidence as a percentage that is never rounded up to certainty.

    >>> [confidence_text(x) for x in (0.95, 0.975, 0.999, 1 - 0.05 / 3, 1 - 1e-7)]
    ['95%', '97.5%', '99.9%', '98.3333%', '99.99999%']
    """
    texts = (f"{100 * confidence:.{digits}g}" for digits in range(6, 18))
    return next((text for text in texts if text != "100"), "100") + "%"


def predicted_observed_exactly(predicted: float, observed: float) -> str:
    """Format a mean prediction next to a mean outcome, with enough digits to tell them apart.

    >>> predicted_observed_exactly(0.498, 0.6)
    '49.8% predicted, 60.0% observed'
    >>> predicted_observed_exactly(0.50004, 0.49997)
    '50.004% predicted, 49.997% observed'
    >>> predicted_observed_exactly(0.4084660, 0.4084661)
    '40.8% predicted, 40.8% observed'
    """
    texts = percent(predicted), percent(observed)
    most = 4 if min(predicted, observed) >= 0.01 else 7  # beyond that no number of records tells them apart
    for digits in range(2, most + 1):
        if texts[0] != texts[1]:
            break
        texts = f"{100 * predicted:.{digits}f}%", f"{100 * observed:.{digits}f}%"
    else:
        texts = percent(predicted), percent(observed)
    return f"{texts[0]} predicted, {texts[1]} observed"


def percent_pair(first: float, second: float) -> tuple[str, str]:
    """Write two shares as percentages, with digits that show their difference.

    >>> percent_pair(0.4412, 0.3821), percent_pair(0.177, 0.2049), percent_pair(0.17553, 0.16995)
    (('44%', '38%'), ('17.7%', '20.5%'), ('17.6%', '17.0%'))
    >>> percent_pair(0.00012, 0.00018), percent_pair(0.5, 0.5)
    (('0.012%', '0.018%'), ('50%', '50%'))
    >>> percent_pair(0.999, 0.525), percent_pair(1e-320, 0.23)
    (('99.9%', '52%'), ('0.00%', '23%'))
    """
    gap = 100 * abs(first - second)
    small = [100 * max(min(share, 1 - share), 0.0) for share in (first, second)]
    if gap >= 5:
        digits = [min(2, -math.floor(math.log10(size))) if 0 < size < 1 else 0 for size in small]
    else:
        same = 0 if gap == 0 else min(6, -math.floor(math.log10(gap / 5)))
        if 0 < min(small) < 1:
            same = max(same, min(6, 1 - math.floor(math.log10(min(small)))))
        digits = [same, same]
    return f"{100 * first:.{digits[0]}f}%", f"{100 * second:.{digits[1]}f}%"


def predicted_observed(predicted: float, observed: float) -> str:
    """Write a mean prediction next to a mean outcome.

    >>> predicted_observed(0.498, 0.6)
    '50% predicted, 60% observed'
    """
    texts = percent_pair(predicted, observed)
    return f"{texts[0]} predicted, {texts[1]} observed"


def whole_percent(share: float) -> str:
    """Write a round threshold as a percentage.

    >>> whole_percent(0.3), whole_percent(0.005), whole_percent(0.0001)
    ('30%', '0.5%', '0.01%')
    """
    return f"{100 * share:.12g}%"


def points_text(share: float) -> str:
    """Write an error in percentage points, with two digits.

    >>> points_text(0.0131), points_text(0.25), points_text(0.000123)
    ('1.3 points', '25 points', '0.012 points')
    """
    size = 100 * share
    digits = 0 if size >= 10 or size == 0 else 1 - math.floor(math.log10(size))
    return f"{size:.{digits}f} points"


def rounded_ends(start: float, stop: float) -> tuple[float, float]:
    """Round the ends of an interval outward, to a twentieth of its width at the finest.

    >>> rounded_ends(0.2134, 0.4071), rounded_ends(0.0012, 0.0037), rounded_ends(0.5, 0.5)
    ((0.21, 0.41), (0.0012, 0.0037), (0.5, 0.5))
    """
    if start == stop:
        return start, stop
    digits = max(2, math.ceil(-math.log10(stop - start)) + 1)
    unit = 10**digits
    low, high = math.floor(start * unit + 1e-9) / unit, math.ceil(stop * unit - 1e-9) / unit
    return max(0.0, low), min(1.0, high)


def between_text(start: float, stop: float) -> str:
    """Name an interval of predictions.

    >>> between_text(0.2, 0.45), between_text(0.5, 0.5)
    ('between 20% and 45%', 'at 50%')
    """
    if start == stop:
        return f"at {whole_percent(start)}"
    return f"between {whole_percent(start)} and {whole_percent(stop)}"


def pluralize(count: int, noun: str, several: str = "") -> str:
    """Write a count with its noun, in the plural unless there is one.

    >>> pluralize(1, "row"), pluralize(1234, "row"), pluralize(0, "class", "classes")
    ('1 row', '1,234 rows', '0 classes')
    """
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def dropped_note(dropped: int) -> str:
    """Say how many rows with a gap were dropped, if any."""
    return f" ({dropped:,} with missing values dropped)" if dropped else ""
