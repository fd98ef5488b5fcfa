"""Apply a recalibration to one Parquet file by adding a column behind what it holds.

The bytes of all other columns are copied as they stand: neither decoded nor encoded, so that the copy takes
no longer than the disk, and everything that a column can be, down to its pages and filters, stays as it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from calibrant.cores import WORKERS
from calibrant.disk import flushed, whole_file
from calibrant.recalibration.maps.long_columns import Fill, column_mapper
from calibrant.recalibration.result import Recalibration
from calibrant.results import Array
from calibrant.scale.applied import Applied, refuse_none_usable
from calibrant.scale.located import kind_of
from calibrant.scale.parquet_column import Chunk, column_chunk, element_of
from calibrant.scale.parquet_footer import (
    MAGIC,
    Footer,
    NotAppendableError,
    check_appendable,
    moved,
    read_footer,
    with_column,
)
from calibrant.scale.session import plain_names
from calibrant.scale.thrift_compact import Struct

TOGETHER = 2**17  # rows of small row groups that are read and mapped in one go
IN_FLIGHT = 2**22  # rows that are held in memory, of all threads
FIRST = 2**30  # bytes that are copied while the map is made ready; threads copy the rest as they go
PIECE = 2**22  # bytes that are copied at a time


@dataclass(frozen=True, slots=True)
class _Job:
    """What every thread must know."""

    fitted: Recalibration
    fill: Fill
    source: str
    part: Path
    footer: Footer
    metadata: Any  # the footer as pyarrow reads it
    prediction: str
    into: str
    free: deque[_Arrays] = field(default_factory=deque)  # what other threads have done with


class _Arrays(NamedTuple):
    """Memory for predictions before and after the map, used again and again."""

    before: Array
    after: Array


class _Task(NamedTuple):
    """Row groups in a row, how many rows each has, and the bytes of the source that are copied with them."""

    groups: range
    rows: list[int]
    start: int
    stop: int


class _Made(NamedTuple):
    """The new column of some row groups, counts of their rows, and the memory that the column is in."""

    chunks: list[Chunk]
    applied: Applied
    arrays: _Arrays


def append_map(
    fitted: Recalibration, files: list[Path], target: Path, *, prediction: str, into: str,
    progress: Callable[[float], object] | None = None,
) -> Applied | None:  # fmt: skip
    """Write the file with the recalibrated column to `target`; None where it must be written anew.

    That is so without pyarrow, for several files, for predictions that are no floating numbers, for maps
    that read covariates, for encrypted files, row groups of millions of rows and footers of many megabytes;
    and for every file that cannot be read or lacks the column: who writes it anew says what is wrong with it.
    """
    if len(files) > 1 or kind_of(files[0]) != "parquet" or find_spec("pyarrow") is None:
        return None
    if fitted.map.needs_covariates or fitted.map.several:
        return None
    try:
        with files[0].open("rb") as source:
            footer = read_footer(source)
        check_appendable(footer, prediction, into)
        with plain_names(files) as [name], whole_file(target, files) as part:
            with _copied_meanwhile(name, part, min(FIRST, footer.start)):
                fill = column_mapper(fitted.map, sum(footer.rows))
                job = _Job(fitted, fill, name, part, footer, _metadata(name), prediction, into)
                applied = _written(job, progress)
            refuse_none_usable(applied, prediction)
            return applied
    except NotAppendableError:
        return None


def _written(job: _Job, progress: Callable[[float], object] | None) -> Applied:
    """Copy the source up to its footer, add the new column and a new footer."""
    described: list[Struct] = []
    rows = unusable = outside = 0
    total = max(1, sum(job.footer.rows))
    with job.part.open("r+b", buffering=0) as out, flushed(out), closing(_in_turn(job)) as column:
        out.seek(job.footer.start)
        for made in column:
            for chunk in made.chunks:
                described.append(moved(chunk.described, out.tell() - len(MAGIC)))
                for page in chunk.pages:
                    _write(out, page)
            job.free.append(made.arrays)
            rows += made.applied.rows
            unusable += made.applied.unusable
            outside += made.applied.outside
            if progress is not None:
                progress(rows / total)
        _write(out, with_column(job.footer, element_of(job.into), described))
    return Applied(rows, unusable, outside)


def _in_turn(job: _Job) -> Generator[_Made, None, None]:
    """Yield the new column in the order of the row groups; a few are made ahead by several threads."""
    tasks = _tasks(job.footer)
    most = max(1, *(sum(task.rows) for task in tasks))
    ahead = min(2 * WORKERS, max(2, IN_FLIGHT // most))
    waiting: deque[Future[_Made]] = deque()
    with ThreadPoolExecutor(min(WORKERS, ahead)) as pool:
        try:
            for task in tasks:
                waiting.append(pool.submit(_made, job, task))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _tasks(footer: Footer) -> list[_Task]:
    """Put small row groups together, and share out the bytes to be copied."""
    rows = footer.rows
    firsts, held = [0], 0
    for place, count in enumerate(rows):
        if held and held + count > TOGETHER:
            firsts.append(place)
            held = 0
        held += count
    first = min(FIRST, footer.start)
    ends = [first + (footer.start - first) * k // len(firsts) for k in range(len(firsts) + 1)]
    together = [range(*pair) for pair in pairwise([*firsts, len(rows)])]
    return [
        _Task(groups, rows[groups.start : groups.stop], start, stop)
        for groups, (start, stop) in zip(together, pairwise(ends), strict=True)
    ]


def _made(job: _Job, task: _Task) -> _Made:
    """Copy some bytes, and make the new column of some row groups."""
    _copy(job.source, job.part, task.start, task.stop)
    p = _predictions(job, task)
    usable = (p >= 0.0) & (p <= 1.0)
    arrays = _arrays(job, len(p))
    known, q = (array[: np.count_nonzero(usable)] for array in arrays)
    np.add(p if len(known) == len(p) else p[usable], 0.0, out=known)  # no sign of 0, as predict has it
    facts = job.fitted.fit
    outside = np.count_nonzero(known < facts.low) + np.count_nonzero(known > facts.high)
    if len(known):
        job.fill(known, q)
    chunks, start, before = [], 0, 0
    for rows in task.rows:
        present = usable[start : start + rows]
        count = int(np.count_nonzero(present))
        chunks.append(column_chunk(job.into, q[before : before + count], present))
        start, before = start + rows, before + count
    return _Made(chunks, Applied(len(p), len(p) - len(known), int(outside)), arrays)


def _arrays(job: _Job, rows: int) -> _Arrays:
    """Return memory for some rows, preferably such as was used before: fresh pages take longer than a map."""
    with suppress(IndexError):
        arrays = job.free.pop()
        if len(arrays.before) >= rows:
            return arrays
    return _Arrays(np.empty(rows), np.empty(rows))


@contextmanager
def _copied_meanwhile(source: str, part: Path, stop: int) -> Iterator[None]:
    """Copy the beginning of the source during the block; what stops the block stops the copy."""
    stopped = Event()
    with ThreadPoolExecutor(1) as pool:
        copied = pool.submit(_copy, source, part, 0, stop, stopped)
        try:
            yield
        except BaseException:
            stopped.set()
            raise
        copied.result()


def _copy(source: str, part: Path, start: int, stop: int, stopped: Event | None = None) -> None:
    """Copy a part of the source to its place."""
    buffer = memoryview(bytearray(min(PIECE, stop - start)))
    with open(source, "rb", buffering=0) as taken, part.open("r+b", buffering=0) as out:
        taken.seek(start)
        out.seek(start)
        left = stop - start
        while left and not (stopped and stopped.is_set()):
            got = taken.readinto(buffer[: min(PIECE, left)])
            if not got:
                raise NotAppendableError("the file became shorter")
            _write(out, buffer[:got])
            left -= got


def _write(out: Any, data: bytes | memoryview) -> None:
    """Write all of it: without a buffer, a file may take less at a time."""
    left = memoryview(data)
    while len(left):
        left = left[out.write(left) :]


def _metadata(name: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pa.OSFile(name) as source:
            return pq.read_metadata(source)
    except (OSError, pa.ArrowException):
        raise NotAppendableError("the footer cannot be read") from None


def _predictions(job: _Job, task: _Task) -> Array:
    """Read the predictions of some row groups; missing ones are NaN."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not task.groups:
        return np.empty(0)
    try:
        with pa.OSFile(job.source) as source, pq.ParquetFile(source, metadata=job.metadata) as reader:
            read = reader.read_row_groups(list(task.groups), columns=[job.prediction], use_threads=False)
    except (OSError, pa.ArrowException):
        raise NotAppendableError("the predictions cannot be read") from None
    if read.column_names != [job.prediction] or not pa.types.is_floating(read.schema.types[0]):
        raise NotAppendableError("the predictions are not what the footer says")
    if read.num_rows != sum(task.rows):
        raise NotAppendableError("there are not as many predictions as rows")
    held = [_numbers(chunk) for chunk in read.column(0).chunks if len(chunk)]
    return held[0] if len(held) == 1 else np.concatenate([np.empty(0), *held])


def _numbers(chunk: Any) -> Array:
    """Return an array of Arrow as numpy's, which `to_numpy` would load pandas for; missing is NaN."""
    whole = chunk.fill_null(np.nan) if chunk.null_count else chunk
    kind = np.dtype(f"f{whole.type.bit_width // 8}")
    start = whole.offset * kind.itemsize
    return np.frombuffer(whole.buffers()[1], kind, len(whole), start).astype(np.float64, copy=False)
