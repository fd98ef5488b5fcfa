"""Logs of Inspect: both versions, zip and JSON, and everything a score can be."""

from __future__ import annotations

import json
import math
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from writers import inspect_sample, token, write_inspect, write_zip

from calibrant import logs
from calibrant.errors import CalibrantError, MissingDependencyError, UnreadableFileError
from calibrant.logs import LogWarning

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.logs.LogWarning")
FORMS = [("0.3.100", ".eval"), ("0.3.285", ".eval"), ("0.3.100", ".json"), ("0.3.285", ".json")]


@pytest.fixture(autouse=True)
def _zstd():
    pytest.importorskip("zstandard")


def answered(letter: str, p: float, **others: float) -> list[dict]:
    return [token("ANSWER", 0.99), token(":", 0.999), token(letter, p, **others)]


@pytest.mark.parametrize(("version", "ending"), FORMS)
def test_every_form_gives_the_same(tmp_path, version, ending):
    samples = [
        inspect_sample("weird/id with space", "C", "ANSWER: A\nConfidence: 85%", version=version),
        inspect_sample(7, "I", "Confidence: 20%? No.\nConfidence: 0.98", version=version),
        inspect_sample("7", 1, "no number here", version=version),
        inspect_sample("x", True, "Confidence: 7/10", version=version),
        inspect_sample("y", math.nan, "Confidence: 65", version=version),
    ]
    frame = logs.read(write_inspect(tmp_path / f"log{ending}", samples, version, task="my_task"))
    if ending == ".eval":  # 7 and "7" have the same member, so one of them is lost
        assert set(frame["id"]) == {"weird/id with space", "7", "x", "y"}
        expected = [0.85, np.nan, 0.7, 0.65], [1, 1, 1, np.nan]
    else:
        assert list(frame["id"]) == ['"weird/id with space"', "7", '"7"', '"x"', '"y"']
        expected = [0.85, 0.98, np.nan, 0.7, 0.65], [1, 0, 1, 1, np.nan]
    assert np.array_equal(frame["confidence"], expected[0], equal_nan=True)
    assert np.array_equal(frame["correct"], expected[1], equal_nan=True)
    assert set(frame["task"]) == {"my_task"}
    assert set(frame["model"]) == {"mockllm/model"}
    assert set(frame["topic"]) == {"general"}


def test_letters_are_merged_and_renormalized(tmp_path):
    samples = [
        inspect_sample("a", "C", "ANSWER: B", tokens=answered(" B", 0.90, _D=0.05, B=0.03)),
        inspect_sample("b", "I", "ANSWER: A", tokens=answered("A", 0.70, B=0.1, C=0.1, D=0.1)),
        inspect_sample("c", "C", "B", tokens=[token("B", 0.6, A=0.2)]),
        inspect_sample("d", "C", "no letter", tokens=[token("no", 0.6, yes=0.2)]),
    ]
    path = write_inspect(tmp_path / "log.eval", samples)
    frame = logs.read(path)
    assert np.allclose(frame["confidence"], [0.93 / 0.98, 0.70, 0.75, np.nan], equal_nan=True)
    assert np.allclose(frame["probabilities"][0], [0, 0.93 / 0.98, 0, 0.05 / 0.98])
    assert np.allclose(logs.read(path, confidence="token")["confidence"][:3], [0.90, 0.70, 0.60])


def test_shuffled_choices(tmp_path):
    """Inspect rewrites the completion to the original order, and not the tokens."""
    said = "Choices were shuffled before generating a response, the following was sent to the model: ..."
    tokens = answered("C", 0.90, A=0.04, B=0.03, D=0.03)
    one = inspect_sample("mc03", "I", "ANSWER: D", answer="D", tokens=tokens, explanation=said)
    frame = logs.read(write_inspect(tmp_path / "shuffled.eval", [one]))
    assert frame["confidence"][0] == pytest.approx(0.90)
    assert frame["correct"][0] == 0
    assert frame["probabilities"][0] is None


def test_open_answers_have_the_probability_of_their_tokens(tmp_path):
    tokens = [token("Par", 0.8), token("is", 0.5)]
    one = inspect_sample("op", "C", "Paris", tokens=tokens, choices=0, scorer="match")
    frame = logs.read(write_inspect(tmp_path / "open.eval", [one]))
    assert frame["confidence"][0] == pytest.approx(0.4)
    assert frame["confidence_from"][0] == "token"


def test_messages_in_parts(tmp_path):
    one = inspect_sample("p", "C")
    one["output"]["choices"][0]["message"]["content"] = [
        {"type": "reasoning", "reasoning": "Confidence: 10%"},
        {"type": "text", "text": "Confidence: 85%"},
    ]
    assert logs.read(write_inspect(tmp_path / "parts.eval", [one]))["confidence"][0] == 0.85


