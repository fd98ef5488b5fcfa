"""Write a golden file of a recalibration method: `python tests/recalibration/make_golden.py METHOD`.

A golden file is a saved map with one more key, "golden": predictions (and covariates, where the map reads
them), and what the map makes of them. It is never rewritten: later versions must read it to the same numbers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from calibrant import Rule, recalibrate, recalibrations
from calibrant.files import CHECKSUM, checksum_of
from calibrant.groups.rules import IsIn
from calibrant.recalibration.storage import FORMAT

FOLDER = Path(__file__).parent / "golden"
SOUTH = Rule([IsIn("area", ("south",))])
# methods with two forms of maps, and options that keep a file short
CALLS = {
    "rule-patch": ("patch", {"groups": [SOUTH]}),
    "boost": ("boost", {"trees": 25, "leaves": 2, "learning_rate": 0.5}),
    "augment": ("augment", {"model": "tree", "times": 2}),
}


def fitted(name):
    """Fit the method to records of which those in the south have too low predictions."""
    method, options = CALLS.get(name, (name, {}))
    row = recalibrations()[method]
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 1500 if row.needs_covariates else 60).round(3)
    rate = p ** np.where(np.arange(len(p)) % 3 == 1, 0.4, 1.2)
    y = (rng.random(len(p)) < rate).astype(int)
    if row.fit is None:
        table = np.column_stack([1 - p, p * 0.25, p * 0.75])
        return recalibrate(y * rng.integers(1, 3, len(p)), table, method=method, seed=0, **options)
    columns = {"covariates": covariates(len(p))} if row.needs_covariates else {}
    return recalibrate(y, p, method=method, seed=0, **columns, **options)


def covariates(rows):
    """Return a column of words and a column of numbers."""
    k = np.arange(rows)
    return {"area": [("north", "south", "west")[i % 3] for i in k], "age": (20 + k * 11 % 50).tolist()}


def known_answers(made):
    """Return predictions and what the map makes of them."""
    p = np.linspace(0, 1, 11)
    if made.columns is not None:
        table = np.column_stack([1 - p, p / 2, p / 2])
        return {"p": table.tolist(), "q": made.predict(table).tolist()}
    columns = {"covariates": covariates(len(p))} if made.map.needs_covariates else {}
    return {"p": p.tolist(), **columns, "q": made.predict(p, **columns).tolist()}


def main(name):
    """Write one file."""
    target = FOLDER / f"format{FORMAT}-{name}.json"
    if target.exists():
        sys.exit(f"{target} is never rewritten: a new format of files gets a number of its own")
    made = fitted(name).with_assessment("not asked for")
    stored = {**made.to_dict(), "golden": known_answers(made)}
    del stored[CHECKSUM]
    text = json.dumps({**stored, CHECKSUM: checksum_of(stored)}, indent=1)
    target.write_text(text + "\n", encoding="utf-8")
    print(f"{target}: a map of the form {made.map.form!r}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
