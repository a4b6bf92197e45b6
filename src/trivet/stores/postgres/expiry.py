"""Documents whose time has passed: hidden from every reader, removed before the next write or in the background."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from trivet.errors import TrivetError
from trivet.filters import Filter, Range
from trivet.stores.background_task import BackgroundTask, Start
from trivet.stores.expiry import unexpired
from trivet.stores.postgres import removals
from trivet.stores.postgres.filter_sql import matching
from trivet.stores.postgres.rows import Rows
from trivet.stores.postgres.transaction import new_version


class Expiry:
    """The expired documents of one collection."""

    def __init__(self, rows: Rows, start: Start) -> None:
        self._rows = rows
        # where the store is closed or busy, a later sweep removes them; they stay hidden
        self._background = BackgroundTask(start, self.sweep, TrivetError)
        self.swept: Callable[[list[int]], None] = lambda dids: None

    def unexpired(self, where: Filter | None) -> Filter | None:
        """Return the filter without expired documents; the same filter where no document has expired."""
        passed = self._last_passed()
        if passed is not None and not self._rows.database.read_only:
            self._background.start()
        return unexpired(where, passed)

    def first(self) -> float:
        """Return the first expiry of a document that is here, whether it has passed or not; infinity without one."""
        tables = self._rows.tables
        found = self._rows.all(f"SELECT min(expires) FROM {tables.documents} WHERE {tables.of()}")[0][0]
        return math.inf if found is None else float(found)

    def sweep_before_write(self) -> None:
        """Remove expired documents, so that an id that comes again is a new document without the old links."""
        if self._last_passed() is not None:
            self.sweep()

    def sweep(self) -> list[int]:
        """Remove expired documents with their feedback; return their numbers."""
        with self._rows.locked() as transaction:
            dids = matching(transaction.all, transaction.tables, Range("expires", lte=time.time()))
            if dids:
                removals.remove(transaction, dids, feedback_too=True)
                new_version(transaction.connection, transaction.root)
        if dids:
            self.swept(dids)
        return dids

    def _last_passed(self) -> float | None:
        """Return the last expiry that has passed of a document that is still here; None where there is none."""
        tables = self._rows.tables
        sql = f"SELECT max(expires) FROM {tables.documents} WHERE {tables.of()} AND expires <= %s"
        found: float | None = self._rows.all(sql, (time.time(),))[0][0]
        return found
