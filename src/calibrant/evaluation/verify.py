"""verify: recompute every number of a published report from its data, and name those that differ."""

from __future__ import annotations

import difflib
import html
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from calibrant.errors import InvalidInputError, UnreadableFileError
from calibrant.evaluation.evaluate import SCHEMA, Evaluation, evaluate
from calibrant.metrics.lookup import stored_measure
from calibrant.results import Result, html_paragraphs

PRECISION = 1e-12  # relative; machines may round sums differently
MAX_SHOWN = 10
VERSION_KEY = "calibrant_version"


@dataclass(frozen=True, slots=True, repr=False)
class ChangedNumber(Result):
    """A place in a report, what it says there, and what the data give."""

    where: str
    stored: Any
    recomputed: Any

    def __str__(self) -> str:
        return f"{self.where}: {self.stored!r} in the report, {self.recomputed!r} from the data"


@dataclass(frozen=True, slots=True, repr=False)
class Verification(Result):
    """What differs between a report and its data; `verified` says whether nothing does.

    `compared` counts the numbers and texts that were recomputed. Numbers agree when they are equal to 12
    digits.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("verified",)

    differences: tuple[ChangedNumber, ...]
    compared: int
    made_by: str

    @property
    def verified(self) -> bool:
        """Whether everything agrees."""
        return not self.differences

    def __str__(self) -> str:
        if self.verified:
            return f"Verified: all {self.compared:,} values agree with the data (calibrant {self.made_by})."
        count, all_of_them = len(self.differences), f"{self.compared:,} values"
        lines = [f"Not verified: {count:,} of {all_of_them} {'differs' if count == 1 else 'differ'}."]
        lines += [f"  {difference}" for difference in self.differences[:MAX_SHOWN]]
        if len(self.differences) > MAX_SHOWN:
            lines.append(f"  ... and {len(self.differences) - MAX_SHOWN:,} more")
        if any(difference.where == VERSION_KEY for difference in self.differences):
            lines.append(f"  Install calibrant=={self.made_by} to verify every number.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_paragraphs(*str(self).splitlines())


def verify(
    report: str | Path | Mapping[str, Any],
    data: Any,
    *,
    outcome: str | None = None,
    prediction: str | None = None,
    weight: str | None = None,
    groups: Sequence[str] | None = None,
    ids: str | None = None,
) -> Verification:
    """Recompute a report from its data, and return what differs.

    The report records its seed, options and columns, so the same data and the same version of calibrant give
    the same numbers. Of an HTML report the visible text and the charts are compared as well.

    Parameters
    ----------
    report
        An HTML report, the JSON of an evaluation, or what its `to_dict` returned.
    data
        A file (CSV or Parquet), a data frame, or a mapping of names to columns.
    outcome, prediction, weight, groups, ids
        Names of columns, where the report does not record them or they have been renamed.

    Returns
    -------
    Verification

    Examples
    --------
    >>> frame = {"won": [0, 1, 1, 0] * 50, "chance": [0.2, 0.7, 0.6, 0.3] * 50}
    >>> found = evaluate(frame, outcome="won", prediction="chance", draws=19).to_dict()
    >>> verify(found, frame).verified
    True
    """
    text, stored = _read(report)
    options = stored.get("options", {})
    given = {"outcome": outcome, "prediction": prediction, "weight": weight, "groups": groups, "ids": ids}
    columns = {**options.get("columns", {}), **{name: value for name, value in given.items() if value}}
    again = _evaluated(stored, columns, data)
    return _compared(stored, again, text)


def _read(report: str | Path | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the page, "" where there is none, and the evaluation that a report holds."""
    if isinstance(report, Mapping):
        return "", _checked(json.loads(json.dumps(dict(report))), "report")
    name = str(report)
    try:
        text = Path(report).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFileError(name, "must be a file that can be read", str(error)) from None
    inside = re.search(r'<script[^>]*id="calibrant-evaluation"[^>]*>(.*?)</script>', text, re.DOTALL)
    try:
        return (text if inside else ""), _checked(json.loads(inside[1] if inside else text), name)
    except json.JSONDecodeError:
        raise _not_a_report(name) from None


def _checked(stored: Any, name: str) -> dict[str, Any]:
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
        raise _not_a_report(name)
    if "answers" in stored or "sketch_groups" in stored:
        raise InvalidInputError(name, "must be a report on rows", "got one on a log or a sketch")
    return stored


def _not_a_report(name: str) -> InvalidInputError:
    hint = "pass what `calibrant evaluate --html` or `--json` wrote"
    return InvalidInputError(name, "must be a report by calibrant", hint=hint)


