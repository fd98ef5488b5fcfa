"""Recalibrations where predictions are made: real Spark, as an expression and as SQL."""

from __future__ import annotations

import numpy as np
import pytest
from recalibration.laws import fit, one_per_form

from calibrant import recalibrate
from calibrant.io.apply_file import apply_file

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,  # Spark compiles every expression
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
]


def test_spark_gives_what_predict_gives(spark_session):
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = (rng.random(60) < p**1.4).astype(int)
    new = np.concatenate((p[:20], [0.0, 1e-9, 0.5, 1.0]))
    rows = [(float(v),) for v in new] + [(None,), (1.7,), (float("nan"),)]
    frame = spark_session.createDataFrame(rows, "Piece double")
    for method in one_per_form():
        found = fit(y, p, method=method)
        applied = found.apply(frame, prediction="Piece", into="q")
        by_sql = applied.selectExpr("*", f"{found.to_sql('Piece', 'spark')} AS s").collect()
        expected = [*found.predict(new), None, None, None]
        assert type(applied) is type(frame)
        for row, q in zip(by_sql, expected, strict=True):
            assert (row["q"] is None) == (row["s"] is None) == (q is None)
            if q is not None:
                assert row["q"] == pytest.approx(q, abs=1e-12)
                assert row["s"] == pytest.approx(q, abs=1e-12)


@pytest.mark.parametrize(("method", "n"), [("venn-abers", 5_000), ("bounded-slope", 100_000)])
def test_spark_takes_a_map_of_many_pieces(spark_session, method, n):
    """A tree of choices of this size took Spark's compiler minutes and all of its memory."""
    rng = np.random.default_rng(1)
    p = rng.random(n)
    found = fit((rng.random(n) < p).astype(int), p, method=method)
    assert len(found.map.values) > n**0.5
    frame = spark_session.createDataFrame([(float(v),) for v in p[:200]], "score double")
    applied = found.apply(frame, prediction="score", into="q").collect()
    assert [row["q"] for row in applied] == pytest.approx(list(found.predict(p[:200])), abs=1e-12)


def test_spark_gives_what_predict_gives_for_several_classes(spark_session):
    rng = np.random.default_rng(2)
    table = rng.dirichlet([0.6, 0.9, 1.5], 90)
    labels = np.array([rng.choice(3, p=row) for row in (table**0.6) / (table**0.6).sum(1, keepdims=True)])
    new = np.vstack((table[:12], np.eye(3), [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]))
    names = ["a b", "B", "c"]
    rows = [*map(tuple, new.tolist()), (0.7, 0.7, 0.7), (None, 0.5, 0.5)]
    frame = spark_session.createDataFrame(rows, "`a b` double, B double, c double")
    frame.createOrReplaceTempView("predictions")
    for method in ("temperature", "vector", "dirichlet", "one-vs-rest", "top-label"):
        found = fit(labels, table, method=method)
        made = spark_session.sql(f"SELECT {found.to_sql(names, 'spark')} FROM predictions").collect()
        assert [tuple(row) for row in made[-2:]] == [(None,) * 3] * 2  # rows that predict refuses
        assert np.array([tuple(row) for row in made[:-2]]) == pytest.approx(found.predict(new), abs=1e-12)


def test_spark_finds_the_column_that_apply_adds(spark_session, tmp_path):
    """Spark keeps a schema of its own in the files that it writes, and believes it."""
    fitted = recalibrate([0, 1, 0, 1] * 50, [0.2, 0.4, 0.6, 0.8] * 50, method="platt")
    rows = [(k, k / 400, [f"w{k}"], None if k % 9 else "x") for k in range(400)]
    frame = spark_session.createDataFrame(rows, "id long, p double, words array<string>, note string")
    frame.coalesce(1).write.parquet(str(tmp_path / "in"))
    [source] = (tmp_path / "in").glob("*.parquet")
    target = tmp_path / "out.parquet"
    apply_file(fitted, source, target, prediction="p", into="q")
    again = spark_session.read.parquet(str(target))
    assert again.columns == ["id", "p", "words", "note", "q"]
    found = again.where("p > 0.25 AND q < 1").orderBy("id").collect()
    assert [(row.id, row.p, row.words, row.note) for row in found] == rows[101:]
    assert [row.q for row in found] == fitted.predict([p for _, p, *_ in rows[101:]]).tolist()
