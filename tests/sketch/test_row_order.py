"""Columns that are read one by one belong to the same rows, however many threads read them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from read_files import read_categories

from calibrant.io.read import read_table


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_text_and_numbers_stay_in_the_order_of_the_rows(kind, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"p": rng.random(3_000), "g": rng.choice(["a", "b", "NA", " "], 3_000)})
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, row_group_size=100)  # each thread takes some groups
    expected = np.where(frame["g"] == " ", None, frame["g"]).tolist()
    for _ in range(12):  # a wrong order came up in every second reading
        numbers, texts = read_table([str(path)], ["p"], ["g"])
        assert texts["g"].tolist() == expected
        assert numbers["p"] == pytest.approx(frame["p"].to_numpy(), abs=1e-15)
    assert read_categories([str(path)], ["g"])["g"].tolist() == expected
