"""The rows, streams and sketches that commands read, and what a state has counted of them."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.cli.options import kept, refuse_typed, require_columns
from calibrant.cli.output import no_notes, one_line, print_note, print_result, readable_number, show_table
from calibrant.cli.reading import CensoredColumn, outcome_table
from calibrant.errors import InvalidInputError, reject_rows
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.inputs import InputNames, NamedColumn, checked_predictions
from calibrant.io.read import MAX_EXACT_ROWS, FileNames, fits, read_table
from calibrant.io.session import FORMATS, HINTS_FOR_OTHER_FORMATS
from calibrant.online.monitor import GroupMonitor
from calibrant.online.state import Fields, parsed, read_text
from calibrant.records import Missing, OutcomeKind, Records, ValidRows, check_records, swapped
from calibrant.results import Array
from calibrant.sketch.sketch import Sketch, merge
from calibrant.sketch.storage import is_stored_sketch


class FileRows(NamedTuple):
    forecasts: Forecasts
    groups: dict[str, Any] | None
    ids: Any = None


def read_rows(
    file: FileNames, *, prediction: str, groups: Sequence[str] | None = None, point: str | None = None,
    **columns: Any,
) -> FileRows:  # fmt: skip
    """Read the columns named, check them once, and put them in order once if there are groups to cut."""
    clusters = kept("clusters")
    labels = [*(groups or ()), *(name for name in (point, clusters) if name)]
    _, read, checked = read_and_check(file, [prediction], labels, **columns)
    forecasts = Forecasts.of_records(Records.of(checked)) if groups else Forecasts.of_checked(checked)
    if clusters:
        forecasts = forecasts.with_clusters({clusters: read[clusters]}, columns["missing"])
    cut = {name: read[name] for name in groups} if groups else None
    return FileRows(forecasts, cut, read[point] if point else None)


def read_checked(
    file: FileNames, labels: Sequence[str], *, prediction: str, kind: OutcomeKind = "shares", **columns: Any
) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Return outcomes, predictions and weights, which errors call by their columns, and the other columns."""
    numbers, read, _ = read_and_check(file, [prediction], labels, kind, **columns)
    y, p, weights = (
        NamedColumn.of(numbers, name) if isinstance(numbers.get(name), np.ndarray) else numbers.get(name)
        for name in (columns["outcome"], prediction, columns["weight"])
    )
    return y, p, weights, read


def read_and_check(
    file: FileNames, predictions: Sequence[str], labels: Sequence[str], kind: OutcomeKind = "shares", *,
    outcome: str, weight: str | None, missing: Missing,
) -> tuple[dict[str, Any], dict[str, Any], ValidRows]:  # fmt: skip
    """Return columns of numbers, those of labels, and what came of the check of the last predictions."""
    named = [InputNames.of_columns(outcome, name, weight) for name in predictions]
    wanted = [outcome, *predictions, *([weight] if weight else [])]
    numbers, read = outcome_table(file, wanted, list(dict.fromkeys(labels)), outcome)
    for name, names in zip(predictions, named, strict=True):
        checked = check_records(
            numbers[outcome], numbers[name], numbers[weight] if weight else None, missing, names, kind
        )
        refuse_swapped(swapped(checked), names)
    return numbers, read, checked


def read_predictions(file: FileNames | None, prediction: str | None, missing: Missing) -> tuple[Array, int]:
    if file is None or prediction is None:
        raise InvalidInputError("FILE and --prediction", "must be given together")
    read = read_table(file, [prediction], [])[0][prediction]
    kept = read if missing == "error" else read[~np.isnan(read)]
    hint = "pass --missing drop to leave such rows out"
    return checked_predictions(kept, f"column {prediction!r}", hint), len(read) - len(kept)


def refuse_swapped(are_swapped: bool, names: InputNames) -> None:
    """Refuse fractional outcomes with predictions of only 0 and 1: warnings are easily missed."""
    if are_swapped:
        got = f"got fractions in {names.outcome}, and 0 and 1 alone in {names.prediction}"
        hint = "exchange the two; outcomes that are known probabilities can be measured in Python"
        raise InvalidInputError("--outcome and --prediction", "must not be swapped", got, hint)


def listed(file: FileNames) -> list[str]:
    return [str(file)] if isinstance(file, (str, Path)) else [str(name) for name in file]


