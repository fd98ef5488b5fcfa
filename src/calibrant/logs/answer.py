"""One answer of a log, the options for reading it, and how a confidence is found in it."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from calibrant.errors import CalibrantError, Hint, InvalidInputError, reject_name
from calibrant.logs.json_stream import unreadable_log

NAN = math.nan
STATED_CONFIDENCE = r"(?i)\bconfiden(?:ce|t)\b[^\d\n]{0,30}?(?<![\d.])(\d+(?:\.\d+)?|\.\d+)"
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
    """Return probabilities; None where a score is missing or all are minus infinity."""
    top = max(scores, default=-math.inf)
    if not math.isfinite(top) or any(math.isnan(score) for score in scores):
        return None
    powers = [math.exp(score - top) for score in scores]
    total = math.fsum(powers)
    return [power / total for power in powers]


def as_number(value: Any) -> float:
    """Return a logged number, which may be text; NaN for "None", "nan" and null."""
    if value is None or (isinstance(value, str) and value.strip().lower() in ("none", "nan", "")):
        return NAN
    return float(value)


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the last match in a text: models reason first and answer at the end."""
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)


def probability_of(number: str, following: str = "", scale: float | None = None) -> float:
    """Return a stated number as a probability: percent by its sign or size, fractions as written."""
    text = number.strip()
    percent = text.endswith("%") or re.match(r"\s*(%|percent)", following) is not None
    try:
        value = float(text.rstrip("% "))
    except ValueError:
        return NAN
    of = re.match(r"\s*(?:/|out of)\s*(\d+)", following)
    whole = int(of.group(1)) if of else 0
    value /= 100 if percent else whole or scale or (100 if value > 1 else 1)
    return value if 0 <= value <= 1 else NAN


def field_number(value: Any, scale: float | None) -> float:
    """Return the number in a field: NaN where it is missing, infinity where it is not a number."""
    if isinstance(value, str) and value.strip().endswith("%"):
        return probability_of(value)
    with suppress(ValueError):
        return math.inf if isinstance(value, bool | list | dict) else as_number(value) / (scale or 1)
    return math.inf


def answer_token(tokens: Sequence[Mapping[str, Any]], letters: str) -> int | None:
    """Return the position of the token that holds the letter of the answer."""
    texts = [str(token["token"]).translate({ord("▁"): " ", ord("Ġ"): " "}) for token in tokens]
    # not in the completion, which Inspect rewrites where it shuffled choices, unlike the tokens
    found = last_match(ANSWER_LETTER, "".join(texts))
    if found is not None and found.group(1) in letters:
        return bisect_right(list(accumulate(map(len, texts))), found.start(1))
    letter_tokens = [k for k, text in enumerate(texts) if text.strip(LETTER_PADDING) in tuple(letters)]
    return letter_tokens[-1] if letter_tokens else None


def letter_probabilities(token: Mapping[str, Any], letters: str) -> dict[str, float] | None:
    mass = dict.fromkeys(letters, 0.0)
    counted = set()
    for one in [*(token.get("top_logprobs") or ()), token]:
        text, letter = str(one["token"]), str(one["token"]).strip(LETTER_PADDING)
        if letter in mass and text not in counted:
            counted.add(text)
            mass[letter] += math.exp(as_number(one["logprob"]))
    total = math.fsum(mass.values())
    if not token.get("top_logprobs") or not total > 0:
        return None
    return {letter: one / total for letter, one in mass.items()}


CONFIDENCE_KINDS = ("choices", "letters", "token", "text", "agreement")
PARTIAL_CHOICES = ("error", "missing", "incorrect")
TOPIC_FIELDS = ("topic", "subject", "category", "domain")  # fields that name the topic of a question


@dataclass(slots=True)
class Answer:
    id: str | int
    epoch: int
    confidence: float
    correct: float
    probabilities: list[float] | None  # of the choices
    source: str  # how the confidence was read, a key of MEANINGS
    fields: Mapping[str, Any]  # of the question: what the data set says about it
    label: int | None = None  # the number of the right choice, where one is known


