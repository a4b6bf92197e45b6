"""What do the projections and the backlog read from the truth?

Always what comes after a number: passages, vectors and removals are only ever appended, so whoever knows the last one
it has seen knows what is missing.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trivet.concepts import Triple, triples_of
from trivet.errors import ModelReplacedError, StoreBusyError
from trivet.stores.sqlite.reading import Reading
from trivet.stores.sqlite.snapshots import PrunedError

if TYPE_CHECKING:
    from trivet.stores.sqlite.store import SqliteStore

KEPT_CHECKPOINTS = 8  # of an index: another process may have an older one open
LARGEST = (1 << 63) - 1  # row number that SQLite knows
CHECKPOINT_SECONDS = 0.05  # a search may be what brings the index up to date, and must not wait for a writer
_TOKEN = "SELECT token FROM timeline WHERE cid = ? AND version = ?"
HEAD = "SELECT c.version, t.token FROM collections c JOIN timeline t USING (cid, version) WHERE cid = ?"

Checkpoint = dict[str, Any]  # JSON: its own id, the version of the truth, and that version's token


class Sources(Reading):
    def __init__(self, store: SqliteStore, cid: int, uid: str, name: str, config: Mapping[str, Any]) -> None:
        super().__init__(store, cid, uid, name, config)
        self._own_checkpoints: set[str] = set()

    # The unary plus keeps SQLite from taking the collection's index, which would read all of it: what is new stands at
    # the end of the table, by its row number.

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        spans = self._newest(
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
            for did, title, text in self._newest(
                f"SELECT did, title, text FROM documents WHERE did IN ({marks})", chunk
            ):
                texts[did] = (title, text)
        return [(pid, did, texts[did][0], texts[did][1][start:stop]) for pid, did, start, stop in spans if did in texts]

    def count_after(self, pid: int) -> int:
        return int(self._newest("SELECT count(*) FROM passages WHERE +cid = ? AND pid > ?", (self.cid, pid))[0][0])

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        """Return (seq, pid) in order. ``PrunedError`` where some of them are no longer kept."""
        sql = "SELECT seq, pid FROM removed WHERE +cid = ? AND seq > ? ORDER BY seq"
        found = [(number, pid) for number, pid in self._newest(sql, (self.cid, seq))]
        # asked after the rows were read: what is not pruned now was not pruned then
        if self._newest("SELECT 1 FROM pruned WHERE cid = ? AND seq > ?", (self.cid, seq)):
            raise PrunedError(f"collection {self.name!r}: removals after {seq} were pruned")
        return found

    def last_removed(self) -> int:
        """Return the number of the last removal: what is read from now on needs none up to it."""
        return int(self._newest("SELECT value FROM counters WHERE name = 'removed'", ())[0][0])

    def pruned(self) -> int:
        """Return the last removal that is no longer kept; 0 where all are."""
        rows = self._newest("SELECT seq FROM pruned WHERE cid = ?", (self.cid,))
        return int(rows[0][0]) if rows else 0

    def newest(self) -> int:
        """The last passage there ever was."""
        return int(self._newest("SELECT value FROM counters WHERE name = 'passage'", ())[0][0])

    def checkpoint(self, name: str) -> Checkpoint:
        """Return what an index that is about to be written to disk says of the state it was made from.

        The truth remembers it, unless a writer is busy: then the version's token has to do, which is kept for a while.
        """
        with self._timeline:
            version, token = self._newest(HEAD, (self.cid,))[0]
            self._follow_timeline(version, token)
        made = secrets.token_hex(16)
        if self.read_only:  # its indexes lie in a folder that only this process has
            self._own_checkpoints.add(made)
        else:
            with contextlib.suppress(StoreBusyError), self._database.write(seconds=CHECKPOINT_SECONDS) as connection:
                _remember(connection, self.cid, name, made)
        return {"id": made, "version": version, "token": token.hex()}

    def knows(self, name: str, checkpoint: Checkpoint) -> bool:
        """Tell whether an index with this checkpoint was made on the timeline of the truth."""
        made = str(checkpoint["id"])
        if made in self._own_checkpoints:
            return True
        sql = "SELECT 1 FROM checkpoints WHERE token = ? AND cid = ? AND name = ?"
        if self._newest(sql, (made, self.cid, name)):
            return True
        rows = self._newest(_TOKEN, (self.cid, int(checkpoint["version"])))
        return bool(rows) and rows[0][0].hex() == checkpoint["token"]

    def knows_version(self, version: int, token: bytes) -> bool:
        rows = self._all(_TOKEN, (self.cid, version))
        return bool(rows) and bool(rows[0][0] == token)

    def hashes(self, pids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        sql = "SELECT pid, did, hash FROM passages WHERE pid IN (SELECT value FROM json_each(?)) AND +cid = ?"
        return {pid: (did, digest) for pid, did, digest in self._all(sql, (json.dumps(list(pids)), self.cid))}

    def vectors_after(self, mid: int, vid: int, limit: int = -1) -> tuple[int, list[int], list[int], bytes]:
        return self.vectors_between(mid, vid, LARGEST, limit)

    def vectors_between(self, mid: int, vid: int, last: int, limit: int) -> tuple[int, list[int], list[int], bytes]:
        """(last vid, pids, dids, float32 bytes) of the vectors after ``vid`` up to ``last``; so many at most."""
        rows = self._newest(
            "SELECT v.vid, v.pid, p.did, v.data FROM vectors v JOIN passages p ON p.pid = v.pid "
            "WHERE v.vid > ? AND v.vid <= ? AND +v.mid = ? ORDER BY v.vid LIMIT ?",
            (vid, last, mid, limit),
        )
        # Asked after the vectors were read: a model that is still there had all of them then.
        if not self._newest("SELECT 1 FROM models WHERE mid = ?", (mid,)):
            raise ModelReplacedError(f"collection: {self.name!r} was re-embedded with another model meanwhile")
        if not rows:
            return vid, [], [], b""
        return rows[-1][0], [row[1] for row in rows], [row[2] for row in rows], b"".join(row[3] for row in rows)

    def ids_of(self, dids: Sequence[int]) -> dict[int, str]:
        """The ids of those documents that are there."""
        sql = "SELECT did, id FROM documents WHERE did IN (SELECT value FROM json_each(?)) AND cid = ?"
        return dict(self._newest(sql, (json.dumps(list(dids)), self.cid)))

    def triples_of(self, dids: Sequence[int]) -> dict[int, tuple[Triple, ...]]:
        """The triples of those documents that have some."""
        wanted = "SELECT value FROM json_each(?)"
        sql = f"SELECT did, meta FROM documents WHERE did IN ({wanted}) AND instr(meta, '\"triples\"')"
        rows = self._newest(sql, (json.dumps(list(dids)),))
        return {did: triples_of(json.loads(meta)) for did, meta in rows}

    # --- embedding --------------------------------------------------------------------------------------------------

    def unembedded(self, mid: int) -> int:
        """Passages without a vector of this model."""
        sql = "SELECT c.passages - m.vectors FROM collections c JOIN models m ON m.cid = c.cid WHERE m.mid = ?"
        rows = self._newest(sql, (mid,))
        return int(rows[0][0]) if rows else 0

    def next_pending(self, mid: int, after: int, limit: int) -> list[tuple[int, int, str, str]]:
        """(pid, did, title, text) of passages this model has not seen."""
        sql = (
            "SELECT pid, did, start, stop FROM passages p WHERE +p.cid = ? AND pid > ? AND NOT EXISTS "
            f"{_HAS_VECTOR} ORDER BY pid LIMIT ?"
        )
        return self._texts(self._newest(sql, (self.cid, after, mid, limit)))

    def known_vectors(self, mid: int, pids: Sequence[int] | None = None) -> list[tuple[int, bytes]]:
        """(pid, vector) for passages whose text another passage has an embedding of: nothing is embedded twice."""
        among = "" if pids is None else "AND p.pid IN (SELECT value FROM json_each(?)) "
        rows = self._newest(
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
        return [(pid, did) for pid, did in self._newest(sql, (json.dumps(list(dids)), most))]

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


def _remember(connection: sqlite3.Connection, cid: int, name: str, made: str) -> None:
    sql = "SELECT coalesce(max(number), 0) + 1 FROM checkpoints WHERE cid = ? AND name = ?"
    (number,) = connection.execute(sql, (cid, name)).fetchone()
    connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?)", (made, cid, name, number))
    sql = "DELETE FROM checkpoints WHERE cid = ? AND name = ? AND number <= ?"
    connection.execute(sql, (cid, name, number - KEPT_CHECKPOINTS))


_HAS_VECTOR = "(SELECT 1 FROM vectors v WHERE v.mid = ? AND v.pid = p.pid)"


@dataclass(frozen=True, slots=True)
class Vectors:
    """One model's vectors of a collection, as a projection reads them."""

    sources: Sources
    mid: int

    def vectors_after(self, vid: int, limit: int = -1) -> tuple[int, list[int], list[int], bytes]:
        return self.sources.vectors_after(self.mid, vid, limit)

    def vectors_between(self, vid: int, last: int, limit: int) -> tuple[int, list[int], list[int], bytes]:
        return self.sources.vectors_between(self.mid, vid, last, limit)

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        return self.sources.removed_after(seq)

    def last_removed(self) -> int:
        return self.sources.last_removed()

    def pruned(self) -> int:
        return self.sources.pruned()

    def checkpoint(self, name: str) -> Checkpoint:
        return self.sources.checkpoint(name)

    def knows(self, name: str, checkpoint: Checkpoint) -> bool:
        return self.sources.knows(name, checkpoint)
