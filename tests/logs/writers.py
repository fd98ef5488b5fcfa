"""Write logs in the form of each version that the readers know, from the same invented answers."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

LM_EVAL_VERSIONS = ("0.4.2", "0.4.3", "0.4.5", "0.4.7", "0.4.13")
DATE = "2026-02-03T04-05-06.789012"


@dataclass
class Question:
    """A question with choices, the log-likelihood of each, and the index of the right one."""

    id: str
    text: str
    choices: list[str]
    gold: int
    likelihoods: list[float]
    alone: list[float]  # without the question
    subject: str = "general"
    passage: str = "p1"

    @property
    def chosen(self) -> int:
        return int(np.argmax(self.likelihoods))


def questions(n: int = 12, seed: int = 0, choices: int = 4) -> list[Question]:
    """Return invented questions; the right choice tends to be likely."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(n):
        gold = int(rng.integers(choices))
        likelihoods = np.round(rng.normal(-4, 1.5, choices), 3)
        likelihoods[gold] += np.round(rng.exponential(1.5), 3)
        found.append(
            Question(
                f"q{k:03}",
                f"Which is number {k}?",
                [f"{'x' * int(rng.integers(1, 9))}{j}" for j in range(choices)],
                gold,
                [float(x) for x in likelihoods],
                [float(x) for x in np.round(rng.normal(-3, 1, choices), 3)],
                ["history", "law"][k % 2],
                f"p{k // 3}",
            )
        )
    return found


def write_lm_eval(
    folder: Path,
    asked: list[Question],
    version: str = "0.4.13",
    *,
    task: str = "my_mc",
    model: str = "tiny-lm",
    target: str = "index",
    mutual: bool = False,
    results: bool = True,
) -> Path:
    """Write the samples of a multiple-choice task as `lm_eval --log_samples` of a version does."""
    old = version == "0.4.2"
    place = folder if old else folder / model
    place.mkdir(parents=True, exist_ok=True)
    path = place / (f"{model}_{task}.jsonl" if old else f"samples_{task}_{DATE}.jsonl")
    lines = [_lm_eval_sample(k, one, version, target, mutual) for k, one in enumerate(asked)]
    if old:
        path.write_text(json.dumps(lines, indent=2))
    else:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if results:
        about = {
            "results": {task: {"acc,none": 0.5, "acc_stderr,none": "N/A"}},
            "configs": {task: {"task": task, "output_type": "multiple_choice", "target_delimiter": " "}},
            "config": {"model": "hf", "model_args": model},
        }
        if version == "0.4.13":
            about |= {"lm_eval_version": "0.4.13", "model_name": model}
        (place / ("results.json" if old else f"results_{DATE}.json")).write_text(json.dumps(about))
    return path


def _lm_eval_sample(k: int, one: Question, version: str, target: str, mutual: bool) -> dict:
    old = version == "0.4.2"
    context = f"Question: {one.text}\nAnswer:"
    pairs = [
        ((context, f" {c}"), (x, i == one.chosen))
        for i, (c, x) in enumerate(zip(one.choices, one.likelihoods, strict=True))
    ]
    if mutual:
        alone = [(("", f" {c}"), (x, False)) for c, x in zip(one.choices, one.alone, strict=True)]
        pairs = [pair for both in zip(pairs, alone, strict=True) for pair in both] if old else pairs + alone
    arguments: object = [list(a) for a, _ in pairs]
    responses: list = [[list(r)] for _, r in pairs]
    wanted: object = one.gold if target == "index" else one.choices[one.gold]
    if not old:
        arguments = {f"gen_args_{i}": {"arg_0": a[0], "arg_1": a[1]} for i, (a, _) in enumerate(pairs)}
        responses = [[[str(x), str(greedy)]] for _, (x, greedy) in pairs]
        wanted = wanted if version == "0.4.3" else str(wanted)
    right = float(one.chosen == one.gold)
    by_length = [x / len(c) for x, c in zip(one.likelihoods, one.choices, strict=True)]
    norm = float(int(np.argmax(by_length)) == one.gold)
    if mutual and version in ("0.4.3", "0.4.5", "0.4.7"):  # these take every second of the appended responses
        mixed = [*one.likelihoods, *one.alone][::2]
        right = norm = float(int(np.argmax(mixed)) == one.gold)
    sample = {
        "doc_id": k,
        "doc": {
            "id": one.id,
            "question": one.text,
            "choices": one.choices,
            "subject": one.subject,
            "passage": one.passage,
        },
        "target": wanted,
        "arguments": arguments,
        "resps": responses,
        "filtered_resps": [response[0] for response in responses],
    }
    if version in ("0.4.7", "0.4.13"):
        sample |= {"filter": "none", "metrics": ["acc", "acc_norm"]}
    if not old:
        sample |= {"doc_hash": "d" * 64, "prompt_hash": "p" * 64, "target_hash": "t" * 64}
    return sample | {"acc": right, "acc_norm": norm}


