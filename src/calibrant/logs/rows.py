"""read: from a log to a frame with one row per answer."""

from __future__ import annotations

import csv
import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.errors import Hint, InvalidInputError, reject_name, warn_user
from calibrant.frames import to_first_frame
from calibrant.logs.answer import TOPIC_FIELDS, Answer, LogFile, Options, lookup, meaning
from calibrant.logs.inspect import START_MEMBER, InspectLog, is_header
from calibrant.logs.json_stream import array_items, object_items, unreadable_log
from calibrant.logs.lm_eval import LmEvalLog, is_sample
from calibrant.logs.zip_archive import Archive, is_zip
from calibrant.results import frame_of

TOOLS: dict[str, Callable[..., LogFile]] = {"lm-eval": LmEvalLog, "inspect": InspectLog}
NUMBER_COLUMNS = ("confidence", "correct", "label")
COLUMNS = (
    "id", "epoch", "task", "topic", "model", "confidence", "correct", "probabilities", "cluster",
    "confidence_from", "label",
)  # fmt: skip
WITHOUT_CONFIDENCE = Hint(
    "{} finds it in the text, {} names a field that holds it, {} compares repeated answers",
    ("pattern", ...),
    ("field", ...),
    ("confidence", "agreement"),
)
PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd", b"BZ": "bzip2", b"\xfd7": "xz"}  # by their first bytes
MAX_NAMES = 16  # of fields in an error
FIRST_KEYS = 12  # of an object, enough to see which tool wrote it

NOTE_TEXTS = {
    "recomputed": "{} logged accuracies are wrong and were recomputed (lm-eval before 0.4.9 mixes up the "
    "responses of mutual-information tasks).",
    "disagrees": "{} logged accuracies are not those of the most likely choice; the logged ones are used.",
    "unfinished": "{} runs were not finished; the samples they wrote are used.",
    "failed": "{} runs failed; the samples they scored are used.",
    "errored": "{} samples failed or were invalidated; they have no confidence and no grade.",
    "unscored": "{} samples have no score.",
    "partial": "{} answers are graded P (partly correct) or N (no answer).",
    "no letter": "{} answers have no token for a choice, so no confidence.",
    "letters missing": "{} answers lack letters among the top log-probabilities; these count as 0.",
    "shuffled": "{} questions had their choices shuffled; class probabilities are left out there.",
}


class LogWarning(UserWarning):
    """Something in a log is wrong, incomplete or was recomputed."""


@dataclass
class LogSummary:
    """What was read and how: recorded with results and shown in reports."""

    tool: str
    files: list[str]
    samples: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    missing_confidence: int = 0
    missing_grade: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    versions: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)  # the first two, to see whether there are several
    clustered: bool = False
    choices: list[str] = field(default_factory=list)  # columns of the probabilities of the choices

    def groups(self) -> list[str]:
        """Return the columns that tell answers apart: models, tasks and topics, where there are several."""
        found = {"model": self.models, "task": self.tasks, "topic": self.topics}
        return [name for name, values in found.items() if len(values) > 1]

    def title(self) -> str:
        """Return a title for a report: the models, and the tasks if they are few."""
        tasks = ", ".join(self.tasks) if len(self.tasks) < 4 else f"{len(self.tasks)} tasks"
        return f"{', '.join(self.models) or 'Language model'} on {tasks}"

    def sentences(self) -> list[str]:
        """Say how the confidence was read, and what a reader should know about the log."""
        how = " / ".join(meaning(source) for source in self.sources) or "none found"
        sentences = [f"Confidence: {how} ({self.tool} log)."]
        if self.missing_confidence == self.samples:
            sentences.append(f"No answer has a confidence: {WITHOUT_CONFIDENCE}.")
        elif self.missing_confidence:
            sentences.append(f"{self.missing_confidence:,} of {self.samples:,} answers have no confidence.")
        return sentences + [NOTE_TEXTS[key].format(f"{count:,}") for key, count in (+self.notes).items()]

    def to_dict(self) -> dict[str, Any]:
        given = {name: value for name, value in vars(self).items() if name not in ("topics", "choices")}
        sources = {source: meaning(source) for source in self.sources}
        return {**given, "sources": sources, "notes": dict(+self.notes)}


