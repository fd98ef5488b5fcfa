"""docs/reproduced.md says what the scripts print: every deterministic table is made again and compared."""

from __future__ import annotations

import importlib

import pytest

from reproduce.__main__ import HEAD, LIMITS, PARTS
from reproduce.layout import DATA, ROOT

PAGE = (ROOT / "docs" / "reproduced.md").read_text(encoding="utf-8")
QUICK = ("distance_examples", "survey_examples", "multi_appendix_f", "truthful_table1", "truthful_duels")
SECONDS = ("testing_table3",)  # its table holds times, which no two runs share
REAL = ("testing_table2", "multi_protocol")  # parts with rows from data that may be absent


def check_tables(name):
    part = importlib.import_module(f"reproduce.{name}")
    section = PAGE[PAGE.index(f"### {part.TITLE}\n") :]
    section = section[: section.find("\n### ", 1)].split("\n## ")[0]
    made = [line for line in part.page().splitlines() if line.startswith("|")]
    assert made == [line for line in section.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("name", QUICK)
def test_tables_of_quick_parts(name):
    check_tables(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [part for part in PARTS if part not in (*QUICK, *SECONDS)])
def test_tables_of_long_parts(name):
    if name in REAL and not DATA.exists():
        pytest.skip("needs data beside the repository")
    check_tables(name)


def test_head_and_limits():
    assert PAGE.startswith(HEAD)
    assert PAGE.endswith(LIMITS)
