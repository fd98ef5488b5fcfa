"""What the readers of all tools share: one answered question, the options, and what was noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from calibrant.errors import CalibrantError, Hint, InvalidInputError, reject_name, sentence
from calibrant.logs.confidence import MEANINGS, NAN, StatedConfidence, field_probability
from calibrant.logs.json_stream import unreadable_log

Kind = Literal["choices", "letters", "token", "text", "agreement"]
KINDS = ("choices", "letters", "token", "text", "agreement")
PARTIAL = ("error", "missing", "incorrect")
TOPICS = ("topic", "subject", "category", "domain")  # fields that name the topic of a question


@dataclass(slots=True)
class Answer:
    """One answer: how sure the model was, and whether it was right."""

    id: str | int
    epoch: int
    confidence: float
    correct: float
    probabilities: list[float] | None
    source: str  # how the confidence was read, a key of MEANINGS
    fields: Mapping[str, Any]  # of the question: what the data set says about it


@dataclass(frozen=True)
class Options:
    """How to read a log."""

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
        if self.confidence is not None and self.confidence not in KINDS:
            raise reject_name("confidence", str(self.confidence), list(KINDS))
        if self.partial not in PARTIAL:
            raise reject_name("partial", str(self.partial), list(PARTIAL))
        if self.scale is not None and not self.scale > 0:
            raise InvalidInputError(sentence("scale", "must be above 0", f"got {self.scale}"))
        if self.field is not None and self.confidence is not None:
            got = f"got confidence={self.confidence!r} and field={self.field!r}"
            raise InvalidInputError(sentence("confidence", "must have one source", got, "leave one out"))


@dataclass
class LogFile:
    """One file of samples. Subclasses know the tool; `notes` count what deserves a warning."""

    path: Path
    options: Options
    task: str = ""
    model: str | None = None
    version: str | None = None
    notes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.stated = StatedConfidence(self.options.pattern, self.options.scale)
        with self.checked("header"):
            self.read_header()

    def read_header(self) -> None:
        """Find the task, the model and the version."""

    def samples(self) -> Iterator[Answer]:
        """Yield the samples one by one."""
        raise NotImplementedError

    def logged_field(self, places: list[Mapping[str, Any]], where: str) -> float:
        """Return the confidence that a field holds; the first of `places` that has it counts."""
        name = str(self.options.field)
        for place in places:
            found, value = lookup(place, name)
            if found:
                try:
                    return field_probability(value, self.options.scale)
                except ValueError as error:
                    hint = Hint("{} reads 0 to 100", scale=100)
                    raise self.refused(
                        where, name, "must be a number from 0 to 1", str(error), hint
                    ) from None
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

    def refused(self, where: str, name: str, rule: str, got: str = "", hint: str = "") -> Exception:
        """Return the error for one field of one sample."""
        return unreadable_log(self.path, f"{where}, field {name!r}", rule, got, hint)


def lookup(place: Any, name: str) -> tuple[bool, Any]:
    """Find a field by its name or dotted path.

    >>> lookup({"scores": {"judge": {"value": 1}}}, "scores.judge.value")
    (True, 1)
    """
    if not isinstance(place, Mapping):
        return False, None
    if name in place:
        return True, place[name]
    head, dot, rest = name.partition(".")
    while dot:
        if head in place:
            found, value = lookup(place[head], rest)
            if found:
                return True, value
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return False, None


def normalized(text: str) -> str:
    """Return an answer without case, spaces and closing punctuation, to see whether answers agree."""
    return " ".join(text.casefold().split()).rstrip(".!? ")


def meaning(source: str) -> str:
    """Explain a source of confidence."""
    kind, _, name = source.partition(":")
    return f"field {name!r} of the log" if kind == "field" else MEANINGS[kind]
