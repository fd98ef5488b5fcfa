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
from typing import Any, ClassVar, Protocol

from calibrant.censoring import censored
from calibrant.errors import Hint, InvalidInputError, UnreadableFileError
from calibrant.evaluation.evaluate import SCHEMA, Evaluation, evaluate
from calibrant.evaluation.report import page
from calibrant.metrics.lookup import stored_measure
from calibrant.report.answers import Answers
from calibrant.report.rendering import script_json
from calibrant.results import Result, html_paragraphs
from calibrant.sketch.sketch import Sketch

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
        A file (CSV or Parquet), a data frame, a mapping of names to columns, or the Sketch of the report.
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
    named = {"outcome": outcome, "prediction": prediction, "weight": weight, "groups": groups, "ids": ids}
    return verify_report(report, data, named)


class Log(Protocol):
    """How a log was read: what a report of it shows next to the evaluation of its answers."""

    clustered: bool

    def sentences(self) -> list[str]: ...

    def to_dict(self) -> dict[str, Any]: ...


def verify_report(
    report: str | Path | Mapping[str, Any],
    data: Any,
    named: Mapping[str, Any],
    log: Log | None = None,
    sketch_groups: Sequence[Mapping[str, Any]] = (),
) -> Verification:
    """Verify a report; `log` says how the rows were read from one, `sketch_groups` are what a sketch adds."""
    text, stored = _read(report)
    if log is None and not {"answers", "log"}.isdisjoint(stored):
        hint = "run calibrant verify REPORT LOG --log TOOL, with the options that made the report"
        raise InvalidInputError(str(report), "must be a report on rows", "got one on a log", hint)
    options = stored.get("options", {})
    columns = {**options.get("columns", {}), **{name: value for name, value in named.items() if value}}
    again = _evaluated(stored, columns, data)
    answers = Answers.of(again.forecasts, log.clustered, again.seed) if log is not None else None
    new = again.to_dict()
    if "answers" in stored:
        new["answers"] = None if answers is None else answers.to_dict()
    if "log" in stored and log is not None:
        new["log"] = {**log.to_dict(), "files": stored["log"].get("files")}  # wherever they are now
    if "sketch_groups" in stored:
        new["sketch_groups"] = sketch_groups
    fresh = page(again, answers, log.sentences() if log else ()) if text else ""
    return _compared(stored, json.loads(script_json(new)), text, fresh)