def shown_name(file: FileNames) -> str:
    first, *others = listed(file)
    return Path(first).name + (f" and {len(others)} more" if others else "")


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], object] | None]:
    """Show a bar on stderr while the block runs, if a person is there to see it."""
    if not sys.stderr.isatty() or no_notes.get():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    console = Console(file=sys.__stderr__)  # around the stream that would escape the colors
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(escape(one_line(Path(title).name)), total=1.0)
        yield lambda share: bar.update(task, completed=share)


MONTHS = (
    "jan(uary|uar)?|feb(ruary|ruar)?|mar(ch)?|märz|apr(il)?|may|mai|june?|juni|july?|juli|aug(ust)?|"
    "sept?(ember)?|o[ck]t(ober)?|nov(ember)?|de[cz](ember)?"
)
# Dates as text that do not sort by time: 1.2.2024, 02/01/24, 2024-2-1, 1 Feb 2024, Feb 1, 2024
DATE = re.compile(
    r"\s*(\d{1,2}([./-])\d{1,2}\2\d{2,4}\b|\d{4}([./-])(\d\3\d{1,2}|\d\d\3\d)\b"
    rf"|(\w+,? )?(\d{{1,2}}[.]?[ -])?({MONTHS})[ .,-]+\d)",
    re.IGNORECASE,
)


BLOCK_ROWS = 500_000


@dataclass(frozen=True, slots=True, eq=False)
class OrderedRows:
    """Sorted rows; unknown outcomes are NaN, and `place` is the position in the file where it differs."""

    outcome: Array
    prediction: Array
    columns: Mapping[str, npt.NDArray[Any]]
    place: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.outcome)

    def after(self, count: int) -> OrderedRows:
        if count > len(self):
            got = f"got {pluralize(len(self), 'row')} for {pluralize(count, 'record')}"
            raise InvalidInputError("FILE", "must hold at least the records that the state has seen", got)
        return self.taken(slice(count, None))

    def taken(self, rows: npt.NDArray[Any] | slice) -> OrderedRows:
        columns = {name: column[rows] for name, column in self.columns.items()}
        place = None if self.place is None else self.place[rows]
        return OrderedRows(self.outcome[rows], self.prediction[rows], columns, place)

    def blocks(self) -> Iterator[OrderedRows]:
        for start in range(0, max(1, len(self)), BLOCK_ROWS):
            yield self.taken(slice(start, start + BLOCK_ROWS))


def read_ordered(
    file: FileNames, outcome: str, prediction: str, order: str | None, others: list[str], hint: str | None
) -> OrderedRows:
    """Read columns and sort them stably; rows without outcome are refused with `hint`, unless it is None."""
    if outcome == prediction:
        got = f"got {outcome!r} twice"
        raise InvalidInputError("--outcome and --prediction", "must be different columns", got)
    names = list(dict.fromkeys([*([order] if order else []), *others]))
    read, columns = read_table(file, [outcome, prediction], names, outcome=outcome)
    y, p = read[outcome], read[prediction]
    column = f"column {prediction!r}"
    reject_rows(column, "must not be missing", p, np.isnan(p), "leave rows without a prediction out")
    reject_rows(column, "must lie in [0, 1]", p, ~((p >= 0) & (p <= 1)))
    column = f"column {outcome!r}"
    if hint is not None:
        reject_rows(column, "must not be missing", y, np.isnan(y), hint)
    bad = ~np.isnan(y) & (y != 0) & (y != 1)
    reject_rows(column, "must be 0 or 1", y, bad, "leave ties and undecided records out")
    if order is None:
        return OrderedRows(y, p, columns)
    sorting = _sorting(columns[order], order)
    columns = {name: column[sorting] for name, column in columns.items()}
    return OrderedRows(y[sorting], p[sorting], columns, sorting)


