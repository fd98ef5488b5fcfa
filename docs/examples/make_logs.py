"""Write logs as lm-evaluation-harness and Inspect do, of two invented models that sit the same exam.

python docs/examples/make_logs.py FOLDER
"""

from __future__ import annotations

import json
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np

SUBJECTS = {"history": 0.6, "geography": 0.9, "medicine": 0.3, "law": -0.5, "chemistry": 0.2}
DATE = "2026-03-01T12-00-00.000000"
HASHED = ("doc", "prompt", "target")


def questions(count: int, rng: np.random.Generator) -> list[dict]:
    """Return questions with four choices, three on each passage; some subjects are harder."""
    names, found = list(SUBJECTS), []
    for k in range(count):
        subject = names[(k // 3) % len(names)]
        ease = SUBJECTS[subject] + 0.5 * np.random.default_rng(k // 3).normal() + rng.normal()
        choices = [f"{'very ' * int(rng.integers(0, 4))}option {k}-{letter}" for letter in "ABCD"]
        about = {"id": f"q{k}", "question": f"Which is answer {k}?", "choices": choices, "subject": subject}
        found.append({**about, "passage": f"p{k // 3}", "gold": int(rng.integers(4)), "ease": ease})
    return found


def answers(asked: list[dict], skill: float, heat: float, rng: np.random.Generator) -> np.ndarray:
    """Return log-likelihoods of the choices.

    What the model sees of a choice is noise, plus `skill` (and the ease of the question) if it is right. The
    log-likelihoods would be calibrated on average at heat 1; at 2 the model is twice as sure in logits.
    """
    seen = rng.normal(0, 1, (len(asked), 4))
    for row, one in zip(seen, asked, strict=True):
        row[one["gold"]] += skill + 0.5 * one["ease"]
    return heat * skill * seen - 5


def write_lm_eval(folder: Path, model: str, asked: list[dict], scores: np.ndarray) -> None:
    """Write a sample file and its results, as lm-eval 0.4.13 does."""
    place = folder / model
    place.mkdir(parents=True, exist_ok=True)
    with (place / f"samples_exam_{DATE}.jsonl").open("w") as file:
        for k, (one, row) in enumerate(zip(asked, scores, strict=True)):
            context = f"Question: {one['question']}\nAnswer:"
            pairs = [[[str(float(x)), str(x == row.max())]] for x in row]
            requests = {
                f"gen_args_{j}": {"arg_0": context, "arg_1": f" {text}"}
                for j, text in enumerate(one["choices"])
            }
            by_length = [x / len(text) for x, text in zip(row, one["choices"], strict=True)]
            sample = {
                "doc_id": k,
                "doc": {name: one[name] for name in ("id", "question", "choices", "subject", "passage")},
                "target": str(one["gold"]),
                "arguments": requests,
                "resps": pairs,
                "filtered_resps": [pair[0] for pair in pairs],
                "filter": "none",
                "metrics": ["acc", "acc_norm"],
                **{f"{name}_hash": sha256(f"{name} {k}".encode()).hexdigest() for name in HASHED},
                "acc": float(int(np.argmax(row)) == one["gold"]),
                "acc_norm": float(int(np.argmax(by_length)) == one["gold"]),
            }
            file.write(json.dumps(sample) + "\n")
    config = {"exam": {"task": "exam", "output_type": "multiple_choice", "target_delimiter": " "}}
    results = {"results": {"exam": {}}, "configs": config, "model_name": model, "lm_eval_version": "0.4.13"}
    (place / f"results_{DATE}.json").write_text(json.dumps(results))


def write_inspect(path: Path, model: str, asked: list[dict], epochs: int, rng: np.random.Generator) -> None:
    """Write an Inspect log: repeated answers with log-probabilities and a stated confidence."""
    about = {"task": "exam", "model": model, "packages": {"inspect_ai": "0.3.100"}}
    header = {"version": 2, "status": "success", "eval": about, "plan": {}, "results": {}, "stats": {}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": about}))
        for one, row in zip(asked, answers(asked, 1.5, 1.0, rng), strict=True):
            truth = np.exp(row) / np.exp(row).sum()
            shown = truth**1.8 / (truth**1.8).sum()  # the probabilities of tokens are too extreme
            for epoch in range(1, epochs + 1):
                chosen = int(rng.choice(4, p=truth))
                stated = int(
                    np.clip(5 * round(20 * (0.55 + 0.4 * truth[chosen] + rng.normal(0, 0.05))), 5, 100)
                )
                sample = _inspect_sample(one, epoch, chosen, shown, stated)
                archive.writestr(f"samples/{one['id']}_epoch_{epoch}.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(header))


def _inspect_sample(one: dict, epoch: int, chosen: int, shown: np.ndarray, stated: int) -> dict:
    letter, text = "ABCD"[chosen], f"ANSWER: {'ABCD'[chosen]}\nConfidence: {stated}%"
    top = [{"token": f" {x}", "logprob": float(np.log(p))} for x, p in zip("ABCD", shown, strict=True)]
    tokens = [
        {"token": "ANSWER:", "logprob": -0.001, "top_logprobs": []},
        {"token": f" {letter}", "logprob": float(np.log(shown[chosen])), "top_logprobs": top},
    ]
    value = "C" if chosen == one["gold"] else "I"
    return {
        "id": one["id"],
        "epoch": epoch,
        "input": one["question"],
        "choices": one["choices"],
        "target": "ABCD"[one["gold"]],
        "output": {"choices": [{"message": {"content": text}, "logprobs": {"content": tokens}}]},
        "scores": {"choice": {"value": value, "answer": letter, "explanation": text}},
        "metadata": {"subject": one["subject"], "passage": one["passage"]},
    }


def main(folder: Path) -> None:
    """Write the logs of both tools."""
    rng = np.random.default_rng(7)
    asked = questions(1500, rng)
    write_lm_eval(folder, "large", asked, answers(asked, 2.2, 1.6, rng))
    write_lm_eval(folder, "small", asked, answers(asked, 1.3, 1.2, rng))
    write_inspect(folder / "exam.eval", "acme/large", asked[:300], 5, rng)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs"))
