"""Measure the memory bandwidth of this machine, the lower bound of every scan."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

MEGABYTES = 512  # far more than any cache
REPEATS = 5


def measured() -> dict[str, float]:
    """Return the GB/s that one core reads, and all cores together: the best of several tries."""
    block = np.ones(MEGABYTES * 1_000_000 // 8, dtype=np.int64)
    cores = os.cpu_count() or 1
    parts = np.array_split(block, cores)
    with ThreadPoolExecutor(cores) as threads:
        alone = min(_timed(lambda: _read(block)) for _ in range(REPEATS))
        together = min(_timed(lambda: list(threads.map(_read, parts))) for _ in range(REPEATS))
    return {"one_core_gb_s": round(block.nbytes / alone / 1e9, 1), "all_gb_s": round(block.nbytes / together / 1e9, 1)}


def _read(block: np.ndarray) -> int:
    """Read every byte once, with the least work; numpy releases the GIL meanwhile."""
    return int(np.bitwise_or.reduce(block))


def _timed(call: object) -> float:
    started = time.perf_counter()
    call()  # type: ignore[operator]
    return time.perf_counter() - started


def floor_ms(count: int, bytes_each: float, gb_s: float) -> float:
    """Return the milliseconds of reading that many bytes once."""
    return count * bytes_each / gb_s / 1e6
