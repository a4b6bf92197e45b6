"""The rows of one collection: how its parts read and write them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

from trivet.errors import CollectionDroppedError
from trivet.stores.contract import read_again
from trivet.stores.postgres.address import Address
from trivet.stores.postgres.database import Database
from trivet.stores.postgres.tables import Tables
from trivet.stores.postgres.transaction import Transaction, new_version
from trivet.text.analysis import Analyzer

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def bm25_table(address: Address, root: int) -> str:
    """Return the name of a collection's table for pg_textsearch."""
    return address.qualified(f"words_{root}")


class Rows:
    """Access to the rows of one collection."""

    def __init__(self, database: Database, tables: Tables, name: str, analyzer: Analyzer) -> None:
        self.database, self.tables, self.name, self.analyzer = database, tables, name, analyzer
        self.all = database.all

    @property
    def root(self) -> int:
        """The number of the collection."""
        return self.tables.root

    @property
    def bm25_table(self) -> str:
        """The name of the collection's table for pg_textsearch."""
        return bm25_table(self.database.address, self.root)

    def by_number(self, head: str, column: str, numbers: Iterable[int], tail: str = "") -> list[tuple[Any, ...]]:
        return self.tables.select(self.all, head, column, numbers, tail)

    def by_id(self, head: str, column: str, ids: Iterable[str], tail: str = "") -> list[tuple[Any, ...]]:
        return self.tables.select_ids(self.all, head, column, ids, tail)

    def head(self, columns: str) -> tuple[Any, ...]:
        """Read columns of the collection's row in ``heads``; ``NotFoundError`` where the collection was dropped."""
        rows = self.all(f"SELECT {columns} FROM heads WHERE cid = %s", (self.root,))
        if not rows:
            raise self.dropped()
        return rows[0]

    def dropped(self) -> CollectionDroppedError:
        """Return the error for a collection that is no longer there."""
        return CollectionDroppedError(f"collection: {self.name!r} was dropped, or moved to other tables; open it again")

    def snapshot(self) -> contextlib.AbstractContextManager[None]:
        """Let this thread read one state of the collection until the block ends."""
        return self.database.snapshot()

    @contextlib.contextmanager
    def locked(self) -> Iterator[Transaction]:
        """Open a write transaction that leaves the version as it is: what it changes is not part of any index."""
        with self.database.write() as connection:
            sql = "SELECT settings, bm25 FROM heads WHERE cid = %s FOR UPDATE"
            row = connection.execute(sql, (self.root,)).fetchone()
            if row is None:
                raise self.dropped()
            yield Transaction(connection, self.tables, self.analyzer, row[0], self.bm25_table if row[1] else None)

    @contextlib.contextmanager
    def changing(self) -> Iterator[Transaction]:
        """Open a write transaction that ends with a new version of the collection."""
        with self.locked() as transaction:
            yield transaction
            new_version(transaction.connection, self.root)


def in_one_snapshot(
    method: Callable[Concatenate[Any, Arguments], Result],
) -> Callable[Concatenate[Any, Arguments], Result]:
    """Run a method of a part in a snapshot of its ``_rows``; again where the server closes the connection in it."""

    @functools.wraps(method)
    def read(self: Any, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        def once() -> Result:
            with self._rows.snapshot():
                return method(self, *args, **kwargs)

        return read_again(once)

    return read
