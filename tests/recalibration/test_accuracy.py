"""What recalibration gains on generated tasks, and agreement with other packages where they are installed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from benchmarks.recalibration import Kept, generated_tasks, ours, table
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
@pytest.mark.parametrize("n", [100, 1_000])
@pytest.mark.parametrize("slope", [1.0, 1.3, 2.0])
@pytest.mark.parametrize("method", ["platt", "centered-isotonic"])
def test_assessments_rarely_claim_help_that_is_not_there(n, slope, method):
    """False "helps" in at most 2.5 % of samples, and the gain of the delivered map covered in 85 %."""
    rng = np.random.default_rng(17)
    truth = rng.beta(1.2, 1.8, 40_000)
    p = 1 / (1 + np.exp(-slope * np.log(truth / (1 - truth))))
    y = (rng.random(40_000) < truth).astype(float)

    def loss(q):
        safe = np.clip(q, 1e-6, 1 - 1e-6)
        return -np.mean(truth * np.log(safe) + (1 - truth) * np.log1p(-safe))

    before, false, covered, repeats = loss(p), 0, 0, 60
    for seed in range(repeats):
        chosen = np.random.default_rng(seed).choice(40_000, n, replace=False)
        found = fit(y[chosen], p[chosen], method=method, seed=seed)
        gain = before - loss(found.predict(p))
        judged = found.assessment
        false += judged.verdict == "helps" and gain < 0
        covered += judged.lower <= gain <= judged.upper
    assert false / repeats <= 0.025 + 2 * np.sqrt(0.025 / repeats)
    assert covered / repeats >= 0.85 - 2 * np.sqrt(0.85 * 0.15 / repeats)
