"""Machine code without a place to keep it: read-only folders, full disks, damaged files cost time alone."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from calibrant.kernels import compile as compile_module
from calibrant.kernels.compile import _warn_once, compiled, machine_code

numba = pytest.importorskip("numba")
caching = pytest.importorskip("numba.core.caching")
NUMBERS = np.linspace(0.0, 1.0, 9)
CODE = """
import numba, numpy as np
from calibrant.kernels.cumulative import kept_knots
print("ready")
given = np.linspace(0, 1, 50), np.linspace(0, 1, 50) ** 2, 0.01
kept_knots.compile_now()
assert np.array_equal(kept_knots(*given), kept_knots.plain(*given))
print(kept_knots.machine_code().stats.cache_path)
"""


def doubled(numbers):
    out = np.empty(len(numbers))
    for k in range(len(numbers)):
        out[k] = 2.0 * numbers[k]
    return out


def hits():
    """Compile as another process would; return how often the cache had the machine code."""
    machine_code.cache_clear()
    kernel = compiled(doubled)
    kernel.compile_now()
    assert np.array_equal(kernel(NUMBERS), doubled(NUMBERS))
    return sum(kernel._fast.stats.cache_hits.values())


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("content", [b"", b"\x80\x04 no pickle", b"(]"])
def test_a_damaged_cache_is_rebuilt(cache, content):
    assert (hits(), hits()) == (0, 1)
    for ending in ("*.nbc", "*.nbi"):
        for file in cache.rglob(ending):
            file.write_bytes(content)
        assert (hits(), hits()) == (0, 1)


def test_a_full_disk_is_no_error(cache, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    for name in ("_save_data", "_save_index"):
        monkeypatch.setattr(caching.IndexDataCacheFile, name, full)
    assert (hits(), hits()) == (0, 0)


def test_no_folder_that_may_be_written_to_is_no_error(cache, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(caching.tempfile, "TemporaryFile", refused)  # how numba asks whether it may write
    assert (hits(), hits()) == (0, 0)


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs a mount of its own")
def test_a_home_and_a_source_that_are_read_only_are_no_error():
    """As in a locked-down container; numba then finds no folder for its cache."""
    source = Path(__file__).parents[2] / "src"
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" -c "$3"'
    home = {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none", "PYTHONPATH": str(source)}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(source), sys.executable, CODE],
        capture_output=True,
        text=True,
        env={key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"} | home,
    )
    if "ready" not in done.stdout and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip("may not mount anything here")
    assert done.stderr == ""
    assert done.stdout.split() == ["ready", "None"]


def test_arrays_that_may_not_be_written_to_need_no_machine_code_of_their_own(cache):
    kernel = compiled(doubled)
    kernel.compile_now()
    locked = NUMBERS[::-1].copy()
    locked.flags.writeable = False
    assert np.array_equal(kernel(NUMBERS.copy()), 2.0 * NUMBERS)
    assert np.array_equal(kernel(locked), 2.0 * locked)
    assert len(kernel.machine_code().signatures) == 1
    assert not locked.flags.writeable


def test_a_terminal_sees_once_that_the_first_run_compiles(cache, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    _warn_once.cache_clear()
    monkeypatch.setattr(compile_module, "PAUSE", 0.0)
    assert (hits(), hits()) == (0, 1)
    for file in cache.rglob("*.nb?"):
        file.unlink()
    assert hits() == 0
    assert sys.stderr.getvalue().count("compiling, once per machine") == 1