@dataclass(frozen=True)
class Options:
    confidence: str | None = None
    score: str | None = None
    filter: str | int | None = None
    field: str | None = None
    pattern: str | None = None
    scale: float | None = None
    threshold: float | None = None
    partial: str = "error"
    topic: str | None = None
    cluster: str | None = None

    def __post_init__(self) -> None:
        if self.confidence is not None and self.confidence not in CONFIDENCE_KINDS:
            raise reject_name("confidence", str(self.confidence), list(CONFIDENCE_KINDS))
        if self.partial not in PARTIAL_CHOICES:
            raise reject_name("partial", str(self.partial), list(PARTIAL_CHOICES))
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            rule = "must be a regular expression"
            raise InvalidInputError("pattern", rule, f"got {self.pattern!r}: {error}") from None
        if self.scale is not None and not self.scale > 0:
            raise InvalidInputError("scale", "must be above 0", f"got {self.scale}")
        if self.field is not None and self.confidence is not None:
            got = f"got confidence={self.confidence!r} and field={self.field!r}"
            raise InvalidInputError("confidence", "must have one source", got, "leave one out")

    def stated_number(self, text: str) -> tuple[str, str] | None:
        """Return the last number that a text states where the pattern expects it, and the text after it."""
        pattern = re.compile(STATED_CONFIDENCE if self.pattern is None else self.pattern)
        found, group = last_match(pattern, text), min(1, pattern.groups)
        return None if found is None else (found.group(group) or "", text[found.end(group) :])

    def stated_confidence(self, text: str) -> float:
        """Return the confidence as a probability, NaN if there is none or it is beyond 100%.

        >>> [Options().stated_confidence(f"Confidence: {x}") for x in ("85%", "0.98", "8/10", "40")]
        [0.85, 0.98, 0.8, 0.4]
        """
        found = self.stated_number(text)
        return NAN if found is None else probability_of(*found, self.scale)


@dataclass
class LogFile(ABC):
    """One file of samples; `notes` count what deserves a warning."""

    path: Path
    options: Options
    task: str = ""
    model: str | None = None
    version: str | None = None
    notes: Counter[str] = field(default_factory=Counter)
    has_field: bool = False  # that options.field names
    near_field: dict[str, None] = field(default_factory=dict)  # fields of the first sample without it

    def __post_init__(self) -> None:
        with self.checked("header"):
            self.read_header()

    @abstractmethod
    def read_header(self) -> None: ...

    @abstractmethod
    def samples(self) -> Iterator[Answer]: ...

    def logged_field(self, places: list[Mapping[str, Any]], where: str) -> float:
        """Return the confidence that a field holds; the first of `places` that has it counts."""
        name = str(self.options.field)
        for place in places:
            found, value = lookup(place, name)
            if found:
                self.has_field = True
                number = field_number(value, self.options.scale)
                if not (math.isnan(number) or 0 <= number <= 1):
                    rule, hint = "must be a number from 0 to 1", Hint("{} reads 0 to 100", scale=100)
                    raise self.refused(where, name, rule, f"got {value!r}", hint)
                return number
        own = (key for place in [*places[1:], places[0]] if isinstance(place, Mapping) for key in place)
        self.near_field = self.near_field or dict.fromkeys(map(str, own))
        return NAN

    @contextmanager
    def checked(self, where: str) -> Iterator[None]:
        """Refuse a sample whose structure is not the tool's, whatever breaks while it is read."""
        try:
            yield
        except CalibrantError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            got = f"got {type(error).__name__}: {error}"
            raise unreadable_log(self.path, where, "must have the structure of a log", got) from None

    def zero_or_one(self, number: float, where: str, name: str, rule: str, got: str) -> float:
        """Return whether a grade is right, NaN where it is missing."""
        if self.options.threshold is not None and math.isfinite(number):
            return float(number >= self.options.threshold)
        if math.isnan(number) or number in (0.0, 1.0):
            return number
        hint = Hint("{} counts grades from 0.5 on as right", threshold=0.5)
        raise self.refused(where, name, rule, got, hint)

    def refused(self, where: str, name: str, rule: str, got: str = "", hint: str = "") -> Exception:
        return unreadable_log(self.path, f"{where}, field {name!r}", rule, got, hint)


def lookup(place: Any, name: str) -> tuple[bool, Any]:
    """Find a field by its name or dotted path."""
    if not isinstance(place, Mapping):
        return False, None
    if name in place:
        return True, place[name]
    parts = name.split(".")
    for k in range(1, len(parts)):
        found, value = lookup(place.get(".".join(parts[:k])), ".".join(parts[k:]))
        if found:
            return True, value
    return False, None


def normalized(text: str) -> str:
    """Return an answer without case, spaces and closing punctuation, to see whether answers agree."""
    return " ".join(text.casefold().split()).rstrip(".!? ")


def meaning(source: str) -> str:
    kind, _, name = source.partition(":")
    return f"field {name!r} of the log" if kind == "field" else MEANINGS[kind]
