"""Files appear whole or not at all, with the right rights, and never in place of what was read."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from calibrant import files
from calibrant.errors import UnreadableFileError, UnwritableFileError
from calibrant.files import atomic_path, atomic_write, check_target, lock_file, scratch_folder


def test_a_file_is_written_with_the_rights_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        atomic_write(tmp_path / "x.txt", "ü\r\n")
    finally:
        os.umask(before)
    assert (tmp_path / "x.txt").read_bytes() == "ü\r\n".encode()
    assert stat.S_IMODE((tmp_path / "x.txt").stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["x.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "x.txt"
    target.write_text("old")

    def fail():
        with atomic_path(target) as part:
            part.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.txt"]


def test_places_that_are_no_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "in.csv").write_text("y,p")
    (tmp_path / "link.csv").symlink_to(tmp_path / "in.csv")
    for place, found in (
        (tmp_path, "a folder"),
        (tmp_path / "none" / "x", "folder .* must exist"),
        ("/dev/full", "a device or a pipe"),
        (tmp_path / "pipe", "a device or a pipe"),
        (tmp_path / "in.csv", "the file that is read"),
        (tmp_path / "link.csv", "the file that is read"),
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / ("é" * 128), "File name too long"),
        ("a\0b", "null"),
    ):
        with pytest.raises(UnwritableFileError, match=found):
            atomic_write(place, "x", [tmp_path / "in.csv"])
        with pytest.raises(UnwritableFileError, match=found):
            check_target(place, [tmp_path / "in.csv"])


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    atomic_write(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_temporary_files_of_killed_writers_are_removed_and_those_of_living_ones_stay(tmp_path):
    (tmp_path / ".x.txt.1-abcd.part").write_text("half; its process number lives in another container")
    (tmp_path / ".x.txt.notes").write_text("not ours")
    with atomic_path(tmp_path / "x.txt") as part:
        part.write_text("first")
        atomic_write(tmp_path / "x.txt", "second")
        assert sorted(os.listdir(tmp_path)) == sorted([part.name, ".x.txt.notes", "x.txt"])
    assert (tmp_path / "x.txt").read_text() == "first"
    assert sorted(os.listdir(tmp_path)) == [".x.txt.notes", "x.txt"]


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "x" * 250 + ".json"])
def test_names_as_long_as_the_system_allows(name, tmp_path):
    atomic_write(tmp_path / name, "new")
    with lock_file(tmp_path / name):
        atomic_write(tmp_path / name, "newer")
    assert (tmp_path / name).read_text() == "newer"


def test_two_names_of_one_file_share_a_lock(tmp_path):
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("real.json")
    code = (
        "import sys\nfrom calibrant.files import lock_file\n"
        "with lock_file(sys.argv[1]): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "link.json")]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with (
        pytest.raises(UnreadableFileError, match="in use by another process"),
        lock_file(tmp_path / "real.json", patience=0.1),
    ):
        pass
    holder.communicate("")
    with lock_file(tmp_path / "real.json", patience=5):
        pass


def test_locks_leave_no_files_behind(tmp_path):
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("real.json")
    (tmp_path / ".real.json.lock").write_text("")  # of a process that was killed
    for name in ("real.json", "link.json", "new.json"):
        with lock_file(tmp_path / name):
            assert any(other.endswith(".lock") for other in os.listdir(tmp_path))
        assert sorted(os.listdir(tmp_path)) == ["link.json", "real.json"]


def _add_one(path, times):
    for _ in range(times):
        with lock_file(path):
            atomic_write(path, str(int(Path(path).read_text()) + 1))


def test_several_processes_under_two_names_lose_nothing(tmp_path):
    """The lock disappears after each turn: one that was removed must not let a second process in."""
    (tmp_path / "count").write_text("0")
    (tmp_path / "link").symlink_to("count")
    context = multiprocessing.get_context("fork")
    names = ["count", "link", "count", "link"]
    workers = [context.Process(target=_add_one, args=(tmp_path / name, 10)) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert (tmp_path / "count").read_text() == "40"
    assert sorted(os.listdir(tmp_path)) == ["count", "link"]


def test_a_full_disk_is_said_in_words(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(UnwritableFileError, match="No space left on device"):
        atomic_write(tmp_path / "x.txt", "new")
    assert os.listdir(tmp_path) == []


def test_scratch_folders_go_with_the_block():
    with scratch_folder() as folder:
        (folder / "x").write_text("x")
    assert not folder.exists()


def test_scratch_folders_of_killed_processes_go_and_those_in_use_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(files.tempfile, "tempdir", str(tmp_path))
    code = (
        "import tempfile, time, sys; tempfile.tempdir = sys.argv[1]\n"
        "from calibrant.files import scratch_folder\n"
        "with scratch_folder() as folder:\n"
        "    (folder / 'x').write_text('x'); print(folder, flush=True); time.sleep(99)"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    killed, living = (Path(process.stdout.readline().strip()) for process in started)
    started[0].kill()
    started[0].communicate()
    for folder in (killed, living):
        os.utime(folder, (0, 0))
    (tmp_path / "calibrant-results").mkdir()  # of another program
    (tmp_path / "calibrant-scratch-notes").write_text("not a folder")
    with scratch_folder() as mine:
        assert not killed.exists()
        assert sorted(tmp_path.iterdir()) == sorted(
            [living, mine, tmp_path / "calibrant-results", tmp_path / "calibrant-scratch-notes"]
        )
    started[1].kill()
    started[1].communicate()


def test_writers_that_are_killed_leave_the_old_file_whole(tmp_path):
    target = tmp_path / "x.txt"
    atomic_write(target, "a" * 1_000_000)
    code = (
        "import sys, itertools\nfrom calibrant.files import atomic_write\n"
        "for letter in itertools.cycle('bcd'): atomic_write(sys.argv[1], letter * 1_000_000)"
    )
    for turn in range(5):
        writer = subprocess.Popen([sys.executable, "-c", code, str(target)])
        time.sleep(0.6 + 0.037 * turn)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        text = target.read_text()
        assert len(text) == 1_000_000
        assert len(set(text)) == 1
    atomic_write(target, "e")
    assert os.listdir(tmp_path) == ["x.txt"]


@pytest.mark.skipif(os.name == "nt", reason="files there have no such modes")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o664])
def test_a_file_that_is_written_again_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "state.json"
    atomic_write(path, "old")
    path.chmod(mode)
    with atomic_path(path) as part:
        assert stat.S_IMODE(part.stat().st_mode) == mode | stat.S_IWUSR
        part.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode
