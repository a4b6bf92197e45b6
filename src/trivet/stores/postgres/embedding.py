"""Which passages have a vector of this model, and which still wait for one?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from trivet.stores.contract import Text
from trivet.stores.postgres import vectors as stored
from trivet.stores.postgres.collection import Collection
from trivet.stores.postgres.parts import Part

_HAS_VECTOR = "(SELECT 1 FROM vectors w WHERE w.cid = %s AND w.mid = %s AND w.pid = p.pid)"


class Embedding(Collection):
    """The vectors of a collection, as the backlog and a copy see them."""

    def unembedded(self, mid: int) -> int:
        sql = (
            "SELECT h.passages - m.vectors FROM heads h JOIN models m ON m.cid = h.cid WHERE h.cid = %s AND m.mid = %s"
        )
        rows = self._all(sql, (self.cid, mid))
        return int(rows[0][0]) if rows else 0

    def next_pending(self, mid: int, after: int, limit: int) -> list[Text]:
        """(pid, did, title, text) of passages this model has not seen."""
        sql = (
            "SELECT p.pid, p.did, p.start, p.stop FROM passages p WHERE p.cid = %s AND p.pid > %s "
            f"AND NOT EXISTS {_HAS_VECTOR} ORDER BY p.pid LIMIT %s"
        )
        spans = [row for part in self.parts.every for row in self._all(sql, (part.cid, after, part.cid, mid, limit))]
        spans = sorted(spans, key=lambda row: row[0])[:limit]
        # cut here, by our own characters; a long document's text is read once, however many passages it has
        sql = "SELECT did, title, text FROM documents WHERE cid = %s AND did = ANY(%s)"
        texts = {
            did: (title, text)
            for part, dids in self.parts.by_number({did for _, did, _, _ in spans}).items()
            for did, title, text in self._all(sql, (part.cid, dids))
        }
        return [(pid, did, texts[did][0], texts[did][1][start:stop]) for pid, did, start, stop in spans if did in texts]

    def known_vectors(self, mid: int, pids: Sequence[int] | None = None) -> list[tuple[int, bytes]]:
        """(pid, vector) for passages whose text another passage has an embedding of: nothing is embedded twice."""
        among = "" if pids is None else " AND p.pid = ANY(%s)"
        sql = (
            "SELECT DISTINCT ON (p.pid) p.pid, vector_send(v.data) FROM passages p "
            "JOIN passages q ON q.cid = p.cid AND q.hash = p.hash AND q.pid <> p.pid "
            "JOIN vectors v ON v.cid = q.cid AND v.mid = %s AND v.pid = q.pid "
            f"WHERE p.cid = %s{among} AND NOT EXISTS {_HAS_VECTOR}"
        )
        dealt: Mapping[Part, list[int] | None] = (
            self.parts.by_number(pids) if pids is not None else dict.fromkeys(self.parts.every)
        )
        return [
            (pid, stored.unwired(data))
            for part, own in dealt.items()  # the same text in another part is embedded there once more
            for pid, data in self._all(sql, (mid, part.cid, *(() if own is None else (own,)), part.cid, mid))
        ]

    def add_vectors(self, mid: int, vectors: Sequence[tuple[int, bytes]]) -> None:
        with self._changing() as (connection, _, _):
            stored.add_vectors(connection, self.parts, mid, vectors)

    def sole_vectors(self, mid: int, dids: Sequence[int]) -> dict[int, bytes]:
        """did → vector, for documents of a single passage: of a longer one no vector stands for the whole."""
        sql = (
            "SELECT v.did, vector_send(v.data) FROM vectors v WHERE v.cid = %s AND v.mid = %s AND v.pid IN "
            "(SELECT min(p.pid) FROM passages p WHERE p.cid = %s AND p.did = ANY(%s) "
            "GROUP BY p.did HAVING count(*) = 1)"
        )
        return {
            did: stored.unwired(data)
            for part, own in self.parts.by_number(dids).items()
            for did, data in self._all(sql, (part.cid, mid, part.cid, own))
        }

    def passages_of(self, dids: Sequence[int]) -> list[tuple[int, int, int, int, int, bytes]]:
        sql = (
            "SELECT pid, did, ordinal, start, stop, hash FROM passages WHERE cid = %s AND did = ANY(%s) "
            "ORDER BY did, ordinal"
        )
        rows = [row for part, own in self.parts.by_number(dids).items() for row in self._all(sql, (part.cid, own))]
        return [(*row[:5], bytes(row[5])) for row in sorted(rows, key=lambda row: (row[1], row[2]))]

    def vectors_of(self, mid: int, dids: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        """did → hash of a passage's text → its vector."""
        sql = (
            "SELECT p.did, p.hash, vector_send(v.data) FROM passages p "
            "JOIN vectors v ON v.cid = p.cid AND v.mid = %s AND v.pid = p.pid WHERE p.cid = %s AND p.did = ANY(%s)"
        )
        found: dict[int, dict[bytes, bytes]] = {}
        for part, own in self.parts.by_number(dids).items():
            for did, digest, data in self._all(sql, (mid, part.cid, own)):
                found.setdefault(did, {})[bytes(digest)] = stored.unwired(data)
        return found

    @contextlib.contextmanager
    def embedding(self) -> Iterator[bool]:
        """May this process work the backlog off? One does at a time; the server forgets the lock with the process."""
        with self.store.locked(f"embed.{self.cid}") as mine:
            yield mine