def read(
    path: str | Path | Sequence[str | Path],
    tool: str | None = None,
    *,
    confidence: str | None = None,
    score: str | None = None,
    filter: str | int | None = None,
    field: str | None = None,
    pattern: str | None = None,
    scale: float | None = None,
    threshold: float | None = None,
    partial: str = "error",
    topic: str | None = None,
    cluster: str | None = None,
    backend: str | None = None,
) -> Any:
    """Read a log of a language-model evaluation into a frame with one row per answer.

    The frame has the columns `id`, `epoch`, `task`, `topic`, `model`, `confidence` (how sure the model was),
    `correct` (1 or 0), `probabilities` (of the choices, where the log has them), `cluster` (answers that
    belong together), `confidence_from` (how the confidence was read) and `label` (the number of the right
    choice, from 0; with `probabilities` it goes to `class_table`). What a log lacks is missing.
    lm-eval logs of multiple-choice tasks give the softmax over the log-likelihoods of the choices; Inspect
    logs give the probability of the answer's letter where log-probabilities were requested, else the
    confidence that the answer states ("Confidence: 85%"). Accuracies that lm-eval 0.4.3 to 0.4.8 logs wrongly
    for mutual-information tasks are recomputed. A LogWarning reports what was recomputed or is incomplete.

    Parameters
    ----------
    path
        A log, several logs, or a folder of lm-eval sample files.
    tool
        "lm-eval" or "inspect"; by default the structure of the file decides.
    confidence
        "choices", "letters", "token", "text" (stated in the answer) or "agreement" (of repeated answers).
    score
        The metric (lm-eval: "acc", "acc_norm", ...) or scorer (Inspect) that grades the answers. The
        confidence follows: "acc_norm" divides the log-likelihoods by the length of the choices.
    filter
        The filter of lm-eval to read; before 0.4.7, its number from 0.
    field
        Name or dotted path of a field that holds the confidence.
    pattern
        Regular expression that captures the confidence (or, for agreement, the answer) in the text.
    scale
        What a stated confidence is divided by; by default numbers above 1 are percentages.
    threshold
        Grades from here on count as correct.
    partial
        What P and N of Inspect are: an "error", "missing" or "incorrect".
    topic, cluster
        Fields of the question (`doc` or `metadata`) that name its topic, and what it shares with others, such
        as a passage. By default the cluster is the question, whose repeats belong together.
    backend
        "pandas", "polars" or "pyarrow"; by default the first that is installed, else a dict of arrays.

    Returns
    -------
    frame
        One row per answer.

    Examples
    --------
    >>> frame = read("samples_arc_easy_2026-01-01.jsonl")  # doctest: +SKIP
    >>> evaluate(frame, outcome="correct", prediction="confidence", groups=["topic"])  # doctest: +SKIP
    """
    options = Options(confidence, score, filter, field, pattern, scale, threshold, partial, topic, cluster)
    rows = LogRows(path, tool, options)
    columns = rows.columns()
    for sentence in rows.summary.sentences()[1:]:
        warn_user(sentence, LogWarning)
    if backend is not None:
        return frame_of(columns, backend)
    frame = to_first_frame(columns)
    if frame is not columns:
        return frame
    return {name: x if name == "probabilities" else np.asarray(x) for name, x in columns.items()}


