"""Why a row of the table may seem to contradict the verdict: each row is a test, and one test decides."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.evaluation.rows import Row
from calibrant.evaluation.verdict import Verdict
from calibrant.numerals import counted, pvalue_phrase, pvalue_text

NAMED = 3  # measures named in the sentence


def why_rows_differ(verdict: Verdict, rows: Sequence[Row]) -> str:
    """Explain rows that are unusual by themselves where the verdict is not, or none where it is."""
    tested = [row for row in rows if row.pvalue is not None]
    if verdict.pvalue is None or not tested:
        return ""
    small = sorted((row for row in tested if _small(row, verdict.alpha)), key=_pvalue)
    if verdict.pvalue <= verdict.alpha:
        return "" if small else _none_alone(tested, verdict)
    return _some_alone(small, len(tested), verdict) if small else ""


def _pvalue(row: Row) -> float:
    assert row.pvalue is not None
    return row.pvalue


def _small(row: Row, alpha: float) -> bool:
    return _pvalue(row) <= alpha


def _none_alone(tested: Sequence[Row], verdict: Verdict) -> str:
    least = min(tested, key=_pvalue)
    return (
        f"No row of the table is unusual by itself (least p-value {least.written_pvalue}, "
        f"{least.about.words}). The verdict is by the omnibus test, which looks for stretches of wrong "
        f"predictions and for a wrong level or slope at once (p-value "
        f"{pvalue_text(verdict.pvalue, floor=verdict.pvalue_is_bound)})."
    )


def _some_alone(small: Sequence[Row], tests: int, verdict: Verdict) -> str:
    named = ", ".join(f"{row.about.words} {row.written_pvalue}" for row in small[:NAMED])
    more = f" and {len(small) - NAMED} more" if len(small) > NAMED else ""
    together = min(1.0, tests * _pvalue(small[0]))
    counting_all = f"{pvalue_text(together, floor=small[0].pvalue_is_bound)} if all are counted"
    has = counted(len(small), "row of the table has", "rows of the table have")
    decides = (
        f"The verdict is by one test alone, the omnibus test, chosen before looking at the data "
        f"({pvalue_phrase(verdict.pvalue)})."
    )
    if together <= verdict.alpha:
        return (
            f"{has} a p-value of {verdict.alpha:g} or less ({named}{more}), which {counted(tests, 'test')} "
            f"do not explain ({counting_all}): look there as well. {decides}"
        )
    if small[0].pvalue_is_bound:  # no draw reached it: how small it is was not seen
        surprise = f"so few draws do not show whether {counted(tests, 'test')} explain it ({counting_all})"
    else:
        surprise = f"among {counted(tests, 'test')} one so small is no surprise ({counting_all})"
    return (
        f"{has} a p-value of {verdict.alpha:g} or less ({named}{more}). Each row is a test of its own, and "
        f"{surprise}. {decides}"
    )