def test_unfinished_and_failed_runs(tmp_path):
    ok = inspect_sample("a", "C", "Confidence: 80%")
    failed = inspect_sample("b", "C", error={"message": "RuntimeError"}) | {"scores": {}}
    failed["output"] = {"model": "m", "choices": []}
    path = write_inspect(tmp_path / "unfinished.eval", [ok, failed], finished=False)
    with pytest.warns(LogWarning, match=r"not finished|1 samples failed|no confidence"):
        frame = logs.read(path)
    assert list(frame["task"]) == ["mc", "mc"]
    assert np.array_equal(frame["correct"], [1, np.nan], equal_nan=True)


def test_scores_of_every_kind(tmp_path):
    def read(value, **options):
        path = write_inspect(tmp_path / "one.eval", [inspect_sample("a", value, "Confidence: 80%")])
        return float(logs.read(path, **options)["correct"][0])

    assert [read(v) for v in ("C", "I", True, False, 1, 0.0, "1", "yes")] == [1, 0, 1, 0, 1, 0, 1, 1]
    assert math.isnan(read(math.nan))
    for value in ("P", "N"):
        with pytest.raises(UnreadableFileError, match=r"field 'scores\.choice\.value'.*partial=.missing."):
            read(value)
        assert math.isnan(read(value, partial="missing"))
        assert read(value, partial="incorrect") == 0
    with pytest.raises(UnreadableFileError, match=r"threshold=0\.5"):
        read(0.9744)
    assert read(0.9744, threshold=0.9) == 1
    for value in ([1, 0], "maybe", {}):
        with pytest.raises(UnreadableFileError, match="must be C or I"):
            read(value)
    graded = {"correct": 1, "conf": 0.98}
    with pytest.raises(UnreadableFileError, match=r"score=.choice\.correct."):
        read(graded)
    assert read(graded, score="choice.correct") == 1
    with pytest.raises(UnreadableFileError, match="must have 'other'"):
        read(graded, score="choice.other")


def test_fields_hold_the_confidence(tmp_path):
    one = inspect_sample("a", {"correct": 1, "conf": 0.98}, store={"sure": "85%"})
    one["scores"]["choice"]["metadata"] = {"judged": 0.4}
    path = write_inspect(tmp_path / "fields.eval", [one])
    for name, value in (
        ("conf", 0.98),
        ("store.sure", 0.85),
        ("judged", 0.4),
        ("scores.choice.value.conf", 0.98),
    ):
        frame = logs.read(path, score="choice.correct", field=name)
        assert frame["confidence"][0] == value
        assert frame["confidence_from"][0] == f"field:{name}"


def test_several_scorers_must_be_chosen(tmp_path):
    one = inspect_sample("a", "C", "Confidence: 80%")
    one["scores"]["judge"] = {"value": "I", "answer": "A"}
    path = write_inspect(tmp_path / "two.eval", [one])
    with pytest.raises(UnreadableFileError, match=r"got choice, judge\. Hint: score=.choice."):
        logs.read(path)
    assert logs.read(path, score="judge")["correct"][0] == 0
    with pytest.raises(UnreadableFileError, match="must have 'absent'"):
        logs.read(path, score="absent")


def test_epochs_are_clusters_and_their_agreement_a_confidence(tmp_path):
    said = {"a": "XXY", "b": "ZZZ", "c": "Z"}
    samples = [
        inspect_sample(name, "C", "t", epoch=k + 1, answer=answer)
        for name, answers in said.items()
        for k, answer in enumerate(answers)
    ]
    frame = logs.read(write_inspect(tmp_path / "epochs.eval", samples), confidence="agreement")
    assert np.allclose(frame["confidence"], [2 / 3, 2 / 3, 1 / 3, 1, 1, 1, np.nan], equal_nan=True)
    assert list(frame["cluster"]) == ['mc/"a"'] * 3 + ['mc/"b"'] * 3 + ['mc/"c"']
    assert list(frame["epoch"]) == [1, 2, 3, 1, 2, 3, 1]


def test_a_sample_that_is_there_twice_is_refused(tmp_path):
    samples = [inspect_sample(name, "C", epoch=epoch) for name in (7, "7") for epoch in (1, 2)]
    assert len(logs.read(write_inspect(tmp_path / "once.json", samples), confidence="agreement")) == 4
    samples[3]["id"], samples[3]["epoch"] = 7, 1
    with pytest.raises(UnreadableFileError, match="field 'id' must be there once per epoch; got 7 again"):
        logs.read(write_inspect(tmp_path / "twice.json", samples))


