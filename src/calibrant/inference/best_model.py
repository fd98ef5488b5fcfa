"""Which of several compared models is best, in a sentence: one that leads, or none that is shown to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.measures.registry.lookup import find_measure, measure_in_words
from calibrant.numerals import counted, pvalue_phrase, short

if TYPE_CHECKING:
    from calibrant.inference.comparison import Comparison, Difference

NAMED = 4  # models named in one sentence


def best_sentences(given: Comparison) -> list[str]:
    """Say which of three or more models is best, or that none is shown to be; nothing for two."""
    if len(given.values) < 3:
        return []
    best, real = given.best, set(given.real)
    own = [pair for pair in given.differences if best in (pair.first, pair.second)]
    open_pairs = [pair for pair in own if pair not in real]
    if not open_pairs:
        largest = max(own, key=lambda pair: pair.adjusted)
        each = f"better than each of the {len(own)} others (largest {adjusted_phrase(given, largest)})"
        return [f"{_leads(given, best)}: {each}."]
    names = [pair.second if pair.first == best else pair.first for pair in open_pairs]
    others = " and ".join(filter(None, (", ".join(names[:NAMED]), _further(len(names) - NAMED))))
    least = min(open_pairs, key=lambda pair: pair.adjusted)
    smallest = "" if len(open_pairs) == 1 else "least "
    why = f"chance explains its lead over {others} ({smallest}{adjusted_phrase(given, least)})"
    return [f"No model is shown to be best. {_leads(given, best)}, but {why}."]


def adjusted_phrase(given: Comparison, pair: Difference) -> str:
    """Write the adjusted p-value of a pair; a single pair needs no adjustment."""
    phrase = pvalue_phrase(pair.adjusted, given.draws, bound=pair.pvalue_is_bound)
    return phrase if len(given.differences) == 1 else f"Holm-adjusted {phrase}"


def _further(count: int) -> str:
    return counted(count, "other") if count > 0 else ""


def _leads(given: Comparison, best: str) -> str:
    """Name the model with the smallest error, and the error."""
    row, value = find_measure(given.measure), short(given.values[best])
    words, models = measure_in_words(row.name), f"{len(given.values)} models"
    if row.complete:
        return f"{best} is the best calibrated of {models} by {words} ({value})"
    return f"{best} has the best {words} of {models} ({value})"
