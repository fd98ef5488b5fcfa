"""Known answers: logs that the tools themselves wrote, where they are at hand."""

from __future__ import annotations

import json
import zipfile
from math import exp
from pathlib import Path

import numpy as np
import pytest

from calibrant import logs

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "logs"
pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="sample logs are not part of the repository"),
    pytest.mark.filterwarnings("ignore::calibrant.logs.LogWarning"),
]


def lm_eval(version, task):
    return FOLDER / f"lmeval-{version}" / "tiny-lm" / f"samples_{task}_2026-01-01T00-00-00.000000.jsonl"


@pytest.mark.parametrize("version", ["0.4.5", "0.4.13"])
def test_multiple_choice(version):
    frame = logs.read(lm_eval(version, "t_mc"))
    assert frame["confidence"][0] == pytest.approx(1 / (1 + exp(-2) + exp(-3) + exp(-4)))
    assert frame["confidence"][2] == pytest.approx(1 / (1 + exp(-1) + exp(-2) + exp(-1.5)))
    assert frame["confidence"][9] == pytest.approx(1 / (2 + exp(-1) + exp(-2)))
    assert [frame["correct"][k] for k in (0, 2, 9)] == [1, 0, 0]
    by_length = logs.read(lm_eval(version, "t_mc"), score="acc_norm")
    assert by_length["confidence"][2] == pytest.approx(0.310214, abs=1e-6)
    assert by_length["correct"][2] == 1


@pytest.mark.parametrize("version", ["0.4.5", "0.4.13"])
def test_mutual_information_is_recomputed(version):
    frame = logs.read(lm_eval(version, "t_mcmi"))
    assert frame["confidence"][0] == pytest.approx(0.830953, abs=1e-6)
    assert frame["correct"][0] == 1
    assert frame["correct"].mean() == pytest.approx(2 / 3)
    assert list(frame["correct"]) == list(logs.read(lm_eval(version, "t_mc"))["correct"])


@pytest.mark.parametrize("version", ["0.4.5", "0.4.13"])
def test_other_tasks(version):
    assert logs.read(lm_eval(version, "t_mcstr"))["correct"].mean() == pytest.approx(2 / 3)
    assert logs.read(lm_eval(version, "t_mcmulti"))["correct"].mean() == pytest.approx(5 / 6)
    single = logs.read(lm_eval(version, "t_ll"))
    assert single["confidence"][0] == pytest.approx(exp(-0.7))
    assert single["correct"].mean() == pytest.approx(1 / 3)
    strict = logs.read(lm_eval(version, "t_gen2"), filter="strict" if version == "0.4.13" else 0)
    flexible = logs.read(lm_eval(version, "t_gen2"), filter="flexible" if version == "0.4.13" else 1)
    assert strict["confidence"][3] == flexible["confidence"][3] == 0.60
    assert (strict["correct"][3], flexible["correct"][3]) == (0, 1)


def test_inspect():
    pytest.importorskip("zstandard")
    place = FOLDER / "inspect-0.3.285"
    frame = logs.read(place / "logprobs.eval")
    assert frame["confidence"][3] == pytest.approx(0.70, abs=1e-6)
    assert frame["confidence"][1] == pytest.approx(0.948980, abs=1e-6)
    assert logs.read(place / "logprobs.eval", confidence="token")["confidence"][1] == pytest.approx(
        0.9, abs=1e-6
    )
    verbal = logs.read(place / "verbal.eval").set_index("id")
    assert verbal.loc["mc05", "confidence"] == 0.98
    assert np.isnan(verbal.loc["mc11", "confidence"])
    assert verbal.loc["mc12", "confidence"] == 0.65
    assert list(verbal.loc[["mc05", "mc11", "mc12"], "correct"]) == [1, 1, 0]
    archived, text = logs.read(place / "choice.eval"), logs.read(place / "choice.json")
    assert list(archived["correct"]) == list(text["correct"])
    assert archived["correct"].mean() == 0.75
    failed = logs.read(place / "failed.eval")
    assert failed["correct"].notna().sum() == 6
    assert logs.read(place / "errsample.eval")["correct"].mean() == pytest.approx(7 / 11)
    epochs = logs.read(place / "epochs.eval", confidence="agreement")
    assert set(epochs["confidence"]) == {0.5, 1.0}
    assert epochs["cluster"].nunique() == 12


def test_the_logs_of_the_tutorial_are_as_the_harness_wrote_them(tmp_path):
    with zipfile.ZipFile(Path(__file__).parents[2] / "docs" / "examples" / "country_exam.zip") as archive:
        archive.extractall(tmp_path)
    written = [path.read_text(encoding="utf-8") for path in sorted(tmp_path.rglob("*.jsonl"))]
    golden = json.loads(lm_eval("0.4.13", "t_mc").read_text().splitlines()[0])
    assert len(written) == 2
    for text in written:
        samples = [json.loads(line) for line in text.splitlines()]
        assert len(samples) == 1827
        assert set(samples[0]) == set(golden)
        for name in ("arguments", "resps", "filtered_resps", "target"):
            assert shape(samples[0][name]) == shape(golden[name]), name


def shape(value):
    """Return the structure of a JSON value without its contents."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return [shape(value[0])] if isinstance(value, list) else type(value).__name__
