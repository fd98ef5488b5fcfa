"""Files written whole or not at all, and scratch folders that leave nothing behind."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from calibrant.errors import UnwritableFileError, sentence

_UNFINISHED: set[Path] = set()  # what this process must remove if it is stopped
SCRATCH = "calibrant-scratch-"  # how the names of scratch folders begin
SPARED = 10.0  # seconds after its last change during which no other process removes a scratch folder
FLUSHED = 0.2  # seconds between what a long file brings to the disk
LONGEST = 100  # characters of a file's name that the name of its unfinished part repeats


def write_whole(path: str | Path, data: str | bytes, inputs: Iterable[str | Path] = ()) -> Path:
    """Write a file beside its place and rename it: a reader sees the old file or the new one, never a half.

    Parameters
    ----------
    path
        Where to write. Folders, devices, pipes and files of `inputs` are refused.
    data
        Text is written as UTF-8, line endings as they are; what UTF-8 cannot say, such as half a character,
        is escaped as Python does it.
    inputs
        Files that were read, and must not be overwritten.

    Returns
    -------
    The path.
    """
    with whole_file(path, inputs) as part:
        part.write_bytes(data.encode(errors="backslashreplace") if isinstance(data, str) else data)
    return Path(path)


@contextmanager
def whole_file(path: str | Path, inputs: Iterable[str | Path] = ()) -> Iterator[Path]:
    """Yield the name of an unfinished part to write to; it replaces `path` when the block ends well."""
    check_target(path, inputs)
    target = Path(path).resolve()
    try:
        _remove_leftovers(target)
        part = _part_of(target)
        _UNFINISHED.add(part)  # first: a signal may come at any moment
        try:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # as the umask leaves it
            _keep_mode(part, target, stat.S_IWUSR)
            yield part
            _keep_mode(part, target)
            with part.open("rb") as written:
                os.fsync(written.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
            _UNFINISHED.discard(part)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from None


@contextmanager
def flushed(file: BinaryIO) -> Iterator[None]:
    """Bring what is written to a file to the disk meanwhile: then little is left to wait for at its end.

    The system tells of a failure only once, here or when the file is finished, so that neither may pass over
    it.
    """
    ended = threading.Event()
    failures: list[OSError] = []

    def flush() -> None:
        try:
            while not ended.wait(FLUSHED):
                os.fsync(file.fileno())
        except OSError as failure:
            failures.append(failure)

    thread = threading.Thread(target=flush, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failures:
        raise failures[0]


def check_target(path: str | Path, inputs: Iterable[str | Path] = ()) -> None:
    """Refuse a place that cannot be written, before any work is done for it."""
    target = Path(path)
    try:
        if target.is_dir():
            raise _unwritable(path, "got a folder")
        if not target.resolve().parent.is_dir():
            raise UnwritableFileError(sentence(f"folder {str(target.parent)!r}", "must exist"))
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            raise _unwritable(path, "got a device or a pipe")
        for source in inputs:
            if target.exists() and Path(source).exists() and target.samefile(source):
                raise _unwritable(path, "got the file that is read")
        if not os.access(target.resolve().parent, os.W_OK):
            raise _unwritable(path, "got a folder that may not be written to")
    except (OSError, ValueError) as error:
        if isinstance(error, UnwritableFileError):
            raise
        raise _unwritable(path, getattr(error, "strerror", None) or str(error)) from None


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder for the length of the block; it also goes when the process is stopped.

    Its owner holds a lock on it, which the system takes back however the process ends; a folder that a
    killed process left behind is removed when the next one is made.
    """
    _remove_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.gettempdir()) / f"{SCRATCH}{secrets.token_hex(8)}"
    _UNFINISHED.add(folder)  # first: a signal may come at any moment
    handle = None
    try:
        folder.mkdir(mode=0o700)
        handle = _locked(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _UNFINISHED.discard(folder)
        if handle is not None:
            os.close(handle)


def remove_unfinished() -> None:
    """Remove what an interrupted block would leave behind."""
    for path in list(_UNFINISHED):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _part_of(target: Path) -> Path:
    """Return a name for the unfinished part of a file that tells which process writes it."""
    return target.parent / f".{target.name[:LONGEST]}.{os.getpid()}-{secrets.token_hex(4)}.part"


def _keep_mode(part: Path, target: Path, more: int = 0) -> None:
    """Let whoever may read the old file, and nobody else, read the new one: a state may be a secret."""
    if os.name != "nt" and target.exists():
        with suppress(OSError):  # of file systems that have no modes
            part.chmod(stat.S_IMODE(target.stat().st_mode) | more)


def _remove_leftovers(target: Path) -> None:
    """Remove parts of the same file whose writers were killed."""
    start = f".{target.name[:LONGEST]}."
    for name in os.listdir(target.parent):
        if name.startswith(start) and name.endswith(".part"):
            owner = name[len(start) :].partition("-")[0]
            if owner.isdigit() and not _alive(int(owner)):
                with suppress(OSError):
                    (target.parent / name).unlink()


def _remove_abandoned(place: Path) -> None:
    """Remove scratch folders of this user that nobody holds; a new one is spared until its lock is held."""
    with suppress(OSError):
        for folder in place.glob(f"{SCRATCH}*"):
            with suppress(OSError):
                about = folder.lstat()
                mine = about.st_mode == stat.S_IFDIR | 0o700 and about.st_uid == os.getuid()
                handle = _locked(folder) if mine and time.time() - about.st_mtime > SPARED else None
                if handle is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(handle)


def _locked(folder: Path) -> int | None:
    """Return a handle that holds the lock of a folder, or None where another has it or there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows: abandoned folders stay
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _alive(process: int) -> bool:
    if os.name == "nt":
        return True  # there signal 0 would end the process: its parts stay
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _unwritable(path: str | Path, got: str) -> UnwritableFileError:
    return UnwritableFileError(sentence(f"file {str(path)!r}", "must be a place to write a file", got))
