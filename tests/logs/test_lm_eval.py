"""Logs of lm-evaluation-harness: every version gives what arrays passed by hand give."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from writers import DATE, LM_EVAL_VERSIONS, questions, write_lm_eval

from calibrant import logs
from calibrant.errors import CalibrantError, InvalidInputError, UnreadableFileError
from calibrant.logs.answer import as_number, lookup, softmax

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.logs.LogWarning")


def by_hand(asked):
    """Return confidence and correctness straight from the questions."""
    scores = np.array([one.likelihoods for one in asked])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares = powers / powers.sum(axis=1, keepdims=True)
    return shares, scores.argmax(axis=1) == [one.gold for one in asked]


def test_fields_are_found_by_name_or_dotted_path():
    assert lookup({"scores": {"judge": {"value": 1}}}, "scores.judge.value") == (True, 1)
    assert lookup({"scores": {"judge.value": 1}}, "scores.judge.value") == (True, 1)
    assert lookup({"scores": 1}, "scores.judge") == (False, None)


def test_numbers_of_logs():
    assert (as_number("-3.0"), as_number("-inf")) == (-3.0, -math.inf)
    assert math.isnan(as_number("None"))
    assert softmax([0.0, -math.inf]) == [1.0, 0.0]
    assert softmax([-math.inf]) is None
    assert softmax([0.0, math.nan]) is None


@pytest.mark.parametrize("version", LM_EVAL_VERSIONS)
@pytest.mark.parametrize("target", ["index", "text"])
@pytest.mark.parametrize("mutual", [False, True])
def test_every_version_gives_the_same(tmp_path, version, target, mutual):
    asked = questions(30)
    path = write_lm_eval(tmp_path, asked, version, target=target, mutual=mutual)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame = logs.read(path)
    shares, right = by_hand(asked)
    assert np.allclose(frame["confidence"], shares.max(axis=1))
    assert np.allclose(np.stack(list(frame["probabilities"])), shares)
    assert list(frame["correct"]) == list(right)
    assert set(frame["task"]) == {"my_mc"}
    assert set(frame["model"]) == {"tiny-lm"}
    assert list(frame["id"]) == list(range(30))
    assert list(frame["topic"][:2]) == ["history", "law"]
    wrong = mutual and version in ("0.4.3", "0.4.5", "0.4.7")
    assert any("recomputed" in str(one.message) for one in said) == wrong


def test_without_results_beside_it(tmp_path):
    asked = questions(8)
    frame = logs.read(write_lm_eval(tmp_path, asked, results=False), "lm-eval")
    assert set(frame["task"]) == {"my_mc"}
    assert set(frame["model"]) == {"tiny-lm"}
    assert np.allclose(frame["confidence"], by_hand(asked)[0].max(axis=1))


def test_a_folder_and_several_files(tmp_path):
    write_lm_eval(tmp_path, questions(5, 1), task="one_task")
    write_lm_eval(tmp_path, questions(7, 2), task="two")
    assert sorted(set(logs.read(tmp_path)["task"])) == ["one_task", "two"]
    assert len(logs.read(sorted((tmp_path / "tiny-lm").glob("samples*")))) == 12


def test_the_confidence_follows_the_metric(tmp_path):
    asked = questions(20)
    path = write_lm_eval(tmp_path, asked, mutual=True)
    frame = logs.read(path, score="acc_norm")
    scores = [np.array(one.likelihoods) / [len(c) for c in one.choices] for one in asked]
    assert np.allclose(frame["confidence"], [np.exp(s).max() / np.exp(s).sum() for s in scores])
    assert set(frame["confidence_from"]) == {"choices by length"}
    for line in (samples := [json.loads(line) for line in path.read_text().splitlines()]):
        line["acc_mutual_info"] = 1.0
    path.write_text("\n".join(map(json.dumps, samples)))
    informed = logs.read(path, score="acc_mutual_info")
    scores = [np.array(one.likelihoods) - one.alone for one in asked]
    assert np.allclose(informed["confidence"], [np.exp(s).max() / np.exp(s).sum() for s in scores])
    with pytest.raises(UnreadableFileError, match="most likely choice"):
        logs.read(path, score="exact_match")


def edited(tmp_path, change, n=4, **options):
    """Write a log and change its lines."""
    path = write_lm_eval(tmp_path, questions(n), **options)
    samples = [json.loads(line) for line in path.read_text().splitlines()]
    change(samples)
    path.write_text("".join(json.dumps(one) + "\n" for one in samples))
    return path


def test_choices_in_the_question(tmp_path):
    """Winogrande: contexts differ, the target is only the continuation, so the logged accuracy counts."""

    def change(samples):
        for one in samples:
            for k, argument in enumerate(one["arguments"].values()):
                argument["arg_0"], argument["arg_1"] = f"context {k}", " was too big."
            one["target"], one["acc"] = "was too big.", 1.0

    path = edited(tmp_path, change)
    assert list(logs.read(path)["correct"]) == [1] * 4
    with pytest.raises(UnreadableFileError, match="choices are in the question"):
        logs.read(path, score="acc_norm")


def test_several_right_choices(tmp_path):
    def change(samples):
        for one in samples:
            one["target"] = "[0, 1, 2, 3]"
            del one["acc"], one["acc_norm"]

    assert list(logs.read(edited(tmp_path, change))["correct"]) == [1] * 4


def test_a_number_that_is_also_a_choice(tmp_path):
    """Choices 1 to 4: target "2" may be either, so an accuracy that may be wrong is not guessed."""

    def change(samples):
        for one in samples:
            for k, argument in enumerate(one["arguments"].values()):
                argument["arg_1"] = f" {k % 4 + 1}"
            one["target"] = "2"

    path = edited(tmp_path, change, version="0.4.5", mutual=True)
    with pytest.raises(UnreadableFileError, match=r"line 1, field 'target'"):
        logs.read(path)

    def with_brier(samples):
        change(samples)
        for one in samples:
            one["brier_score"] = [1, "[0.1 0.7 0.1 0.1]"]

    assert len(logs.read(edited(tmp_path, with_brier, version="0.4.5", mutual=True))) == 4
    assert len(logs.read(edited(tmp_path, change))) == 4  # not mutual: the log is right


@pytest.mark.parametrize(
    ("bad", "expected"), [("-inf", True), ("nan", False), ("None", False), (None, False)]
)
def test_infinite_and_missing_log_likelihoods(tmp_path, bad, expected):
    path = edited(tmp_path, lambda samples: samples[0]["resps"][0].__setitem__(0, [bad, "False"]))
    frame = logs.read(path)
    assert math.isfinite(frame["confidence"][0]) == expected
    assert np.isfinite(frame["confidence"][1:]).all()


def write_texts(tmp_path, repeats=1, named=True):
    """Write two filters, one after the other."""
    lines = []
    for name in ("strict", "flexible"):
        for k in range(5):
            texts = [f"Answer: {k + (j > 0)}, confidence {60 + k}%" for j in range(repeats)]
            line = {
                "doc_id": k,
                "doc": {},
                "target": str(k),
                "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {"until": ["\n"]}}},
                "resps": [texts],
                "filtered_resps": [str(k)],
                "exact_match": float(name == "flexible"),
            }
            lines.append(line | ({"filter": name, "metrics": ["exact_match"]} if named else {}))
    path = tmp_path / f"samples_gen_{DATE}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("named", [True, False])
def test_filters_must_be_chosen(tmp_path, named):
    path = write_texts(tmp_path, named=named)
    with pytest.raises(UnreadableFileError, match=r"line 6, field 'filter' must be chosen.*Hint: filter="):
        logs.read(path)
    frame = logs.read(path, filter="flexible" if named else 1)
    assert list(frame["correct"]) == [1] * 5
    assert np.allclose(frame["confidence"], [0.6, 0.61, 0.62, 0.63, 0.64])
    if not named:
        about = {
            "results": {},
            "configs": {"gen": {"filter_list": [{"name": "strict"}, {"name": "flexible"}]}},
        }
        (tmp_path / f"results_{DATE}.json").write_text(json.dumps(about))
        assert list(logs.read(path, filter="strict")["correct"]) == [0] * 5


def test_a_filter_of_one_task_leaves_tasks_without_it_alone(tmp_path):
    """The filter that the hint proposes for one task must not refuse the others of the folder."""
    lines = write_texts(tmp_path).read_text().splitlines()
    (tmp_path / f"samples_plain_{DATE}.jsonl").write_text(
        "".join(line.replace('"strict"', '"none"') + "\n" for line in lines if '"strict"' in line)
    )
    frame = logs.read(tmp_path, filter="flexible")
    assert sorted(zip(frame["task"], frame["correct"], strict=True)) == [("gen", 1)] * 5 + [("plain", 0)] * 5
    with pytest.raises(UnreadableFileError, match="must have samples; got none"):
        logs.read(tmp_path, filter="flexble")
    (tmp_path / f"samples_plain_{DATE}.jsonl").write_text(
        "".join(line.replace('"flexible"', '"none"') + "\n" for line in lines)
    )
    with pytest.raises(UnreadableFileError, match="'filter' must be chosen where there are several"):
        logs.read(tmp_path, filter="flexible")


def test_agreement_of_repeats(tmp_path):
    path = write_texts(tmp_path, repeats=3)
    frame = logs.read(path, filter="strict", confidence="agreement", pattern=r"Answer: (\d+)")
    assert np.allclose(frame["confidence"], 1 / 3)
    assert set(frame["confidence_from"]) == {"agreement"}
    alone = write_texts(tmp_path, repeats=1)
    with pytest.warns(logs.LogWarning, match="No answer has a confidence"):
        assert logs.read(alone, filter="strict", confidence="agreement")["confidence"].isna().all()


def test_a_run_twice_in_one_file(tmp_path):
    path = write_lm_eval(tmp_path, questions(3))
    path.write_text(path.read_text() * 2)
    with pytest.raises(UnreadableFileError, match=r"line 4, field 'doc_id'"):
        logs.read(path)


def test_a_field_holds_the_confidence(tmp_path):
    path = edited(tmp_path, lambda samples: [one["doc"].update(sure=80) for one in samples])
    with pytest.raises(UnreadableFileError, match=r"line 1, field 'sure' must be a number from 0 to 1"):
        logs.read(path, field="sure")
    frame = logs.read(path, field="sure", scale=100)
    assert set(frame["confidence"]) == {0.8}
    assert set(frame["confidence_from"]) == {"field:sure"}


def test_a_field_that_no_sample_has_is_refused_with_those_there_are(tmp_path):
    path = edited(tmp_path, lambda samples: samples[1]["doc"].update(sure=0.8))
    assert list(logs.read(path, field="sure")["confidence"].notna()) == [False, True, False, False]
    with pytest.raises(UnreadableFileError, match=r"field 'shure' must be in the samples; .* subject"):
        logs.read(path, field="shure")


def test_clusters_and_topics(tmp_path):
    path = write_lm_eval(tmp_path, questions(6))
    frame = logs.read(path, cluster="passage", topic="passage")
    assert list(frame["cluster"]) == ["my_mc/p0"] * 3 + ["my_mc/p1"] * 3
    assert list(frame["topic"])[3] == "p1"
    with pytest.raises(UnreadableFileError, match="field 'story' must be there for every question"):
        logs.read(path, cluster="story")


def test_grades_are_not_labels(tmp_path):
    path = edited(tmp_path, lambda samples: samples[2].update(acc=0.73))
    with pytest.raises(UnreadableFileError, match=r"line 3, field 'acc' must be 0 or 1.*0\.73"):
        logs.read(path)
    assert logs.read(path, threshold=0.7)["correct"][2] == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda one: one.pop("resps"), "resps"),
        (lambda one: one.update(resps="x"), "resps"),
        (lambda one: one.update(resps=[]), "arguments"),
        (lambda one: one.update(resps=[[["a", "b"]]] * 4), "resps"),
        (lambda one: one.update(resps=[[["1", "b", "c"]]] * 4), "resps"),
        (lambda one: one.update(resps=[1, 2, 3, 4]), "resps"),
        (lambda one: one.update(resps=[["x"], [["-1", "True"]]] * 2), "resps"),
        (lambda one: one.update(doc_id="7"), "doc_id"),
        (lambda one: one.update(doc_id=-1), "doc_id"),
        (lambda one: one.update(acc="?"), "acc"),
        (lambda one: one.update(acc=[1, 2]), "acc"),
        (lambda one: one.update(arguments={"gen_args_0": {"arg_0": "text"}}, resps=[["-7.5"]]), "arguments"),
        (lambda one: (one.pop("acc"), one.pop("acc_norm")) and one.update(target="zzz"), "acc"),
        (lambda one: one.pop("acc"), "acc"),  # the others have it: acc_norm would be another confidence
    ],
)
def test_malformed_samples_are_refused_by_line_and_field(tmp_path, change, field):
    path = edited(tmp_path, lambda samples: change(samples[1]))
    with pytest.raises(UnreadableFileError, match=f"line 2, field '{field}'"):
        logs.read(path, "lm-eval", score="acc" if field == "acc" else None)


def test_truncated_files_are_refused_by_line(tmp_path):
    for version in ("0.4.2", "0.4.13"):
        path = write_lm_eval(tmp_path, questions(3), version)
        whole = path.read_bytes()
        for end in range(1, len(whole) - 2, 97):
            path.write_bytes(whole[:end])
            if whole[end - 1 : end] == b"\n" or whole[end : end + 1] == b"\n":
                continue
            with pytest.raises(UnreadableFileError, match=r"line \d+|got the fields|another format"):
                logs.read(path)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n\n", b"id,p\n1,2\n", b"{}", b"[]", b"[1, 2]", b"null", b'{"a": 1}\n', b"\xff\xfe{",
        b"{" * 9999, b'{"doc_id": ' + b"9" * 5000 + b"}", b'[{"doc_id": 1}]',
        b'{"results": {}, "configs": {}}',        b"PK\x03\x04zip",
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "samples_x_y.jsonl"
    path.write_bytes(content)
    for tool in (None, "lm-eval", "inspect"):
        with pytest.raises(CalibrantError):
            logs.read(path, tool)


def test_options_are_checked(tmp_path):
    path = write_lm_eval(tmp_path, questions(2))
    for wrong in ({"confidence": "x"}, {"partial": "x"}, {"scale": 0}, {"pattern": "("}, {"tool": "helm"}):
        with pytest.raises(CalibrantError):
            logs.read(path, **wrong)
    with pytest.raises(InvalidInputError, match="one source"):
        logs.read(path, confidence="text", field="x")
    with pytest.raises(UnreadableFileError, match="no such file"):
        logs.read(tmp_path / "absent.jsonl")


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.lists(st.floats(-700, 0) | st.sampled_from([-1.0, -2.0, -math.inf]), min_size=2, max_size=6),
            st.integers(0, 5),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_ugly_log_likelihoods(tmp_path_factory, rows):
    """Ties, minus infinity and far apart: as numpy says, row by row."""
    asked = questions(len(rows))
    for one, (likelihoods, gold) in zip(asked, rows, strict=True):
        one.likelihoods, one.gold = likelihoods, gold % len(likelihoods)
        one.choices = [f"choice {k}" for k in range(len(likelihoods))]
        one.alone = [-1.0] * len(likelihoods)
    frame = logs.read(write_lm_eval(tmp_path_factory.mktemp("ugly"), asked, "0.4.5"))
    for (likelihoods, _), one, confidence, correct in zip(
        rows, asked, frame["confidence"], frame["correct"], strict=True
    ):
        assert correct == float(int(np.argmax(likelihoods)) == one.gold)
        if max(likelihoods) == -math.inf:
            assert math.isnan(confidence)
        else:
            assert confidence == pytest.approx(1 / np.exp(np.array(likelihoods) - max(likelihoods)).sum())
