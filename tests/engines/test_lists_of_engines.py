"""Lists of tests that a new engine must join: nothing else would notice that it is missing there."""

from __future__ import annotations

import importlib.util
from pathlib import Path

TESTS = Path(__file__).parent.parent


def engines_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return set(loaded.ENGINES)


KNOWN = engines_of(TESTS / "engines" / "conftest.py")


def test_every_engine_is_shown_labels_of_every_type():
    lacking = sorted(KNOWN - engines_of(TESTS / "engines" / "test_labels.py"))
    assert not lacking, "add these to ENGINES of tests/engines/test_labels.py"


def test_every_engine_applies_maps():
    lacking = sorted(KNOWN - engines_of(TESTS / "recalibration" / "test_frames.py"))
    assert not lacking, (
        "add these to LAZY or ENGINES of tests/recalibration/test_frames.py, and to framed() there"
    )
