"""The import log of one collection."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trivet.stores.contract import State
from trivet.stores.import_log import ImportFiles, Version
from trivet.stores.sqlite.rows import CollectionRows


class SqliteImportLog:
    """Imports that would change nothing if they were repeated, as long as nothing but vectors is written."""

    def __init__(self, rows: CollectionRows, folder: Path) -> None:
        self._rows = rows
        self._files = ImportFiles(folder, rows.identity)
        self._counting = threading.Lock()
        self._vector_writes = 0  # of this process

    def mark(self) -> tuple[int, int]:
        """Return the version, and how often this process has added vectors."""
        with self._counting:
            return self._rows.state().version, self._vector_writes

    def find(self, key: str) -> dict[str, Any] | None:
        return self._files.find(key, _version(self._rows.state()))

    def keep(self, key: str, value: Mapping[str, Any], since: tuple[int, int], writes: int) -> None:
        with self._counting:
            state, vector_writes = self._rows.state(), self._vector_writes
        if state.version - since[0] == writes + vector_writes - since[1]:
            self._files.keep(key, _version(state), value)

    @contextlib.contextmanager
    def adding_vectors(self) -> Iterator[sqlite3.Connection]:
        """Begin a write transaction that adds vectors only: what is kept holds for its new version too."""
        with self._counting:
            with self._rows.write() as connection:
                before = self._rows.version_in(connection)
                yield connection
                self._rows.raise_version(connection)
                after = self._rows.version_in(connection)
            self._vector_writes += 1
            if before is not None and after is not None:
                self._files.carry((before[0], before[1].hex()), (after[0], after[1].hex()))

    def keep_only(self, state: State) -> None:
        """Delete what holds for another version."""
        self._files.keep_only(_version(state))

    def clear(self) -> None:
        """Delete everything that is kept."""
        self._files.clear()


def _version(state: State) -> Version:
    return state.version, state.token.hex()