def test_chunked_samples_are_refused(tmp_path):
    path = write_inspect(tmp_path / "c.eval", [], members={"samples/a_epoch_1/sample.json": {}})
    with pytest.raises(UnreadableFileError, match=r"must not be in chunks.*inspect log convert"):
        logs.read(path)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda one: one.pop("id"), "id"),
        (lambda one: one.update(epoch="1"), "epoch"),
        (lambda one: one.update(scores=[1]), "scores"),
        (lambda one: one.update(scores={"choice": 3}), "scores.choice.value"),
        (lambda one: one["output"]["choices"][0].update(logprobs={"content": [{"x": 1}]}), "logprobs"),
        (lambda one: one["output"]["choices"][0].update(logprobs={"content": 7}), "logprobs"),
    ],
)
@pytest.mark.parametrize("ending", [".eval", ".json"])
def test_malformed_samples_are_refused_by_place_and_field(tmp_path, change, field, ending):
    good = inspect_sample("a", "C", tokens=answered("A", 0.9, B=0.1))
    bad = inspect_sample("b", "C", tokens=answered("A", 0.9, B=0.1))
    path = write_inspect(tmp_path / "ok.json", [good, bad])
    log = json.loads(path.read_text())
    change(log["samples"][1])
    path = tmp_path / f"bad{ending}"
    if ending == ".json":
        path.write_text(json.dumps(log, indent=1))
        place = r"line \d+"
    else:
        start = {"version": 2, "eval": log["eval"]}
        files = {"_journal/start.json": start, "header.json": start}
        files |= {f"samples/{k}_epoch_1.json": one for k, one in enumerate(log["samples"])}
        write_zip(path, {name: json.dumps(value).encode() for name, value in files.items()}, zstd=True)
        place = "member 'samples/1_epoch_1.json'"
    with pytest.raises(UnreadableFileError, match=f"{place}, field '{field}'"):
        logs.read(path)


@pytest.mark.parametrize(("version", "ending"), FORMS)
def test_truncated_and_damaged_files_are_refused(tmp_path, version, ending):
    whole = write_inspect(
        tmp_path / f"whole{ending}", [inspect_sample("a", "C", "Confidence: 80%", version=version)], version
    ).read_bytes()
    path = tmp_path / f"cut{ending}"
    for end in range(0, len(whole) - 1, max(1, len(whole) // 60)):
        path.write_bytes(whole[:end])
        with pytest.raises(UnreadableFileError):
            logs.read(path, "inspect")
    if ending == ".eval":
        for at in range(0, len(whole), max(1, len(whole) // 60)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
            try:
                logs.read(path, "inspect")
            except CalibrantError:
                continue


def test_without_zstandard(tmp_path, monkeypatch):
    if sys.version_info >= (3, 14):
        pytest.skip("the standard library reads zstd")
    path = write_inspect(tmp_path / "log.eval", [inspect_sample("a", "C")])
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingDependencyError, match=r"calibrant\[logs\]"):
        logs.read(path)


def test_another_zip_is_refused(tmp_path):
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", b"")
    with pytest.raises(UnreadableFileError, match=r"zip archive with header\.npy"):
        logs.read(path)


def test_the_generated_answers_say_what_the_page_on_confidences_says(tmp_path):
    with zipfile.ZipFile(Path(__file__).parents[2] / "docs" / "examples" / "country_answers.zip") as archive:
        archive.extractall(tmp_path)
    path = tmp_path / "country_answers.json"
    samples = json.loads(path.read_text(encoding="utf-8"))["samples"]
    token = logs.read(path, confidence="token", cluster="country")
    assert list(token["correct"]) == [one["scores"]["known"]["value"] == "C" for one in samples]
    assert (len(token), token["cluster"].nunique(), token["correct"].sum()) == (417, 140, 189)
    tokens = [one["output"]["choices"][0]["logprobs"]["content"] for one in samples]
    by_hand = [math.exp(sum(token["logprob"] for token in one)) for one in tokens]
    assert list(token["confidence"]) == pytest.approx(by_hand)
    assert set(logs.read(path, field="stated", scale=100)["confidence"]) == {0.99}
    assert set(logs.read(path, field="stated after examples", scale=100)["confidence"]) == {0.1, 0.2}
    agreement = logs.read(path, field="agreement")["confidence"]
    drawn = [one["scores"]["known"]["metadata"]["sampled"] for one in samples]
    assert {len(one) for one in drawn} == {10}
    p = token["confidence"]
    assert round(float(((agreement - p) ** 2).mean() ** 0.5), 2) == 0.15
    assert round(float((p * (1 - p) / 10).mean() ** 0.5), 2) == 0.13
