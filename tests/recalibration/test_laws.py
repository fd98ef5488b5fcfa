"""Laws that hold for every row of the registry, on ugly samples."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from samples import samples

import calibrant as cb
from recalibration.laws import GRID, METHODS, fit, fittable, gridded, law_options

EXAMPLES = settings(max_examples=36, phases=[Phase.generate])  # a fit takes too long to shrink examples
methods = st.sampled_from(METHODS)


def having(flag):
    return st.sampled_from([m for m in METHODS if getattr(cb.recalibrations()[m], flag)])


@EXAMPLES
@given(methods, samples(min_size=2), st.sampled_from(["sampling", "frequency"]))
def test_predictions_are_probabilities(method, sample, weights):
    assume(fittable(method, sample.y, sample.p))
    found = fit(sample.y, sample.p, method=method, sample_weight=sample.w, weights=weights)
    q = found.predict(np.concatenate((GRID, sample.p)))
    assert q.shape == (len(GRID) + len(sample.p),)
    assert np.isfinite(q).all()
    assert q.min() >= 0
    assert q.max() <= 1


@EXAMPLES
@given(methods, samples(min_size=2), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(method, sample, random):
    assume(fittable(method, sample.y, sample.p))
    order = list(range(len(sample.p)))
    random.shuffle(order)
    w = None if sample.w is None else sample.w[order]
    one = fit(sample.y, sample.p, method=method, sample_weight=sample.w)
    other = fit(sample.y[order], sample.p[order], method=method, sample_weight=w)
    assert other.predict(GRID) == pytest.approx(one.predict(GRID), abs=1e-6)


@EXAMPLES
@given(methods, gridded(), st.sampled_from([1e-3, 7.0, 2.0**40]))
def test_the_scale_of_sampling_weights_does_not_matter(method, data, scale):
    y, p = data
    assume(fittable(method, y, p))
    plain = fit(y, p, method=method).predict(GRID)
    assert fit(y, p, method=method, sample_weight=np.full(len(p), scale)).predict(GRID) == pytest.approx(
        plain
    )
    w = 1.0 + np.arange(len(p)) % 3
    once = fit(y, p, method=method, sample_weight=w).predict(GRID)
    assert fit(y, p, method=method, sample_weight=w * scale).predict(GRID) == pytest.approx(once, abs=1e-6)


@EXAMPLES
@given(having("repetition"), gridded(), st.integers(0, 3))
def test_weights_of_frequency_are_repetitions(method, data, start):
    y, p = data
    counts = 1 + (start + np.arange(len(p))) % 4
    assume(fittable(method, y, p))
    options = {"method": method, "weights": "frequency", **law_options(method)}
    weighted = fit(y, p, sample_weight=counts, **options).predict(GRID)
    repeated = fit(np.repeat(y, counts), np.repeat(p, counts), **options).predict(GRID)
    assert weighted == pytest.approx(repeated, abs=1e-6)


@EXAMPLES
@given(having("repetition"), gridded())
def test_a_fraction_is_the_outcomes_it_stands_for(method, data):
    y, p = data
    assume(method != "histogram")  # whole outcomes are dealt to other halves
    assume(fittable(method, y, p))
    quarter = np.where(y == 1, 0.75, 0.25)
    options = {"method": method, "weights": "frequency", **law_options(method)}
    merged = fit(quarter, p, sample_weight=np.full(len(p), 4), **options)
    split_y = np.concatenate([[1, 1, 1, 0] if one else [1, 0, 0, 0] for one in y])
    split = fit(split_y, np.repeat(p, 4), **options)
    assert merged.predict(GRID) == pytest.approx(split.predict(GRID), abs=1e-6)


@EXAMPLES
@given(having("repetition"), gridded(max_size=12), st.floats(0.05, 0.95))
def test_a_weight_may_be_split_over_rows(method, data, share):
    """Parts of records too: how many rows there are decides nothing, the number of bins included."""
    y, p = data
    assume(method != "histogram")  # rows are dealt to halves
    assume(fittable(method, y, p))
    w = 0.3 + 1.7 * (np.arange(len(p)) % 5)
    options = {"method": method, "weights": "frequency"}
    whole = fit(y, p, sample_weight=w, **options).predict(GRID)
    twice, parts = np.concatenate((y, y)), np.concatenate((share * w, w - share * w))
    split = fit(twice, np.concatenate((p, p)), sample_weight=parts, **options).predict(GRID)
    assert split == pytest.approx(whole, abs=1e-6)


@EXAMPLES
@given(having("mean_kept"), gridded())
def test_the_mean_is_kept(method, data):
    y, p = data
    assume(fittable(method, y, p))
    assume(0 < y.mean() < 1)
    found = fit(y, p, method=method, **law_options(method))
    assert found.predict(p).mean() == pytest.approx(y.mean(), abs=1e-6)


@EXAMPLES
@given(having("keeps_calibrated"), st.lists(st.integers(1, 15), min_size=1, max_size=16, unique=True))
def test_calibrated_levels_stay_as_they_are(method, sixteenths):
    p = np.sort(np.array(sixteenths)) / 16
    found = fit(p, p, method=method, **law_options(method))
    assert found.predict(p) == pytest.approx(p, abs=1e-6)


@EXAMPLES
@given(having("symmetric"), gridded())
def test_flipping_predictions_and_outcomes_flips_the_map(method, data):
    y, p = data
    assume(fittable(method, y, p))
    assume(fittable(method, 1 - y, p))
    one, other = fit(y, p, method=method), fit(1 - y, 1 - p, method=method)
    assert other.predict(1 - GRID) == pytest.approx(1 - one.predict(GRID), abs=1e-5)


@EXAMPLES
@given(having("monotone"), samples(min_size=2))
def test_maps_do_not_decrease_unless_they_say_so(method, sample):
    assume(fittable(method, sample.y, sample.p))
    found = fit(sample.y, sample.p, method=method, sample_weight=sample.w)
    q = found.predict(np.sort(np.concatenate((GRID, sample.p))))
    assert (np.diff(q) >= -1e-12).all() or any("wrong way round" in note for note in found.notes)


@EXAMPLES
@given(having("keeps_ranks"), gridded())
def test_ranks_survive_within_the_knots(method, data):
    y, p = data
    assume(fittable(method, y, p))
    found = fit(y, p, method=method)
    inside = np.unique(p[(p > 0) & (p < 1)])
    assume(len(inside))
    if found.knots is not None:
        inside = inside[(inside >= found.knots.values[0]) & (inside <= found.knots.values[-1])]
    if any("wrong way round" in note for note in found.notes):
        return
    q = found.predict(inside)
    flat = method == "centered-isotonic" and len(np.unique(found.knots.rates)) < len(found.knots.rates)
    assert (np.diff(q) > 0).all() or flat or np.ptp(q) < 1e-9


@EXAMPLES
@given(methods, samples(min_size=2))
def test_a_round_trip_through_json_is_exact(tmp_path_factory, method, sample):
    assume(fittable(method, sample.y, sample.p))
    found = fit(sample.y, sample.p, method=method, sample_weight=sample.w)
    file = tmp_path_factory.mktemp("maps") / "map.json"
    found.with_assessment("not needed here").save(file)
    back = cb.load_recalibration(file)
    points = np.concatenate((GRID, sample.p))
    assert back.predict(points).tobytes() == found.predict(points).tobytes()
    assert back.to_dict()["map"] == found.to_dict()["map"]
    assert (back.method, back.fit.n, back.notes) == (found.method, found.fit.n, found.notes)


@EXAMPLES
@given(methods, samples(min_size=2))
def test_sql_is_predict(method, sample):
    assume(fittable(method, sample.y, sample.p))
    found = fit(sample.y, sample.p, method=method, sample_weight=sample.w)
    points = np.concatenate((GRID, sample.p))
    table = {"the score": points}
    with duckdb.connect() as connection:
        connection.register("t", table)
        query = f"SELECT {found.to_sql('the score')} AS q FROM t"
        q = connection.execute(query).fetchnumpy()["q"]
    assert not np.ma.getmaskarray(q).any()
    assert np.asarray(q) == pytest.approx(found.predict(points), abs=1e-12)


@pytest.mark.parametrize("method", [m for m in METHODS if cb.recalibrations()[m].needs_both_outcomes])
def test_one_outcome_is_refused(method):
    with pytest.raises(cb.CalibrantError, match="needs both outcomes"):
        cb.recalibrate([1, 1, 1], [0.2, 0.4, 0.6], method=method)


@pytest.mark.parametrize("method", METHODS)
def test_unknown_options_are_refused(method):
    with pytest.raises(cb.CalibrantError, match=f"option of method '{method}'"):
        cb.recalibrate([0, 1, 1], [0.2, 0.4, 0.6], method=method, colour="red")


@pytest.mark.parametrize("method", METHODS)
def test_forecasts_and_sketch_give_what_rows_give(method):
    rng = np.random.default_rng(0)
    p = rng.integers(0, 100, 500) / 100
    y = rng.random(500) < p**1.3
    rows = fit(y, p, method=method).predict(GRID)
    assert fit(cb.Forecasts(y, p), None, method=method).predict(GRID) == pytest.approx(rows, abs=1e-9)
    sketched = fit(cb.Sketch.from_arrays(y, p), None, method=method)
    tolerance = 0.5 if method == "histogram" else 1e-6  # a sketch deals other halves
    assert sketched.predict(GRID) == pytest.approx(rows, abs=tolerance)
