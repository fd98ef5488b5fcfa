"""Work shared among the cores: threads, seeded blocks of draws, progress, and sums without BLAS.

BLAS has threads of its own, which cost more than they save here and compete with those of the caller.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.inputs import whole_number
from calibrant.results import Array

T = TypeVar("T")
R = TypeVar("R")

DRAWS = 999  # simulated data sets, or resamples, unless a function says otherwise
WORKERS = min(os.cpu_count() or 1, 8)
MIN_THREADED_LEVELS = 2**17  # levels from which threads repay their start


def map_threads_named(work: Callable[[T], R], named: Mapping[str, T], *, size: int) -> dict[str, R]:
    return dict(zip(named, map_threads(work, named.values(), size=size), strict=True))


def map_threads(
    work: Callable[[T], R],
    items: Iterable[T],
    *,
    size: int = MIN_THREADED_LEVELS,
    done: Callable[[R], R] = lambda result: result,
    workers: int | None = None,
) -> list[R]:
    """Return the results for all items, in order; `done` gets each on the way, in the calling thread."""
    todo = list(items)
    if workers is None:
        workers = min(WORKERS, len(todo)) if size >= MIN_THREADED_LEVELS else 1
    if workers < 2:
        return [done(work(item)) for item in todo]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        return [done(result) for result in pool.map(work, todo)]


Progress = Callable[..., object]  # called with the share that is done, from 0 to 1


def report_progress(progress: Progress | None, done: int, total: int) -> None:
    """Call `progress` with the share done, or with `done` and `total` if it takes two, as in version 0.1."""
    if progress is None:
        return
    try:
        inspect.signature(progress).bind(0, 1)
    except (TypeError, ValueError):  # one number, or a builtin that does not say
        progress(done / total)
    else:
        progress(done, total)


BLOCK = 2**17  # numbers drawn at once: they stay in the cache


def recorded_seed(seed: int | None) -> int:
    """Return the seed given, or one drawn from the system, to be reported with the result."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    return _whole_number_from(0, "seed", seed)


def _whole_number_from(least: int, name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidInputError(name, f"must be a whole number from {least}", f"got {value!r}")
    return int(value)


def checked_draws(draws: int) -> int:
    return whole_number("draws", draws, 1, 10**8)  # each leaves a value in memory


def check_drawing(draws: int, seed: int | None, threads: int | None) -> None:
    checked_draws(draws)
    recorded_seed(seed)
    thread_count(threads, 0)


def in_blocks(
    work: Callable[[np.random.Generator, int], Array],
    draws: int,
    *,
    width: int,
    seed: int,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Do `draws` rows of work in blocks, each with a generator of its own, and stack what they return."""
    # the numbers that a row needs alone decide the blocks: the result does not depend on the threads
    rows = min(draws, max(1, BLOCK // max(1, width)))
    sizes = [min(rows, draws - start) for start in range(0, draws, rows)]
    generators = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(len(sizes))]
    ended = iter(np.cumsum(sizes).tolist())

    def done(block: Array) -> Array:
        report_progress(progress, next(ended), draws)
        return block

    workers = thread_count(threads, draws * width)
    pairs = zip(generators, sizes, strict=True)
    return np.concatenate(map_threads(lambda pair: work(*pair), pairs, done=done, workers=workers))


def thread_count(threads: int | None, numbers: int) -> int:
    if threads is not None:
        return _whole_number_from(1, "threads", threads)
    return 1 if numbers < 16 * BLOCK else WORKERS


TERMS_AT_ONCE = 2**15  # they stay in the cache, and need no new pages of memory


def dot(one: Array, other: npt.NDArray[np.floating | np.integer]) -> float:
    """Return the sum of the products, added in pairs (the rounding error grows with log n only)."""
    return chunked_sum(lambda part: one[part] * other[part], len(one))


def chunked_sum(terms: Callable[[slice], Array], stop: int, start: int = 0) -> float:
    """Return ``np.sum(terms(slice(start, stop)))`` to the bit, never holding millions of terms in memory."""
    if stop - start <= TERMS_AT_ONCE:
        return float(np.add.reduce(terms(slice(start, stop))))  # np.sum without its overhead
    half = (stop - start) // 2
    middle = start + half - half % 8  # where np.sum cuts too
    return chunked_sum(terms, middle, start) + chunked_sum(terms, stop, middle)


def cumulative(terms: Array) -> Array:
    """Return the sums of the first 0, 1, ..., m terms."""
    sums = np.empty(len(terms) + 1)
    sums[0] = 0.0
    np.cumsum(terms, out=sums[1:])
    return sums


def dots(rows: Array, other: Array) -> Array:
    return np.asarray(np.einsum("ij,j->i", rows, other))
