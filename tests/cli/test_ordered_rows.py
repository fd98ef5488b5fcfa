"""Rows of a stream in blocks: their digest is that of all rows at once, whatever the size of a block."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from calibrant.cli import rows as cli_rows
from calibrant.cli.rows import OrderedRows


def digest_at_once(rows):
    digest = hashlib.sha256(rows.outcome.astype("<f8").tobytes() + rows.prediction.astype("<f8").tobytes())
    digest.update(json.dumps([[str(cell) for cell in c.tolist()] for c in rows.columns.values()]).encode())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("size", [0, 1, 6, 7, 8, 50])
@pytest.mark.parametrize("named", [(), ("g",), ("g", "h")])
def test_the_digest_does_not_depend_on_blocks(size, named, monkeypatch):
    rng = np.random.default_rng(size)
    y, p = (rng.random(size) < 0.5).astype(np.float64), rng.random(size)
    columns = {"g": np.array(["a", None, 'é"'], dtype=object)[rng.integers(0, 3, size)], "h": np.arange(size)}
    rows = OrderedRows(y, p, {name: columns[name] for name in named})
    expected = digest_at_once(rows)
    for block in (1, 7, 500_000):
        monkeypatch.setattr(cli_rows, "BLOCK_ROWS", block)
        assert cli_rows._hashed(rows) == expected


def test_more_rows_never_have_less_surprise():
    rng = np.random.default_rng(0)
    y, p = (rng.random(60) < 0.5).astype(np.float64), rng.integers(0, 4, 60) / 4
    found = [cli_rows._surprise(OrderedRows(y[:n], p[:n], {})) for n in range(1, 61)]
    assert np.all(np.diff(found) >= -1e-12)
