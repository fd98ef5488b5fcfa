"""Turn what a log holds into a confidence: log-likelihoods, tokens, or words of the answer."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.errors import InvalidInputError, sentence

NAN = math.nan
STATED = r"(?i)\bconfiden(?:ce|t)\b[^\d\n]{0,30}?(?<![\d.])(\d+(?:\.\d+)?|\.\d+)"
LETTER_PADDING = " \t\r\n().:*\"'▁Ġ"  # around a letter in a token; the last two mark spaces in vocabularies
ANSWER_LETTER = re.compile(r"(?i:answer)\W{0,5}\s*([A-Z])\b")

MEANINGS = {
    "choices": "softmax over the log-likelihoods of the choices",
    "choices by length": "softmax over the log-likelihoods of the choices, each divided by its length",
    "choices by mutual information": "softmax over conditional minus unconditional log-likelihoods",
    "continuation": "probability of the whole continuation",
    "letters": "probability of the answer's letter among the letters of all choices",
    "token": "probability of the answer's tokens",
    "text": "confidence that the answer states",
    "field": "a field of the log",
    "agreement": "share of the repeated answers that agree with this one",
}


def softmax(scores: Sequence[float]) -> list[float] | None:
    """Return probabilities; None where a score is missing or all are minus infinity.

    >>> softmax([0.0, -math.inf])
    [1.0, 0.0]
    """
    top = max(scores, default=-math.inf)
    if not math.isfinite(top) or any(math.isnan(score) for score in scores):
        return None
    powers = [math.exp(score - top) for score in scores]
    total = math.fsum(powers)
    return [power / total for power in powers]


def as_number(value: Any) -> float:
    """Return a logged number, which may be text; NaN for "None", "nan" and null.

    >>> as_number("-3.0"), as_number("-inf")
    (-3.0, -inf)
    """
    if value is None or (isinstance(value, str) and value.strip().lower() in ("none", "nan", "")):
        return NAN
    return float(value)


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the last match in a text: models reason first and answer at the end."""
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)


class StatedConfidence:
    """Find the confidence that an answer states, by a regular expression."""

    def __init__(self, pattern: str | None, scale: float | None) -> None:
        try:
            self._pattern = re.compile(STATED if pattern is None else pattern)
        except re.error as error:
            rule = "must be a regular expression"
            raise InvalidInputError(sentence("pattern", rule, f"got {pattern!r}: {error}")) from None
        self._scale = scale

    def find(self, text: str) -> str | None:
        """Return what the pattern captures in its last match, None without a match."""
        found = last_match(self._pattern, text)
        return None if found is None else found.group(1 if self._pattern.groups else 0)

    def read(self, text: str) -> float:
        """Return the confidence as a probability, NaN if there is none or it is beyond 100%.

        >>> [StatedConfidence(None, None).read(f"Confidence: {x}") for x in ("85%", "0.98", "8/10", "40")]
        [0.85, 0.98, 0.8, 0.4]
        """
        found = last_match(self._pattern, text)
        if found is None:
            return NAN
        group = 1 if self._pattern.groups else 0
        return probability_of(found.group(group) or "", text[found.end(group) :], self._scale)


def probability_of(number: str, following: str = "", scale: float | None = None) -> float:
    """Return a stated number as a probability: percent by its sign or size, fractions as written."""
    text = number.strip()
    percent = text.endswith("%") or re.match(r"\s*(%|percent)", following) is not None
    try:
        value = float(text.rstrip("% "))
    except ValueError:
        return NAN
    of = re.match(r"\s*(?:/|out of)\s*(\d+)", following)
    if percent:
        value /= 100
    elif of and int(of.group(1)) > 0:
        value /= int(of.group(1))
    elif scale is not None:
        value /= scale
    elif value > 1:
        value /= 100
    return value if 0 <= value <= 1 else NAN


def field_probability(value: Any, scale: float | None) -> float:
    """Return a field as a probability; NaN where it is missing, an error where it is not in [0, 1]."""
    if isinstance(value, bool | list | dict):
        raise ValueError(f"got {value!r}")
    if isinstance(value, str) and value.strip().endswith("%"):
        return probability_of(value)
    try:
        number = as_number(value) / (scale or 1)
    except ValueError:
        raise ValueError(f"got {value!r}") from None
    if not math.isnan(number) and not 0 <= number <= 1:
        raise ValueError(f"got {value!r}")
    return number


def answer_token(tokens: Sequence[Mapping[str, Any]], letters: str) -> int | None:
    """Return the position of the token that holds the letter of the answer, None if there is none.

    Tokens are searched, not the completion: where Inspect shuffles choices, it rewrites the completion to the
    original order and leaves the tokens as they were generated.
    """
    texts = [str(token["token"]).translate({ord("▁"): " ", ord("Ġ"): " "}) for token in tokens]
    found = last_match(ANSWER_LETTER, "".join(texts))
    if found is not None and found.group(1) in letters:
        end = 0
        for position, text in enumerate(texts):
            end += len(text)
            if found.start(1) < end:
                return position
    alone = [k for k, text in enumerate(texts) if text.strip(LETTER_PADDING) in tuple(letters)]
    return alone[-1] if alone else None


def letter_probabilities(token: Mapping[str, Any], letters: str) -> dict[str, float] | None:
    """Return the probability of each letter, spellings merged and renormalized; None without alternatives."""
    mass = dict.fromkeys(letters, 0.0)
    spelled = set()
    for one in [*(token.get("top_logprobs") or ()), token]:
        text, letter = str(one["token"]), str(one["token"]).strip(LETTER_PADDING)
        if letter in mass and text not in spelled:
            spelled.add(text)
            mass[letter] += math.exp(as_number(one["logprob"]))
    total = math.fsum(mass.values())
    if not token.get("top_logprobs") or not total > 0:
        return None
    return {letter: one / total for letter, one in mass.items()}
