"""Read sample files of lm-evaluation-harness (`lm_eval --log_samples`), versions 0.4.2 and later."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from calibrant.errors import Hint
from calibrant.logs.answer import NAN, Answer, LogFile, as_number, normalized, softmax
from calibrant.logs.json_stream import array_items, json_lines, unreadable_log
from calibrant.logs.zip_archive import is_zip

REQUIRED_FIELDS = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps")
CHOICE_METRICS = {
    "acc": "choices",
    "acc_norm": "choices by length",
    "acc_bytes": "choices by length",
    "acc_mutual_info": "choices by mutual information",
}
TEXT_METRICS = ("exact_match", "em", "acc", "pass@1", "contains")
NO_MATCH = "[invalid]"  # what a filter returns where its pattern does not match
FIRST_CORRECT_VERSION = (0, 4, 9)  # of the accuracy of mutual-information tasks


def is_sample(keys: Sequence[str]) -> bool:
    return set(REQUIRED_FIELDS) <= set(keys)


@dataclass
class LmEvalLog(LogFile):
    config: Mapping[str, Any] = field(default_factory=dict)

    _metric: str | None = None
    _is_logged: bool = False

    def read_header(self) -> None:
        """Take task and model from the names of file and folder, and the rest from the results file."""
        if is_zip(self.path):
            rule, got = "must be the samples of lm-eval (samples_*.jsonl)", "got a zip archive"
            hint = 'unpack it; if Inspect wrote it, pass --log inspect (in Python, tool="inspect")'
            raise unreadable_log(self.path, "", rule, got, hint)
        results = self._results()
        stem, named = self.path.stem, self.path.stem.startswith("samples_") and self.path.stem.count("_") > 1
        if named:
            self.task, self.model = stem[len("samples_") : stem.rindex("_")], self.path.resolve().parent.name
        else:
            tasks = [name for name in results.get("configs", {}) if stem == name or stem.endswith(f"_{name}")]
            self.task = max(tasks, key=len, default=stem)
            self.model = stem.removesuffix(self.task).rstrip("_") or None
        run = results.get("config") or {}
        self.model = results.get("model_name") or (not named and run.get("model_args")) or self.model
        self.version = results.get("lm_eval_version")
        self.config = results.get("configs", {}).get(self.task) or {}

    def _results(self) -> dict[str, Any]:
        """Return the results file of the same run, empty if it is not there or not readable."""
        date = self.path.stem.rpartition("_")[2]
        for name in (f"results_{date}.json", "results.json"):
            try:
                found = json.loads((self.path.parent / name).read_bytes())
            except (OSError, ValueError, RecursionError):
                continue
            if isinstance(found, dict) and "results" in found:
                return found
        return {}

    def samples(self) -> Iterator[Answer]:
        with self.path.open("rb") as file:
            start = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
        objects = array_items(self.path) if start.startswith(b"[") else json_lines(self.path)
        self._first: str | int | None = None
        self._seen: dict[str | None, bytearray] = {}  # how often each document, by filter
        for sample, line in objects:
            where = f"line {line}"
            with self.checked(where):
                self._check(sample, where)
                found = self._sample(sample, where) if self._is_chosen(sample, where) else None
            if found is not None:
                yield found

    def _is_chosen(self, sample: Mapping[str, Any], where: str) -> bool:
        """Return whether a sample has the chosen filter; before 0.4.7 only the order of lines says which."""
        given, wanted = sample.get("filter"), self.options.filter
        block = self._count(given, sample["doc_id"], where)
        known = [str(one.get("name")) for one in self.config.get("filter_list") or () if one]
        name = (known[block] if block < len(known) else block) if given is None else given
        self._first = name if self._first is None else self._first
        if wanted is not None:
            return str(name) == str(wanted) or block == wanted
        if name != self._first:
            names: list[Any] = [self._first, name] if given is not None else [*known] or [0, 1]
            got, hint = f"got {' and '.join(map(str, names))}", Hint("{}", filter=names[0])
            raise self.refused(where, "filter", "must be chosen where there are several", got, hint)
        return True

    def _count(self, name: str | None, doc: int, where: str) -> int:
        """Return how often a document came before with the same filter."""
        seen = self._seen.setdefault(name, bytearray())
        if doc < 0 or doc > 2**31:
            raise self.refused(where, "doc_id", "must be the number of a document", f"got {doc}")
        if doc >= len(seen):
            seen.extend(bytes(max(doc + 1 - len(seen), len(seen))))
        seen[doc] = min(255, seen[doc] + 1)
        if name is not None and seen[doc] > 1:
            got = f"got {doc} again with the filter {name!r}"
            raise self.refused(where, "doc_id", "must be there once", got, "keep one run per file")
        return seen[doc] - 1

    def _check(self, sample: Any, where: str) -> None:
        if not isinstance(sample, Mapping):
            raise self.refused(where, "sample", "must be an object", f"got {type(sample).__name__}")
        for name in REQUIRED_FIELDS:
            if name not in sample:
                got = "got the fields " + ", ".join(map(str, list(sample)[:12]))
                raise self.refused(where, name, "must be there", got)
        for name, kinds in (("doc_id", int), ("resps", list), ("arguments", (dict, list))):
            if not isinstance(sample[name], kinds) or isinstance(sample[name], bool):
                got = f"got {json.dumps(sample[name])[:60]}"
                raise self.refused(where, name, "must have the structure of an lm-eval sample", got)

    def _sample(self, sample: Mapping[str, Any], where: str) -> Answer:
        doc = sample["doc"] if isinstance(sample["doc"], Mapping) else {}
        answer = Answer(sample["doc_id"], 1, NAN, NAN, None, "", doc)
        requests = self._requests(sample, where)
        if not isinstance(requests[0].response, list):
            answer.confidence, answer.source = self._text(sample)
            answer.correct = self._logged(sample, self._text_metric(sample, where), where)
        elif len(requests) == 1:
            likelihood, greedy = self._likelihood(requests[0], where), str(requests[0].response[1])
            if greedy not in ("True", "False"):
                raise self.refused(where, "resps", "must say whether it is greedy", f"got {greedy}")
            answer.confidence, answer.source = math.exp(min(0.0, likelihood)), "continuation"
            answer.correct = float(greedy == "True")
        else:
            self._choices(answer, sample, requests, where)
        if self.options.field is not None:
            answer.confidence = self.logged_field([sample, doc], where)
            answer.source, answer.probabilities, answer.label = f"field:{self.options.field}", None, None
        return answer

    def _requests(self, sample: Mapping[str, Any], where: str) -> list[_Request]:
        """Pair arguments and first responses, whichever way the version writes them."""
        given = sample["arguments"]
        arguments = list(given.values()) if isinstance(given, dict) else given
        responses = sample["resps"]
        if not responses or len(arguments) != len(responses):
            got = f"got {len(arguments)} for {len(responses)} of 'resps'"
            raise self.refused(where, "arguments", "must be one per response", got)
        pairs = []
        for argument, repeats in zip(arguments, responses, strict=True):
            parts = list(argument.values()) if isinstance(argument, dict) else argument
            if not isinstance(parts, list) or not isinstance(repeats, list) or not repeats:
                raise self.refused(where, "resps", "must be a list of responses", f"got {repeats!r:.60}")
            if len(parts) < 2:
                rule = "must be of a task with right and wrong answers"
                got = "got the log-likelihoods of whole documents"
                raise self.refused(where, "arguments", rule, got, "pass the samples of another task")
            if not isinstance(parts[0], str):
                raise self.refused(where, "arguments", "must begin with a text", f"got {parts[0]!r:.60}")
            pairs.append(_Request(parts[0], parts[1], repeats[0]))
        kinds = {isinstance(one.response, list) for one in pairs}
        if len(kinds) > 1:
            raise self.refused(where, "resps", "must be log-likelihoods or texts", "got both")
        return pairs

    def _choices(
        self, answer: Answer, sample: Mapping[str, Any], requests: list[_Request], where: str
    ) -> None:
        """Read the confidence in the most likely choice, and whether that is right."""
        logged = next((name for name in CHOICE_METRICS if name in sample), None)
        if self._metric is None:  # the first sample decides, and whether it is logged
            self._metric = self.options.score or logged or "acc"
            self._is_logged = self._metric in sample
        metric = self._metric
        if self._is_logged and metric not in sample:
            got = f"got {logged or 'no metric'}, unlike the samples before"
            raise self.refused(where, metric, "must be in every sample", got)
        if metric not in CHOICE_METRICS:
            known = ", ".join(CHOICE_METRICS)
            rule = f"must be the correctness of the most likely choice ({known})"
            raise self.refused(where, metric, rule, "got another metric", Hint("{}", score="acc"))
        choices = [one for one in requests if one.context != ""] or requests
        mutual = len(choices) < len(requests)
        scores = self._scores(metric, choices, requests, where)
        probabilities = softmax(scores)
        chosen = max(range(len(scores)), key=scores.__getitem__)
        correct = self._logged(sample, metric, where) if metric in sample else NAN
        version = tuple(map(int, re.findall(r"\d+", str(self.version or ""))[:3]))
        wrong_version = mutual and version < FIRST_CORRECT_VERSION  # also where the version is not known
        ambiguous = _contexts_differ(choices) and not wrong_version and not math.isnan(correct)
        right = None if ambiguous else self._gold(sample, choices)
        if wrong_version:
            if right is None:
                rule, hint = "must name one of the choices", "upgrade lm-eval to 0.4.9 and run the task again"
                got = f"got {sample['target']!r}, and this version may log a wrong {metric}"
                raise self.refused(where, "target", rule, got, hint)
            self.notes["recomputed"] += int(correct != float(chosen in right))
            correct = float(chosen in right)
        elif math.isnan(correct):
            if right is None:
                raise self.refused(where, metric, "must be there", f"got target {sample['target']!r} alone")
            correct = float(chosen in right)
        elif right is not None and correct != float(chosen in right):
            self.notes["disagrees"] += 1
            right = None
        answer.label = next(iter(right)) if right is not None and len(right) == 1 else None
        answer.confidence = NAN if probabilities is None else max(probabilities)
        answer.correct, answer.source, answer.probabilities = correct, CHOICE_METRICS[metric], probabilities

    def _scores(
        self, metric: str, choices: list[_Request], requests: list[_Request], where: str
    ) -> list[float]:
        """Return what the metric ranks the choices by."""
        likelihoods = [self._likelihood(one, where) for one in choices]
        if metric == "acc":
            return likelihoods
        if metric == "acc_mutual_info":
            contextless = [one for one in requests if one.context == ""]
            without = {one.continuation: self._likelihood(one, where) for one in contextless}
            if len(choices) == len(requests) or any(one.continuation not in without for one in choices):
                raise self.refused(where, "arguments", "must have each choice without its question as well")
            return [x - without[one.continuation] for x, one in zip(likelihoods, choices, strict=True)]
        if _contexts_differ(choices):
            rule = "cannot be used where the choices are in the question"
            raise self.refused(where, metric, rule, hint=Hint("{}", score="acc"))
        texts = [self._choice_text(one) for one in choices]
        lengths = [len(text.encode()) if metric == "acc_bytes" else len(text) for text in texts]
        return [x / max(1, length) for x, length in zip(likelihoods, lengths, strict=True)]

    def _likelihood(self, request: _Request, where: str) -> float:
        response = request.response
        try:
            if len(response) != 2:
                raise ValueError
            return as_number(response[0])
        except (ValueError, TypeError):
            rule, got = "must be pairs of a log-likelihood and True or False", f"got {response!r:.60}"
            raise self.refused(where, "resps", rule, got) from None

    def _text(self, sample: Mapping[str, Any]) -> tuple[float, str]:
        texts = [str(text) for text in sample["resps"][0]]
        if self.options.confidence != "agreement":
            return self.options.stated_confidence(texts[0]), "text"
        if self.options.pattern is not None:
            stated = (self.options.stated_number(text) or ("", "") for text in texts)
            texts = [number or NO_MATCH for number, _ in stated]
        filtered = sample["filtered_resps"][0] if sample["filtered_resps"] else None
        if filtered is None or str(filtered) == NO_MATCH or len(texts) < 2:
            return NAN, "agreement"
        return [normalized(text) for text in texts].count(normalized(str(filtered))) / len(texts), "agreement"

    def _text_metric(self, sample: Mapping[str, Any], where: str) -> str:
        logged = sample.get("metrics")
        names = [*TEXT_METRICS, *(logged if isinstance(logged, list) else ())]
        found = self.options.score or next((name for name in names if name in sample), None)
        if found is None or found not in sample:
            others = ", ".join(one for one in sample if one not in REQUIRED_FIELDS and "hash" not in one)
            rule, hint = "must say whether the answer is right", Hint("{} names the metric", score="NAME")
            raise self.refused(where, found or TEXT_METRICS[0], rule, f"got {others}", hint)
        return found

    def _logged(self, sample: Mapping[str, Any], metric: str, where: str) -> float:
        value = math.inf
        with suppress(ValueError, TypeError):
            value = as_number(sample[metric])
        rule, got = "must be 0 or 1 to say whether the answer is right", json.dumps(sample[metric])[:60]
        return self.zero_or_one(value, where, metric, rule, f"got {got}")

    def _choice_text(self, request: _Request) -> str:
        delimiter = str(self.config.get("target_delimiter", " "))
        return str(request.continuation).removeprefix(delimiter)

    def _gold(self, sample: Mapping[str, Any], choices: list[_Request]) -> set[int] | None:
        """Return the right choices, None where the target may be a number or a text and they differ."""
        texts = [self._choice_text(one) for one in choices]
        targets = _listed(sample["target"])
        as_index = [_index(target, len(texts)) for target in targets]
        as_text = [texts.index(str(t).strip()) if str(t).strip() in texts else None for t in targets]
        if isinstance(sample["target"], int) or None in as_text:
            found = as_index
        elif None in as_index or as_text == as_index:
            found = as_text
        else:
            found = [None]
        if None in found:
            brier = sample.get("brier_score")  # logs the right choice next to the probabilities
            found = [_index(brier[0], len(texts))] if isinstance(brier, list) and brier else [None]
        return None if None in found else {one for one in found if one is not None}


class _Request(NamedTuple):
    context: str
    continuation: Any
    response: Any


def _contexts_differ(requests: list[_Request]) -> bool:
    """Return whether choices are in the question, as in Winogrande; the target is then not a choice."""
    return len({one.context for one in requests}) > 1


def _listed(target: Any) -> list[Any]:
    """Return the targets: one, or those of a list that may be written as text."""
    if isinstance(target, str) and target.startswith("["):
        try:
            target = ast.literal_eval(target)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return [target]
    return list(target) if isinstance(target, list) else [target]


def _index(target: Any, count: int) -> int | None:
    text = str(target).strip()
    return int(text) if text.isdecimal() and len(text) < 9 and int(text) < count else None
