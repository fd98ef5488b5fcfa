"""Rules that a careful reader holds against what an evaluation prints: written without the code's help."""

from __future__ import annotations

import re

from calibrant.formatting import format_value, limits_text


def check_printed(found):
    """Compare what is printed with the numbers behind it."""
    printed = repr(found)
    check_rows(found, printed)
    check_intervals(found, printed)
    assert max(map(len, printed.splitlines())) <= 100
    assert not re.search(r"\d[eE][-+]?\d", printed.partition("Next:")[0].partition("Omnibus")[0]), printed


def check_rows(found, printed):
    """A table that seems to contradict the verdict is explained; otherwise nothing is said."""
    printed_rows = [row for row in found.rows if row.about.name in ("ece", "smooth", "slope")]
    tested = [(row.inner or row).pvalue for row in printed_rows]  # without predictions of 0 and 1, as printed
    known = [pvalue for pvalue in tested if pvalue is not None]
    explained = "omnibus test, chosen in advance" in printed or "No single row is unusual" in printed
    if found.verdict.pvalue is None or not known or found.verdict.status == "groups":
        assert not explained
        return
    rejected = found.verdict.pvalue <= found.verdict.alpha
    assert explained == (rejected != any(p <= found.verdict.alpha for p in known)), printed


def check_intervals(found, printed):
    """No value lies outside its interval without a note; certain predictions are counted and left out."""
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
                if row.about.name == "slope":
                    assert f"{limits_text(row.inner.low, row.inner.high)} *" in printed
                    assert f"it is {format_value(row.inner.value)}" in " ".join(printed.split())
        elif row.about.name in ("slope", "intercept"):
            assert "exactly 0 or 1" not in row.note
