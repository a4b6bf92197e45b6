"""Times and degraded parts of the last searches of one worker, in memory.

No query and no text is kept. Prometheus has the sums of all workers; this has single searches with their time.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trivet import serialize

if TYPE_CHECKING:
    from trivet.types import Results

KEPT = 2_000  # searches: about 2 MB


class RecentSearches:
    """A ring of the last searches of all collections."""

    def __init__(self) -> None:
        self.worker = secrets.token_hex(4)  # which worker a response came from
        self._kept: deque[tuple[str, dict[str, Any]]] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    def add(self, collection: str, results: Results, degraded: list[dict[str, str]]) -> None:
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "ms": round(serialize.total_ms(results), 3),
            "stages": {stage.name: round(stage.ms, 3) for stage in results.trace if stage.name != "total"},
            "hits": len(results.hits),
            "degraded": degraded,
        }
        with self._lock:
            self._kept.append((collection, entry))

    def of(self, collection: str, limit: int) -> list[dict[str, Any]]:
        """Return the last searches in a collection, the latest last."""
        with self._lock:
            kept = list(self._kept)
        return [entry for name, entry in kept if name == collection][-limit:]
