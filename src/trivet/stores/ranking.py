"""From passages to documents: what every search of a store ends with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trivet.stores.contract import Found


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
