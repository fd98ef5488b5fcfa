"""What evaluate writes is what the JSON Schema that ships promises, whatever the data."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest

import calibrant as cb
from calibrant.report.rendering import script_json
from evaluation.test_verdicts import KINDS, drawn

SCHEMA = json.loads(files("calibrant.evaluation").joinpath("evaluation.schema.json").read_text())


def test_the_schema_is_a_schema_and_refuses_something_else():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": "something else"}, SCHEMA)


@pytest.mark.parametrize("kind", KINDS)
def test_evaluations_of_every_kind_keep_to_the_schema(kind):
    found = cb.evaluate(**drawn(kind, 5), seed=1, draws=19)
    jsonschema.validate(json.loads(script_json(found.to_dict())), SCHEMA)


def test_every_measure_says_whether_its_p_value_is_a_bound():
    loans = cb.load_demo(2000)
    found = cb.evaluate(loans["default"], loans["p"], seed=1, draws=19)
    written = {row["name"]: row["pvalue_is_bound"] for row in found.to_dict()["measures"]}
    assert written == {row.about.name: row.pvalue_is_bound for row in found.rows}
    assert True in written.values()


@pytest.mark.parametrize("y", [[0, 0, 1, 0], [1, 1, 0, 1], [0, 0, 0, 0]], ids=str)
def test_what_json_has_no_number_for_is_none(y):
    found = cb.evaluate(y, [0.1, 0.2, 0.6, 0.7], seed=3, draws=19).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found == json.loads(script_json(found))
