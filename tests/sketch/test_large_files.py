"""Sketches of files: the same as of arrays, whatever the format, the memory and the number of files."""

from __future__ import annotations

import threading

import numpy as np
import polars as pl
import pytest

from calibrant import Sketch
from calibrant.errors import CalibrantError, UnknownNameError, UnreadableFileError
from calibrant.evaluation.evaluate import evaluate
from calibrant.sketch import stream


def frame(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    group = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    return pl.DataFrame({"p": p, "y": (rng.random(n) < p).astype(int), "w": rng.random(n), "g": group})


def same(found, expected):
    assert found.contents.labels == expected.contents.labels
    assert np.array_equal(found.contents.table.keys, expected.contents.table.keys)
    assert np.array_equal(found.contents.table.counts, expected.contents.table.counts)
    np.testing.assert_allclose(found.contents.table.sums, expected.contents.table.sums, rtol=1e-9)


@pytest.mark.parametrize("ending", ["csv", "parquet", "ndjson"])
@pytest.mark.parametrize("by", [None, "g"])
def test_a_file_gives_the_sketch_of_its_rows(tmp_path, ending, by):
    rows = frame()
    path = tmp_path / f"rows.{ending}"
    getattr(rows, f"write_{ending}")(path)
    columns = {"outcome": "y", "prediction": "p", "weight": "w", "by": by}
    same(Sketch.from_file(path, **columns), Sketch.from_frame(rows, **columns))


def test_a_glob_gives_the_sketch_of_all_files(tmp_path):
    for part in range(3):
        frame(seed=part).write_parquet(tmp_path / f"part{part}.parquet")
    whole = pl.concat([frame(seed=part) for part in range(3)])
    found = Sketch.from_file(tmp_path / "*.parquet", outcome="y", prediction="p")
    same(found, Sketch.from_frame(whole, outcome="y", prediction="p"))


def test_little_memory_gives_the_same_sketch(tmp_path, monkeypatch):
    rows = frame(200_000)
    rows.write_parquet(tmp_path / "rows.parquet")
    monkeypatch.setattr(stream, "MAX_MEMORY", "64MB")
    found = Sketch.from_file(tmp_path / "rows.parquet", outcome="y", prediction="p", by="g")
    same(found, Sketch.from_frame(rows, outcome="y", prediction="p", by="g"))


def test_progress_is_reported_and_an_interrupt_stops_the_query(tmp_path):
    path = tmp_path / "rows.parquet"
    frame(1_000_000).write_parquet(path)
    seen = []
    Sketch.from_file(path, outcome="y", prediction="p", progress=seen.append)
    assert all(0 <= share <= 1 for share in seen)

    def stop(share):
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        stream.run_with_progress(Query(), Query.run, stop)
    assert threading.active_count() == before


class Query:
    """Stands in for a connection whose query lasts until it is interrupted."""

    stopped = threading.Event()

    def run(self=None):
        Query.stopped.wait()

    def query_progress(self):
        return 50.0

    def interrupt(self):
        Query.stopped.set()


def test_numbers_as_text_are_read_and_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("p,y\n" + "0.25,1\n" * 50 + "oops,1\n")
    with pytest.raises(CalibrantError, match="oops"):
        Sketch.from_file(path, outcome="y", prediction="p")
    found = Sketch.from_file(path, outcome="y", prediction="p", missing="drop", invalid="drop")
    assert (found.n, found.dropped) == (50, 1)
    with pytest.raises(UnknownNameError, match="got 'q'"):
        Sketch.from_file(path, outcome="y", prediction="q")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1" + b"x" * 100)
    with pytest.raises(UnreadableFileError):
        Sketch.from_file(broken, outcome="y", prediction="p")


def test_a_report_of_a_sketch_is_complete(tmp_path):
    sketch = Sketch.from_frame(frame(), outcome="y", prediction="p", cells=256)
    found = evaluate(sketch.forecasts(), draws=19, seed=1)
    assert "256 cells of a sketch" in repr(found)
    assert found["smooth"].measurement.upper > found["smooth"].value
    assert "cannot be computed from a sketch" in found["brier-mcb"].note
    assert found.to_html(tmp_path / "report.html").stat().st_size > 10_000
