"""Lists of tests that a new verb must join: nothing else would notice that it is missing there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from calibrant.cli.verbs import VERBS

TESTS = Path(__file__).parent.parent


def smoke_verbs():
    spec = importlib.util.spec_from_file_location("smoke", TESTS / "smoke.py")
    smoke = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(smoke)
    return {call[0] for call in (*smoke.VERBS, *smoke.NEEDS)}


@pytest.mark.parametrize("verb", VERBS)
def test_the_smoke_test_of_the_wheel_calls_every_verb(verb):
    assert verb in smoke_verbs(), f"add a call of {verb} to VERBS (or NEEDS) of tests/smoke.py"
