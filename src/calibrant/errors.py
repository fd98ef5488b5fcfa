"""Every error that calibrant raises on purpose, and the one grammar of their messages.

``y_prob must lie in [0, 1]; got 1.7 in row 41 (3 rows). Hint: ...``: subject, rule, what was found and where,
remedy. An error has these parts as attributes, so that the command line can word it with options.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt


class Hint(str):
    """What to do, in Python; `words` and `options` say it again for the command line.

    >>> print(Hint("pass {} to leave such rows out", missing="drop"))
    pass missing="drop" to leave such rows out
    """

    words: str  # with "{}" in the place of each option
    options: tuple[tuple[str, Any], ...]

    def __new__(cls, words: str, *options: tuple[str, Any], **named: Any) -> Self:
        given = (*options, *named.items())
        made = super().__new__(cls, _filled(words, [f"{name}={_quoted(value)}" for name, value in given]))
        made.words, made.options = words, given
        return made

    def worded(self, option: Callable[[str, Any], str]) -> str:
        return _filled(self.words, [option(name, value) for name, value in self.options])


def _filled(words: str, options: list[str]) -> str:
    # as many "{}" as there are options: a label of the user's may hold others
    first, *others = words.split("{}", len(options))
    return first + "".join(option + text for option, text in zip(options, others, strict=True))


def _quoted(value: Any) -> str:
    if value is ...:  # for the reader to fill in
        return "..."
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


DROP_MISSING = Hint("pass {} to leave such rows out and have them counted", missing="drop")


class Place(NamedTuple):
    """The first bad row, counted from 0, how many rows are bad, and their file if there may be several."""

    row: int
    rows: int = 0
    file: str = ""

    def __str__(self) -> str:
        return self.with_line("")

    def with_line(self, line: str) -> str:
        count = f" ({self.rows:,} row{'s' if self.rows > 1 else ''})" if self.rows else ""
        if self.file:
            return f"in row {self.row} of {self.file!r}{line}{count}"
        return f"in row {self.row}{count}{line}"


def sentence(subject: str, rule: str, got: str = "", hint: str = "", place: Place | None = None) -> str:
    """Put one message together: ``subject rule; got. Hint: hint``; the place follows what was got."""
    found = got if place is None else f"{got} {place}".lstrip()
    text = _ended(f"{subject} {rule}; {found}" if found else f"{subject} {rule}")
    return f"{text} Hint: {_ended(hint)}" if hint else text


def _ended(text: str) -> str:
    """End a sentence with one period; what was found, such as a name, may have its own."""
    return text if text.endswith((".", "?")) else f"{text}."


class CalibrantError(ValueError):
    """Base of all errors raised by calibrant; a ValueError, so scikit-learn code can catch it.

    Attributes
    ----------
    subject, rule, got, hint
        The argument or column, the rule that it breaks, what was found, and what to do.
    row
        The first bad row, counted from 0; None where no row is to blame.
    option
        Name and value of the argument that the hint proposes, or None.
    """

    def __init__(
        self, subject: str = "", rule: str = "", got: str = "", hint: str = "", place: Place | None = None
    ) -> None:
        """Take the parts of a message, or a finished message alone."""
        self.message = sentence(subject, rule, got, hint, place) if rule else subject
        super().__init__(self.message)
        self.subject, self.rule = (subject, rule) if rule else ("", subject)
        self.got, self.hint, self.place = got, hint, place
        self.row = None if place is None else place.row
        self.option = hint.options[0] if isinstance(hint, Hint) else None

    def with_parts(self, **parts: Any) -> Self:
        """Return the same error with another subject, rule, got, hint or place."""
        names = ("subject", "rule", "got", "hint", "place")
        return type(self)(**{name: getattr(self, name) for name in names} | parts)


class InvalidInputError(CalibrantError):
    """An argument, column or row breaks a rule."""


class UnknownNameError(CalibrantError):
    """A measure, option or column of that name does not exist."""


class UnreadableFileError(CalibrantError):
    """A file is missing, empty, or not in a format that can be read."""


class UnwritableFileError(CalibrantError):
    """A file cannot be written: its folder, its rights, or what is there already."""


class TooFewRecordsError(CalibrantError):
    """The data cannot support the question that was asked of it."""


class TooFewClustersError(TooFewRecordsError):
    """The rows fall into too few clusters for a test or an interval."""


class MissingDependencyError(CalibrantError, ImportError):
    """An optional package is needed; the message gives the install command."""


class SwappedArgumentsWarning(UserWarning):
    """Outcomes are fractions and predictions only 0 and 1: were the two arguments swapped?"""


class LevelSetWarning(UserWarning):
    """The measure conditions on each distinct prediction, but hardly any prediction repeats."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, and show the user's own line: the nearest one outside this package."""
    import sys
    import warnings

    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "calibrant":
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, category, stacklevel=depth)


def reject_rows(
    subject: str, rule: str, values: npt.ArrayLike, bad: npt.NDArray[np.bool_], hint: str = ""
) -> None:
    """Raise InvalidInputError naming the first row where `bad` is true and how many there are."""
    count = int(np.count_nonzero(bad))
    if count:
        row = int(np.argmax(bad))
        got = f"got {np.asarray(values)[row]}"
        raise InvalidInputError(subject, rule, got, hint, Place(row, count))


def reject_name(subject: str, name: str, known: list[str]) -> UnknownNameError:
    """Build the error for a name that is not one of `known`, suggesting the closest.

    >>> reject_name("measure", "log", ["log-loss", "log-mcb"]).hint
    "did you mean 'log-loss'?"
    >>> reject_name("by", "a,b", ["a", "b", "ab"]).hint
    'these are 2 names; give one at a time, and repeat the option where it takes several'
    """
    import difflib

    typed, names = str(name), [str(one) for one in known]
    parts = [part.strip() for part in typed.split(",")]
    begun = [one for one in names if typed and one.startswith((f"{typed}-", f"{typed}_"))]
    close = begun or difflib.get_close_matches(typed, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else ""
    if len(parts) > 1 and all(part in names for part in parts):
        one = "give one at a time, and repeat the option where it takes several"
        hint = f"these are {len(parts)} names; {one}"
    return UnknownNameError(subject, f"must be one of {', '.join(names)}", f"got {name!r}", hint)
