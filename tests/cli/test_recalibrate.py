"""`calibrant recalibrate` and `calibrant apply`: exit codes, files written whole, every column kept."""

from __future__ import annotations

import json

import duckdb
import numpy as np
import pytest
from cli.typed import calibrant as run

import calibrant as cb


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("recalibrate")
    rng = np.random.default_rng(0)
    q = rng.uniform(0.05, 0.95, 1500)
    p = 1 / (1 + np.exp(-2 * np.log(q / (1 - q))))
    y = (rng.random(1500) < q).astype(int)
    lines = [f"{i:04d},{a},{b:.6f},{i // 3}" for i, (a, b) in enumerate(zip(y, p, strict=True))]
    (path / "train.csv").write_text("\n".join(["id,y,p,patient", *lines]) + "\n")
    (path / "few.csv").write_text("y,p\n" + "0,0.3\n1,0.6\n" * 3)
    noise = rng.integers(0, 2, 300)
    flat = [f"{a},{b:.6f}" for a, b in zip(noise, 0.5 + 0.001 * rng.random(300), strict=True)]
    (path / "noise.csv").write_text("\n".join(["y,p", *flat]) + "\n")
    new = 'code,p,text\n007,0.9,"a, b"\n008,,NA\n009,1.7,\n010,-1,x\n011, 0.25 ,y\n'
    (path / "new.csv").write_text(new)
    assert run("recalibrate", "train.csv", "-y", "y", "-p", "p", "-m", "platt", "-o", "map.json",
               "--seed", 1, cwd=path).returncode == 0  # fmt: skip
    return path


def test_a_map_is_written_and_said_to_help(folder):
    done = run("recalibrate", "train.csv", "-y", "y", "-p", "p", "--clusters", "patient", "-o", "auto.json",
               "--seed", 1, cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "on held-out records: helps" in done.stdout
    assert "not trained on" in done.stderr
    assert cb.load_recalibration(folder / "auto.json").method == "auto"


def test_json_holds_all_that_the_file_holds(folder):
    done = run("recalibrate", "train.csv", "-y", "y", "-p", "p", "-m", "platt", "--option", "shrink=none",
               "--seed", 1, "--json", cwd=folder)  # fmt: skip
    found = json.loads(done.stdout)
    assert found["options"]["shrink"] is None
    assert found["assessment"]["verdict"] == "helps"
    assert found["output"] is None


def test_a_named_method_that_harms_writes_nothing(folder):
    arguments = ("recalibrate", "noise.csv", "-y", "y", "-p", "p", "-m", "histogram", "--option", "bins=100",
                 "-o", "harm.json", "--seed", 1)  # fmt: skip
    done = run(*arguments, cwd=folder)
    assert done.returncode == 1
    assert "harms on held-out records; nothing written" in done.stderr
    assert not (folder / "harm.json").exists()
    assert run(*arguments, "--force", cwd=folder).returncode == 0
    assert (folder / "harm.json").exists()


@pytest.mark.parametrize("extra", [(), ("--force",)])
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("-m", "platt"), "needs both outcomes"),
        (("-m", "histogram", "--option", "bins=99"), "needs 198 records"),
    ],
)
def test_records_that_no_force_fits_are_too_little_data(folder, arguments, reason, extra):
    (folder / "ones.csv").write_text("y,p\n" + "1,0.3\n1,0.6\n" * 20)
    done = run(
        "recalibrate", "ones.csv", "-y", "y", "-p", "p", *arguments, "-o", "1.json", *extra, cwd=folder
    )
    assert done.returncode == 3
    assert done.stderr.startswith("calibrant: too little data: ")
    assert reason in done.stderr
    assert not (folder / "1.json").exists()


def test_too_little_data_is_exit_code_3(folder):
    done = run("recalibrate", "few.csv", "-y", "y", "-p", "p", "-m", "platt", "-o", "few.json", cwd=folder)
    assert done.returncode == 3
    assert "too little data: 6 records" in done.stderr
    assert not (folder / "few.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("recalibrate", "train.csv", "-y", "y", "-p", "p", "-m", "plat"), "did you mean 'platt'"),
        (("recalibrate", "train.csv", "-y", "y", "-p", "p", "--option", "x"), "must be NAME=VALUE"),
        (("recalibrate", "absent.csv", "-y", "y", "-p", "p"), "must exist"),
        (("recalibrate", "train.csv", "-y", "y", "-p", "p", "-m", "shift", "-o", "no/x.json"), "folder"),
        (("apply", "new.csv", "new.csv", "-p", "p", "-o", "x.csv"), "must be a recalibration"),
        (("apply", "map.json", "new.csv", "-p", "q", "-o", "x.csv"), "must be one of code, p, text"),
        (("apply", "map.json", "new.csv", "-p", "p", "--as", "text", "-o", "x.csv"), "already"),
        (("apply", "map.json", "new.csv", "-p", "p", "-o", "x.xlsx"), "must end in one of"),
        (("apply", "map.json", "absent.csv", "-p", "p", "-o", "x.csv"), "must exist"),
        (("apply", "map.json", "new.csv", "-p", "p", "-o", "no/x.csv"), "folder"),
        (("recalibrate", "train.csv", "-y", "y", "-p", "p", "-m", "shift", "-o", ""), "file ''"),
        (("recalibrate", "--sql", "map.json", "-p", "p", "-o", ""), "file ''"),
    ],
)
def test_bad_input_is_exit_code_2_and_one_sentence(folder, arguments, message):
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(folder.glob("*.part")) + list(folder.glob(".*.part"))


