"""Fixtures that many rooms share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Two workers on two cores leave no core for the second thread of a matrix product, and it waits in a loop:
# choosing among several classes took fifteen times its CPU time. Workers inherit this before they load numpy.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

for profile, examples in (("quick", 80), ("thorough", 400)):  # `make test` and `make test-laws`
    settings.register_profile(
        profile,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=True,
    )
settings.load_profile(os.environ.get("CALIBRANT_LAWS", "quick"))

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real forecasts next to the repo; the test is skipped without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("no folder of real data next to the repo")
    return SHARED_DATA
