"""The glossary of the site and of reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

WORDS: Mapping[str, str] = {
    "calibration": "Among records with prediction v, the event occurs with frequency v, for every v.",
    "level": "One distinct prediction, with all the records that share it.",
    "residual": "Outcome minus prediction.",
    "cumulative curve": (
        "The residuals added up from the lowest prediction to the highest. Nearly every measure is a "
        "function of it."
    ),
    "smooth calibration error": (
        "The largest mean of residual times weight over weight functions that lie in [-1, 1] and change no "
        "faster than the prediction. Within a factor of two of the lower distance to calibration."
    ),
    "distance to calibration": (
        "How far, on average, the predictions must move to be calibrated (dCE). The lower distance "
        "holds whatever features lie behind the predictions; the upper distance moves equal "
        "predictions alike."
    ),
    "dCE": "See distance to calibration.",
    "Kuiper error": (
        "The range of the cumulative curve: the largest amount by which outcomes and predictions "
        "differ over any interval of predictions. Also called ECCE-R and cutoff calibration error."
    ),
    "witness": (
        "A weight function that attains the smooth calibration error, so that anyone can check the value."
    ),
    "certificate": (
        "An interval that provably holds the exact value, or, online, a number that provably bounds "
        "the distance to calibration of the stream seen so far."
    ),
    "sketch": (
        "A mergeable summary of many rows: sums per narrow cell of predictions. Measures of it carry "
        "certificates."
    ),
    "null": (
        "What would be seen if the predictions were calibrated: outcomes drawn independently with the "
        "predicted probabilities. It is known completely, so tests can simulate it exactly."
    ),
    "truthful": (
        "A measure for which no forecaster gains, in expectation, by reporting other than what they believe."
    ),
    "multi-calibration": (
        "Calibration within every group of a collection of groups, overlapping ones included."
    ),
    "family-wise": (
        "Of p-values: adjusted so that a false alarm anywhere among the groups looked at has at most "
        "the stated probability."
    ),
    "e-process": (
        "Wealth from bets against calibration. If the predictions are right it exceeds 1 / alpha with "
        "probability at most alpha, ever; so a monitor may be looked at after every record."
    ),
    "monitor": "An anytime-valid test on a stream of predictions and outcomes.",
    "recalibration": "A map from predictions to better calibrated ones, fitted on records with outcomes.",
    "cross-fitting": (
        "Fit on all parts of the records but one, judge on that one, in turn. What was judged was "
        "never fitted to."
    ),
}

_EVERYWHERE = {"calibration", "level", "null", "recalibration"}  # too common to be linked each time
_LINKED = sorted((word for word in WORDS if word not in _EVERYWHERE), key=len, reverse=True)
_WORD = re.compile(rf"\b({'|'.join(map(re.escape, _LINKED))})\b", re.IGNORECASE)
_KEYS = {word.lower(): word for word in WORDS}


def anchor(word: str) -> str:
    """Return the name of a word's place on a page.

    >>> anchor("smooth calibration error")
    'word-smooth-calibration-error'
    """
    return "word-" + word.lower().replace(" ", "-")


def parts(text: str) -> list[tuple[str, str | None]]:
    """Return a text in pieces, each with the word of the glossary that it is, the first time it occurs.

    >>> parts("The witness attains it; a witness can be checked.")
    [('The ', None), ('witness', 'witness'), (' attains it; a witness can be checked.', None)]
    """
    collected: list[tuple[str, str | None]] = []
    seen, start = set(), 0
    for match in _WORD.finditer(text):
        word = _KEYS[match[0].lower()]
        if word in seen:
            continue
        seen.add(word)
        collected += [(text[start : match.start()], None), (match[0], word)]
        start = match.end()
    return [piece for piece in [*collected, (text[start:], None)] if piece[0]]


def used(texts: Iterable[str]) -> dict[str, str]:
    """Return the words of the glossary that occur in texts, with what they mean."""
    names = {word for text in texts for _, word in parts(text) if word is not None}
    return {word: meaning for word, meaning in WORDS.items() if word in names}