def _evaluated(stored: Mapping[str, Any], columns: dict[str, Any], data: Any) -> Evaluation:
    """Evaluate the data as the report records."""
    for needed in ("outcome", "prediction"):
        if not columns.get(needed):
            rule, hint = "must be named: the report does not record it", f"pass {needed}="
            raise InvalidInputError(f"the {needed} column", rule, hint=hint)
    if stored.get("groups") and not columns.get("groups"):
        rule = "must be named: the report does not record them"
        raise InvalidInputError("the group columns", rule, hint="pass groups=")
    options, version = stored.get("options", {}), int(stored.get("schema_version", 1))
    names = [stored_measure(row["name"], version) for row in stored.get("measures", ())]
    frame = _columns(data, columns) if isinstance(data, str | Path | list | tuple) else data
    found = evaluate(
        frame,
        **{name: columns.get(name) for name in ("outcome", "prediction", "weight", "groups", "ids")},
        missing=columns.get("missing", "error"),
        pos_label=None if frame is not data else columns.get("pos_label"),  # of a file they are read as 0, 1
        measures=names,
        confidence=options.get("confidence", 0.95),
        draws=options.get("draws", 199),
        seed=options.get("seed", 0),
        title=stored.get("title", ""),
        subtitle=options.get("subtitle", ""),
    )
    return replace(found, columns=options.get("columns", {}))


def _columns(files: Any, columns: Mapping[str, Any]) -> dict[str, Any]:
    from calibrant.io.read import outcome_labels, read_table
    from calibrant.io.sources import default_notation

    numbers = [columns[name] for name in ("outcome", "prediction", "weight") if columns.get(name)]
    labels = [*(columns.get("groups") or ()), *([columns["ids"]] if columns.get("ids") else [])]
    names = files if isinstance(files, tuple) else str(files)
    notation = default_notation.get()  # which --pos-label and --scale of the command line have set
    if columns.get("pos_label") is not None and notation.labels is None:
        pair = outcome_labels(names, columns["outcome"], str(columns["pos_label"]))
        notation = replace(notation, labels=pair)
    if columns.get("scale") and not notation.scaled:
        low, high = columns["scale"]
        notation = replace(notation, scale=(low, high), scaled=(columns["prediction"],))
    read, categories = read_table(names, numbers, labels, notation)
    return {**read, **categories}


def _compared(stored: dict[str, Any], again: Evaluation, text: str) -> Verification:
    from calibrant import __version__
    from calibrant.evaluation.page import page
    from calibrant.report.page import script_json

    new = json.loads(script_json(again.to_dict()))
    made_by = str(stored.get(VERSION_KEY, ""))
    if made_by != __version__:
        version = ChangedNumber(VERSION_KEY, made_by, __version__)
        schema = int(stored.get("schema_version", 1))
        values = {stored_measure(row["name"], schema): row.get("value") for row in stored.get("measures", ())}
        theirs = {row["name"]: row["value"] for row in new["measures"]}
        pairs = [(f"measures.{name}.value", value, theirs.get(name)) for name, value in values.items()]
        return _verification([version], pairs, made_by)
    pairs = list(_pairs(stored, new))
    if not text:
        return _verification([], pairs, made_by)
    fresh = page(again)
    pairs += _pairs(_charts(text), _charts(fresh), "charts")
    words, now = _words(text), _words(fresh)
    matcher = difflib.SequenceMatcher(None, words, now, autojunk=False) if words != now else None
    changed = [
        ChangedNumber(
            f'text after "{" ".join(words[max(0, a - 6) : a])}"', " ".join(words[a:b]), " ".join(now[c:d])
        )
        for kind, a, b, c, d in (matcher.get_opcodes() if matcher else ())
        if kind != "equal"
    ]
    return _verification(changed, [*pairs, *(("", word, word) for word in now)], made_by)


def _verification(
    changed: list[ChangedNumber], pairs: list[tuple[str, Any, Any]], made_by: str
) -> Verification:
    changed = [*changed, *(ChangedNumber(*pair) for pair in pairs if not _agree(pair[1], pair[2]))]
    return Verification(tuple(changed), len(pairs), made_by)


def _pairs(old: Any, new: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield each place with what is stored there and what was recomputed."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from _pairs(old.get(key), new.get(key), f"{where}.{key}".lstrip("."))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _pairs(one, other, f"{where}.{_label(one, k)}")
    else:
        yield where, old, new


def _label(item: Any, index: int) -> str:
    """Return how an item of a list is called: by its name where it has one."""
    named = item.get("name") or item.get("rule") if isinstance(item, dict) else None
    return str(named or index)


def _agree(old: Any, new: Any) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (old, new))
    return math.isclose(old, new, rel_tol=PRECISION, abs_tol=1e-15) if numbers else bool(old == new)


def _charts(text: str) -> Any:
    inside = re.search(r'<script[^>]*id="calibrant-charts"[^>]*>(.*?)</script>', text, re.DOTALL)
    try:
        return json.loads(inside[1]) if inside else None
    except json.JSONDecodeError:
        return None


def _words(text: str) -> list[str]:
    """Return the words that a reader of a page sees."""
    seen = re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", seen)).split()
