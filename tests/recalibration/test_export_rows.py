"""What a row of the registry says of its export to SQL holds of its maps."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

import calibrant as cb
from recalibration.laws import fit

RNG = np.random.default_rng(0)
P = RNG.random(60)
Y = (RNG.random(60) < P).astype(int)
REGION = RNG.choice(["north", "south"], 60)
TABLE = RNG.dirichlet(np.ones(3), 60)
QUICK = {"boost": {"trees": 10}}
LABELS = np.array([RNG.choice(3, p=row) for row in TABLE])


def fitted_maps(name, row):
    """The maps that the method can fit, each with the columns it reads and what it makes of them."""
    if row.fit is not None:
        extra = {"covariates": {"region": REGION}} if row.needs_covariates else {}
        one = fit(Y, P, method=name, **extra, **QUICK.get(name, {}))
        q = one.predict(P, extra["covariates"]) if extra else one.predict(P)
        yield one, {"p": P}, q[:, None]
    if row.fit_classes is not None:
        several = fit(LABELS, TABLE, method=name)
        yield several, dict(zip("abc", TABLE.T, strict=True)), several.predict(TABLE)


@pytest.mark.parametrize("name", cb.recalibrations())
def test_exportable_says_what_to_sql_does(name):
    row = cb.recalibrations()[name]
    for found, columns, q in fitted_maps(name, row):
        named = next(iter(columns)) if len(columns) == 1 else list(columns)
        if not row.exportable:
            with pytest.raises(cb.InvalidInputError, match="cannot be written"):
                found.to_sql(named)
            continue
        with duckdb.connect() as connection:
            connection.register("t", columns)
            made = connection.execute(f"SELECT {found.to_sql(named)} FROM t").fetchnumpy()
        assert np.column_stack(list(made.values())) == pytest.approx(q, abs=1e-12)
