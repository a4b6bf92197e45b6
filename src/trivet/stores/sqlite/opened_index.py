"""An index that is opened when it is first used, and may be dropped at any time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from trivet.concurrency import deadline


class Discardable(Protocol):
    """An index that can delete its files."""

    def discard(self) -> None: ...


Index = TypeVar("Index", bound=Discardable)


class OpenedIndex(Generic[Index]):
    """One index of a collection: the object in memory, and the folder on disk."""

    def __init__(self, folder: Path, open: Callable[[Path], Index]) -> None:
        self.folder, self._open = folder, open
        self._lock = threading.Lock()
        self.index: Index | None = None  # None until it is used

    @deadline.lifted()  # opened for every later request, not for this one alone
    def open(self) -> Index:
        """Return the index, opened if it is not."""
        with self._lock:
            if self.index is None:
                self.index = self._open(self.folder)
            return self.index

    def stored(self) -> Index | None:
        """Return the index if it is on disk, opened."""
        return self.open() if self.folder.exists() else None

    def reset(self) -> None:
        """Drop the object in memory; the next use opens the files again."""
        with self._lock:
            self.index = None

    def discard(self) -> None:
        """Delete the index; the next use builds it from the records."""
        with self._lock:
            if self.index is not None:
                self.index.discard()
            self.index = None
