"""Rules that a careful reader holds against what an evaluation prints: written without the code's help."""

from __future__ import annotations

import re

from calibrant.numerals import short

FLOOR = re.compile(r"p ≤ ([\d.e-]+) with (\d[\d,]*) draws?")


def check_printed(found):
    """Hold the printed page against its own numbers."""
    printed = repr(found)
    check_rows(found, printed)
    check_floor(found)
    check_intervals(found, printed)
    if found.audit is not None:
        check_groups(found.audit)


def check_rows(found, printed):
    """Rows that say otherwise than the verdict are explained, by name; where none does nothing is said."""
    known = [row for row in found.rows if row.pvalue is not None]
    explained = "The verdict is by" in printed
    if found.verdict.pvalue is None or not known:
        assert not explained
        return
    rejected, alpha = found.verdict.pvalue <= found.verdict.alpha, found.verdict.alpha
    small = [row for row in known if row.pvalue <= alpha]
    assert explained == (rejected != bool(small)), printed
    if explained:
        least = min(known, key=lambda row: row.pvalue)
        paragraph = next(line for line in printed.splitlines() if "The verdict is by" in line)
        assert least.about.words in paragraph
        if small:
            assert paragraph.startswith(f"{len(small)} row")
            surprising = len(known) * least.pvalue <= alpha
            unknown = least.pvalue_is_bound and not surprising  # so few draws cannot tell
            assert ("no surprise" in paragraph) != (surprising or unknown)
            assert ("do not show whether" in paragraph) == unknown


def check_floor(found):
    """A p-value that no draw reached is a bound, with the draws; any other is an equality."""
    said = found.verdict
    if said.pvalue is None:
        return
    bound = FLOOR.search(said.sentence)
    assert (bound is not None) == said.pvalue_is_bound
    if bound:
        assert abs(float(bound[1]) - 1 / (int(bound[2]) + 1)) < 0.005
        assert not re.search(r"\(p = ", said.sentence)


def check_intervals(found, printed):
    """No value stands outside its interval without a word; certain predictions are counted and left out."""
    certain = int(((found.forecasts.values == 0) | (found.forecasts.values == 1)) @ found.forecasts.counts)
    for row in found.rows:
        if row.low is not None and row.value is not None and not row.low <= row.value <= row.high:
            slack = 1e-9 + 1e-2 * abs(row.value)  # of intervals taken on merged predictions
            beyond = max(row.low - row.value, row.value - row.high)
            assert re.search("(above|below) its interval", row.note) or beyond <= slack, row
        if row.about.name in ("slope", "intercept") and certain and row.value is not None:
            assert row.low is None
            assert f"{certain:,} prediction" in row.note
            if row.inner is not None:
                assert row.inner.certain == certain
                assert row.inner.records == found.forecasts.n - certain
            if row.inner is not None and row.inner.low is not None:
                assert row.inner.low <= row.inner.value <= row.inner.high
                assert f"{short(row.inner.value)} ({row.inner.span}) without 0 and 1" in printed
        elif row.about.name in ("slope", "intercept"):
            assert "exactly 0 or 1" not in row.note


def check_groups(audit):
    """Differences are what they are called, inside their intervals, and the worst has the largest z."""
    columns = audit.sheet(1000)
    place = {name: k for k, name in enumerate(columns.columns)}
    for group, line in zip(audit.groups, columns.lines, strict=True):
        happened, predicted, difference = (
            float(re.match(r"[+-]?[\d.e-]+", line[place[name]].text)[0])
            for name in ("happened", "predicted", "difference")
        )
        assert abs(happened - predicted - difference) < 0.16, line
        low, high = group.limits
        assert low <= group.difference <= high
        assert (line[place["p-value"]].text.startswith("≤")) == (group.pvalue * (audit.draws + 1) < 1.5)
    wrong = [group for group in audit.significant() if group is not audit.everyone]
    if wrong:
        worst = max(wrong, key=lambda group: group.z)
        assert f"Worst by evidence (z): {worst.rule}" in audit.verdict
        assert audit.verdict.startswith(f"Predictions are wrong for {len(wrong)} of {audit.tested - 1} group")
