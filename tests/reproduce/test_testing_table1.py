"""Table 1 of the testing paper: rows smCE and cECE exactly, the dCE row completed."""

from __future__ import annotations

import numpy as np
import pytest

from reproduce import testing_table1

TABLE = vars(testing_table1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smCE", "cECE"])
def test_rows_are_the_papers(name):
    assert TABLE["row"](*TABLE["ROWS"][name]) == TABLE["PRINTED"][name]


@pytest.mark.slow
def test_the_papers_side_of_the_close_call_is_the_likelier():
    refused = TABLE["values"]("convolved", TABLE["SIZES"][-1], 3000) >= 0.05 / 2
    assert np.mean(refused) + 2 * np.std(refused) / np.sqrt(3000) < 0.5


@pytest.mark.slow
def test_the_distance_row_is_complete_and_the_papers_is_half_of_it():
    whole, half = (TABLE["row"](*TABLE["ROWS"][name]) for name in ("dCE", "dCE halved"))
    assert half[:3] == TABLE["PRINTED"]["dCE halved"]
    assert len(whole) == 6
    assert list(whole) == sorted(whole, reverse=True)
    assert whole[-1] == 0.01  # the true distance


def test_one_entry():
    assert TABLE["threshold"](TABLE["values"]("smooth", 65)) == 0.07
