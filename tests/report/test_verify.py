"""verify: a report equals its data; one digit, one row, another seed or version is found."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from logs.writers import questions, write_lm_eval

import calibrant as cb
from calibrant.cli.main import calibrant


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A CSV file of 300 rows, its report and its JSON."""
    folder = tmp_path_factory.mktemp("verify")
    rng = np.random.default_rng(0)
    p = np.round(rng.random(300), 4)
    y, team = (rng.random(300) < p**1.4).astype(int), rng.choice(["a", "b"], 300)
    rows = "\n".join(f"{a},{b},{c}" for a, b, c in zip(y, p, team, strict=True))
    data = folder / "data.csv"
    data.write_text(f"won,chance,team\n{rows}\n")
    columns = ["-y", "won", "-p", "chance", "--groups", "team", "--draws", "99", "--seed", "3"]
    assert run("evaluate", data, *columns, "--html", folder / "r.html", "--subtitle", "one").exit_code == 0
    (folder / "r.json").write_text(run("evaluate", data, *columns, "--json").stdout)
    return folder


def run(*arguments):
    return CliRunner().invoke(calibrant, [str(a) for a in arguments])


def test_a_report_says_how_to_verify_it(files):
    assert "<code>calibrant verify</code>" in (files / "r.html").read_text()


@pytest.mark.parametrize("report", ["r.html", "r.json"])
def test_a_report_and_its_json_verify(files, report):
    done = run("verify", files / report, files / "data.csv")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Verified: all")


def changed(files, name, pattern, replacement):
    text = (files / name).read_text(encoding="utf-8")
    edited, times = re.subn(pattern, replacement, text, count=1)
    assert times == 1
    target = files / f"changed-{name}"
    target.write_text(edited, encoding="utf-8")
    return target


def test_one_digit_of_the_numbers_is_found(files):
    stored = json.loads((files / "r.json").read_text())
    value = stored["measures"][0]["value"]
    stored["measures"][0]["value"] = value + 1e-9
    target = files / "digit.json"
    target.write_text(json.dumps(stored))
    done = run("verify", target, files / "data.csv", "--json")
    assert done.exit_code == 1
    (only,) = json.loads(done.stdout)["differences"]
    assert only["where"] == f"measures.{stored['measures'][0]['name']}.value"
    assert only["recomputed"] == pytest.approx(value, rel=1e-12)


def test_one_digit_of_the_visible_text_is_found(files):
    text = (files / "r.html").read_text(encoding="utf-8")
    body = re.sub(r"<script.*", "", text[text.index("<main") :], flags=re.DOTALL)
    number = re.search(r">(0\.\d*[1-8])<", body)[1]
    other = number[:-1] + str(int(number[-1]) + 1)
    target = files / "text.html"
    target.write_text(text.replace(f">{number}<", f">{other}<", 1), encoding="utf-8")
    done = run("verify", target, files / "data.csv")
    assert done.exit_code == 1
    assert other in done.stdout
    assert number in done.stdout


def test_one_changed_row_is_found(files):
    lines = (files / "data.csv").read_text().splitlines()
    outcome, rest = lines[7].split(",", 1)
    lines[7] = f"{1 - int(outcome)},{rest}"
    (files / "other.csv").write_text("\n".join(lines) + "\n")
    done = run("verify", files / "r.json", files / "other.csv")
    assert done.exit_code == 1
    assert "Not verified" in done.stdout


def test_another_version_and_seed_are_found(files):
    old = changed(files, "r.json", r'"calibrant_version": "[^"]*"', '"calibrant_version": "0.2.9"')
    done = run("verify", old, files / "data.csv")
    assert done.exit_code == 1
    assert "Install calibrant==0.2.9" in done.stdout
    seeded = changed(files, "r.json", r'"seed": 3\b', '"seed": 4')
    assert run("verify", seeded, files / "data.csv").exit_code == 1


def test_files_of_the_first_schema_keep_their_meaning(files):
    stored = json.loads((files / "r.json").read_text())
    stored |= {"schema_version": 1, "calibrant_version": "0.2.0"}
    for row in stored["measures"]:
        row["name"] = "binned" if row["name"] == "ece" else row["name"]
    found = cb.verify(stored, files / "data.csv")
    assert [difference.where for difference in found.differences] == ["calibrant_version"]