def test_apply_keeps_every_cell_of_a_text_file(folder):
    done = run("apply", "map.json", "new.csv", "-p", "p", "-o", "out.csv", "--as", "q", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "3 rows have no prediction in [0, 1]" in done.stderr
    lines = (folder / "out.csv").read_text().splitlines()
    old = (folder / "new.csv").read_text().splitlines()
    assert [line.rpartition(",")[0] for line in lines] == old
    q = [line.rpartition(",")[2] for line in lines[1:]]
    expected = cb.load_recalibration(folder / "map.json").predict([0.9, 0.25])
    assert [float(q[0]), float(q[4])] == pytest.approx(expected, abs=1e-12)
    assert q[1:4] == ["", "", ""]


def test_apply_refuses_text_among_numbers(folder):
    (folder / "text.csv").write_text('p\n0.9\nabc\n"12 %"\n')
    done = run("apply", "map.json", "text.csv", "-p", "p", "-o", "none.csv", cwd=folder)
    assert done.returncode == 2
    assert "got the text 'abc' in row 1 of 'text.csv', line 3 (2 rows)" in done.stderr
    assert not (folder / "none.csv").exists()


def test_apply_streams_parquet_and_counts(folder):
    with duckdb.connect() as connection:
        target = folder / "new.parquet"
        connection.execute(
            f"COPY (SELECT i AS k, (i % 1001) / 1000 AS p, 'x' || i AS t FROM range(100000) r(i))"
            f" TO '{target}' (FORMAT parquet)"
        )
    done = run("apply", "map.json", "new.parquet", "-p", "p", "-o", "out.parquet", "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert found["rows"] == 100_000
    assert found["unusable"] == 0
    assert found["outside"] > 0
    with duckdb.connect() as connection:
        table = connection.read_parquet(str(folder / "out.parquet")).fetchnumpy()
    assert list(table) == ["k", "p", "t", "p_recalibrated"]
    assert (table["k"] == np.arange(100_000)).all()
    expected = cb.load_recalibration(folder / "map.json").predict(table["p"])
    assert table["p_recalibrated"] == pytest.approx(expected, abs=1e-12)
    done = run("apply", "map.json", "new.parquet", "-p", "p", "-o", "out.csv", cwd=folder)
    assert "100,000 rows written to out.csv, with the column p_recalibrated" in done.stderr


def test_sql_is_printed(folder):
    done = run("recalibrate", "--sql", "map.json", "-p", "score", "--dialect", "spark", cwd=folder)
    assert done.returncode == 0
    assert "`score`" in done.stdout


def test_groups_are_audited_by_value_and_listed_before_and_after(folder):
    words = ("recalibrate", "train.csv", "-y", "y", "-p", "p", "-m", "hierarchical", "--seed", 1)
    lines = [line.split(",") for line in (folder / "train.csv").read_text().splitlines()[1:]]
    rows = [f"{i},{y},{p},{'ab'[int(i) % 2]},{'xyz'[int(i) % 3]}" for i, y, p, _ in lines]
    (folder / "groups.csv").write_text("\n".join(["id,y,p,g,h", *rows]) + "\n")
    named = ("recalibrate", "groups.csv", *words[2:], "--groups", "g,h")
    done = run(*named, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "audit of the values of g, h, alone and in pairs: 11 groups and everyone: p " in done.stdout
    assert "who pays, in points" in done.stdout
    assert "fitted without it" in done.stderr
    whom = json.loads(run(*named, "--json", cwd=folder).stdout)["assessment"]["for_whom"]
    assert len(whom["changes"]) == 12
    assert {"predicted", "difference", "low", "high", "pvalue", "brier"} <= whom["changes"][0]["after"].keys()
    (folder / "rules.json").write_text("[]")
    refused = run(*named, "--rules", "rules.json", cwd=folder)
    assert refused.returncode == 2
    assert "--groups" in refused.stderr


def test_several_classes_are_recalibrated_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(300, 3))
    truth = np.exp(0.5 * logits)
    truth /= truth.sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    table = np.exp(logits)
    table /= table.sum(axis=1, keepdims=True)
    rows = "\n".join(
        ",".join([*map(repr, map(float, line)), "abc"[k]]) for line, k in zip(table, labels, strict=True)
    )
    file, written = tmp_path / "rows.csv", tmp_path / "map.json"
    file.write_text("p_a,p_b,p_c,y\n" + rows + "\n")
    options = ["recalibrate", str(file), "-y", "y", "-p", "p_a,p_b,p_c", "--method", "temperature"]
    done = run(*options, "--labels", "a,b,c", "-o", str(written))
    assert done.returncode == 0, done.stderr
    by_hand = cb.recalibrate(labels, table, method="temperature", seed=0)
    assert cb.load_recalibration(written).temperature == pytest.approx(by_hand.temperature)
    refused = run(*options)
    assert refused.returncode == 2
    assert "with --labels" in refused.stderr
    alone = run("recalibrate", str(file), "-y", "y", "-p", "p_a", "--labels", "a,b,c")
    assert alone.returncode == 2
