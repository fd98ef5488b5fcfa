"""docs/reproduced.md says what the scripts print: every deterministic table is made again and compared."""

from __future__ import annotations

import importlib

import pytest

from reproduce import multi_protocol, survey_rates
from reproduce.__main__ import HEAD, LIMITS, PARTS
from reproduce.layout import DATA, ROOT

PAGE = (ROOT / "docs" / "reproduced.md").read_text(encoding="utf-8")
QUICK = ("distance_examples", "survey_examples", "multi_appendix_f", "truthful_table1", "truthful_duels")
SECONDS = ("testing_table3",)  # its table holds times, which no two runs share
SAMPLED = ("multi_protocol", "survey_rates")  # minutes: some rows and columns are made again
REAL = ("testing_table2",)  # parts with rows from data that may be absent


def rows_on_page(part):
    section = PAGE[PAGE.index(f"### {part.TITLE}\n") :]
    section = section[: section.find("\n### ", 1)].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("|")]


def check_tables(name):
    part = importlib.import_module(f"reproduce.{name}")
    made = [line for line in part.page().splitlines() if line.startswith("|")]
    assert made == rows_on_page(part)


@pytest.mark.parametrize("name", QUICK)
def test_tables_of_quick_parts(name):
    check_tables(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [part for part in PARTS if part not in (*QUICK, *SECONDS, *SAMPLED)])
def test_tables_of_long_parts(name):
    if name in REAL and not DATA.exists():
        pytest.skip("needs the data folder next to the repository")
    check_tables(name)


@pytest.mark.slow
@pytest.mark.parametrize("measure", list(survey_rates.RATES))
def test_some_rates(measure):
    lines = rows_on_page(survey_rates)
    for name in survey_rates.NAMES:
        errors = [f"{survey_rates.error(measure, name, t)[0]:,.1f}" for t in (10**3, 10**4)]
        start = f"| {measure}: {survey_rates.WORDS[name]} | {errors[0]} | {errors[1]} |"
        assert any(line.startswith(start) for line in lines), start


@pytest.mark.slow
@pytest.mark.parametrize("measure", list(survey_rates.RATES))
def test_rates_against_the_published_adversaries(measure):
    errors = [f"{survey_rates.stopped(measure, rounds):,.1f}" for rounds in (10**3, 10**4)]
    start = f"| {measure} | {errors[0]} | {errors[1]} |"
    assert any(line.startswith(start) for line in rows_on_page(survey_rates)), start


@pytest.mark.slow
def test_some_rows_of_the_protocol(shared_data, monkeypatch):
    monkeypatch.setattr(multi_protocol, "DATA", shared_data)
    data, lines = multi_protocol.read("adult_predictions.parquet"), rows_on_page(multi_protocol)
    test = {column: x[multi_protocol.quarter(len(x))] for column, x in data.items()}
    made = [("lgbm", *multi_protocol.row(data, "p_lgbm"))]
    for how, p in multi_protocol.cross_validated(data, "dt").items():
        made.append((f"dt: {how}", *multi_protocol.judged(test, p)))
    for row in made:
        assert f"| {' | '.join(row)} |" in lines


def test_head_and_limits():
    assert PAGE.startswith(HEAD)
    assert PAGE.endswith(LIMITS)
