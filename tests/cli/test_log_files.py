"""--log on the command line: a log gives what a file of its rows gives."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typed import calibrant

sys.path.append(str(Path(__file__).parents[1] / "logs"))
from writers import inspect_sample, questions, write_inspect, write_lm_eval

from calibrant import logs


def run(*arguments: object, code: int = 0):
    result = calibrant(*arguments)
    assert result.returncode == code, result.stderr
    return result.stderr if code else result.stdout


@pytest.fixture
def log(tmp_path):
    return write_lm_eval(tmp_path, questions(80))


def test_evaluate_as_from_rows(tmp_path, log):
    frame = logs.read(log)
    rows = tmp_path / "rows.csv"
    frame.drop(columns="probabilities").to_csv(rows, index=False)
    by_log = json.loads(run("evaluate", log, "--log", "lm-eval", "--seed", 1, "--draws", 19, "--json"))
    options = ("-y", "correct", "-p", "confidence", "--groups", "topic")
    by_rows = json.loads(run("evaluate", rows, *options, "--seed", 1, "--draws", 19, "--json"))
    assert by_log["measures"] == by_rows["measures"]
    assert by_log["verdict"] == by_rows["verdict"]
    assert by_log["log"]["sources"] == {"choices": "softmax over the log-likelihoods of the choices"}


@pytest.mark.parametrize(
    "command",
    [
        ("check", "--max", "smooth=0.9"),
        ("test", "--draws", "19"),
        ("audit", "--draws", "19"),
        ("recalibrate", "-o", "map.json"),
        ("sketch", "-o", "x.sketch"),
        ("plan", "--distance", "0.1"),
    ],
)
def test_other_commands(tmp_path, monkeypatch, log, command):
    monkeypatch.chdir(tmp_path)
    name, *options = command
    assert run(name, log, "--log", "auto", *options)


def test_check_names_the_log(log):
    assert str(log) in run("check", log, "--log", "lm-eval", "--max", "smooth=0.9")


def test_compare_logs(tmp_path, log):
    asked, rng = questions(80), np.random.default_rng(1)
    for one in asked:
        one.likelihoods = [x + rng.normal(0, 3) for x in one.likelihoods]
    other = write_lm_eval(tmp_path, asked, model="noisy")
    found = run("compare", log, other, "--log", "lm-eval")
    assert "tiny-lm is right more often than noisy" in found or "No difference in accuracy" in found
    data = json.loads(
        run("compare", log, other, "--log", "lm-eval", "--log-option", "cluster=passage", "--json")
    )
    assert (data["n"], data["clusters"]) == (80, 27)
    assert "does not apply to logs" in run("compare", log, other, "--log", "auto", "-m", "atb", code=2)
    assert "needs two logs" in run("compare", log, "--log", "auto", code=2)


def test_missing_confidences_are_refused_or_dropped(tmp_path):
    samples = [inspect_sample(f"q{k}", "CI"[k % 2], f"Confidence: {50 + k}%") for k in range(40)]
    samples.append(inspect_sample("none", "C", "no number"))
    path = write_inspect(tmp_path / "log.json", samples)
    assert "'confidence' must not be missing" in run("evaluate", path, "--log", "inspect", code=2)
    found = run("evaluate", path, "--log", "inspect", "--missing", "drop", "--draws", "19", "--json")
    assert json.loads(found)["log"]["missing_confidence"] == 1


def test_hints_can_be_typed(tmp_path, log):
    path = tmp_path / "two.json"
    one = inspect_sample("a", "C", "Confidence: 80%")
    one["scores"]["judge"] = {"value": "I"}
    write_inspect(path, [one])
    assert "Hint: --log-option score=choice" in run("evaluate", path, "--log", "inspect", code=2)
    for wrong, said in (
        (("--log-option", "scale=1"), "needs --log"),
        (("--log", "lm-eval", "--log-option", "scal=1"), "did you mean 'scale'"),
        (("--log", "lm-eval", "--log-option", "scale=x"), "must be a number"),
        (("--log", "lm-eval", "--log-option", "scale"), "must be NAME=VALUE"),
        (("--log", "inspect"), "field 'eval'"),
    ):
        assert said in run("evaluate", log, *wrong, code=2)


def test_an_inspect_log_is_not_a_sketch(tmp_path):
    path = write_inspect(tmp_path / "log.eval", [inspect_sample("a", "C")], "0.3.100")
    assert "--log inspect" in run("evaluate", path, "-y", "correct", "-p", "confidence", code=2)


def test_a_log_without_columns_is_told_how_to_be_read(tmp_path, log):
    inspect = write_inspect(tmp_path / "other.json", [inspect_sample("a", "C")])
    for given, tool in ((log, "lm-eval"), (log.parent, "lm-eval"), (inspect, "inspect")):
        for command, lacking in (("evaluate", "--outcome"), ("stream", "--outcome")):
            refused = run(command, given, code=2)
            assert f"Missing option '{lacking}' / '-y'. Hint: --log {tool} reads this log." in refused
    assert "Hint" not in run("evaluate", __file__, code=2)
    run("evaluate", log, "--log", "lm-eval", "--draws", "19")


def test_a_zip_is_no_lm_eval_log(tmp_path):
    path = write_inspect(tmp_path / "log.eval", [inspect_sample("a", "C", "Confidence: 80%")], "0.3.100")
    refused = run("evaluate", path, "--log", "lm-eval", code=2)
    assert "must be the samples of lm-eval (samples_*.jsonl); got a zip archive. Hint: unpack it" in refused


def test_repeats_are_clusters(tmp_path):
    samples = [
        inspect_sample(f"q{k // 3}", "CI"[k % 2], f"Confidence: {50 + k // 3}%", epoch=1 + k % 3)
        for k in range(120)
    ]
    path = write_inspect(tmp_path / "log.json", samples)
    found = json.loads(run("evaluate", path, "--log", "auto", "--draws", "19", "--seed", 0, "--json"))
    expected = logs.evaluate(path, draws=19).evaluation.verdict.pvalue
    assert found["verdict"]["pvalue"] == expected
    assert found["answers"]["thresholds"] == []


def test_no_threshold_is_promised_from_answers_that_belong_together(log):
    promise = ("abstain", log, "--log", "lm-eval", "--risk", "0.9", "--draws", "19")
    assert "Answer everything" in run(*promise)
    assert "keep one per cluster" in run(*promise, "--log-option", "cluster=passage", code=2)


def test_models_of_one_folder_are_compared_as_groups(tmp_path, log):
    write_lm_eval(tmp_path, questions(80, seed=1), model="other")
    found = logs.evaluate(tmp_path, draws=19)
    assert found.log.groups() == ["model", "topic"]
    assert found.answers.thresholds == ()
    shown = run("evaluate", tmp_path, "--log", "lm-eval", "--draws", "19")
    assert "model = other" in shown
    assert "No threshold is promised" in shown


def test_the_next_command_reads_the_same_confidence(tmp_path):
    path = write_lm_eval(tmp_path, questions(120))
    options = ["--log-option", "score=acc_norm", "--log-option", "cluster=passage", "--missing", "drop"]
    shown = run("evaluate", path, "--log", "lm-eval", *options)
    *_, last = shown.splitlines()
    assert last.startswith("Next: calibrant recalibrate")
    assert " ".join(["--log lm-eval", *options]) in last


def test_the_next_command_reads_a_log_whatever_it_does(tmp_path):
    found, rng = questions(600), np.random.default_rng(0)
    for question in found:
        rates = np.exp(question.likelihoods)
        question.gold = int(rng.choice(len(rates), p=rates / rates.sum()))
    path = write_lm_eval(tmp_path, found)
    shown = run("evaluate", path, "--log", "lm-eval", "--log-option", "score=acc")
    assert shown.splitlines()[-1] == f"Next: calibrant monitor {path} --log lm-eval --log-option score=acc"
    assert run("monitor", path, "--log", "lm-eval", "--log-option", "score=acc")


@pytest.mark.parametrize("tool", ["lm-eval", "inspect", "auto"])
def test_packed_logs_are_refused_with_the_way_to_unpack_them(tmp_path, tool):
    path = write_lm_eval(tmp_path, questions(20))
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    done = calibrant("evaluate", packed, "--log", tool)
    assert done.returncode == 2
    assert f"must not be packed; got gzip. Hint: gzip -d {packed.name}" in done.stderr