def test_frames_arrays_and_bad_reports(files):
    frame = {"y": [0, 1, 1, 0] * 30, "p": [0.2, 0.7, 0.6, 0.3] * 30}
    arrays = cb.evaluate(frame["y"], frame["p"], draws=19).to_dict()
    with pytest.raises(cb.InvalidInputError, match="outcome column must be named"):
        cb.verify(arrays, frame)
    assert cb.verify(arrays, frame, outcome="y", prediction="p").verified
    for bad in ("data.csv", "nowhere.html"):
        with pytest.raises(cb.CalibrantError):
            cb.verify(files / bad, files / "data.csv")


KINDS = {
    "weights": ["-y", "won", "-p", "chance", "-w", "weight"],
    "clusters": ["-y", "won", "-p", "chance", "--clusters", "site"],
    "censored": ["-p", "chance", "--time", "time", "--event", "won", "--horizon", "2", "--strata", "team"],
    "sketch": ["--by", "team", "-y", "won", "-p", "chance"],
    "log": ["--log", "lm-eval"],
}


@pytest.fixture(scope="module", params=KINDS)
def kind(request, tmp_path_factory):
    """The options of a kind of report, its data, and the data with one changed row."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "log":
        asked = questions(40)
        data = write_lm_eval(folder / "a", asked)
        other = replace(asked[0], likelihoods=[x - 0.5 * k for k, x in enumerate(asked[0].likelihoods)])
        return KINDS["log"], data, write_lm_eval(folder / "b", [other, *asked[1:]])
    rng = np.random.default_rng(1)
    p = np.round(rng.random(400), 4)
    columns = {
        "won": (rng.random(400) < p).astype(int),
        "chance": p,
        "team": rng.choice(["a", "b"], 400),
        "weight": np.round(rng.random(400) + 0.5, 3),
        "site": rng.integers(0, 60, 400),
        "time": np.round(rng.exponential(3, 400) + 0.01, 3),
    }
    columns["won"][5] = columns["time"][5] = 1  # an event before the horizon, which counts
    made = []
    for name in ("data", "changed"):
        rows = "\n".join(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))
        (folder / f"{name}.csv").write_text(f"{','.join(columns)}\n{rows}\n")
        made.append(folder / f"{name}.csv")
        columns["chance"] = np.where(np.arange(400) == 5, 0.1234, p)
    if request.param == "sketch":
        for path in made:
            assert run("sketch", path, *KINDS["sketch"], "-o", path.with_suffix(".sketch")).exit_code == 0
        return [], *(path.with_suffix(".sketch") for path in made)
    return KINDS[request.param], *made


def test_reports_of_every_kind_verify_and_a_changed_row_or_digit_is_found(kind, tmp_path):
    options, data, changed = kind
    made = run("evaluate", data, *options, "--draws", "19", "--html", tmp_path / "r.html", "--json")
    assert made.exit_code == 0, made.output
    (tmp_path / "r.json").write_text(made.stdout)
    log = options if options == KINDS["log"] else []
    for report in ("r.html", "r.json"):
        done = run("verify", tmp_path / report, data, *log)
        assert done.exit_code == 0, done.output
        done = run("verify", tmp_path / report, changed, *log)
        assert done.exit_code == 1, done.output
        assert "Not verified" in done.stdout
    stored = json.loads(made.stdout)
    stored["measures"][0]["value"] *= 1 + 1e-10
    (tmp_path / "digit.json").write_text(json.dumps(stored))
    done = run("verify", tmp_path / "digit.json", data, *log)
    assert done.exit_code == 1
    assert "1 of" in done.stdout
    stored["calibrant_version"] = "0.2.9"
    (tmp_path / "version.json").write_text(json.dumps(stored))
    assert "Install calibrant==0.2.9" in run("verify", tmp_path / "version.json", data, *log).stdout
    if log:
        with pytest.raises(cb.InvalidInputError, match="--log TOOL"):
            cb.verify(tmp_path / "r.html", data)


def test_reports_of_distributions_cannot_be_verified_yet(files, tmp_path):
    found = cb.distributions.evaluate(np.arange(20.0), np.arange(60.0).reshape(20, 3), at=[5], draws=9)
    (tmp_path / "page.json").write_text(json.dumps(found.to_dict()))
    for report in (tmp_path / "page.json", found.to_html(tmp_path / "page.html")):
        done = CliRunner().invoke(calibrant, ["verify", str(report), str(files / "data.csv")])
        assert "got one on forecast distributions" in str(done.exception)
        assert "cannot be verified yet" in str(done.exception)
