"""The page on streams: its table of games is what the calibrators and the monitor give."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

import calibrant as cb
from calibrant.online import Monitor, OnlineCalibrator

PAGE = Path(__file__).parents[2] / "docs" / "online.md"
COLUMNS = ("y", "p", "date", "league")


@pytest.fixture(scope="module")
def games(shared_data):
    file = shared_data / "fivethirtyeight_games.parquet"
    query = f"SELECT * FROM '{file}' WHERE y IN (0, 1) ORDER BY date, league, team1, team2"
    found = duckdb.sql(query).fetchnumpy()
    return [np.asarray(found[name]) for name in COLUMNS]


def share(x, digits):
    return f"{x:.{digits}f}".removeprefix("0")


def line(name, games, options, by):
    """Return the row of the table, and the p-value of the monitor."""
    y, p, date, league = games
    calibrator = OnlineCalibrator(**options)
    q = calibrator.run(y, p, by=league if by else None, batches=date).predictions
    bound = f"{share(calibrator.certificate / len(y), 4)} " if options.get("guard", True) else ""
    gain = float(np.sum((y - p) ** 2 - (y - q) ** 2))
    figures = f"{share(cb.brier_score(y, q), 5)} | {share(cb.lower_distance(y, q), 4)} | {bound}| {gain:.1f}"
    return f"| {name} | {figures} |", Monitor().update(y, q).pvalue


@pytest.mark.parametrize(
    ("name", "options", "pvalue"),
    [
        ("one calibrator", {}, "p = 0.015"),
        ('`by="league"`', {"by": "league"}, "p = 0.87 with the guard"),
        (
            '`by="league", delay=19, guard=False` (Brier promise)',
            {"by": "league", "delay": 19, "guard": False},
            "0.11 without",
        ),
    ],
)
def test_the_table_of_games_is_what_the_calibrators_give(games, name, options, pvalue):
    page = PAGE.read_text(encoding="utf-8")
    row, found = line(name, games, options, "by" in options)
    assert row in page
    assert f"{found:.2g}" in pvalue
    assert pvalue in page.replace("\n", " ")
