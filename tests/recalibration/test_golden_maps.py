"""Maps that earlier versions saved are read to the same numbers, whatever their form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from calibrant import load_recalibration
from calibrant.recalibration.maps.base import FORMS

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_golden_files_read_the_same(file):
    known = json.loads(file.read_text())["golden"]
    columns = {"covariates": known["covariates"]} if "covariates" in known else {}
    found = load_recalibration(file).predict(known["p"], **columns)
    # processors differ in the last digit of exp and of sums
    np.testing.assert_allclose(found, known["q"], rtol=1e-13)
    if not columns and np.ndim(known["p"]) == 1:
        assert found.tolist() == known["q"]


def test_every_form_of_map_has_a_golden_file():
    stored = {json.loads(file.read_text())["map"]["form"] for file in GOLDEN}
    lacking = sorted(FORMS.keys() - stored)
    assert not lacking, (
        f"no golden file has a map of the form {lacking}: run `python tests/recalibration/make_golden.py "
        "METHOD` with a method that makes such a map, and add the file that it writes"
    )
