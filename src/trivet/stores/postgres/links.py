"""The links between documents of a collection on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.filters import Filter
from trivet.stores.postgres import document_rows, link_rows
from trivet.stores.postgres.expiry import Expiry
from trivet.stores.postgres.rows import Rows, in_one_snapshot
from trivet.stores.postgres.visibility import Visibility
from trivet.stores.scoped import check_ends, ends
from trivet.types import RESOLVED_BY, SUPERSEDES, Link, Resolutions, Successions


class PostgresLinks:
    """The links of one collection."""

    def __init__(self, rows: Rows, expiry: Expiry, visibility: Visibility) -> None:
        self._rows, self._expiry, self._visibility = rows, expiry, visibility

    def add(self, links: Sequence[Link], within: Filter | None = None) -> None:
        self._expiry.sweep_before_write()
        with self._rows.changing() as transaction:
            check_ends(links, document_rows.visible(transaction, ends(links), within), self._rows.name)
            link_rows.add(transaction, links)

    def remove(self, source: str, target: str, kind: str | None, within: Filter | None = None) -> int:
        with self._rows.changing() as transaction:
            if within is not None and len(document_rows.visible(transaction, [source, target], within)) < 2:
                return 0
            sql = "DELETE FROM links WHERE cid = %s AND source = %s AND target = %s AND type = coalesce(%s, type)"
            return transaction.execute(sql, (self._rows.root, source, target, kind)).rowcount

    @in_one_snapshot
    def of(self, id: str | None = None, where: Filter | None = None) -> list[Link]:
        found = link_rows.read(self._rows.all, self._rows.root, id)
        hidden = self._visibility.hidden(ends(found), where)
        return [link for link in found if link.source not in hidden and link.target not in hidden]

    @in_one_snapshot
    def superseded(self, ids: Sequence[str] | None, limit: int, where: Filter | None = None) -> list[tuple[str, str]]:
        unfiltered = self._visibility.unexpired(where) is None
        found = link_rows.superseded(self._rows.all, self._rows.tables, ids, limit if unfiltered else None)
        hidden = self._visibility.hidden([id for pair in found for id in pair], where)
        return [pair for pair in found if hidden.isdisjoint(pair)][:limit]

    def any_followed(self) -> bool:
        sql = "SELECT 1 FROM links WHERE cid = %s AND type = ANY(%s) LIMIT 1"
        return bool(self._rows.all(sql, (self._rows.root, [SUPERSEDES, RESOLVED_BY])))

    def successors(self, dids: Sequence[int]) -> Successions:
        return link_rows.successors(self._rows.all, self._rows.tables, dids)

    def resolutions(self, dids: Sequence[int]) -> Resolutions:
        return link_rows.resolutions(self._rows.all, self._rows.tables, dids)
