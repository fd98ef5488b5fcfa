"""--pos-label and --scale: every command reads labels and scores as the numbers they mean."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typed import calibrant

from calibrant import recalibrate
from calibrant.cli.config import COMMANDS, command_named
from calibrant.cli.reading import OTHER_OUTCOMES

FEW = ("--draws", 20, "--seed", 0)
CALLS = {
    "evaluate": FEW,
    "check": ("--max", "brier=0.2"),
    "audit": ("--groups", "g", *FEW),
    "recalibrate": ("--method", "platt"),
    "stream": (),
    "monitor": (),
    "test": FEW,
    "compare": ("-p", "{q}", *FEW),
    "distinguish": ("--covariates", "g", "--draws", 20),
    "abstain": ("--risk", 0.3, *FEW),
    "sketch": ("-o", "x.sketch"),
}
WITHOUT_OUTCOMES = {"verify": "takes the columns of a report; tested below"}


@pytest.fixture(scope="module", params=["csv", "parquet"])
def rows(request, tmp_path_factory):
    rng = np.random.default_rng(0)
    p, q = rng.integers(1, 64, (2, 400)) / 64  # so that scores from 1 to 65 are exact
    y = (rng.random(400) < p).astype(int)
    frame = pd.DataFrame({"y": y, "p": p, "q": q, "g": np.where(q > 0.5, "a", "b")})
    frame = frame.assign(
        label=np.where(y == 1, "yes", "no"), sign=2 * y - 1, score=1 + 64 * p, other=1 + 64 * q
    )
    path = tmp_path_factory.mktemp("labels") / f"rows.{request.param}"
    frame.to_csv(path, index=False) if request.param == "csv" else frame.to_parquet(path)
    return path


def result(command, *words, cwd):
    ended = calibrant(command, *words, "--json", cwd=cwd)
    assert ended.returncode in (0, 1, 3), ended.stderr
    return json.loads(ended.stdout)


def rounded(value):
    """Drop names of columns, and the last digits."""
    if isinstance(value, dict):
        dropped = ("title", "columns", "next", "file", "created", "checksum", "sentence", "options")
        return {key: rounded(item) for key, item in value.items() if key not in dropped}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else None if isinstance(value, str) else value


def test_every_command_that_reads_outcomes_has_the_option():
    has = {name for name in COMMANDS if any("--pos-label" in p.opts for p in command_named(name).params)}
    reads = {name for name in COMMANDS if any("--outcome" in p.opts for p in command_named(name).params)}
    assert has == reads - set(OTHER_OUTCOMES)
    assert has == {*CALLS, *WITHOUT_OUTCOMES}


@pytest.mark.parametrize("command", CALLS)
def test_labels_and_scores_give_what_numbers_give(rows, command, tmp_path):
    words = [str(word).format(q="q") for word in CALLS[command]]
    plain = result(command, rows, "-y", "y", "-p", "p", *words, cwd=tmp_path)
    words = [str(word).format(q="other") for word in CALLS[command]]
    for outcome, label in (("label", "yes"), ("sign", "1")):
        typed = ("-y", outcome, "--pos-label", label, "-p", "score", "--scale", "1:65")
        found = result(command, rows, *typed, *words, cwd=tmp_path)
        if command == "compare":
            plain = json.loads(json.dumps(plain).replace('"p"', '"score"').replace('"q"', '"other"'))
        assert rounded(found) == rounded(plain)


def test_apply_reads_scores(rows, tmp_path):
    fitted = calibrant(
        "recalibrate", rows, "-y", "y", "-p", "p", "--method", "platt", "-o", tmp_path / "m.json"
    )
    assert fitted.returncode == 0, fitted.stderr
    out = []
    for extra in (("-p", "p"), ("-p", "score", "--scale", "1:65")):
        ended = calibrant("apply", tmp_path / "m.json", rows, *extra, "-o", tmp_path / "out.csv")
        assert ended.returncode == 0, ended.stderr
        out.append(pd.read_csv(tmp_path / "out.csv")["p_recalibrated"].to_numpy())
        (tmp_path / "out.csv").unlink()
    np.testing.assert_allclose(out[0], out[1], rtol=1e-12)


def test_verify_reads_labels(rows, tmp_path):
    columns = ("-y", "label", "-p", "score")
    how = ("--pos-label", "yes", "--scale", "1:65")
    report = calibrant("evaluate", rows, *columns, *how, *FEW, "--json", "-o", tmp_path / "r.json")
    assert report.returncode == 0, report.stderr
    ended = calibrant("verify", tmp_path / "r.json", rows, *columns, *how)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-y", "label"), "Hint: pass --pos-label yes if 'yes' counts as 1 and 'no' as 0"),
        (("-y", "label", "--pos-label", "maybe"), "got 'maybe' for 'no', 'yes'"),
        (("-y", "q", "--pos-label", "0.5"), "--pos-label must be one of the labels of column 'q'"),
        (("-y", "y", "--scale", "10:1"), "must be two numbers in increasing order"),
        (("-y", "y", "--scale", "nan:1"), "must be two numbers in increasing order"),
        (("-y", "y", "--scale", "5"), "must be two numbers in increasing order"),
        (("-y", "y", "--scale", "0.9:1"), "must lie in [0, 1]"),
        (
            ("--time", "p", "--event", "y", "--horizon", "1", "--pos-label", "1"),
            "--pos-label needs --outcome",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(rows, words, said):
    ended = calibrant("evaluate", rows, "-p", "p", *words)
    assert ended.returncode == 2
    if rows.suffix == ".csv" or "Hint" not in said:
        assert said in ended.stderr


def test_json_of_monitor_has_a_schema(rows):
    found = result("monitor", rows, "-y", "y", "-p", "p", cwd=rows.parent)
    assert (found["schema"], found["schema_version"]) == ("calibrant-monitor", 1)


def test_only_an_outcome_may_be_labels(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("y,p,g\n1,0.5,a\n0,0.2,b\n")
    for command in ("compare", "classes"):
        ended = calibrant(command, path, "-y", "y", "-p", "p", "-p", "g")
        assert ended.returncode == 2
        assert "column 'g' must be numeric; got the text 'a' in row 0" in ended.stderr
        assert "pos" not in ended.stderr


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("50%", "got the text '50%' in row 0 of"),
        ('"0,5"', "this is a decimal comma; pass --decimal ,"),
        ("55", "column 'p' must hold probabilities; got none in 1 row"),
    ],
)
def test_a_map_is_not_applied_to_other_notations(tmp_path, cells, said):
    path, fitted = tmp_path / "rows.csv", tmp_path / "map.json"
    path.write_text(f"y,p\n1,{cells}\n")
    recalibrate(np.arange(40) % 2, np.linspace(0.1, 0.9, 40), method="platt").save(fitted)
    ended = calibrant("apply", fitted, path, "-p", "p", "-o", tmp_path / "out.csv")
    assert ended.returncode == 2
    assert said in ended.stderr
    assert not (tmp_path / "out.csv").exists()
