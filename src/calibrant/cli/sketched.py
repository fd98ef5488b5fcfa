"""Sketches behind other verbs: a .sketch file in place of rows, and files that do not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from calibrant.cli.options import refuse_typed, require_columns
from calibrant.cli.showing import note, say, watched_by_a_person
from calibrant.cli.tables import readable_number, show_table
from calibrant.errors import InvalidInputError, sentence
from calibrant.records import Missing
from calibrant.scale.files import FileNames
from calibrant.scale.located import FOREIGN, KINDS
from calibrant.scale.memory import fits
from calibrant.scale.sketch import Sketch, merge
from calibrant.scale.storage import is_stored_sketch

COLUMNS = ("outcome", "prediction", "weight", "missing")
SHOWN = ("kuiper", "smooth")
GROUPS_SHOWN = 50


def listed(file: FileNames) -> list[str]:
    """Return the names that were given, as a list."""
    return [str(file)] if isinstance(file, (str, Path)) else [str(name) for name in file]


def shown_name(file: FileNames) -> str:
    """Return a short name for what was given: the file's, and how many more."""
    first, *others = listed(file)
    return Path(first).name + (f" and {len(others)} more" if others else "")


def is_sketch(file: str) -> bool:
    """Return whether a file is a sketch: by its name, or by how it begins where the name says nothing."""
    path = Path(file)
    if path.suffix == ".sketch":
        return True
    if not path.is_file() or path.suffix.lower() in FOREIGN:
        return False
    with path.open("rb") as opened:
        start = opened.read(4)
    if start == b"PAR1":
        return is_stored_sketch(path)
    return start == b"PK\x03\x04" and path.suffix.lower() not in KINDS


def stored_sketch(file: FileNames) -> Sketch | None:
    """Return the sum of the sketches that were given, None for files of rows."""
    stored = [is_sketch(name) for name in listed(file)]
    if all(stored):
        return merge(*different_sketches(listed(file)))
    if any(stored):
        raise InvalidInputError(sentence("files", "must be either sketches or rows", "got both"))
    return None


def refuse_columns() -> None:
    """Refuse names of columns and what to do with rows, where all that was given are sketches."""
    refuse_typed("does not apply to a sketch, whose rows are summed", *COLUMNS)


def needed_sketch(
    file: FileNames,
    *,
    outcome: str | None,
    prediction: str | None,
    weight: str | None,
    missing: Missing,
    beside_rows: bool = False,
) -> Sketch | None:
    """Return the sketch that a file is, or that it needs because it is too large; None if neither.

    Names of columns are refused with a sketch, unless another file, one of rows, stands beside it.
    """
    stored = stored_sketch(file)
    if stored is not None:
        if not beside_rows:
            refuse_columns()
        return stored
    outcome, prediction = require_columns(outcome, prediction)
    if fits(file):
        return None
    name = shown_name(file)
    note(f"{name} is too large for memory: measured from a sketch, each value with proven bounds")
    with progress_bar(name) as progress:
        return Sketch.from_file(
            file, outcome=outcome, prediction=prediction, weight=weight, missing=missing, progress=progress
        )


def different_sketches(names: Sequence[str], hint: str = "") -> list[Sketch]:
    """Load sketches; two that share records, all or those of a part, would count them twice: refused."""
    sketches = [Sketch.load(name) for name in names]
    known: dict[str, str] = {}
    for name, sketch in zip(names, sketches, strict=True):
        held = dict.fromkeys((*sketch.as_part(), *sketch.parts), name)
        for part in held:
            if part in known:
                got = f"got the same records in {known[part]!r} and {name!r}"
                raise InvalidInputError(sentence("sketches", "must be of different records", got, hint))
        known |= held
    return sketches


def chosen_groups(sketch: Sketch, groups: Sequence[str] | None) -> list[str] | None:
    """Return the columns of the sketch that were named, None for all; others need the rows."""
    if not groups:
        return None
    if not set(groups) <= set(sketch.by):
        got = f"got {', '.join(groups)}, and the sketch has {', '.join(sketch.by) or 'none'}"
        hint = "make the sketch with calibrant sketch --by"
        raise InvalidInputError(sentence("--groups", "must be columns the sketch was made by", got, hint))
    return list(groups)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], object] | None]:
    """Show a bar on stderr while the block runs, if a person is there to see it."""
    if not watched_by_a_person():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(Path(title).name, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def show_groups(sketch: Sketch) -> None:
    """Print the groups of a sketch, the largest first, with proven bounds."""
    groups = sorted(sketch.groups.items(), key=lambda item: -item[1].n)
    if not groups:
        return
    lines = [[_label(key), f"{part.n:,}", *_bounds(part)] for key, part in groups[:GROUPS_SHOWN] if part.n]
    say()
    title = f"Groups by {', '.join(sketch.by)}, largest first"
    more = f" ({len(groups) - GROUPS_SHOWN:,} more)" if len(groups) > GROUPS_SHOWN else ""
    show_table(["group", "records", *SHOWN], lines, title + more)


def group_dicts(sketch: Sketch) -> list[dict[str, object]]:
    """Return the groups of a sketch, ready for JSON."""
    return [
        {"group": key, "n": part.n, "measures": [part.measure(name).to_dict() for name in SHOWN]}
        for key, part in sketch.groups.items()
        if part.n
    ]


def _label(key: object) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _bounds(part: Sketch) -> list[str]:
    taken = [part.measure(name) for name in SHOWN]
    return [
        f"{readable_number(m.value)} in [{readable_number(m.lower)}, {readable_number(m.upper)}]"
        for m in taken
    ]
