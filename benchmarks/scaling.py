"""The arithmetic of docs/evidence/scale.md: from the measured costs of one record to a number of machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

DIM = 384
# What a machine of the plan has; any other is a matter of changing these.
CORES, RAM, DISK = 16, 128e9, 4e12
USABLE = 0.7  # of memory and disk: the rest is for builds, vacuum, merges and a bad day
COPIES = 2  # of everything, so that a machine may go
MOST_PARTS = 64  # of one distributed collection, each on a shard (ADR 45)
# pgvector's HNSW, m = 16: the vector, a tuple's head, and 2 m + m neighbours of six bytes on the layers it stands on
LINKS = 24 + 8 + 3 * 16 * 6
HALF, FULL = 2 * DIM + LINKS, 4 * DIM + LINKS
POSTING = 10  # bytes of a term in a passage, in PostgreSQL's postings (docs/how-to/choose-a-store.md)
# Qdrant's rule of thumb: bytes of the vectors, and half as much again for links, versions and segments being merged
QDRANT = 1.5


def exponent(small: tuple[float, float], large: tuple[float, float]) -> float | None:
    """Return the exponent of growth between two (records, cost): 0 constant, 1 linear, above 1 faster."""
    (n1, v1), (n2, v2) = small, large
    if min(n1, v1, n2, v2) <= 0 or n1 == n2:
        return None
    return math.log(v2 / v1) / math.log(n2 / n1)


#: How a cost can grow with the number of records.
ORDERS = {"n": lambda n: n, "n log n": lambda n: n * math.log(n), "log n": lambda n: math.log(n)}


def grown(order: str, small: float, large: float) -> float:
    """Return how many times a cost grows from one number of records to another."""
    return float(ORDERS[order](large) / ORDERS[order](small))


def slope(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return the fixed cost and the cost of each record, from the two largest sizes."""
    if len(points) < 2:
        return None
    (n1, v1), (n2, v2) = sorted(points)[-2:]
    each = (v2 - v1) / (n2 - n1)
    return v1 - each * n1, each


@dataclass(frozen=True)
class Need:
    """The resources of one layout at one size, copies included."""

    memory: float  # bytes that have to be resident for the times to hold
    disk: float
    machines: int


def need(records: float, memory: float, disk: float, copies: int = COPIES) -> Need:
    """Return the need; ``memory`` and ``disk`` are in bytes per record."""
    whole = Need(records * memory * copies, records * disk * copies, 0)
    machines = max(math.ceil(whole.memory / (RAM * USABLE)), math.ceil(whole.disk / (DISK * USABLE)), copies)
    return Need(whole.memory, whole.disk, machines)


def one_machine(memory: float, disk: float) -> float:
    """Return how many records fit on one machine."""
    return min(RAM * USABLE / memory, DISK * USABLE / disk)


def late(parts: int, share: float = 0.05) -> float:
    """Return how often at least one of the parts is slower than its own ``1 - share`` percentile."""
    return float(1 - (1 - share) ** parts)


def hours(records: float, ms: float, cores: int = CORES) -> float:
    """Return the hours of one machine that spends ``ms`` of CPU on each record."""
    return records * ms / 1000 / cores / 3600
