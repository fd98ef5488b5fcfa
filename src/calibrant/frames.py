"""Frames in, from the names of columns to the arrays that every function takes; and tables out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from calibrant.errors import InvalidInputError, MissingDependencyError, reject_name
from calibrant.inputs import InputNames, NamedColumn
from calibrant.results import LIBRARIES, frame_of


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    y_true: Any
    y_prob: Any
    sample_weight: Any
    extra: Mapping[str, Any]


def resolve_inputs(
    y_true: Any,
    y_prob: Any = None,
    sample_weight: Any = None,
    *,
    outcome: str | None = None,
    prediction: str | Sequence[str] | None = None,
    weight: str | None = None,
    **extra: Any,
) -> Inputs:
    """Return arrays as given, or the columns of the frame `y_true` that are named, also those in `extra`."""
    if outcome is None and prediction is None and weight is None:
        if y_prob is None and (isinstance(y_true, Mapping) or hasattr(type(y_true), "columns")):
            rule, hint = "must name columns of the frame", 'outcome="y", prediction="p"'
            raise InvalidInputError("outcome and prediction", rule, "got neither", hint)
        return Inputs(y_true, y_prob, sample_weight, extra)
    if y_prob is not None or sample_weight is not None:
        hint = "pass a frame and outcome=, prediction=, weight=, or arrays alone"
        raise InvalidInputError("arrays", "must not be combined with column names", hint=hint)
    for role, given in (("outcome", outcome), ("prediction", prediction)):
        if not isinstance(given, str) and (role == "outcome" or not _is_names(given)):
            raise InvalidInputError(role, "must name a column of the frame", f"got {given!r}")
    several = not isinstance(prediction, str)
    predictions = _listed(prediction)
    for name in predictions:
        InputNames.of_columns(str(outcome), name, weight)
    named = {argument: names for argument, names in extra.items() if _is_names(names)}
    wanted = [outcome, *predictions, weight, *(name for names in named.values() for name in _listed(names))]
    table = _opened(y_true, [name for name in wanted if name is not None])

    def column(name: str) -> NamedColumn:
        return NamedColumn(_values(table, name), f"column {name!r}")

    def part(names: list[str]) -> Any:
        if isinstance(table, Mapping):
            return {name: table[name] for name in names}
        return table.select(*dict.fromkeys(names)).to_native()

    return Inputs(
        column(str(outcome)),
        {name: column(name) for name in predictions} if several else column(predictions[0]),
        None if weight is None else column(weight),
        {**extra, **{argument: part(_listed(names)) for argument, names in named.items()}},
    )


def _is_names(given: Any) -> bool:
    listed = isinstance(given, list | tuple) and len(given) > 0 and all(isinstance(n, str) for n in given)
    return isinstance(given, str) or listed


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def frame_columns(frame: Any, wanted: Sequence[str]) -> list[Any]:
    table = _opened(frame, wanted)
    return [_values(table, name) for name in wanted]


def from_xarray(frame: Any, wanted: Sequence[str]) -> Any:
    """Return an xarray Dataset as a pandas frame, one row per point; anything else as it is."""
    if not (hasattr(frame, "data_vars") and hasattr(frame, "to_dataframe")):
        return frame
    names = [str(name) for name in (*frame.data_vars, *frame.coords)]
    check_columns(wanted, names)
    variables = [name for name in wanted if name in frame.data_vars]
    return frame[list(dict.fromkeys(variables))].to_dataframe().reset_index()


def _opened(frame: Any, wanted: Sequence[str]) -> Any:
    """Return a mapping as it is, or the wanted columns of a frame in memory, all read at once."""
    frame = from_xarray(frame, wanted)
    if isinstance(frame, Mapping):
        check_columns(wanted, list(frame))
        return frame
    hint = "pass any data frame, a mapping of names to columns, or arrays without names"
    table = open_frame(frame, "frame", "must be a data frame", hint)
    check_columns(wanted, table.collect_schema().names())
    return collect(table.select(*dict.fromkeys(wanted)))


def open_frame(data: Any, subject: str, rule: str, hint: str, **options: Any) -> Any:
    """Return a frame as narwhals knows it, or refuse data that is not one or repeats the name of a column."""
    import narwhals as nw

    try:
        return nw.from_native(data, **options)
    except TypeError:
        raise InvalidInputError(subject, rule, f"got {type(data).__name__}", hint) from None
    except nw.exceptions.DuplicateError as error:
        raise repeated_names(subject, error) from None


def repeated_names(subject: str, error: Exception) -> InvalidInputError:
    """Return the error for columns of the same name, which narwhals lists line by line."""
    got = "got " + ", ".join(line.strip("- ") for line in str(error).splitlines()[1:])
    hint = "rename them, or pass a mapping of names to columns"
    return InvalidInputError(subject, "must have columns of different names", got, hint)


def collect(table: Any) -> Any:
    """Read a lazy frame of narwhals into memory; return any other frame unchanged."""
    import narwhals as nw

    if not isinstance(table, nw.LazyFrame):
        return table
    native: Any = table.to_native()
    relation = hasattr(native, "fetchnumpy")
    for library in LIBRARIES[:1] if relation else LIBRARIES:
        with suppress(ImportError):
            return table.collect(backend=library)  # type: ignore[arg-type]
    if relation:  # without PyArrow a mapping of names to arrays, which needs no other library
        # dates would reach numpy as moments, and an ENUM would need pandas
        kinds = dict(zip(native.columns, map(str, native.types), strict=True))
        names = {name: '"' + name.replace('"', '""') + '"' for name in kinds}
        texts = {name for name, kind in kinds.items() if kind.startswith("ENUM")}
        parts = [f"CAST({q} AS VARCHAR) AS {q}" if name in texts else q for name, q in names.items()]
        columns = native.project(", ".join(parts)).fetchnumpy()
        return {name: x.astype("M8[D]") if kinds[name] == "DATE" else x for name, x in columns.items()}
    kind = f"{type(native).__module__.partition('.')[0]}.{type(native).__name__}"
    rule = "needs pyarrow, polars or pandas to be read"
    raise MissingDependencyError(f"a {kind}", rule, hint="pip install pyarrow")


def to_first_frame(columns: Mapping[str, Any]) -> Any:
    """Return a pandas, Polars or PyArrow table, the first that is installed; else the columns themselves."""
    for library in ("pandas", "polars", "pyarrow"):
        with suppress(ImportError):
            return frame_of(columns, library)
    return columns


def _values(table: Any, name: str) -> Any:
    return table[name] if isinstance(table, Mapping) else table[name].to_numpy()


def check_columns(wanted: Sequence[str], known: list[str]) -> None:
    for name in wanted:
        if name not in known:
            raise reject_name("column", name, known)
