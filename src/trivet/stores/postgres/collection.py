"""What do all questions to one collection on a PostgreSQL server begin with?

Its state, in one look-up; and for a writer the lock on its row, so that of two each sees all or nothing of the other.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trivet.analysis import Analyzer
from trivet.errors import NotFoundError
from trivet.stores.contract import Model, State
from trivet.stores.postgres.connections import Connections
from trivet.stores.postgres.database import Connection
from trivet.stores.postgres.parts import Parts
from trivet.stores.postgres.place import Place

if TYPE_CHECKING:
    from trivet.filters import Filter
    from trivet.stores.postgres.scope import Scope
    from trivet.stores.postgres.store import PostgresStore


class Collection:
    def __init__(self, store: PostgresStore, cid: int, name: str, config: Mapping[str, Any]) -> None:
        self.store, self.cid, self.name, self.config = store, cid, name, dict(config)
        self.parts = Parts.of(cid, self.config.pop("spread", 0))  # how it is kept is nobody else's concern
        self.analyzer = Analyzer(self.config.get("language", "en"))
        self._database = store.database
        self._all = store.database.all
        self._lock = threading.Lock()
        self._scopes: OrderedDict[Filter, Scope] = OrderedDict()
        self._scopes_version = -1
        self._connections = Connections(store.database, self.parts, self.analyzer, store.start)
        self._counted = (-1, (False, 0, 0, 0))  # at which version: BM25's table, passages, terms, the last passage
        self._packed = 0  # the last passage this process has seen to be taken into the postings
        self._chained = (-1, False)  # at which version: is there a link that changes recall?
        self._indexed: set[int] = set()  # models whose index is known to be there, or being made

    @property
    def read_only(self) -> bool:
        return self._database.read_only

    def order_of(self, did: int) -> int:
        """The how-manieth document it was: of a spread collection the numbers are further apart."""
        return did // self.parts.every[0].step

    def state(self) -> State:
        rows = self._all(
            "SELECT h.version, h.settings, h.documents, h.passages, m.mid, m.id, m.spec, m.dim, m.vectors "
            "FROM heads h LEFT JOIN models m ON m.cid = h.cid AND m.mid = h.mid WHERE h.cid = %s",
            (self.cid,),
        )
        if not rows:
            raise NotFoundError(f"collection: {self.name!r} was dropped")
        version, settings, documents, passages, *model = rows[0]
        return State(version, settings, documents, passages, None if model[0] is None else Model(*model))

    @contextlib.contextmanager
    def _held(self) -> Iterator[tuple[Connection, Place, str]]:
        """A write transaction that holds the collection's row: (connection, where records go, settings)."""
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT settings, bm25 FROM heads WHERE cid = %s FOR UPDATE", (self.cid,)
            ).fetchone()
            if row is None:
                raise NotFoundError(f"collection: {self.name!r} was dropped")
            yield connection, Place(self.parts, self.analyzer, self._table if row[1] else None), row[0]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[tuple[Connection, Place, str]]:
        """The same, and every search after it has news."""
        with self._held() as held:
            yield held
            held[0].execute("UPDATE heads SET version = version + 1 WHERE cid = %s", (self.cid,))

    @property
    def _table(self) -> str:
        return f"words_{self.cid}"


def now() -> float:
    return datetime.now(UTC).timestamp()
