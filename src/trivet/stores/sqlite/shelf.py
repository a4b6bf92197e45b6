"""What is asked of one collection?

Everything a store does for it: here, what changes it; what is read of it, filtered, indexed and found is in the classes
it is made of.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from filelock import Timeout

from trivet.errors import InputError, NotFoundError
from trivet.filters import Filter
from trivet.stores.contract import Model, Prepared, Written
from trivet.stores.scoped import allowed, check_ends, ends
from trivet.stores.sqlite import access, feedback, history, records
from trivet.stores.sqlite.filter_sql import compile_filter
from trivet.stores.sqlite.finding import Finding
from trivet.stores.sqlite.sources import HEAD
from trivet.stores.sqlite.waiting import acquire, check_not_stopped
from trivet.types import Document, Feedback, Link


class Shelf(Finding):
    """One collection. Safe to use from many threads."""

    @contextlib.contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction after which every projection has news."""
        with self._database.write() as connection:
            yield connection
            records.touch(connection, self.cid)

    def change_settings(self, change: Callable[[str], str], by: str = "") -> str:
        """Replace the settings by ``change(current)`` and write down who did, in one transaction."""
        with self.changing() as connection:
            current = self._settings(connection)
            settings = change(current)
            connection.execute("UPDATE collections SET settings = ? WHERE cid = ?", (settings, self.cid))
            history.record(connection, self.cid, by, settings, current, datetime.now(UTC).timestamp())
        return settings

    def add_model(self, identifier: str, spec: str, dim: int, answers: bool) -> Model:
        """Make a model known; ``answers`` makes it the collection's own."""
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:  # a caller's own embedder may say anything
            raise InputError(f"embedder {spec!r}: its dim is {dim!r}; it must be a whole number from 1 up")
        with self.changing() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO models (cid, id, spec, dim) VALUES (?, ?, ?, ?)",
                (self.cid, identifier, spec, dim),
            )
            connection.execute("UPDATE models SET spec = ? WHERE cid = ? AND id = ?", (spec, self.cid, identifier))
            row = connection.execute(
                "SELECT mid, id, spec, dim, vectors FROM models WHERE cid = ? AND id = ?", (self.cid, identifier)
            ).fetchone()
            if answers:
                connection.execute("UPDATE collections SET mid = ? WHERE cid = ?", (row[0], self.cid))
        return Model(*row)

    def forget_other_models(self, mid: int) -> None:
        """Delete the vectors of every model but this one."""
        with self._lock:
            self._meanings = {known: index for known, index in self._meanings.items() if known == mid}
        with self.changing() as connection:
            connection.execute(
                "DELETE FROM vectors WHERE mid IN (SELECT mid FROM models WHERE cid = ? AND mid <> ?)", (self.cid, mid)
            )
            connection.execute("DELETE FROM models WHERE cid = ? AND mid <> ?", (self.cid, mid))
        for old in self._folder.glob("meaning-*"):
            if old.name != f"meaning-{mid}":
                shutil.rmtree(old, ignore_errors=True)

    # --- records ----------------------------------------------------------------------------------------------------

    def write(self, batch: Sequence[Prepared], mid: int | None, within: Filter | None = None) -> Written:
        self._look_at_projections()
        with self._database.write() as connection:
            written = records.write(connection, self.cid, mid, batch, datetime.now(UTC).timestamp(), within)
            if written.added or written.updated:  # what was there already is no news
                records.touch(connection, self.cid)
        return written

    def remember(
        self,
        item: Prepared,
        mid: int | None,
        same: Callable[[Document], bool],
        likely: Sequence[int],
        named: bool,
        importance: Callable[[float], float],
        within: Filter | None = None,
    ) -> tuple[str, Written | None]:
        """Store it, unless a document that is ``same`` is there: that one is reinforced. In one transaction, so that
        two processes that are told the same at once store it once. (id, what was written or None)

        ``likely`` are row numbers to look at besides those of the very same text. ``named``: the id is the caller's
        own, and a document of that id that says something else is replaced.
        """
        self._look_at_projections()
        now = datetime.now(UTC).timestamp()
        with self.changing() as connection:
            own = records.find(connection, self.cid, item.document.id) if named else None
            if own is not None and allowed(own, within):
                twin = own if same(own) else None
            else:
                alike = lambda other: allowed(other, within) and same(other)  # noqa: E731
                twin = records.twin(connection, self.cid, item, alike, likely) if own is None else None
            if twin is None:
                return item.document.id, records.write(connection, self.cid, mid, [item], now, within)
            access.touch(connection, self.cid, [twin.id], now)
            records.set_importance(connection, self.cid, twin.id, importance(twin.importance))
            self._link(connection, [replace(link, source=twin.id) for link in item.links or ()], within)
            return twin.id, None

    def amend(
        self,
        identifier: str,
        mid: int | None,
        change: Callable[[Document], Prepared],
        within: Filter | None = None,
    ) -> Written:
        """Replace a document by what ``change`` makes of it, in one transaction: nobody's change is lost."""
        self._look_at_projections()
        with self.changing() as connection:
            known = records.find(connection, self.cid, identifier)
            if known is None or not allowed(known, within):
                raise NotFoundError(f"id: there is no document {identifier!r} in collection {self.name!r}")
            now = datetime.now(UTC).timestamp()
            return records.write(connection, self.cid, mid, [change(known)], now, within)

    def remove(self, where: Filter) -> list[int]:
        with self.changing() as connection:
            sql, values = compile_filter(where, self.cid)
            dids = [did for (did,) in connection.execute(sql, values)]
            records.remove(connection, self.cid, dids)
        return dids

    def link(self, links: Sequence[Link], within: Filter | None = None) -> None:
        with self.changing() as connection:
            check_ends(links, records.visible(connection, self.cid, ends(links), within), self.name)
            records.add_links(connection, self.cid, links)

    def _link(self, connection: sqlite3.Connection, links: Sequence[Link], within: Filter | None) -> None:
        """Add links that may lead to what is not here yet; within a filter, only to what it shows."""
        if within is not None:
            check_ends(links, records.visible(connection, self.cid, ends(links), within), self.name)
        records.add_links(connection, self.cid, links)

    def unlink(self, source: str, target: str, kind: str | None, within: Filter | None = None) -> int:
        with self.changing() as connection:
            if within is not None and len(records.visible(connection, self.cid, [source, target], within)) < 2:
                return 0
            return connection.execute(
                "DELETE FROM links WHERE cid = ? AND source = ? AND target = ? AND type = coalesce(?, type)",
                (self.cid, source, target, kind),
            ).rowcount

    def add_vectors(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        with self._counting:
            with self._database.write() as connection:
                before = _version(connection, self.cid)
                records.add_vectors(connection, mid, vectors)
                records.touch(connection, self.cid)
                after = _version(connection, self.cid)
            self._embedded += 1
            if before is not None and after is not None:
                self.receipts.carry(before, after)

    @contextlib.contextmanager
    def embedding(self) -> Iterator[bool]:
        """May this process work the backlog off? One does at a time."""
        lock = self.store.index_folder / f"embed-{self.cid}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            held = acquire(lock, 0)
        except Timeout:
            check_not_stopped([lock])  # else whoever waits for the vectors waits for ever
            yield False
            return
        with held:
            yield True

    def mark(self) -> tuple[int, int]:
        """A moment, for ``keep_receipt``: the version, and how often vectors were added from here."""
        with self._counting:
            return self.state().version, self._embedded

    def receipt(self, key: str) -> dict[str, Any] | None:
        state = self.state()
        return self.receipts.find(key, (state.version, state.token.hex()))

    def keep_receipt(self, key: str, told: Mapping[str, Any], since: tuple[int, int], writes: int) -> None:
        """Only where nothing was written since that moment but by those writes, and vectors: somebody else may have
        changed what they stored."""
        with self._counting:
            state, embedded = self.state(), self._embedded
        if state.version - since[0] == writes + embedded - since[1]:
            self.receipts.keep(key, (state.version, state.token.hex()), told)

    # --- what is no news --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _noting(self) -> Iterator[sqlite3.Connection]:
        """A write transaction that is no news: projections hold nothing of feedback and accesses, so the version stays
        as it is and the next search has nothing to catch up on."""
        with self._database.write() as connection:
            if connection.execute("SELECT 1 FROM collections WHERE cid = ?", (self.cid,)).fetchone() is None:
                raise NotFoundError(f"collection: {self.name!r} was dropped")
            yield connection

    def touch(self, ids: Sequence[str], within: Filter | None = None) -> int:
        with self._noting() as connection:
            seen = ids if within is None else list(records.visible(connection, self.cid, ids, within))
            return access.touch(connection, self.cid, seen, datetime.now(UTC).timestamp())

    def judge(self, given: Feedback, within: Filter | None = None) -> None:
        """Only of a document that is here: a mistyped id would teach nothing, and say nothing."""
        with self._noting() as connection:
            if not records.visible(connection, self.cid, [given.id], within):
                told = f"there is no document {given.id!r} in collection {self.name!r}"
                raise NotFoundError(f"feedback: {told}; name it by the id that search shows (hit.id)")
            feedback.record(connection, self.cid, given)

    def restore_feedback(self, given: Sequence[Feedback], within: Filter | None = None) -> int:
        with self._noting() as connection:
            if within is not None:
                seen = records.visible(connection, self.cid, [item.id for item in given], within)
                given = [item for item in given if item.id in seen]
            return feedback.restore(connection, self.cid, given)

    def forget_feedback(self, query: str | None, identifier: str | None, within: Filter | None = None) -> int:
        with self._noting() as connection:
            if within is None:
                return feedback.forget(connection, self.cid, query, identifier)
            ids = feedback.judged(connection, self.cid, query, identifier)
            seen = records.visible(connection, self.cid, ids, within)
            return sum(feedback.forget(connection, self.cid, query, each) for each in sorted(seen))


def _version(connection: sqlite3.Connection, cid: int) -> tuple[int, str] | None:
    """The version in force within a transaction, with its token; None for a collection that was dropped."""
    row = connection.execute(HEAD, (cid,)).fetchone()
    return None if row is None else (row[0], row[1].hex())
