"""Options of sketches, checked."""

from __future__ import annotations

from calibrant.errors import InvalidInputError, reject_name, sentence


def as_names(by: str | list[str] | None) -> tuple[str, ...]:
    """Return the columns of groups as a tuple."""
    names = () if by is None else (by,) if isinstance(by, str) else by
    listed = isinstance(names, list | tuple) and all(isinstance(name, str) and name for name in names)
    if not listed or len(set(names)) < len(names):
        raise InvalidInputError(sentence("by", "must name different columns", f"got {by!r}"))
    return tuple(names)


def check_choice(**choices: str) -> None:
    """Refuse what is neither "error" nor "drop"."""
    for name, choice in choices.items():
        if choice not in ("error", "drop"):
            raise reject_name(name, choice, ["error", "drop"])