def _read(report: str | Path | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the page, "" where there is none, and the evaluation that a report holds."""
    page_text, content, name = "", "", "report"
    if not isinstance(report, Mapping):
        name = str(report)
        try:
            content = Path(report).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableFileError(name, "must be a file that can be read", str(error)) from None
        inside = _script(content, "calibrant-evaluation")
        page_text, content = (content, inside) if inside is not None else ("", content)
    try:
        stored = json.loads(json.dumps(dict(report)) if isinstance(report, Mapping) else content)
    except json.JSONDecodeError:
        stored = None
    if isinstance(stored, dict) and {"form", "pit"} <= stored.keys():
        got, hint = "got one on forecast distributions", "these cannot be verified yet"
        raise InvalidInputError(name, "must be a report on predicted probabilities", got, hint)
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
        hint = "pass what `calibrant evaluate --html` or `--json` wrote"
        raise InvalidInputError(name, "must be a report by calibrant", hint=hint)
    return page_text, stored


def _script(text: str, name: str) -> str | None:
    """Return the content of a script element of a page."""
    inside = re.search(rf'<script[^>]*id="{name}"[^>]*>(.*?)</script>', text, re.DOTALL)
    return inside[1] if inside else None


def _evaluated(stored: Mapping[str, Any], columns: dict[str, Any], data: Any) -> Evaluation:
    options, version = stored.get("options", {}), int(stored.get("schema_version", 1))
    how = {
        "measures": [stored_measure(row["name"], version) for row in stored.get("measures", ())],
        "confidence": options.get("confidence", 0.95),
        "draws": options.get("draws", 199),
        "seed": options.get("seed", 0),
        "title": stored.get("title", ""),
        "subtitle": options.get("subtitle", ""),
    }
    if isinstance(data, Sketch):
        return replace(evaluate(data, groups=columns.get("groups"), **how), columns=options["columns"])
    needed = ["outcome", "prediction", *(["groups"] if stored.get("groups") else [])]
    for name in needed:
        if not columns.get(name):
            column = "the group columns" if name == "groups" else f"the {name} column"
            rule = "must be named: the report does not record it"
            raise InvalidInputError(column, rule, hint=Hint("pass {}", (name, "COLUMN")))
    frame = _columns(data, columns) if isinstance(data, str | Path | list | tuple) else data
    how["missing"] = columns.get("missing", "error")
    if columns.get("censored"):
        time, event, horizon, strata = columns["censored"]
        within = frame[strata] if strata else None
        y = censored(frame[time], frame[event], horizon, strata=within, missing="drop")
        plain = ("prediction", "weight", "ids")
        p, weight, ids = (frame[columns[role]] if columns.get(role) else None for role in plain)
        groups = {name: frame[name] for name in columns.get("groups") or ()} or None
        clusters = {columns["clusters"]: frame[columns["clusters"]]} if columns.get("clusters") else None
        found = evaluate(y, p, sample_weight=weight, groups=groups, ids=ids, clusters=clusters, **how)
    else:
        roles = ("outcome", "prediction", "weight", "groups", "ids", "clusters")
        label = None if frame is not data else columns.get("pos_label")  # of a file they are read as 0 and 1
        named: dict[str, Any] = {role: columns.get(role) for role in roles}
        found = evaluate(frame, **named, pos_label=label, **how)
    return replace(found, columns=options.get("columns", {}))


def _columns(files: Any, columns: Mapping[str, Any]) -> dict[str, Any]:
    from calibrant.io.read import outcome_labels, read_table
    from calibrant.io.sources import default_notation

    time, event, _, strata = columns.get("censored") or (None, None, None, None)
    outcome = [time, event] if time else [columns["outcome"]]
    numbers = [*outcome, *(columns[name] for name in ("prediction", "weight") if columns.get(name))]
    others = (columns.get("ids"), columns.get("clusters"), strata)
    labels = [*(columns.get("groups") or ()), *(name for name in others if name)]
    names = files if isinstance(files, tuple) else str(files)
    notation = default_notation.get()  # which --pos-label and --scale of the command line have set
    if columns.get("pos_label") is not None and notation.labels is None:
        pair = outcome_labels(names, columns["outcome"], str(columns["pos_label"]))
        notation = replace(notation, labels=pair)
    if columns.get("scale") and not notation.scaled:
        low, high = columns["scale"]
        notation = replace(notation, scale=(low, high), scaled=(columns["prediction"],))
    read, categories = read_table(names, numbers, labels, notation, outcome[0])
    return {**read, **categories}


def _compared(stored: dict[str, Any], new: dict[str, Any], text: str, fresh: str) -> Verification:
    from calibrant import __version__

    made_by = str(stored.get(VERSION_KEY, ""))
    if made_by != __version__:
        changed = [ChangedNumber(VERSION_KEY, made_by, __version__)]
        schema = int(stored.get("schema_version", 1))
        values = {stored_measure(row["name"], schema): row.get("value") for row in stored.get("measures", ())}
        theirs = {row["name"]: row["value"] for row in new["measures"]}
        pairs = [(f"measures.{name}.value", value, theirs.get(name)) for name, value in values.items()]
    else:
        pairs = list(_pairs(stored, new))
        if text:
            pairs += _pairs(_charts(text), _charts(fresh), "charts")
        words, now = _words(text), _words(fresh)
        pairs += [("", word, word) for word in now]
        matcher = difflib.SequenceMatcher(None, words, now, autojunk=False) if words != now else None
        changed = [
            ChangedNumber(
                f'text after "{" ".join(words[max(0, a - 6) : a])}"', " ".join(words[a:b]), " ".join(now[c:d])
            )
            for kind, a, b, c, d in (matcher.get_opcodes() if matcher else ())
            if kind != "equal"
        ]
    changed += [ChangedNumber(*pair) for pair in pairs if not _agree(pair[1], pair[2])]
    return Verification(tuple(changed), len(pairs), made_by)


def _pairs(old: Any, new: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield each place with what is stored there and what was recomputed."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from _pairs(old.get(key), new.get(key), f"{where}.{key}".lstrip("."))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (one, other) in enumerate(zip(old, new, strict=True)):
            named = one.get("name") or one.get("rule") if isinstance(one, dict) else None
            yield from _pairs(one, other, f"{where}.{named or k}")
    else:
        yield where, old, new


def _agree(old: Any, new: Any) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (old, new))
    return math.isclose(old, new, rel_tol=PRECISION, abs_tol=1e-15) if numbers else bool(old == new)


def _charts(text: str) -> Any:
    try:
        return json.loads(_script(text, "calibrant-charts") or "null")
    except json.JSONDecodeError:
        return None


def _words(text: str) -> list[str]:
    """Return the words that a reader of a page sees."""
    seen = re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", seen)).split()
