"""Seeds and blocks: random work that comes out the same whatever the number of threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.progress import Progress, tell
from calibrant.results import Array

Work = Callable[[np.random.Generator, int], Array]  # generator, rows -> an array with that many rows

BLOCK = 2**17  # numbers drawn at once: they stay in the cache
MOST_DRAWS = 10**8  # each leaves a value in memory


def recorded_seed(seed: int | None) -> int:
    """Return the seed given, or one drawn from the system, to be reported with the result."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidInputError(sentence("seed", "must be a whole number from 0", f"got {seed!r}"))
    return int(seed)


def checked_draws(draws: int) -> int:
    """Refuse a number of draws that is not a positive whole number, or larger than anybody can wait for."""
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or not 1 <= draws <= MOST_DRAWS:
        rule = f"must be a whole number from 1 to {MOST_DRAWS:,}"
        raise InvalidInputError(sentence("draws", rule, f"got {draws!r}"))
    return int(draws)


def check_drawing(draws: int, seed: int | None, threads: int | None) -> None:
    """Refuse options of draws by name, even where nothing will be drawn."""
    checked_draws(draws)
    recorded_seed(seed)
    thread_count(threads, 0)


def in_blocks(
    work: Work,
    draws: int,
    *,
    width: int,
    seed: int,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Do `draws` rows of work in blocks, each with a generator of its own, and stack what they return.

    A row needs `width` random numbers, which alone decides the blocks; so the result depends on the seed
    and not on the threads. With one thread nothing but the calling thread works.
    """
    rows = min(draws, max(1, BLOCK // max(1, width)))
    sizes = [min(rows, draws - start) for start in range(0, draws, rows)]
    generators = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(len(sizes))]
    workers = thread_count(threads, draws * width)
    if workers == 1:
        return _collected(map(work, generators, sizes), draws, progress)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        return _collected(pool.map(work, generators, sizes), draws, progress)


def _collected(blocks: Iterable[Array], draws: int, progress: Progress | None) -> Array:
    """Stack the blocks as they are done, and tell how many of the draws that is."""
    collected: list[Array] = []
    done = 0
    for block in blocks:
        collected.append(block)
        done += len(block)
        tell(progress, done, draws)
    return np.concatenate(collected)


def thread_count(threads: int | None, numbers: int) -> int:
    """Return how many threads to use: as told, or one for small work and else one per processor, up to 8."""
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
            raise InvalidInputError(sentence("threads", "must be a whole number from 1", f"got {threads!r}"))
        return int(threads)
    return 1 if numbers < 16 * BLOCK else min(8, os.cpu_count() or 1)
