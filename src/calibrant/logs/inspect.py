"""Read logs of Inspect (`.eval` and `.json`), versions 0.3.100 and later."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from calibrant.errors import Hint
from calibrant.logs.answer import (
    NAN,
    Answer,
    LogFile,
    answer_token,
    as_number,
    letter_probabilities,
    normalized,
)
from calibrant.logs.json_stream import object_items
from calibrant.logs.zip_archive import Archive, is_zip

START_MEMBER, HEADER_MEMBER = "_journal/start.json", "header.json"
SAMPLE_MEMBER = re.compile(r"samples/.*_epoch_\d+\.json", re.DOTALL)
CHUNKED_MEMBER = re.compile(r"samples/.*_epoch_\d+/sample\.json", re.DOTALL)
GRADES = {"c": 1.0, "correct": 1.0, "yes": 1.0, "true": 1.0}
GRADES |= {"i": 0.0, "incorrect": 0.0, "no": 0.0, "false": 0.0}
PARTIAL_GRADES = ("P", "N")  # partly correct, no answer
SHUFFLED_NOTE = "Choices were shuffled before generating"


def is_header(keys: Any) -> bool:
    return "eval" in keys and ("version" in keys or "status" in keys)


@dataclass
class InspectLog(LogFile):
    def read_header(self) -> None:
        """Read task, model and version; a run that was stopped has no header, but a journal."""
        self._archive = Archive(self.path) if is_zip(self.path) else None
        self._kind: str | None = self.options.confidence
        header: Any
        if self._archive is not None:
            found = {}
            for member in self._archive.members():
                if CHUNKED_MEMBER.fullmatch(member.name):
                    hint = "inspect log convert FILE --to json --output-dir DIR"
                    raise self.refused(
                        f"member {member.name!r}", "samples", "must not be in chunks", hint=hint
                    )
                if member.name in (START_MEMBER, HEADER_MEMBER):
                    found[member.name] = member
            header = self._archive.load(found.get(HEADER_MEMBER) or found[START_MEMBER])
            self.notes["unfinished"] += int(HEADER_MEMBER not in found)
        else:
            items = object_items(self.path, "samples")
            header = dict(islice(((k, value) for k, value, _ in items if k in ("status", "eval")), 2))
        about = header.get("eval") if isinstance(header, Mapping) else None
        if not isinstance(about, Mapping):
            raise self.refused("header", "eval", "must be an object", f"got {type(about).__name__}")
        self.notes["failed"] += int(header.get("status") not in (None, "success"))
        self.task = str(about.get("task") or self.path.stem)
        self.model = str(about["model"]) if about.get("model") else None
        self.version = (about.get("packages") or {}).get("inspect_ai")

    def samples(self) -> Iterator[Answer]:
        """Yield every sample; one that failed has neither a confidence nor a grade."""
        self._shares = self._agreement() if self.options.confidence == "agreement" else None
        seen = set()
        for sample, where in self._objects():
            with self.checked(where):
                found = self._sample(sample, where)
            if self._archive is None:  # which has one member per question and epoch
                key = hash((found.id, found.epoch))  # 64 bits: a million samples collide once in 10^7 logs
                if key in seen:
                    got, hint = f"got {found.id!r} again with epoch {found.epoch}", "keep one run per file"
                    raise self.refused(where, "id", "must be there once per epoch", got, hint)
                seen.add(key)
            yield found

    def _objects(self) -> Iterator[tuple[Mapping[str, Any], str]]:
        if self._archive is not None:
            members = (one for one in self._archive.members() if SAMPLE_MEMBER.fullmatch(one.name))
            found = ((self._archive.load(one), f"member {one.name!r}") for one in members)
        else:
            items = object_items(self.path, "samples")
            found = ((value, f"line {line}") for key, value, line in items if key == "samples")
        for sample, where in found:
            if sample is None:  # a log without samples says null
                continue
            if not isinstance(sample, Mapping):
                raise self.refused(where, "samples", "must be objects", f"got {type(sample).__name__}")
            for name, kinds in (("id", (str, int)), ("epoch", int)):
                if not isinstance(sample.get(name), kinds):
                    got = f"got {sample.get(name)!r:.40} among the fields {', '.join(list(sample)[:12])}"
                    rule = f"must be {'a text or ' if name == 'id' else ''}a whole number"
                    raise self.refused(where, name, rule, got)
            yield sample, where

    def _sample(self, sample: Mapping[str, Any], where: str) -> Answer:
        metadata = sample.get("metadata") if isinstance(sample.get("metadata"), Mapping) else {}
        answer = Answer(sample["id"], sample["epoch"], NAN, NAN, None, self._kind or "text", metadata or {})
        if sample.get("error") or sample.get("invalidation"):
            self.notes["errored"] += 1
            return answer
        name, score = self._score(sample, where)
        if score is None:
            self.notes["unscored"] += 1
        else:
            answer.correct = self._correct(name, score, where)
        self._read_confidence(answer, sample, name, score or {}, where)
        return answer

    def _score(self, sample: Mapping[str, Any], where: str) -> tuple[str, Mapping[str, Any] | None]:
        """Return the score of the scorer that was named, or of the only one."""
        scores = sample.get("scores") or {}
        if not isinstance(scores, Mapping):
            raise self.refused(where, "scores", "must be an object", f"got {type(scores).__name__}")
        wanted = self.options.score
        if wanted is None:
            if len(scores) > 1:
                got, hint = f"got {', '.join(scores)}", Hint("{}", score=next(iter(scores)))
                raise self.refused(where, "scores", "must be chosen where there are several", got, hint)
            wanted = next(iter(scores), "")
        elif scores and wanted not in scores:
            owner, _, key = wanted.rpartition(".")
            if owner not in scores:
                raise self.refused(where, "scores", f"must have {wanted!r}", f"got {', '.join(scores)}")
            value = scores[owner].get("value")
            if not isinstance(value, Mapping) or key not in value:
                raise self.refused(where, f"scores.{owner}.value", f"must have {key!r}", f"got {value!r:.60}")
            return wanted, {**scores[owner], "value": value[key]}
        score = scores.get(wanted)
        if score is not None and (not isinstance(score, Mapping) or "value" not in score):
            raise self.refused(where, f"scores.{wanted}.value", "must be there", f"got {score!r:.60}")
        return wanted, score

    def _correct(self, name: str, score: Mapping[str, Any], where: str) -> float:
        value, field, rule = score["value"], f"scores.{name}.value", "must be C or I, or 1 or 0"
        if isinstance(value, Mapping) and value:
            hint = Hint("{}", score=f"{name}.{next(iter(value))}")
            got = f"got the keys {', '.join(map(str, value))}"
            raise self.refused(where, field, "must be one value", got, hint)
        if isinstance(value, str) and value in PARTIAL_GRADES and self.options.partial != "error":
            self.notes["partial"] += 1
            return NAN if self.options.partial == "missing" else 0.0
        if isinstance(value, str) and value.lower() in GRADES:
            return GRADES[value.lower()]
        try:
            number = as_number(value)
        except (TypeError, ValueError):
            words = "{} leaves P and N out, {} counts them as wrong"
            hint = Hint(words, ("partial", "missing"), ("partial", "incorrect"))
            raise self.refused(where, field, rule, f"got {json.dumps(value)[:60]}", hint) from None
        return self.zero_or_one(number, where, field, rule, f"got {value}")

    def _read_confidence(
        self, answer: Answer, sample: Mapping[str, Any], name: str, score: Mapping[str, Any], where: str
    ) -> None:
        if self.options.field is not None:
            answer.source = f"field:{self.options.field}"
            scores = sample.get("scores") or {}
            whole = scores.get(name) or scores.get(name.rpartition(".")[0]) or {}
            inside = [whole.get("metadata"), whole.get("value"), sample.get("metadata"), whole]
            answer.confidence = self.logged_field([sample, *(one for one in inside if one)], where)
            return
        if self._shares is not None:
            answer.confidence = self._shares.get((sample["id"], _answer(sample, score)), NAN)
            return
        choice = _first_choice(sample)
        tokens = ((choice.get("logprobs") or {}).get("content")) if choice else None
        if self._kind is None and choice:
            self._kind = "letters" if tokens and self.options.pattern is None else "text"
        if self._kind in ("letters", "token"):
            if tokens:
                self._from_tokens(answer, sample, score, tokens, where)
        else:
            answer.source, answer.confidence = "text", self.options.stated_confidence(completion(sample))

    def _from_tokens(
        self, answer: Answer, sample: Mapping[str, Any], score: Mapping[str, Any], tokens: Any, where: str
    ) -> None:
        """Read the probability of the answer's letter; of the whole text without letters."""
        try:
            letters = "".join(chr(ord("A") + k) for k in range(min(26, len(sample.get("choices") or ()))))
            at = answer_token(tokens, letters) if letters else None
            if letters and at is None:
                self.notes["no letter"] += 1
                return
            wanted = at is not None and self._kind == "letters"
            mass = letter_probabilities(tokens[at], letters) if wanted else None
            if at is None or mass is None:
                used = tokens if at is None else [tokens[at]]
                answer.source = "token"
                answer.confidence = math.exp(min(0.0, math.fsum(as_number(t["logprob"]) for t in used)))
                return
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            got = f"got {type(error).__name__}: {error}"
            raise self.refused(where, "logprobs", "must be tokens with log-probabilities", got) from None
        self.notes["letters missing"] += int(min(mass.values()) == 0)
        chosen = next(one for one in str(tokens[at]["token"]) if one in letters)
        answer.source, answer.confidence = "letters", mass[chosen]
        if str(score.get("explanation") or "").startswith(SHUFFLED_NOTE):
            self.notes["shuffled"] += 1  # the letters are those of the shuffled order
        else:
            answer.probabilities = list(mass.values())
            target = sample.get("target")
            right = target[0] if isinstance(target, list) and len(target) == 1 else target
            answer.label = letters.index(right) if right in list(letters) else None

    def _agreement(self) -> dict[tuple[Any, str], float]:
        """Return, by question and answer, the share of its repeats with this answer; none without repeats."""
        counts: Counter[tuple[Any, str]] = Counter()
        totals: Counter[Any] = Counter()
        for sample, where in self._objects():
            if not sample.get("error"):
                with self.checked(where):
                    answer = _answer(sample, self._score(sample, where)[1] or {})
                counts[sample["id"], answer] += 1
                totals[sample["id"]] += 1
        return {key: count / totals[key[0]] for key, count in counts.items() if totals[key[0]] > 1}


def completion(sample: Mapping[str, Any]) -> str:
    """Return the text of the answer, which versions and models write in several ways."""
    content = ((_first_choice(sample) or {}).get("message") or {}).get("content")
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, Mapping) and part.get("type") == "text")
        return "\n".join(str(part.get("text", "")) for part in parts)
    return str(content or "")


def _first_choice(sample: Mapping[str, Any]) -> Mapping[str, Any] | None:
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, Mapping) else None
    found = choices[0] if isinstance(choices, list) and choices else None
    return found if isinstance(found, Mapping) else None


def _answer(sample: Mapping[str, Any], score: Mapping[str, Any]) -> str:
    return normalized(str(score.get("answer") or completion(sample)))
