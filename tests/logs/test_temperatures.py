"""A temperature per task, and class probabilities of logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import log_softmax
from writers import inspect_sample, questions, write_inspect, write_lm_eval

import calibrant as cb
from calibrant.cli.main import calibrant as command


def exam(n, temperature, seed):
    """Return questions whose right choices follow the likelihoods, which are then sharpened."""
    rng, asked = np.random.default_rng(seed), []
    for one in questions(n, seed):
        logs = log_softmax(one.likelihoods)
        gold = int(rng.choice(len(logs), p=np.exp(logs)))
        asked.append(replace(one, gold=gold, likelihoods=[float(x) for x in temperature * logs]))
    return asked


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    for name, n, temperature in (
        ("one", 400, 2.0),
        ("two", 400, 2.0),
        ("three", 20, 2.0),
        ("four", 400, 4.0),
    ):
        write_lm_eval(place, exam(n, temperature, n + len(name)), task=name)
    return place


def test_a_temperature_per_task_undoes_the_sharpening(folder):
    found = cb.logs.temperatures(folder)
    by_name = {one.task: one for one in found.tasks}
    assert by_name["one"].temperature == pytest.approx(2.0, rel=0.25)
    assert by_name["four"].temperature == pytest.approx(4.0, rel=0.25)
    few = by_name["three"]  # is drawn toward the others, the others hardly
    assert abs(np.log(few.temperature / found.common)) < abs(np.log(few.alone / found.common))
    assert abs(np.log(by_name["one"].temperature / by_name["one"].alone)) < 0.05
    assert found.log_loss["one per task"] < found.log_loss["one temperature"] < found.log_loss["as logged"]
    assert found.temperature("unknown") == found.common
    assert "divide log-probabilities" in str(found)
    assert [line[0].text for line in found.sheet().lines] == [one.task for one in found.tasks]


def test_alone_it_is_what_recalibrate_fits(folder):
    frame = cb.logs.read(folder)
    rows = (frame["task"] == "one").to_numpy()
    fitted = cb.recalibrate(
        frame["label"][rows].to_numpy(), np.stack(frame["probabilities"][rows]), method="temperature"
    )
    own = next(one.alone for one in cb.logs.temperatures(folder).tasks if one.task == "one")
    assert own == pytest.approx(fitted.temperature, rel=1e-3)


def test_applied_it_changes_confidences_and_keeps_the_answers(folder):
    frame, found = cb.logs.read(folder), cb.logs.temperatures(folder)
    after = found.apply(frame)
    before, y = frame["confidence"].to_numpy(), frame["correct"].to_numpy()
    assert np.all(after <= before + 1e-12)
    assert cb.expected_calibration_error(y, after) < cb.expected_calibration_error(y, before) / 2


def test_stated_confidences_have_temperatures_too(tmp_path):
    rng, samples = np.random.default_rng(2), []
    for k in range(600):
        truth = rng.beta(3, 2)
        stated = 1 / (1 + ((1 - truth) / truth) ** 2)
        grade = "CI"[int(rng.random() > truth)]
        samples.append(inspect_sample(f"q{k}", grade, f"Confidence: {100 * stated:.3f}%"))
    found = cb.logs.temperatures(write_inspect(tmp_path / "verbal.json", samples))
    assert found.common == pytest.approx(2.0, rel=0.25)
    assert found.spread == 0
    again = found.apply(cb.logs.read(tmp_path / "verbal.json", backend="pandas"))
    assert np.all((again > 0) & (again < 1))


def test_answers_without_confidence_are_left_out_and_counted(tmp_path):
    samples = [inspect_sample(f"q{k}", "CI"[k % 2], "Confidence: 80%" if k else "Sure.") for k in range(20)]
    found = cb.logs.temperatures(write_inspect(tmp_path / "some.json", samples))
    assert (found.answers, found.dropped) == (19, 1)
    nothing = write_inspect(tmp_path / "none.json", [inspect_sample("q", "C", "Sure.")])
    with pytest.raises(cb.InvalidInputError, match="confidence"):
        cb.logs.temperatures(nothing)


def test_class_probabilities_of_logs_go_to_class_table_and_to_the_command(folder):
    path = next(folder.rglob("samples_one_*.jsonl"))
    frame = cb.logs.read(path)
    asked = exam(400, 2.0, 403)
    assert frame["label"].tolist() == [one.gold for one in asked]
    result = CliRunner().invoke(command, ["classes", str(path), "--log", "lm-eval", "--json"])
    assert result.exit_code == 0, result.output
    shown = cb.class_table(frame["label"].to_numpy(), np.stack(frame["probabilities"])).to_dict()
    assert f"{shown['classes'][0]['value']:.6f}"[:8] in result.output
    assert len(shown["classes"]) == 4
    texts = write_inspect(folder.parent / "texts.json", [inspect_sample("q", "C", "Confidence: 90%")])
    refused = CliRunner().invoke(command, ["classes", str(texts), "--log", "inspect"])
    assert isinstance(refused.exception, cb.InvalidInputError)
    assert "probabilities of choices" in str(refused.exception)


def test_tasks_without_a_finite_temperature_of_their_own(tmp_path):
    """All wrong asks for a higher temperature, all right for a lower one, and equal choices for neither."""
    asked = questions(30, 1)
    tasks = {
        "right": [replace(one, gold=int(np.argmax(one.likelihoods))) for one in asked],
        "wrong": [replace(one, gold=int(np.argmin(one.likelihoods))) for one in asked],
        "some": asked,
        "equal": [replace(one, likelihoods=[-1.0] * len(one.likelihoods)) for one in asked],
    }
    for name, some in tasks.items():
        write_lm_eval(tmp_path, some, task=name)
    found = cb.logs.temperatures(tmp_path)
    by_name = {one.task: one for one in found.tasks}
    assert by_name["right"].temperature < 0.5 < by_name["some"].temperature < by_name["wrong"].temperature
    assert by_name["equal"].alone == 1
    assert by_name["equal"].temperature == pytest.approx(found.common, rel=1e-3)
