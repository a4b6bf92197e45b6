"""A cache of query vectors: paging, retries and comparing profiles embed the same query again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from trivet.types import Vector

SIZE = 1024  # queries; 1.5 MB at 384 dimensions


class QueryCache:
    """The vectors of the latest queries. Thread-safe; two threads may embed the same new query at the same time."""

    def __init__(self, size: int = SIZE) -> None:
        self._size, self._lock = size, threading.Lock()
        self._rows: OrderedDict[str, Vector] = OrderedDict()

    def rows(self, texts: list[str], embed: Callable[[list[str]], Vector]) -> Vector:
        """Return the vectors of ``texts``; ``embed`` gets only those that are not cached, each once."""
        if not texts:
            return embed([])
        with self._lock:
            known = {text: self._rows[text] for text in texts if text in self._rows}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            # copies: a row that is a view would keep its whole batch in memory
            known.update((text, row.copy()) for text, row in zip(missing, embed(missing), strict=True))
        with self._lock:
            for text in texts:
                self._rows[text] = known[text]
                self._rows.move_to_end(text)
            while len(self._rows) > self._size:
                self._rows.popitem(last=False)
        return np.stack([known[text] for text in texts])
