"""Odd tables for `classes` and `compare --groups`: clear refusals, and labels that mean what they say."""

from __future__ import annotations

import json

import pytest

from calibrant.cli.main import run_command

GROUPS = ("-y", "y", "-p", "p", "--groups", "g")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Write a table, run a command on it and return exit code, output and messages."""
    monkeypatch.chdir(tmp_path)

    def call(command, text, *arguments):
        (tmp_path / "t.csv").write_text(text, encoding="utf-8")
        monkeypatch.setattr("sys.argv", ["calibrant", command, "t.csv", *map(str, arguments)])
        code = run_command()
        return code, *capsys.readouterr()

    return call


def rows(groups, n=40):
    return "y,p,g\n" + "".join(f"{k % 2},0.{k % 9 + 1},{groups[k % len(groups)]}\n" for k in range(n))


@pytest.mark.parametrize(
    "groups",
    [
        ["a", "b"],
        ["ünï 🙂", "<b>x</b>", "it's"],
        ['"a,b"', '"quo""ted"', "c"],
        ["x" * 5000, "y" * 5000],
        ["", "a", "b"],
        ["NA", "a"],  # the group of missing labels
        ["1", "2.5", "-3"],
        ["2024-01-01", "2025-01-01"],
        [" a", "a"],
    ],
)
def test_odd_groups_are_compared_as_they_are_written(run, groups):
    code, out, err = run("compare", rows(groups), *GROUPS, "--json", "--seed", 1, "--draws", 99)
    assert code == 0, err
    assert len(json.loads(out)["groups"]) == len(groups)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (rows(["a"]), "must have 2 to 200 different values; got 1. Hint: one group has no other"),
        (rows([str(k) for k in range(300)], 600), "got 300. Hint: cut numbers into ranges"),
        ("y,p,g\n", "column 'y' must not be empty; got no rows"),
        ("y,p,g\n,,\n,,\n", "must not be missing"),
        ("y,p,g\n0,nan,a\n1,nan,b\n", "column 'p' must not be missing"),
        ("y,p,h\n0,.5,a\n", "must be one of y, p, h; got 'g'"),
        ("y,p,g\n0,.5,a,b\n", "the same number of cells"),
        ("", "must not be empty; got 0 bytes"),
    ],
)
def test_tables_without_two_groups_are_refused_in_words(run, text, message):
    code, _, err = run("compare", text, *GROUPS)
    assert code == 2
    assert message in err
    assert "unexpected" not in err


def test_labels_that_are_names_of_columns_mean_those_columns(run):
    cells = [(0, 0.9), (1, 0.2), (0, 0.8), (1, 0.1), (0, 0.7)] * 12  # label, probability of class 0
    text = "label,1,0\n" + "".join(f"{label},{1 - p:.2f},{p}\n" for label, p in cells)
    tables = [
        json.loads(run("classes", text, "-y", "label", *order, "--json", "--seed", 1)[1])
        for order in (("-p", "1", "-p", "0"), ("-p", "0", "-p", "1"))
    ]
    happened = [{row["name"]: row["happened"] for row in table["classes"]} for table in tables]
    assert happened[0] == happened[1]
    assert tables[0]["top"]["happened"] == 1


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("label,a,b\nc,.5,.5\n", (), "column 'label' must be one of the classes 'a', 'b'; got c"),
        ("label,a,b\n,.5,.5\n", (), "column 'label' must not be missing"),
        ("label,a,b\na,.5,.6\n", (), "sum to 1"),
        ("label,a,b\na,nan,nan\n", (), "columns 'a', 'b' must not be missing"),
        ("label,a,b\na,0.5,0.6\n", (), "columns 'a', 'b' must sum to 1 in each row; got 1.1 in row 0"),
        ("label,a,b,w\na,0.5,0.5,-1\n", ("-w", "w"), "column 'w' must not be negative"),
        ("label,a,b\na,.5,.5\n", ("--labels", "q"), "--labels must name each column once; got ['q']"),
        ("label,a,b\n7,.5,.5\n", (), "in their order with --labels"),
    ],
)
def test_classes_name_the_column_and_the_option(run, text, arguments, message):
    code, _, err = run("classes", text, "-y", "label", "-p", "a", "-p", "b", *arguments)
    assert code == 2
    assert message in err
    assert "y_true" not in err


@pytest.mark.parametrize("written", ["true", "True", "TRUE"])
def test_truth_values_are_labels_as_the_user_spells_them(run, written):
    text = "label,a,b\n" + "".join(f"{written if k % 2 else 'false'},0.4,0.6\n" for k in range(30))
    options = ("-y", "label", "-p", "a", "-p", "b", "--labels", "false,true", "--seed", 1, "--json")
    code, out, err = run("classes", text, *options)
    assert code == 0, err
    assert [row["name"] for row in json.loads(out)["classes"]] == ["false", "true"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_break_in_a_name_is_read_or_refused_in_words(run, end):
    text = end.join(['y,p,"of a\nline"', *(f"{k % 2},0.{k % 9 + 1},{k % 3}" for k in range(40)), ""])
    arguments = ("-y", "y", "-p", "p", "--draws", 19, "--seed", 1, "--groups")
    code, out, reported = run("evaluate", text, *arguments, '"of a\nline"')
    if end == "\n":
        assert code in (0, 1)
        assert "40 records" in out
    else:
        assert code == 2
        assert r"must have line breaks of one kind in its header; got another in 'of a\nline'" in reported
    code, _, reported = run("evaluate", text, *arguments, "of a\nline")
    assert code == 2
    assert "needs quotes around a name that has a line break" in reported
