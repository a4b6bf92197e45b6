"""What do the projections and the backlog read from the truth?

Always what comes after a number: passages, vectors and removals are only ever appended, so whoever knows the last one
it has seen knows what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trivet.concepts import Triple, triples_of
from trivet.errors import ModelReplacedError
from trivet.stores.sqlite.reading import Reading


class Sources(Reading):
    # The unary plus keeps SQLite from taking the collection's index, which would read all of it: what is new stands at
    # the end of the table, by its row number.

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        spans = self._all(
            "SELECT pid, did, start, stop FROM passages WHERE +cid = ? AND pid > ? ORDER BY pid LIMIT ?",
            (self.cid, pid, limit),
        )
        return self._texts(spans)

    def passages(self, pids: Sequence[int]) -> list[tuple[int, int, str, str]]:
        """(pid, did, title, text) of those that are there."""
        spans = self.fetch_spans(pids).items()
        return self._texts([(pid, did, start, stop) for pid, (did, _, start, stop) in spans])

    def passage_texts(self, pids: Sequence[int]) -> dict[int, str]:
        """pid → title and text, as the legs see them."""
        return {pid: f"{title}\n{text}" if title else text for pid, _, title, text in self.passages(pids)}

    def _texts(self, spans: Sequence[tuple[Any, ...]]) -> list[tuple[int, int, str, str]]:
        """A long document's text is read once, however many passages it has."""
        texts: dict[int, tuple[str, str]] = {}
        dids = sorted({span[1] for span in spans})
        for start in range(0, len(dids), 500):
            chunk = dids[start : start + 500]
            marks = ", ".join("?" * len(chunk))
            for did, title, text in self._all(f"SELECT did, title, text FROM documents WHERE did IN ({marks})", chunk):
                texts[did] = (title, text)
        return [(pid, did, texts[did][0], texts[did][1][start:stop]) for pid, did, start, stop in spans if did in texts]

    def count_after(self, pid: int) -> int:
        return int(self._all("SELECT count(*) FROM passages WHERE +cid = ? AND pid > ?", (self.cid, pid))[0][0])

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        return [
            (seq, pid)
            for seq, pid in self._all(
                "SELECT seq, pid FROM removed WHERE +cid = ? AND seq > ? ORDER BY seq", (self.cid, seq)
            )
        ]

    def newest(self) -> tuple[int, int]:
        return self._counters("passage", "removed")

    def _counters(self, one: str, other: str) -> tuple[int, int]:
        found = dict(self._all("SELECT name, value FROM counters", ()))
        return found[one], found[other]

    def newest_vector(self) -> tuple[int, int]:
        return self._counters("vector", "removed")

    def vectors_after(self, mid: int, vid: int, limit: int = -1) -> tuple[int, list[int], list[int], bytes]:
        rows = self._all(
            "SELECT v.vid, v.pid, p.did, v.data FROM vectors v JOIN passages p ON p.pid = v.pid "
            "WHERE v.vid > ? AND +v.mid = ? ORDER BY v.vid LIMIT ?",
            (vid, mid, limit),
        )
        # Asked after the vectors were read: a model that is still there had all of them then.
        if not self._all("SELECT 1 FROM models WHERE mid = ?", (mid,)):
            raise ModelReplacedError(f"collection: {self.name!r} was re-embedded with another model meanwhile")
        if not rows:
            return vid, [], [], b""
        return rows[-1][0], [row[1] for row in rows], [row[2] for row in rows], b"".join(row[3] for row in rows)

    def triples_of(self, dids: Sequence[int]) -> dict[int, tuple[Triple, ...]]:
        """The triples of those documents that have some."""
        wanted = "SELECT value FROM json_each(?)"
        sql = f"SELECT did, meta FROM documents WHERE did IN ({wanted}) AND instr(meta, '\"triples\"')"
        rows = self._all(sql, (json.dumps(list(dids)),))
        return {did: triples_of(json.loads(meta)) for did, meta in rows}

    # --- embedding --------------------------------------------------------------------------------------------------

    def unembedded(self, mid: int) -> int:
        """Passages without a vector of this model."""
        sql = "SELECT c.passages - m.vectors FROM collections c JOIN models m ON m.cid = c.cid WHERE m.mid = ?"
        rows = self._all(sql, (mid,))
        return int(rows[0][0]) if rows else 0

    def next_pending(self, mid: int, after: int, limit: int) -> list[tuple[int, int, str, str]]:
        """(pid, did, title, text) of passages this model has not seen."""
        sql = (
            "SELECT pid, did, start, stop FROM passages p WHERE +p.cid = ? AND pid > ? AND NOT EXISTS "
            f"{_HAS_VECTOR} ORDER BY pid LIMIT ?"
        )
        return self._texts(self._all(sql, (self.cid, after, mid, limit)))

    def known_vectors(self, mid: int, pids: Sequence[int] | None = None) -> list[tuple[int, bytes]]:
        """(pid, vector) for passages whose text another passage has an embedding of: nothing is embedded twice."""
        among = "" if pids is None else "AND p.pid IN (SELECT value FROM json_each(?)) "
        rows = self._all(
            "SELECT p.pid, (SELECT v.data FROM passages q JOIN vectors v ON v.pid = q.pid AND v.mid = ? "
            "WHERE q.cid = p.cid AND q.hash = p.hash LIMIT 1) AS data "
            f"FROM passages p WHERE p.cid = ? {among}"
            "AND NOT EXISTS (SELECT 1 FROM vectors w WHERE w.mid = ? AND w.pid = p.pid)",
            (mid, self.cid, *([] if pids is None else [json.dumps(list(pids))]), mid),
        )
        return [(pid, data) for pid, data in rows if data is not None]

    def passages_of(self, dids: Sequence[int]) -> list[tuple[int, int, int, int, int, bytes]]:
        rows = self._all(
            "SELECT pid, did, ordinal, start, stop, hash FROM passages "
            "WHERE did IN (SELECT value FROM json_each(?)) ORDER BY did, ordinal",
            (json.dumps(list(dids)),),
        )
        return [(pid, did, ordinal, start, stop, digest) for pid, did, ordinal, start, stop, digest in rows]

    def pids_of(self, dids: Sequence[int], most: int) -> list[tuple[int, int]]:
        """(pid, did) of the passages of these, so many at most."""
        sql = "SELECT pid, did FROM passages WHERE did IN (SELECT value FROM json_each(?)) LIMIT ?"
        return [(pid, did) for pid, did in self._all(sql, (json.dumps(list(dids)), most))]

    def vectors_of(self, mid: int, dids: Sequence[int]) -> dict[int, dict[bytes, bytes]]:
        """did → hash of a passage's text → its vector."""
        rows = self._all(
            "SELECT p.did, p.hash, v.data FROM passages p JOIN vectors v ON v.mid = ? AND v.pid = p.pid "
            "WHERE p.did IN (SELECT value FROM json_each(?))",
            (mid, json.dumps(list(dids))),
        )
        found: dict[int, dict[bytes, bytes]] = {}
        for did, digest, data in rows:
            found.setdefault(did, {})[digest] = data
        return found

    def sole_vectors(self, mid: int, dids: Sequence[int]) -> dict[int, bytes]:
        """did → vector, for documents of a single passage: of a longer one no vector stands for the whole."""
        found: dict[int, bytes] = {}
        for start in range(0, len(dids), 500):
            chunk = list(dids[start : start + 500])
            marks = ", ".join("?" * len(chunk))
            rows = self._all(
                "SELECT p.did, v.data FROM passages p JOIN vectors v ON v.mid = ? AND v.pid = p.pid "
                f"WHERE p.did IN ({marks}) AND (SELECT count(*) FROM passages q WHERE q.did = p.did) = 1",
                (mid, *chunk),
            )
            found.update(rows)
        return found


_HAS_VECTOR = "(SELECT 1 FROM vectors v WHERE v.mid = ? AND v.pid = p.pid)"


@dataclass(frozen=True, slots=True)
class Vectors:
    """One model's vectors of a collection, as a projection reads them."""

    sources: Sources
    mid: int

    def vectors_after(self, vid: int, limit: int = -1) -> tuple[int, list[int], list[int], bytes]:
        return self.sources.vectors_after(self.mid, vid, limit)

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        return self.sources.removed_after(seq)

    def newest(self) -> tuple[int, int]:
        return self.sources.newest_vector()
