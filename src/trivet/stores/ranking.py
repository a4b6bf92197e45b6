"""From passages to documents: what every search of a store ends with."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from trivet.stores.contract import Found

SPARE = 16  # passages beside those that are needed: some may be deleted
DEVIATIONS = 3.0  # standard deviations above the average of a share: 1 in 700 is further above it
SKEW = 3  # more than that where the average is a few rows: they are counted, and not measured


def rows_for(depth: int, documents: int, passages: int, allowed: int | None = None) -> int:
    """Return how many of the best passages to read so that they are nearly always of ``depth`` documents.

    ``allowed``: so many of the documents pass a filter, which is applied afterwards.
    """
    repeated = 2 * depth * max(0.0, passages / max(1, documents) - 1.0)  # those of a document tend to be found together
    wanted = depth + min(depth // 2, math.ceil(repeated)) + SPARE
    share = 1.0 if allowed is None else min(1.0, max(1, allowed) / max(1, documents))
    return math.ceil((wanted + DEVIATIONS * math.sqrt(wanted * (1.0 - share))) / share)


def rows_where_few_are_left(rows: int, found: int, depth: int) -> int:
    """Return how many rows to read where so many had only ``found`` of ``depth`` documents that may be seen."""
    return math.ceil(rows * min(8.0, max(2.0, 1.5 * depth / max(1, found))))


def rows_of_part(total: int, parts: int) -> int:
    """Return how many rows to read of each of some parts so that the best ``total`` are nearly always among them."""
    share = total / parts
    return min(total, math.ceil(share + DEVIATIONS * math.sqrt(share)) + SKEW)


def best_passages(rows: Iterable[tuple[Any, ...]], depth: int) -> list[Found]:
    """Return the best passage of each of the best ``depth`` documents, of rows (score, passage, document).

    The rows may come in any order; equal scores are ordered by document and passage.
    """
    found: dict[int, Found] = {}
    for score, pid, did in sorted(rows, key=lambda row: (-row[0], row[2], row[1])):
        found.setdefault(did, (float(score), pid, did))
        if len(found) == depth:
            break
    return list(found.values())