def write_inspect(
    path: Path,
    samples: list[dict],
    version: str = "0.3.285",
    *,
    task: str = "mc",
    model: str = "mockllm/model",
    finished: bool = True,
    members: dict[str, object] | None = None,
) -> Path:
    """Write a `.eval` (deflate in 0.3.100, zstd in 0.3.285) or a `.json` log."""
    about = {"task": task, "model": model, "run_id": "r", "eval_id": "e", "packages": {"inspect_ai": version}}
    header = {"version": 2, "status": "success", "eval": about, "plan": {}, "results": {}, "stats": {}}
    if path.suffix == ".json":
        path.write_text(json.dumps({**header, "samples": samples, "reductions": []}, indent=2))
        return path
    files: dict[str, object] = {"_journal/start.json": {"version": 2, "eval": about, "plan": {}}}
    files |= {f"samples/{one['id']}_epoch_{one['epoch']}.json": one for one in samples}
    files |= {"_journal/summaries/1.json": [], **(members or {})}
    if finished:
        files |= {"summaries.json": [], "reductions.json": [], "header.json": header}
    write_zip(path, {name: json.dumps(value).encode() for name, value in files.items()}, version == "0.3.285")
    return path


def write_zip(path: Path, files: dict[str, bytes], zstd: bool) -> None:
    """Write a zip archive; the standard library of older Pythons cannot write zstd members itself."""
    if not zstd:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return
    import zstandard

    body, directory = b"", b""
    for name, data in files.items():
        packed, raw = zstandard.ZstdCompressor().compress(data), name.encode()
        common = struct.pack(
            "<HHHHHIIIHH", 63, 0x800, 93, 0, 33, zlib.crc32(data), len(packed), len(data), len(raw), 0
        )
        directory += (
            b"PK\x01\x02"
            + struct.pack("<H", 63)
            + common
            + struct.pack("<HHHII", 0, 0, 0, 0, len(body))
            + raw
        )
        body += b"PK\x03\x04" + common + raw + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\x05\x06" + end)


def inspect_sample(
    identity: str | int,
    value: object,
    text: str = "ANSWER: A",
    *,
    epoch: int = 1,
    version: str = "0.3.285",
    answer: str = "A",
    tokens: list[dict] | None = None,
    scorer: str = "choice",
    explanation: str = "",
    choices: int = 4,
    **more: object,
) -> dict:
    """Return one sample of Inspect; `tokens` are its log-probabilities."""
    choice: dict = {"message": {"role": "assistant", "content": text}, "stop_reason": "stop"}
    if tokens is not None:
        choice["logprobs"] = {"content": tokens}
    output: dict = {"model": "mockllm/model", "choices": [choice]}
    if version == "0.3.285":
        output["completion"] = text
    return {
        "id": identity,
        "epoch": epoch,
        "input": "Which?",
        "choices": [f"c{k}" for k in range(choices)] or None,
        "target": "A",
        "output": output,
        "scores": {
            scorer: {"value": value, "answer": answer, "explanation": explanation or text, "history": []}
        },
        "metadata": {"subject": "general"},
        "events": [{"event": "model"}],
        **more,
    }


def token(text: str, p: float, **others: float) -> dict:
    """Return a token of probability `p` with the alternatives (letters, or with `_` for a space) given."""
    top = [{"token": text, "logprob": float(np.log(p)), "bytes": None}]
    top += [{"token": name.replace("_", " "), "logprob": float(np.log(q))} for name, q in others.items()]
    return {"token": text, "logprob": float(np.log(p)), "top_logprobs": top if others else []}
