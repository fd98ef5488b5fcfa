"""What recalibration gains on generated tasks, and agreement with other packages where they are installed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.assessment import SETTINGS, judged
from benchmarks.recalibration_accuracy import Kept, generated_tasks, ours, table
from recalibration.laws import fit


def test_auto_gains_where_there_is_something_to_gain_and_else_leaves_alone(tmp_path):
    methods = {"as they are": ours("identity"), "auto": ours("auto"), "raw": ours("isotonic", ends="raw")}
    kept = Kept(tmp_path / "fits.jsonl")
    found = table(list(generated_tasks(3_000)), 300, 3, methods, kept)
    assert found["as they are"]["change"] == 0
    assert found["auto"]["change"] < -5
    assert found["auto"]["change"] < found["raw"]["change"]
    assert found["auto"]["fits"] == 9
    assert found["raw"]["behind_auto"] == pytest.approx(found["raw"]["change"] - found["auto"]["change"])
    kept.known.clear()
    known = Kept(kept.path).known  # a run that was stopped goes on where it was
    assert len(known) == 27
    assert sum(known[300, task, 0, "auto"] for task, _, _ in generated_tasks(3_000)) < 0


def test_venn_abers_agrees_with_the_package():
    package = pytest.importorskip("venn_abers")
    rng = np.random.default_rng(0)
    for k in range(300):
        n = int(rng.integers(4, 80))
        p, new = rng.random(n) ** (1 + k % 4), rng.random(30)
        if k % 3:  # ties, exact 0 and 1, and queries that equal levels
            p, new = np.round(p, k % 3), np.round(new, k % 3)
        y = (rng.random(n) < p).astype(int)
        y[:2] = 0, 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the package's own
            theirs = package.VennAbers()
            theirs.fit(np.column_stack([1 - p, p]), y)
            _, pairs = theirs.predict_proba(np.column_stack([1 - new, new]))
        lower, upper = fit(y, p, method="venn-abers").interval(new)
        assert lower == pytest.approx(pairs[:, 0], abs=1e-12)
        assert upper == pytest.approx(pairs[:, 1], abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: f"{one.method}-{one.n}-{one.slope}")
def test_assessments_rarely_claim_help_that_is_not_there(setting):
    """False "helps" in at most 2.5% of samples, and the gain of the delivered map covered in 85%.

    The limits leave a right assessment one failure in 10,000 runs.
    """
    done = judged(setting, repeats=60, first_seed=10_000)  # seeds that the benchmark does not use
    assert binom.sf(done.false_helps - 1, done.repeats, 0.025) > 1e-4
    assert binom.cdf(done.covered, done.repeats, 0.85) > 1e-4
