"""The commands for streams: exit codes, states, and what is written."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import calibrant as cb
from calibrant.cli.main import calibrant
from calibrant.cli.rows import OrderedRows
from calibrant.cli.stream import _stepped
from calibrant.errors import UnwritableFileError
from calibrant.formatting import format_value
from calibrant.online import GroupMonitor, OnlineCalibrator


def command(*arguments):
    return CliRunner().invoke(calibrant, [str(a) for a in arguments])


def write(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def stream(n, seed=0, wrong=False):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n).round(4)
    y = (rng.random(n) < (p**2 if wrong else p)).astype(int)
    day = np.sort(rng.integers(0, max(1, n // 5), n))
    return {"y": y, "p": p, "day": day, "g": rng.choice(["a", "b"], n)}


def test_monitor_raises_the_alarm_once_and_for_all(tmp_path):
    good, bad = (
        write(tmp_path / "good.csv", stream(800)),
        write(tmp_path / "bad.csv", stream(800, 1, wrong=True)),
    )
    state = tmp_path / "s.json"
    arguments = ("-y", "y", "-p", "p", "--state", state, "--json")
    codes = []
    for file in (good, bad, good):
        result = command("monitor", file, *arguments, "--same")
        codes.append(result.exit_code)
    assert codes == [0, 1, 1]
    reading = json.loads(result.stdout)["readings"]["everybody"]
    assert reading["n"] == 2400
    assert 800 < reading["alarm_at"] <= 1600
    assert reading["onset"] > 600
    assert "less often than predicted" in reading["suspicion"]
    monitor = cb.Monitor.load(state)
    assert monitor.n == 2400


def test_monitor_says_when_the_alarm_was_raised_and_counts_records_one_way(tmp_path):
    bad, later = (write(tmp_path / f"{k}.csv", stream(800, k, wrong=True)) for k in (1, 2))
    arguments = ("-y", "y", "-p", "p", "--state", tmp_path / "s.json")
    first, second = (command("monitor", file, *arguments) for file in (bad, later))
    assert first.exit_code == second.exit_code == 1
    assert "ALARM: evidence against calibration since record " in first.stderr
    assert "ALARM, raised by an earlier run: evidence against calibration since record " in second.stderr
    for result in (first, second):
        since = re.search(r"since record ([\d,]+)", result.stderr)[1]
        table = re.findall(r"record ([\d,]+)", result.stdout)
        assert table[1] == since  # after "alarm at"


def test_monitor_says_that_a_file_without_rows_counts_for_nothing(tmp_path):
    full, empty = write(tmp_path / "a.csv", stream(300)), write(tmp_path / "b.csv", stream(0))
    arguments = ("-y", "y", "-p", "p", "--state", tmp_path / "s.json")
    said = "no new rows in FILE: nothing was counted"
    results = [command("monitor", file, *arguments, *more) for file, more in (
        (full, ["--grown"]), (full, ["--grown"]), (empty, []),
    )]  # fmt: skip
    assert [result.exit_code for result in results] == [0, 0, 0]
    assert [said in result.stderr for result in results] == [False, True, True]


@pytest.mark.parametrize("by", [(), ("--by", "g")], ids=["", "by"])
@pytest.mark.parametrize("name", ["monitor", "stream"])
def test_rows_that_were_counted_are_refused_under_any_name(tmp_path, name, by):
    rows, state = stream(60), tmp_path / "s.json"
    rows["g"] = np.where(rows["g"] == "a", "parts", "b")  # the name of the field that keeps them
    today = write(tmp_path / "today.csv", rows)
    copy = write(tmp_path / "copy.csv", {"extra": np.arange(60), **rows})
    arguments = ("-y", "y", "-p", "p", "--state", state, *by)
    assert command(name, today, *arguments).exit_code == 0
    kept = state.read_bytes()
    for file in (today, copy):
        again = command(name, file, *arguments)
        assert "got the rows of an earlier run. Hint: pass --same" in str(again.exception)
        assert state.read_bytes() == kept
    tomorrow = write(tmp_path / "b.csv", {**stream(60, 1), "g": rows["g"]})
    assert command(name, tomorrow, *arguments).exit_code == 0
    assert isinstance(command(name, copy, *arguments).exception, cb.InvalidInputError)
    assert command(name, copy, *arguments, "--same").exit_code == 0
    twice = command(name, today, today, "-y", "y", "-p", "p")
    assert "FILE must name each file once" in str(twice.exception)


@pytest.mark.parametrize("name", ["monitor", "stream"])
def test_rows_that_may_well_be_equal_by_chance_are_counted(tmp_path, name):
    quiet = write(tmp_path / "quiet.csv", {"y": np.zeros(50, dtype=int), "p": np.full(50, 0.01)})
    for _ in range(2):
        assert command(name, quiet, "-y", "y", "-p", "p", "--state", tmp_path / "s.json").exit_code == 0


def test_many_rows_of_few_predictions_do_not_come_again_by_chance(tmp_path):
    rng = np.random.default_rng(3)
    p = rng.integers(1, 4, 200) / 4
    file = write(tmp_path / "m.csv", {"y": (rng.random(200) < p).astype(int), "p": p})
    arguments = ("monitor", file, "-y", "y", "-p", "p", "--state", tmp_path / "s.json")
    assert command(*arguments).exit_code == 0
    assert "got the rows of an earlier run" in str(command(*arguments).exception)


def test_a_file_that_grows_begins_with_what_was_counted(tmp_path):
    first, other, state = stream(50), stream(80, 1), tmp_path / "s.json"
    arguments = ("-y", "y", "-p", "p", "--state", state, "--grown")
    assert command("monitor", write(tmp_path / "a.csv", first), *arguments).exit_code == 0
    kept = state.read_bytes()
    refused = command("monitor", write(tmp_path / "b.csv", other), *arguments)
    assert "FILE must begin with the rows that the state has counted; got others" in str(refused.exception)
    assert state.read_bytes() == kept
    longer = {name: np.concatenate([first[name], other[name]]) for name in first}
    assert command("monitor", write(tmp_path / "c.csv", longer), *arguments).exit_code == 0
    assert cb.Monitor.load(state).n == 130


def test_a_morning_without_outcomes_is_no_part_of_the_stream(tmp_path):
    rows, state = stream(60), tmp_path / "s.json"
    morning = write(tmp_path / "m.csv", {**rows, "y": [""] * 60})
    evening = write(tmp_path / "e.csv", rows)
    arguments = ("-y", "y", "-p", "p", "--state", state, "--forget-missing")
    codes = [command("stream", file, *arguments).exit_code for file in (morning, morning, evening, evening)]
    assert codes == [0, 0, 0, 1]  # refused


def test_monitor_of_groups_and_of_a_file_that_grows(tmp_path):
    rows = stream(600)
    state = tmp_path / "s.json"
    whole = cb.GroupMonitor(["a", "b"], alpha=0.1)
    whole.update(rows["y"], rows["p"], rows["g"])
    for end in (100, 350, 600):
        file = write(tmp_path / "rows.csv", {name: column[:end] for name, column in rows.items()})
        result = command("monitor", file, "-y", "y", "-p", "p", "--by", "g", "--group", "a", "--group", "b",
                      "--alpha", 0.1, "--state", state, "--grown")  # fmt: skip
        assert result.exit_code == 0, result.output
        assert "everybody" in result.stdout
    kept = cb.GroupMonitor.load(state).readings()
    for name, reading in whole.readings().items():
        assert kept[name].n == reading.n
        assert kept[name].log_evalue == pytest.approx(reading.log_evalue)


def test_monitor_refuses(tmp_path):
    file, state = write(tmp_path / "rows.csv", stream(50)), tmp_path / "s.json"
    base = ("monitor", file, "-y", "y", "-p", "p")
    assert command(*base, "--state", state).exit_code == 0
    before = state.read_text()
    for arguments in (
        ("monitor", file, "-y", "y", "-p", "y"),
        ("monitor", file, "-y", "p", "-p", "y"),
        ("monitor", tmp_path / "none.csv", "-y", "y", "-p", "p"),
        (*base, "--state", state, "--alpha", "0.01"),
        (*base, "--state", state, "--by", "g"),
        (*base, "--alpha", "2"),
        (*base, "--grown"),
        (*base, "--group", "a"),
        (*base, "--by", "g", "--group", "a"),
        (*base, "--order", "nothing"),
        (*base, "--state", tmp_path / "no" / "s.json"),
    ):
        result = command(*arguments)
        assert isinstance(result.exception, (cb.CalibrantError, SystemExit)), (arguments, result.exception)
        assert result.exit_code != 0
    state.write_text('{"calibrant_monitor": 2, "peak": NaN}')
    assert isinstance(command(*base, "--state", state).exception, cb.CalibrantError)
    assert before


def false_alarms(tmp_path, runs, alpha):
    count = 0
    for seed in range(runs):
        state = tmp_path / f"{seed}.json"
        for part in range(3):
            file = write(tmp_path / "rows.csv", stream(400, seed=1000 * part + seed))
            code = command(
                "monitor", file, "-y", "y", "-p", "p", "--alpha", alpha, "--state", state
            ).exit_code
            assert code in (0, 1)
        count += code
    return count


def test_false_alarms_of_the_command_are_rare(tmp_path):
    assert false_alarms(tmp_path, 8, 0.1) <= 4  # more but once in 1,000


@pytest.mark.slow
def test_false_alarms_of_the_command(tmp_path):
    runs, alpha = 200, 0.1
    assert false_alarms(tmp_path, runs, alpha) <= alpha * runs + 3 * (alpha * (1 - alpha) * runs) ** 0.5


def test_stream_is_the_calibrator(tmp_path):
    rows = stream(400, wrong=True)
    shuffled = np.random.default_rng(1).permutation(400)
    file = write(tmp_path / "rows.csv", {name: column[shuffled] for name, column in rows.items()})
    out = tmp_path / "out.csv"
    result = command("stream", file, "-y", "y", "-p", "p", "--order", "day", "--by", "g", "--batch-by", "day",
                  "-o", out, "--json")  # fmt: skip
    assert result.exit_code == 0, result.output
    written = list(csv.DictReader(out.read_text().splitlines()))
    order = np.argsort(rows["day"][shuffled], kind="stable")
    y, p, day, g = (rows[name][shuffled][order] for name in ("y", "p", "day", "g"))
    calibrator = OnlineCalibrator(by="g")
    run = calibrator.run(y, p, by=g, batches=day)
    back = np.empty(400)
    back[order] = run.predictions
    assert [float(row["calibrated"]) for row in written] == back.tolist()
    assert [float(row["p"]) for row in written] == rows["p"][shuffled].tolist()
    summary = json.loads(result.stdout)
    assert summary["certificate"] == pytest.approx(calibrator.certificate)
    assert summary["bound"] == pytest.approx(calibrator.bound())
    assert summary["calibrated"]["brier"] < summary["raw"]["brier"]
    assert summary["brier_bound"] is None
    assert summary["most_pending"] == calibrator.most_pending


def test_stream_without_some_outcomes(tmp_path):
    rows = stream(60)
    cells = [str(y) for y in rows["y"]]
    cells[3] = cells[59] = ""
    file = write(tmp_path / "rows.csv", {**rows, "y": cells})
    base = ("stream", file, "-y", "y", "-p", "p")
    refused = command(*base).exception
    assert isinstance(refused, cb.CalibrantError)
    assert "Hint: pass --forget-missing" in str(refused)
    result = command(*base, "--forget-missing", "--json", "-o", tmp_path / "out.csv")
    summary = json.loads(result.stdout)
    assert (summary["rows"], summary["learnt"]) == (60, 58)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 61


def test_stream_refuses(tmp_path):
    file, state = write(tmp_path / "rows.csv", stream(50)), tmp_path / "s.json"
    base = ("stream", file, "-y", "y", "-p", "p")
    assert command(*base, "--state", state).exit_code == 0
    for more in (
        ("-o", file), ("-o", state, "--state", state), ("-o", tmp_path / "out.txt"),
        ("--state", state, "--by", "g"), ("--state", state, "--delay", 3), ("--delay", -1),
        ("--batch-by", "g"), ("--state", file), ("-o", tmp_path / "no" / "out.csv"),
    ):  # fmt: skip
        result = command(*base, *more)
        assert isinstance(result.exception, cb.CalibrantError), (more, result.exception)


def test_the_page_shows_the_charts(tmp_path):
    file, page = write(tmp_path / "rows.csv", stream(300, wrong=True)), tmp_path / "page.html"
    result = command("stream", file, "-y", "y", "-p", "p", "--html", page)
    assert result.exit_code == 0, result.output
    text = page.read_text()
    for title in ("Certificate and bound", "Raw against calibrated", "Weights of the experts"):
        assert title in text
    assert "Evidence against calibration: raw" in text
    assert "http://" not in text.split("<script>")[0]


def test_the_page_of_a_stream_that_goes_on_counts_from_its_start(tmp_path):
    first = write(tmp_path / "first.csv", stream(300, wrong=True))
    rows = stream(200, seed=1, wrong=True)
    cells = [str(y) for y in rows["y"]]
    cells[10] = cells[11] = ""
    second, page, state = (
        write(tmp_path / "second.csv", {**rows, "y": cells}),
        tmp_path / "p.html",
        tmp_path / "s",
    )
    assert command("stream", first, "-y", "y", "-p", "p", "--state", state).exit_code == 0
    result = command(
        "stream", second, "-y", "y", "-p", "p", "--state", state, "--forget-missing", "--html", page
    )
    assert result.exit_code == 0, result.output
    calibrator = OnlineCalibrator.load(state)
    assert calibrator.rounds == 498
    text = page.read_text()
    assert "198 records, after 300 earlier ones" in text
    assert f"at most {format_value(calibrator.certificate / 498)} from calibrated" in text


def test_stepping_over_unknown_outcomes_keeps_the_account_of_a_run():
    rows = stream(150, wrong=True)
    outcomes = rows["y"].astype(float)
    columns = {"g": rows["g"]}
    ordered = OrderedRows(outcomes, rows["p"], columns, np.arange(150))
    stepped, whole = OnlineCalibrator(by="g"), OnlineCalibrator(by="g")
    one = _stepped(stepped, ordered, rows["g"], rows["day"])
    other = whole.run(outcomes, rows["p"], by=rows["g"], batches=rows["day"])
    for name in ("predictions", "certificate", "steered"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    np.testing.assert_allclose(one.weights, other.weights)
    assert one.bound[-1] == pytest.approx(other.bound[-1])


def test_late_outcomes_are_learnt_when_they_arrive(tmp_path):
    p = [round(0.02 * k + 0.01, 2) for k in range(40)]
    new, arrived = tmp_path / "new.csv", tmp_path / "arrived.csv"
    new.write_text("y,p\n" + "".join(f",{q}\n" for q in p))
    arrived.write_text("y,p\n" + "".join(f"{k % 2},{q}\n" for k, q in enumerate(p[:25])))
    base = ("-y", "y", "-p", "p", "--state", tmp_path / "s.json")
    refused = command("stream", new, *base).exception
    assert "give stream a file of these rows alone, with the same --state" in str(refused)
    waiting = command("stream", new, *base, "--forget-missing", "-o", tmp_path / "today.csv")
    assert "No outcome is known yet" in waiting.stdout
    assert "40 rows, 0 outcomes learned" in waiting.stderr
    assert "25 rows, 25 outcomes learned," in command("stream", arrived, *base).stderr
    again = command("stream", new, *base, "--forget-missing", "--output", tmp_path / "out.csv")
    assert "40 rows, 0 outcomes learned (25 in all)" in again.stderr
    assert (tmp_path / "out.csv").read_text() != (tmp_path / "today.csv").read_text()


def test_stream_keeps_the_columns_that_are_named(tmp_path):
    file, out = tmp_path / "a.csv", tmp_path / "out.csv"
    write(file, {"id": ["b7", "a1", "c3"], "day": [3, 1, 2], "y": [1, 0, 1], "p": [0.5, 0.25, 0.75]})
    command("stream", file, "-y", "y", "-p", "p", "--order", "day", "--keep", "id,day", "-o", out)
    lines = [line.split(",") for line in out.read_text().splitlines()]
    assert lines[0] == ["id", "day", "y", "p", "calibrated"]
    assert [line[:4] for line in lines[1:]] == [
        ["b7", "3", "1", "0.5"],
        ["a1", "1", "0", "0.25"],
        ["c3", "2", "1", "0.75"],
    ]


def test_stream_copies_cells_as_they_stand(tmp_path):
    file, out = tmp_path / "a.csv", tmp_path / "out.csv"
    cells = {"id": ["1.10", "007", "1e3"], "size": [1, "", 3], "k": [2, "", 1], "day": ["2024-01-02"] * 3}
    write(file, {**cells, "y": [1, 0, 1], "p": [0.5, 0.25, 0.75]})
    command("stream", file, "-y", "y", "-p", "p", "--by", "k", "--keep", "id,size,day", "-o", out)
    lines = [line.split(",")[:4] for line in out.read_text().splitlines()]
    assert lines == [
        ["id", "size", "day", "k"],
        ["1.10", "1", "2024-01-02", "2"],
        ["007", "", "2024-01-02", ""],
        ["1e3", "3", "2024-01-02", "1"],
    ]
    packed = tmp_path / "a.parquet"
    pl.DataFrame({"id": [2**60, None], "y": [0, 1], "p": [0.5, 0.25]}).write_parquet(packed)
    command("stream", packed, "-y", "y", "-p", "p", "--keep", "id", "-o", out)
    assert [line.split(",")[0] for line in out.read_text().splitlines()] == ["id", str(2**60), ""]


def test_the_table_of_a_monitor_and_its_note_name_the_same_record(tmp_path):
    good, bad = stream(800), stream(800, 1, wrong=True)
    file = write(tmp_path / "x.csv", {name: [*good[name], *bad[name]] for name in ("y", "p")})
    words = ("monitor", file, "-y", "y", "-p", "p")
    onset = json.loads(command(*words, "--json").stdout)["readings"]["everybody"]["onset"]
    said = command(*words)
    assert onset > 600  # the number of records before it
    assert f"since record {onset + 1:,} " in said.stderr
    assert f"  record {onset + 1:,}  " in said.stdout.splitlines()[1]


def test_a_monitor_says_how_many_records_are_of_this_run_and_whether_it_raised_the_alarm(tmp_path):
    state, found = tmp_path / "s.json", []
    for night in (stream(800), stream(300, 1, wrong=True), stream(200, 2)):
        file = write(tmp_path / "night.csv", night)
        words = ("monitor", file, "-y", "y", "-p", "p", "--by", "g", "--state", state)
        said = command(*words, "--json")
        found.append(json.loads(said.stdout)["readings"])
        sizes = [len(night["y"]), *((night["g"] == g).sum() for g in dict.fromkeys(night["g"]))]
        assert sorted(one["new"] for one in found[-1].values()) == sorted(sizes)
    assert [one["everybody"]["raised"] for one in found] == [False, True, False]
    assert [one["everybody"]["alarm"] for one in found] == [False, True, True]
    line = command("monitor", file, "-y", "y", "-p", "p", "--by", "g", "--state", state, "--same").stdout
    assert line.splitlines()[0].split()[:3] == ["group", "records", "new"]
    assert line.splitlines()[1].split()[:3] == ["everybody", "1,500", "200"]


def test_a_group_that_the_monitor_did_not_begin_with_is_refused_with_the_way_out(tmp_path):
    state, words = tmp_path / "s.json", ("-y", "y", "-p", "p", "--by", "g", "--state", tmp_path / "s.json")
    none = write(tmp_path / "none.csv", {"y": [], "p": [], "g": []})
    refused = command("monitor", none, *words).exception
    assert "column 'g' must have groups; got no rows. Hint: use --group to name every group" in str(refused)
    assert command("monitor", none, *words, "--group", "a", "--group", "b").exit_code == 0
    later = stream(50) | {"g": ["a"] * 48 + ["c", "d"]}
    refused = command("monitor", write(tmp_path / "later.csv", later), *words).exception
    assert "began with, a, b; got 'c' (2 rows of other groups). Hint: begin a new state" in str(refused)
    assert cb.online.GroupMonitor.load(state).monitors["everybody"].n == 0


@pytest.mark.parametrize(
    "texts", [["31.01.2024", "01.02.2024"], ["2024-9-30", "2024-10-1"], ["Jan 2024", "Feb 2024"]]
)
def test_dates_that_sort_by_their_letters_order_nothing(tmp_path, texts):
    columns = {**stream(40), "day": np.repeat(texts, 20)}
    file = write(tmp_path / "rows.csv", columns)
    for name in ("monitor", "stream"):
        done = command(name, file, "-y", "y", "-p", "p", "--order", "day")
        assert f"column 'day' must hold dates that sort by time; got {texts[0]} in row 0 (40 rows)" in str(
            done.exception
        )
    one_day = write(tmp_path / "day.csv", {**columns, "day": [texts[0]] * 40})
    assert command("monitor", one_day, "-y", "y", "-p", "p", "--order", "day").exit_code == 0


@pytest.mark.parametrize(
    "texts", [["2024-01-31", "2024-02-01"], ["2024/01/31", "2024/02/01"], ["a 9", "b 1"]]
)
def test_text_that_sorts_as_it_shall_is_taken(tmp_path, texts):
    file = write(tmp_path / "rows.csv", {**stream(40), "day": np.repeat(texts, 20)})
    assert command("monitor", file, "-y", "y", "-p", "p", "--order", "day").exit_code == 0


def test_days_are_groups_without_a_time_of_day(tmp_path):
    columns = {**stream(40), "day": np.repeat(["2024-01-31", "2024-02-01"], 20)}
    file, state = write(tmp_path / "rows.csv", columns), tmp_path / "s.json"
    by = ("-y", "y", "-p", "p", "--by", "day", "--state", state)
    done = command("monitor", file, *by, "--json")
    assert list(json.loads(done.stdout)["readings"]) == ["everybody", "2024-01-31", "2024-02-01"]
    named = command("monitor", file, *by[:-2], "--group", "2024-01-31", "--group", "2024-02-01")
    assert named.exit_code == 0, named.exception
    older = GroupMonitor(["2024-01-31 00:00:00", "2024-02-01 00:00:00"])  # as states named them before
    older.save(state)
    assert command("monitor", file, *by).exit_code == 0
    assert GroupMonitor.load(state).groups == older.groups
    columns["day"] = np.repeat(["2024-01-31 06:00:00", "2024-02-01 00:00:00"], 20)
    done = command("monitor", write(tmp_path / "rows.csv", columns), *by[:-2], "--json")
    assert list(json.loads(done.stdout)["readings"])[1:] == ["2024-01-31 06:00:00", "2024-02-01 00:00:00"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full disk to write to")
@pytest.mark.parametrize("name", ["monitor", "stream"])
def test_results_that_a_full_disk_refuses_leave_no_state(tmp_path, name):
    file, state = write(tmp_path / "a.csv", stream(200)), tmp_path / "s.json"
    code = [sys.executable, "-m", "calibrant", name, file, "-y", "y", "-p", "p", "--state", state]
    with open("/dev/full", "w") as full:
        done = subprocess.run(code, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert not state.exists()


def test_a_monitor_whose_results_cannot_be_written_has_counted_nothing(tmp_path, monkeypatch):
    file, state, out = write(tmp_path / "a.csv", stream(200)), tmp_path / "s.json", tmp_path / "out.txt"
    arguments = ("monitor", file, "-y", "y", "-p", "p", "--state", state, "-o", out)

    def full(*_):
        raise UnwritableFileError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("calibrant.cli.output.atomic_write", full)
        assert isinstance(command(*arguments).exception, UnwritableFileError)
    assert not state.exists()
    assert command(*arguments).exit_code == 0
    assert state.exists()
    assert "200" in out.read_text()


@pytest.mark.parametrize("name", ["s.json", "./s.json", "link.json"])
def test_the_results_of_a_monitor_do_not_take_the_place_of_its_state(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    file, more = write(tmp_path / "a.csv", stream(200)), write(tmp_path / "b.csv", stream(200, 1))
    (tmp_path / "link.json").symlink_to(tmp_path / "s.json")
    arguments = ("-y", "y", "-p", "p", "--state", "s.json")
    command("monitor", file, *arguments)
    before = (tmp_path / "s.json").read_bytes()
    refused = command("monitor", more, *arguments, "-o", name)
    assert str(refused.exception) == f"--output must not be the file of --state; got {name!r}."
    assert (tmp_path / "s.json").read_bytes() == before


def test_rows_without_a_batch_are_refused_by_the_name_of_the_column(tmp_path):
    columns = stream(6) | {"day": ["mon", "", "", "tue", "tue", "tue"]}
    refused = command("stream", write(tmp_path / "a.csv", columns), "-y", "y", "-p", "p", "--batch-by", "day")
    assert str(refused.exception).startswith("column 'day' must not be missing; got None in row 1 (2 rows)")
