"""What the indexes read from the records: everything that comes after a number.

Passages, vectors and removals are only appended, so an index that knows the last number it has read knows what is
missing. A *checkpoint* is written with an index and says of which state it was made.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
from collections.abc import Sequence
from typing import Any

from trivet.errors import ModelReplacedError, StoreBusyError
from trivet.stores.contract import Text
from trivet.stores.indexes.snapshots import PrunedError
from trivet.stores.sqlite.half_precision import halves
from trivet.stores.sqlite.rows import CollectionRows, chunks, fetch_spans, marks
from trivet.text.concepts import Triple, triples_of

KEPT_CHECKPOINTS = 8  # checkpoints of one index: another process may have an older one open
LARGEST = (1 << 63) - 1  # the largest row number of SQLite
CHECKPOINT_SECONDS = 0.05  # a search may be what updates the index, and must not wait for a writer

Checkpoint = dict[str, Any]  # JSON: its id, the version of the records, and that version's token


class ChangeFeed:
    """The passages, removals and vectors of one collection, in order, and the checkpoints of its indexes."""

    def __init__(self, rows: CollectionRows) -> None:
        self._rows, self._cid = rows, rows.cid
        self._newest = rows.newest
        self._unsaved: set[str] = set()  # ids of checkpoints of a store that cannot be written

    # The unary plus keeps SQLite from the collection's index, which it would read as a whole: what is new is at the end
    # of the table, by row number.

    def passages_after(self, pid: int, limit: int) -> list[Text]:
        """Return (pid, did, title, text) of the passages after ``pid``, in order."""
        sql = "SELECT pid, did, start, stop FROM passages WHERE +cid = ? AND pid > ? ORDER BY pid LIMIT ?"
        return self.texts(self._newest(sql, (self._cid, pid, limit)))

    def passages(self, pids: Sequence[int]) -> list[Text]:
        """Return (pid, did, title, text) of those passages that exist."""
        with self._rows.explained():
            spans = fetch_spans(self._rows.database.read(), pids).items()
        return self.texts([(pid, did, start, stop) for pid, (did, _, start, stop) in spans])

    def texts(self, spans: Sequence[tuple[Any, ...]]) -> list[Text]:
        """Return (pid, did, title, text) of (pid, did, start, stop); the text of each document is read once."""
        texts: dict[int, tuple[str, str]] = {}
        for chunk in chunks(sorted({span[1] for span in spans})):
            sql = f"SELECT did, title, text FROM documents WHERE did IN ({marks(chunk)})"
            texts.update((did, (title, text)) for did, title, text in self._newest(sql, chunk))
        return [(pid, did, texts[did][0], texts[did][1][start:stop]) for pid, did, start, stop in spans if did in texts]

    def count_after(self, pid: int) -> int:
        """Count the passages after ``pid``."""
        return int(self._newest("SELECT count(*) FROM passages WHERE +cid = ? AND pid > ?", (self._cid, pid))[0][0])

    def newest(self) -> int:
        """Return the number of the last passage there ever was."""
        return int(self._newest("SELECT value FROM counters WHERE name = 'passage'", ())[0][0])

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        """Return (seq, pid) in order. ``PrunedError`` where some of them are no longer kept."""
        sql = "SELECT seq, pid FROM removed WHERE +cid = ? AND seq > ? ORDER BY seq"
        found = [(number, pid) for number, pid in self._newest(sql, (self._cid, seq))]
        # after the rows: what is not pruned now was not pruned when they were read
        if self._newest("SELECT 1 FROM pruned WHERE cid = ? AND seq > ?", (self._cid, seq)):
            raise PrunedError(f"collection {self._rows.name!r}: removals after {seq} were pruned")
        return found

    def last_removed(self) -> int:
        """Return the number of the last removal: an index that starts now needs none up to it."""
        return int(self._newest("SELECT value FROM counters WHERE name = 'removed'", ())[0][0])

    def pruned(self) -> int:
        """Return the last removal that is no longer kept; 0 where all are."""
        rows = self._newest("SELECT seq FROM pruned WHERE cid = ?", (self._cid,))
        return int(rows[0][0]) if rows else 0

    def pids_of(self, dids: Sequence[int], most: int) -> list[tuple[int, int]]:
        """Return (pid, did) of up to ``most`` passages of these documents."""
        sql = "SELECT pid, did FROM passages WHERE did IN (SELECT value FROM json_each(?)) LIMIT ?"
        return [(pid, did) for pid, did in self._newest(sql, (json.dumps(list(dids)), most))]

    def ids_of(self, dids: Sequence[int]) -> dict[int, str]:
        """Map the documents that exist to their ids."""
        sql = "SELECT did, id FROM documents WHERE did IN (SELECT value FROM json_each(?)) AND cid = ?"
        return dict(self._newest(sql, (json.dumps(list(dids)), self._cid)))

    def triples_of(self, dids: Sequence[int]) -> dict[int, tuple[Triple, ...]]:
        """Map the documents that have triples to them."""
        listed = "SELECT value FROM json_each(?)"
        sql = f"SELECT did, meta FROM documents WHERE did IN ({listed}) AND instr(meta, '\"triples\"')"
        rows = self._newest(sql, (json.dumps(list(dids)),))
        return {did: triples_of(json.loads(meta)) for did, meta in rows}

    def vectors_after(self, mid: int, vid: int, limit: int = -1) -> tuple[int, list[int], list[int], bytes]:
        """Return (last vid, pids, dids, float16 bytes) of a model's vectors after ``vid``."""
        return self.vectors_between(mid, vid, LARGEST, limit)

    def vectors_between(self, mid: int, vid: int, last: int, limit: int) -> tuple[int, list[int], list[int], bytes]:
        """Return (last vid, pids, dids, float16 bytes) of a model's vectors after ``vid`` up to ``last``."""
        rows = self._newest(
            "SELECT v.vid, v.pid, p.did, v.data FROM vectors v JOIN passages p ON p.pid = v.pid "
            "WHERE v.vid > ? AND v.vid <= ? AND +v.mid = ? ORDER BY v.vid LIMIT ?",
            (vid, last, mid, limit),
        )
        dim = self._dim(mid)  # after the vectors: a model that is still there had all of them when they were read
        if not rows:
            return vid, [], [], b""
        data = b"".join([halves(row[3], dim) for row in rows])
        return rows[-1][0], [row[1] for row in rows], [row[2] for row in rows], data

    def vectors_of(self, mid: int, pids: Sequence[int]) -> dict[int, bytes]:
        """Map those of the passages that have a vector of the model to its float16 bytes."""
        sql = "SELECT pid, data FROM vectors WHERE mid = ? AND pid IN (SELECT value FROM json_each(?))"
        rows = self._newest(sql, (mid, json.dumps(pids)))
        dim = self._dim(mid)
        return {pid: halves(data, dim) for pid, data in rows}

    def _dim(self, mid: int) -> int:
        """Return the dimensions of a model; ``ModelReplacedError`` where another took its place."""
        model = self._newest("SELECT dim FROM models WHERE mid = ?", (mid,))
        if not model:
            raise ModelReplacedError(f"collection: {self._rows.name!r} was re-embedded with another model meanwhile")
        return int(model[0][0])

    def checkpoint(self, name: str) -> Checkpoint:
        """Return the checkpoint of an index that is about to be written to disk.

        The records keep it, unless a writer is busy: then the version's token has to do, which is kept for a while.
        """
        version, token = self._rows.newest_version()
        made = secrets.token_hex(16)
        if self._rows.database.read_only:  # its indexes are in a folder that only this process has
            self._unsaved.add(made)
        else:
            with contextlib.suppress(StoreBusyError), self._rows.write(seconds=CHECKPOINT_SECONDS) as connection:
                _keep_checkpoint(connection, self._cid, name, made)
        return {"id": made, "version": version, "token": token.hex()}

    def knows(self, name: str, checkpoint: Checkpoint) -> bool:
        """Tell whether an index with this checkpoint was made on the timeline of the records."""
        made = str(checkpoint["id"])
        if made in self._unsaved:
            return True
        if self._newest("SELECT 1 FROM checkpoints WHERE token = ? AND cid = ? AND name = ?", (made, self._cid, name)):
            return True
        token = self._rows.token_of(int(checkpoint["version"]))
        return token is not None and token.hex() == checkpoint["token"]


def _keep_checkpoint(connection: sqlite3.Connection, cid: int, name: str, made: str) -> None:
    sql = "SELECT coalesce(max(number), 0) + 1 FROM checkpoints WHERE cid = ? AND name = ?"
    (number,) = connection.execute(sql, (cid, name)).fetchone()
    connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?)", (made, cid, name, number))
    sql = "DELETE FROM checkpoints WHERE cid = ? AND name = ? AND number <= ?"
    connection.execute(sql, (cid, name, number - KEPT_CHECKPOINTS))
