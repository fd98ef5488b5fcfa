"""Every error that calibrant raises on purpose, and the one grammar of their messages.

A message names the argument or column, states the rule, shows what was found and where, and hints at
the remedy: ``y_prob must lie in [0, 1]; got 1.7 in row 41 (3 rows). Hint: ...``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class CalibrantError(ValueError):
    """Base of all errors raised by calibrant; a ValueError, so scikit-learn code can catch it."""


class InvalidInputError(CalibrantError):
    """An argument, column or row breaks a rule."""


class UnknownNameError(CalibrantError):
    """A measure, option or column of that name does not exist."""


class UnreadableFileError(CalibrantError):
    """A file is missing, empty, or not in a format that can be read."""


class LevelSetWarning(UserWarning):
    """The measure conditions on each distinct prediction, but hardly any prediction repeats."""


class UnwritableFileError(CalibrantError):
    """A file cannot be written: its folder, its rights, or what is there already."""


class TooFewRecordsError(CalibrantError):
    """The data cannot support the question that was asked of it."""


class TooFewClustersError(TooFewRecordsError):
    """The rows fall into too few clusters for a test or an interval."""


class SwappedArgumentsWarning(UserWarning):
    """Outcomes are fractions and predictions only 0 and 1: were the two arguments swapped?"""


class MissingDependencyError(CalibrantError, ImportError):
    """An optional package is needed; the message gives the install command."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, and show the user's own line: the nearest one outside this package."""
    import sys
    import warnings

    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "calibrant":
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, category, stacklevel=depth)


def sentence(subject: str, rule: str, got: str = "", hint: str = "") -> str:
    """Put one error message together: ``subject rule; got. Hint: hint``."""
    text = f"{subject} {rule}"
    text += f"; {got}." if got else "."
    return f"{text} Hint: {hint}." if hint else text


def reject_rows(
    subject: str, rule: str, values: npt.ArrayLike, bad: npt.NDArray[np.bool_], hint: str = ""
) -> None:
    """Raise InvalidInputError naming the first row where `bad` is true and how many there are."""
    count = int(np.count_nonzero(bad))
    if count == 0:
        return
    row = int(np.argmax(bad))
    rows = f"({count:,} row{'s' if count > 1 else ''})"
    raise InvalidInputError(
        sentence(subject, rule, f"got {np.asarray(values)[row]} in row {row} {rows}", hint)
    )


def reject_name(subject: str, name: str, known: list[str]) -> UnknownNameError:
    """Build the error for a name that is not one of `known`, suggesting the closest."""
    hint = _meant(str(name), [str(one) for one in known])
    return UnknownNameError(sentence(subject, f"must be one of {', '.join(known)}", f"got {name!r}", hint))


def _meant(name: str, known: list[str]) -> str:
    """Guess what was meant: several names at once, the first part of a name, or a slip of the pen.

    >>> _meant("log", ["log-loss", "log-mcb"])
    "did you mean 'log-loss'"
    >>> _meant("a,b", ["a", "b", "ab"])
    'these are 2 names; give one at a time, and repeat the option where it takes several'
    """
    import difflib

    parts = [part.strip() for part in name.split(",")]
    if len(parts) > 1 and all(part in known for part in parts):
        return (
            f"these are {len(parts)} names; give one at a time, and repeat the option where it takes several"
        )
    begun = [one for one in known if name and one.startswith((f"{name}-", f"{name}_"))]
    close = begun or difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}" if close else ""