def _sorting(column: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    if column.dtype.kind == "O":
        missing = np.array([item is None or item != item for item in column], dtype=bool)
    else:
        missing = column != column
    reject_rows(f"column {name!r}", "must not be missing where it orders the rows", column, missing)
    refuse_dates_as_text(column, name)
    try:
        return np.argsort(column, kind="stable")
    except TypeError:
        rule = "must hold values that can be ordered"
        raise InvalidInputError(f"column {name!r}", rule, "got several types") from None


def refuse_dates_as_text(column: npt.NDArray[Any], name: str) -> None:
    """Refuse dates that would be sorted by their letters, unless there is nothing to sort."""
    if column.dtype.kind not in "OU" or len(set(cells := column.tolist())) == 1:
        return
    dates = np.array([isinstance(cell, str) and DATE.match(cell) is not None for cell in cells], dtype=bool)
    rule, hint = "must hold dates that sort by time", "text is sorted by its letters; write 2024-02-01"
    reject_rows(f"column {name!r}", rule, column, dates, hint)


COLUMNS = ("outcome", "prediction", "weight", "missing", "pos_label", "scale")
GROUP_MEASURES = ("kuiper", "smooth")
MAX_GROUPS_SHOWN = 50


def is_sketch(file: str) -> bool:
    """Return whether a file is a sketch: by its name, or by how it begins where the name says nothing."""
    path = Path(file)
    if path.suffix == ".sketch":
        return True
    if not path.is_file() or path.suffix.lower() in HINTS_FOR_OTHER_FORMATS:
        return False
    with path.open("rb") as opened:
        start = opened.read(4)
    if start == b"PAR1":
        return is_stored_sketch(path)
    return start == b"PK\x03\x04" and path.suffix.lower() not in FORMATS


def stored_sketch(file: FileNames) -> Sketch | None:
    stored = [is_sketch(name) for name in listed(file)]
    if all(stored):
        return merge(*different_sketches(listed(file)))
    if any(stored):
        raise InvalidInputError("files", "must be either sketches or rows", "got both")
    return None


def refuse_columns() -> None:
    refuse_typed("does not apply to a sketch, whose rows are summed", *COLUMNS)


def sketch_if_needed(
    file: FileNames, *, of_rows: str | None = None, beside_rows: bool = False, **options: Any
) -> Sketch | None:
    """Return the sketch that a file is, or needs by its size; `of_rows` is a given option that needs rows."""
    of_rows = of_rows or ("--clusters" if kept("clusters") is not None else None)
    stored, name = stored_sketch(file), shown_name(file)
    if stored is None:
        outcome, _ = require_columns(options["outcome"], options["prediction"])
        if isinstance(outcome, CensoredColumn):
            refuse_many(file, 4)  # resampling the censoring takes about 500 bytes per row
            return None
        if fits(file):
            return None
    elif not beside_rows:
        refuse_columns()
    if of_rows is not None:
        hint = f"pass a file of at most {MAX_EXACT_ROWS:,} rows, such as a sample"
        raise InvalidInputError(of_rows, "needs single rows", "got a sketch", hint)
    if stored is not None:
        return stored
    print_note(
        f"{name} has more than {MAX_EXACT_ROWS:,} rows: measured from a sketch, each value with proven bounds"
    )
    with progress_bar(name) as progress:
        return Sketch.from_file(file, progress=progress, **options)


def refuse_many(file: FileNames, shares: int = 1, hint: str = "pass a sample of the rows") -> None:
    """Refuse files of more rows than are held in memory; `shares` of that memory are for each row."""
    if not fits(file, shares):
        most = MAX_EXACT_ROWS // shares
        rule, got = f"must have at most {most:,} rows for this command", "got more"
        raise InvalidInputError("FILE", rule, got, hint)


def different_sketches(names: Sequence[str], hint: str = "") -> list[Sketch]:
    """Load sketches; two that share records, all or those of a part, would count them twice: refused."""
    sketches = [Sketch.load(name) for name in names]
    known: dict[str, str] = {}
    for name, sketch in zip(names, sketches, strict=True):
        held = dict.fromkeys((*sketch.as_part(), *sketch.parts), name)
        for part in held:
            if part in known:
                got = f"got the same records in {known[part]!r} and {name!r}"
                raise InvalidInputError("sketches", "must be of different records", got, hint)
        known |= held
    return sketches


def chosen_groups(sketch: Sketch, groups: Sequence[str] | None) -> list[str] | None:
    if not groups:
        return None
    if not set(groups) <= set(sketch.by):
        got = f"got {', '.join(groups)}, and the sketch has {', '.join(sketch.by) or 'none'}"
        hint = "make the sketch with calibrant sketch --by"
        raise InvalidInputError("--groups", "must be columns the sketch was made by", got, hint)
    return list(groups)


def show_groups(sketch: Sketch) -> None:
    groups = sorted(sketch.groups.items(), key=lambda item: -item[1].n)
    if not groups:
        return
    lines = []
    for key, part in groups[:MAX_GROUPS_SHOWN]:
        if part.n:
            taken = [part.measure(name) for name in GROUP_MEASURES]
            shown = [map(readable_number, (one.value, one.lower, one.upper)) for one in taken]
            label = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
            lines.append([label, f"{part.n:,}", *("{} in [{}, {}]".format(*bounds) for bounds in shown)])
    print_result()
    title = f"Groups by {', '.join(sketch.by)}, largest first"
    more = f" ({len(groups) - MAX_GROUPS_SHOWN:,} more)" if len(groups) > MAX_GROUPS_SHOWN else ""
    show_table(["group", "records", *GROUP_MEASURES], lines, title + more)


def group_dicts(sketch: Sketch) -> list[dict[str, object]]:
    return [
        {"group": key, "n": part.n, "measures": [part.measure(name).to_dict() for name in GROUP_MEASURES]}
        for key, part in sketch.groups.items()
        if part.n
    ]


Kept = TypeVar("Kept")
PARTS = "parts"  # the field of a state that holds them
MAX_PARTS_KEPT = 10_000  # the latest; as many nights are 27 years
SURPRISE = 20.0  # nats: rows that say less may well come again by chance
FIRST_ROWS = 10_000  # whose surprise is nearly always enough


def counted_parts(state: str | Path | None, kind: str) -> list[str]:
    if state is None or not Path(state).exists():
        return []
    fields = Fields(_holder(parsed(read_text(state), kind)), kind)
    if PARTS not in fields.content:
        return []
    parts = fields.items(PARTS)
    if not all(isinstance(part, str) for part in parts):
        raise fields.refused(PARTS, "must be a list of texts")
    return parts


def loaded(read: Callable[[str], Kept], state: str, hint: str = "") -> Kept:
    try:
        return read(read_text(state))
    except InvalidInputError as error:
        subject = f"file {state!r}: {error.subject}"
        raise error.with_parts(subject=subject, hint=error.hint or hint) from None


def register_batch(
    parts: list[str], rows: OrderedRows, same: bool, state: str | Path | None = None
) -> list[str]:
    gaps = np.isnan(rows.outcome)
    known = rows.taken(~gaps) if gaps.any() else rows
    if all(_surprise(known.taken(slice(count))) < SURPRISE for count in (FIRST_ROWS, len(known))):
        if state is not None and Path(state).exists() and len(rows) and not same:
            alike = "too few or too much alike to know whether the state has counted them before"
            print_note(f"{pluralize(len(rows), 'row')}, {alike}")
        return parts
    part = _hashed(known)
    if part in parts and not same:
        rule, got = "must hold rows that the state has not counted yet", "got the rows of an earlier run"
        raise InvalidInputError("FILE", rule, got, "pass --same to count them again")
    return [*(other for other in parts if other != part), part][-MAX_PARTS_KEPT:]


def with_beginning(parts: list[str], rows: OrderedRows, seen: int) -> list[str]:
    """Return the parts with all rows of a growing file, which must begin with the `seen` rows counted."""
    rows.after(seen)  # refuses a file that is too short
    begun, whole = (f"{_hashed(rows.taken(slice(count)))}+{count}" for count in (seen, len(rows)))
    if any(part.endswith(f"+{seen}") and part != begun for part in parts):
        rule, got = "must begin with the rows that the state has counted", "got others"
        raise InvalidInputError("FILE", rule, got, "leave --grown out if all rows are new")
    return [*(part for part in parts if "+" not in part), whole]


def with_parts(text: str, parts: list[str]) -> str:
    if not parts:
        return text
    content = json.loads(text)
    _holder(content)[PARTS] = parts
    return json.dumps(content, allow_nan=False)


def _holder(content: dict[str, Any]) -> Any:
    """Return the state that holds the parts: that of everybody, where the fields are groups."""
    return content.get(GroupMonitor.EVERYBODY, content)


def _surprise(rows: OrderedRows) -> float:
    """Return the information in these rows in this order, in nats; more rows never have less."""
    _, counts = np.unique(np.column_stack([rows.outcome, rows.prediction]), axis=0, return_counts=True)
    return -float(counts @ np.log(counts / counts.sum()))


def _hashed(rows: OrderedRows) -> str:
    digest = hashlib.sha256()
    for column in (rows.outcome, rows.prediction):
        for block in np.split(column, range(BLOCK_ROWS, len(column), BLOCK_ROWS)):
            digest.update(block.astype("<f8").tobytes())
    digest.update(b"[")
    for place, name in enumerate(rows.columns):
        digest.update(b", [" if place else b"[")
        for number, part in enumerate(rows.blocks()):
            cells = json.dumps([str(cell) for cell in part.columns[name].tolist()])[1:-1]
            digest.update((", " * (number > 0) + cells).encode())
        digest.update(b"]")
    digest.update(b"]")
    return digest.hexdigest()[:16]
