"""Write files atomically, lock them, and clean up temporary files and folders.

Locks tell what a killed process has left behind: the system releases them however a process ends.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from calibrant.errors import UnreadableFileError, UnwritableFileError

_UNFINISHED: set[Path] = set()  # what this process must remove if it is stopped
SCRATCH = "calibrant-scratch-"  # how the names of scratch folders begin
CHECKSUM = "checksum"  # the field of a JSON file that holds it


def atomic_write(path: str | Path, data: str | bytes, inputs: Iterable[str | Path] = ()) -> Path:
    """Write a temporary file and rename it: a reader sees the old file or the new one, never a part."""
    with atomic_path(path, inputs) as part:
        part.write_bytes(data.encode(errors="backslashreplace") if isinstance(data, str) else data)
    return Path(path)


@contextmanager
def atomic_path(path: str | Path, inputs: Iterable[str | Path] = ()) -> Iterator[Path]:
    """Yield the name of a temporary file to write to; it replaces `path` when the block ends well."""
    check_target(path, inputs)
    target = Path(path).resolve()
    try:
        _remove_leftovers(target)
        part, handle = _new_part(target)
        try:
            _keep_mode(part, target, stat.S_IWUSR)
            yield part
            _keep_mode(part, target)
            with part.open("rb") as written:
                os.fsync(written.fileno())
            part.replace(target)
            if os.name != "nt":  # bring the rename to the disk, where the system can
                with suppress(OSError), _opened(target.parent) as folder:
                    os.fsync(folder)
        finally:
            part.unlink(missing_ok=True)
            os.close(handle)
            _UNFINISHED.discard(part)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from None


@contextmanager
def lock_file(path: str | Path, patience: float = 30.0) -> Iterator[None]:
    """Hold the lock of a file, however it is named; wait up to `patience` seconds for another process."""
    from filelock import FileLock, Timeout

    check_target(path)
    target = Path(path).resolve()
    # next to the file that links lead to, where all containers that mount the folder see it
    name = target.parent / f"{_hidden_name(target)}lock"
    try:
        lock = FileLock(name, timeout=patience, mode=0o666)
        lock.acquire()
    except Timeout:
        rule = f"must not be in use by another process for more than {patience:g} seconds"
        raise UnreadableFileError(f"file {str(path)!r}", rule) from None
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from None
    try:
        yield
    finally:
        if os.name != "nt":  # where filelock removes it
            # while the lock is held: a process that waits for the removed file sees that it has no name
            name.unlink(missing_ok=True)
        lock.release()


def check_target(path: str | Path, inputs: Iterable[str | Path] = ()) -> None:
    """Refuse a place that cannot be written, before any work is done for it."""
    target = Path(path)
    try:
        if target.is_dir():
            raise _unwritable(path, "got a folder")
        if not target.resolve().parent.is_dir():
            raise UnwritableFileError(f"folder {str(target.parent)!r}", "must exist")
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


class JsonObject(dict[str, Any]):
    """A JSON object as it was read; `checksum` is what its last field of that name says, if anything."""

    checksum: str | None = None


def parse_json(text: str) -> Any:
    """Read JSON strictly: NaN, infinities (1e999 too) and repeated fields raise ValueError."""

    def finite(text: str) -> float:
        if not math.isfinite(float(text)):
            raise ValueError(f"got {text}, which is not a finite number")
        return float(text)

    def as_object(pairs: list[tuple[str, Any]]) -> JsonObject:
        has_checksum = bool(pairs) and pairs[-1][0] == CHECKSUM and isinstance(pairs[-1][1], str)
        checksum = pairs.pop()[1] if has_checksum else None
        content = JsonObject(pairs)
        if len(content) < len(pairs):
            raise ValueError("got a field twice")
        content.checksum = checksum
        return content

    content = json.loads(text, parse_constant=finite, parse_float=finite, object_pairs_hook=as_object)
    unread = isinstance(content, JsonObject) and content.checksum is None
    if unread and isinstance(content.get(CHECKSUM), str):  # another program has sorted the fields
        content.checksum = content.pop(CHECKSUM)
    return content


def checksum_of(content: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in content.items() if key != CHECKSUM or not isinstance(value, str)}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder for the length of the block; it is also removed when the process is stopped."""
    _remove_abandoned(Path(tempfile.gettempdir()))
    folder = Path(tempfile.gettempdir()) / f"{SCRATCH}{secrets.token_hex(8)}"
    _UNFINISHED.add(folder)  # first: a signal may come at any moment
    with ExitStack() as held:
        try:
            folder.mkdir(mode=0o700)
            with suppress(OSError):  # Windows opens no folders
                _try_lock(held.enter_context(_opened(folder)))
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            _UNFINISHED.discard(folder)


def remove_unfinished() -> None:
    for path in list(_UNFINISHED):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _new_part(target: Path) -> tuple[Path, int]:
    """Make a temporary file next to the target, and lock it before another writer takes it for a leftover."""
    while True:
        part = target.parent / f"{_hidden_name(target)}{os.getpid()}-{secrets.token_hex(4)}.part"
        _UNFINISHED.add(part)  # first: a signal may come at any moment
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)  # as the umask leaves it
        _try_lock(handle)
        if part.exists():
            return part, handle
        os.close(handle)  # removed between the two calls
        _UNFINISHED.discard(part)


def _hidden_name(target: Path) -> str:
    """Return how the names of a file's temporary files and lock begin, no longer than file systems allow."""
    return f".{os.fsencode(target.name)[:150].decode(errors='ignore')}."


@contextmanager
def _opened(path: Path, flags: int = 0) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | flags)
    try:
        yield handle
    finally:
        os.close(handle)


def _keep_mode(part: Path, target: Path, more: int = 0) -> None:
    """Give the new file the permissions of the old one: a state may be a secret."""
    if os.name != "nt" and target.exists():
        with suppress(OSError):  # of file systems that have no modes
            part.chmod(stat.S_IMODE(target.stat().st_mode) | more)


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of the same target whose writers were killed, and hold no lock any more."""
    for name in os.listdir(target.parent):
        if name.startswith(_hidden_name(target)) and name.endswith(".part"):
            part = target.parent / name
            with suppress(OSError), _opened(part, getattr(os, "O_NOFOLLOW", 0)) as handle:
                if _try_lock(handle):
                    part.unlink()


def _remove_abandoned(place: Path) -> None:
    """Remove unlocked scratch folders of this user; those of the last 10 seconds may not be locked yet."""
    with suppress(OSError):
        for folder in place.glob(f"{SCRATCH}*"):
            with suppress(OSError):
                about = folder.lstat()
                mine = about.st_mode == stat.S_IFDIR | 0o700 and about.st_uid == os.getuid()
                if mine and time.time() - about.st_mtime > 10:
                    with _opened(folder) as handle:
                        if _try_lock(handle):
                            shutil.rmtree(folder, ignore_errors=True)


def _try_lock(handle: int) -> bool:
    """Return whether the lock of an open file was free; False on systems without locks, such as Windows."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _unwritable(path: str | Path, got: str) -> UnwritableFileError:
    return UnwritableFileError(f"file {str(path)!r}", "must be a place to write a file", got)
