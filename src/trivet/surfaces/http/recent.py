"""How did the last searches go?

A ring of times and of what was degraded, in each worker's memory: gone when it ends, and never a question or a text.
Prometheus has the sums of all workers; this has the last two thousand searches of one, each with its moment.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trivet.surfaces import wire

if TYPE_CHECKING:
    from trivet.types import Results

KEPT = 2_000  # searches: some 2 MB


class Recent:
    def __init__(self) -> None:
        self.worker = secrets.token_hex(4)  # tells one worker's answers from another's
        self._kept: deque[tuple[str, dict[str, Any]]] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    def note(self, collection: str, found: Results, degraded: list[dict[str, str]]) -> None:
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "ms": round(wire.total_ms(found), 3),
            "stages": {stage.name: round(stage.ms, 3) for stage in found.trace if stage.name != "total"},
            "hits": len(found.hits),
            "degraded": degraded,
        }
        with self._lock:
            self._kept.append((collection, entry))

    def of(self, collection: str, limit: int) -> list[dict[str, Any]]:
        """The latest last."""
        with self._lock:
            kept = list(self._kept)
        return [entry for name, entry in kept if name == collection][-limit:]