class LogRows:
    """The rows of one or several logs, streamed; `summary` is complete when all were read."""

    def __init__(self, path: str | Path | Sequence[str | Path], tool: str | None, options: Options) -> None:
        self.paths = log_files(path)
        self.options = options
        if tool is not None and tool not in TOOLS:
            raise reject_name("tool", str(tool), list(TOOLS))
        tools = [tool or tool_of(one) for one in self.paths]
        if len(set(tools)) > 1:
            got = f"got {' and '.join(sorted(set(tools)))}"
            raise InvalidInputError("logs", "must be of one tool", got, "read them one by one")
        self.tool = tools[0]
        self.summary = LogSummary(self.tool, [one.name for one in self.paths])

    def __iter__(self) -> Iterator[tuple[LogFile, Answer]]:
        lacking = []
        for path in self.paths:
            before = self.summary.samples
            yield from self._samples(path, self.options)
            if self.summary.samples == before:
                lacking.append(path)
        named = self.options.filter is not None
        if lacking and (not named or len(lacking) == len(self.paths)):
            hint = Hint("pass {} as the log names it", filter=...) if named else ""
            raise unreadable_log(lacking[0], "", "must have samples", "got none", hint)
        for path in lacking:  # tasks without this filter have one of their own, or are refused
            yield from self._samples(path, replace(self.options, filter=None))

    def _samples(self, path: Path, options: Options) -> Iterator[tuple[LogFile, Answer]]:
        log = TOOLS[self.tool](path, options)
        for known, value in (
            (self.summary.versions, log.version),
            (self.summary.models, log.model),
            (self.summary.tasks, log.task),
        ):
            if value and value not in known:
                known.append(str(value))
        self.summary.clustered |= len(self.summary.models) > 1  # by question
        for sample in log.samples():
            self.summary.samples += 1
            self.summary.clustered |= sample.epoch > 1 or self.options.cluster is not None
            topic = self._topic(sample.fields)
            if topic is not None and len(self.summary.topics) < 2 and topic not in self.summary.topics:
                self.summary.topics.append(topic)
            if math.isnan(sample.confidence):
                self.summary.missing_confidence += 1
            else:
                self.summary.sources[sample.source] += 1
            self.summary.missing_grade += math.isnan(sample.correct)
            yield log, sample
        if log.near_field and not log.has_field:
            got = f"got none with it, but {', '.join(list(log.near_field)[:MAX_NAMES])}"
            raise log.refused("samples", str(options.field), "must be in the samples", got)
        self.summary.notes.update(log.notes)

    def columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {name: array("d") if name in NUMBER_COLUMNS else [] for name in COLUMNS}
        shared: dict[Any, Any] = {}  # equal texts are stored once
        for log, sample in self:
            for name, value in self._cells(log, sample).items():
                columns[name].append(shared.setdefault(value, value) if isinstance(value, str) else value)
        if len({isinstance(one, str) for one in columns["id"]}) > 1:  # numbers and texts: texts get quotes
            columns["id"] = [json.dumps(one) for one in columns["id"]]
        for name in NUMBER_COLUMNS:
            numbers = np.frombuffer(columns[name])
            whole = name != "confidence" and not np.isnan(numbers).any()
            columns[name] = numbers.astype(np.int64) if whole else numbers
        return columns

    def write_csv(self, path: Path) -> None:
        """Write the rows to a CSV file one by one, in constant memory; what is missing is empty."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer, choices = csv.writer(file), -1
            for log, sample in self:
                cells = self._cells(log, sample)
                found = cells.pop("probabilities")
                found = [] if found is None else found.tolist()
                if choices < 0:
                    choices = len(found)
                    self.summary.choices = [f"p{k}" for k in range(choices)]
                    writer.writerow([*cells, *self.summary.choices])
                for name in NUMBER_COLUMNS:
                    gap, whole = math.isnan(cells[name]), name != "confidence"
                    cells[name] = "" if gap else int(cells[name]) if whole else repr(cells[name])
                shares = map(repr, found) if len(found) == choices else [""] * choices
                writer.writerow([*cells.values(), *shares])
        if self.summary.missing_confidence == self.summary.samples:
            name, got = f"file {str(self.paths[0])!r}", f"got none in {self.summary.samples:,} answers"
            raise InvalidInputError(name, "must have a confidence", got, WITHOUT_CONFIDENCE)

    def _cells(self, log: LogFile, sample: Answer) -> dict[str, Any]:
        """Return the row of an answer, in the order of COLUMNS."""
        found, label = sample.probabilities, sample.label
        row = (
            sample.id, sample.epoch, log.task, self._topic(sample.fields), log.model,
            sample.confidence, sample.correct, None if found is None else np.asarray(found),
            self.cluster_of(log, sample), sample.source, math.nan if label is None else label,
        )  # fmt: skip
        return {
            name: value.encode(errors="replace").decode() if isinstance(value, str) else value
            # JSON may hold half a character, which UTF-8 cannot write
            for name, value in zip(COLUMNS, row, strict=True)
        }

    def _topic(self, about: Mapping[str, Any]) -> str | None:
        if self.options.topic is not None:
            found, value = lookup(about, self.options.topic)
            return str(value) if found and value is not None else None
        values = (about.get(name) for name in TOPIC_FIELDS)
        return next((value for value in values if isinstance(value, str) and value), None)

    def cluster_of(self, log: LogFile, sample: Answer) -> str:
        """Return what a sample shares with others: the question, or the field that was named."""
        if self.options.cluster is None:
            return f"{log.task}/{json.dumps(sample.id) if isinstance(sample.id, str) else sample.id}"
        found, value = lookup(sample.fields, self.options.cluster)
        if not found or value is None:
            got = f"got the fields {', '.join(map(str, list(sample.fields)[:12])) or 'none'}"
            where = f"question {sample.id!r}"
            raise log.refused(where, self.options.cluster, "must be there for every question", got)
        return f"{log.task}/{value}"


def log_files(path: str | Path | Sequence[str | Path]) -> list[Path]:
    if not isinstance(path, str | Path):
        return [file for one in path for file in log_files(one)]
    place = Path(path)
    if place.is_dir():
        found = sorted([*place.rglob("samples_*.jsonl"), *place.rglob("*.eval")])
        if not found:
            raise unreadable_log(place, "", "must hold samples_*.jsonl or *.eval files", "got none")
        return found
    if not place.is_file():
        raise unreadable_log(place, "", "must exist", "got no such file")
    if place.stat().st_size == 0:
        raise unreadable_log(place, "", "must not be empty", "got 0 bytes")
    with place.open("rb") as file:
        packed = PACKED.get(file.read(2))
    if packed:
        raise unreadable_log(place, "", "must not be packed", f"got {packed}", f"{packed} -d {place.name}")
    return [place]


def tool_of(path: Path) -> str:
    """Return the tool that wrote a log, by its structure; refuse what is neither."""
    rule = "must be a log of lm-eval (samples_*.jsonl) or Inspect (.eval, .json)"
    if is_zip(path):
        names = (member.name for member in Archive(path).members())
        first = list(islice(names, 4))
        if START_MEMBER in first or START_MEMBER in names:
            return "inspect"
        raise unreadable_log(path, "", rule, f"got a zip archive with {', '.join(first) or 'nothing'}")
    with path.open("rb") as file:
        start = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start not in (b"{", b"["):
        raise unreadable_log(path, "", rule, "got another format")
    keys = _first_keys(path, start)
    if is_sample(keys):
        return "lm-eval"
    if is_header(keys):
        return "inspect"
    hint = "pass the samples_*.jsonl file next to it" if {"results", "configs"} <= set(keys) else ""
    raise unreadable_log(path, "", rule, f"got the fields {', '.join(keys[:FIRST_KEYS]) or 'none'}", hint)


def _first_keys(path: Path, start: bytes) -> list[str]:
    if start == b"[":
        first: Any = next((element for element, _ in array_items(path)), {})
        return list(map(str, first)) if isinstance(first, Mapping) else []
    keys: list[str] = []
    for key, _, _ in object_items(path):
        keys.append(key)
        if len(keys) == FIRST_KEYS or is_header(keys) or is_sample(keys):
            break
    return keys
