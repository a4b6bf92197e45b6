"""Postings: for every term the passages that have it, ready for BM25.

An index made from the ``tsvector``s of the passages. A *segment* is a run of passage numbers. There is one row for each
term and segment, with ten bytes for every passage of the segment that has the term: its number, its length, and how
often it has the term. Reading the rows of a query and summing up BM25 takes milliseconds, where ranking as many
``tsvector``s takes hundreds. The server makes the rows itself, after a bulk load or in the background: a write has
nothing to do here, and passages after the last segment are ranked from their ``tsvector``s. A small segment is made
again together with what came after it, so that there are few. A deleted passage stays in its segment until then: the
reader looks up whether it still exists.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trivet.stores.bm25 import K1, B, rounded
from trivet.stores.postgres.database import Connection, Database
from trivet.stores.postgres.tables import Tables

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PACK_FROM = 4_096  # passages after the last segment: fewer are ranked from their tsvectors in a few milliseconds
LARGEST = 1 << 18  # passages of one segment: what is summed up at a time, and sorted by the server when it is made
LARGEST_BY_PART = 1 << 20  # the same where the workers of a cluster share it
#: Entries read for a query, 20 MB; beyond that the commonest terms are left out. Of a distributed collection each part
#: has as many, but not more than ``MAX_READ_TOGETHER`` are held by this process.
MAX_READ, MAX_READ_TOGETHER = 2_000_000, 16_000_000

#: One passage in a row of the postings; ``at`` counts from the beginning of the segment.
ENTRY = [("at", ">i4"), ("length", ">i4"), ("count", ">i2")]
ENTRY_BYTES = 10

_PACK = """
INSERT INTO {postings} ({key}, term, first, entries)
SELECT {rows}, u.lexeme, %(first)s::bigint,
       string_agg(int4send((p.pid / %(step)s - %(first)s / %(step)s)::integer) || int4send(p.length)
                  || int2send(cardinality(u.positions)::smallint), ''::bytea ORDER BY p.pid)
FROM {passages} p, unnest(p.words) AS u
WHERE {this} AND p.pid BETWEEN %(first)s AND %(last)s
GROUP BY {rows}, u.lexeme
"""

Passages = Any  # an array of passage numbers
Entries = list[tuple[int, bytes]]  # of a term in a segment: the part, by its place in the list of parts, and the row


@dataclass(frozen=True, slots=True)
class Sum:
    """What is summed up for a query: its terms with their weights, and which of them are required."""

    weights: Mapping[str, float]
    required: frozenset[str]
    average: float  # terms of a passage, in the whole collection


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of one collection."""

    database: Database
    tables: Tables

    def read(self, terms: Sequence[str]) -> Lists:
        """Read the postings of some terms."""
        segments: dict[int, dict[str, Entries]] = {}
        if terms:
            tables = self.tables
            part = "part" if tables.distributed else "0"
            sql = f"SELECT {part}, first, term, entries FROM {tables.postings} WHERE {tables.of()} AND term = ANY(%s)"
            for value, first, term, entries in self.database.all(sql, (list(terms),), binary=True):
                slot = tables.parts.index(value) if tables.distributed else 0
                segments.setdefault(first, {}).setdefault(term, []).append((slot, entries))
        return Lists(self.tables, segments)

    def pack(self, last: int) -> None:
        """Pack the passages up to ``last``, all of which are committed; do nothing where another process does it."""
        with self.database.locked(f"postings_{self.tables.root}") as mine:
            if mine:
                self.database.outside(lambda connection: self._pack(connection, last))

    def _pack(self, connection: Connection, last: int) -> None:
        tables, step = self.tables, self.tables.step
        sql = f"SELECT first, last FROM segments WHERE {tables.of()} ORDER BY first"
        known = [(int(first), int(to)) for first, to in self.database.all(sql)]
        packed = known[-1][1] if known else 0
        if (last - packed) // step < PACK_FROM:
            return
        rows = ", ".join(f"p.{column}" for column in tables.key.split(", "))
        pack = _PACK.format(
            postings=tables.postings, passages=tables.passages, key=tables.key, rows=rows, this=tables.of("p")
        )
        size = (LARGEST_BY_PART if tables.distributed else LARGEST) * step
        for old, first, to in plan(known, last, size):
            with self.database.transaction(connection, seconds=0):
                connection.execute("SET LOCAL work_mem TO '256MB'")
                for begin in old:
                    connection.execute(f"DELETE FROM {tables.postings} WHERE {tables.of()} AND first = {begin}")
                    connection.execute(f"DELETE FROM segments WHERE {tables.of()} AND first = {begin}")
                connection.execute(pack, {"first": first, "last": to, "step": step})
                sql = "INSERT INTO segments (cid, first, last) VALUES (%s, %s, %s)"
                connection.execute(sql, (tables.root, first, to))
        connection.execute(f"ANALYZE {self.database.address.qualified(tables.postings)}")

    def delete(self, connection: Connection) -> None:
        """Delete all postings of the collection."""
        connection.execute(f"DELETE FROM {self.tables.postings} WHERE {self.tables.of()}")
        connection.execute(f"DELETE FROM segments WHERE {self.tables.of()}")


def plan(known: Sequence[tuple[int, int]], last: int, size: int = LARGEST) -> list[tuple[list[int], int, int]]:
    """Return (segments to replace, first, last) of the segments that bring the postings up to ``last``.

    ``size`` is that of the largest segment, in numbers of passages.

    A segment that is not twice as large as what comes after it is made again with it: so there are few segments, and
    each passage is packed a few times at most.
    """
    kept, old, first = list(known), [], (known[-1][1] + 1 if known else 1)
    while kept and kept[-1][1] - kept[-1][0] < 2 * (last - first) and last - kept[-1][0] < size:
        first = kept[-1][0]
        old.append(kept.pop()[0])
    starts = range(first, last + 1, size)
    return [(old if at == first else [], at, min(last, at + size - 1)) for at in starts]


def affordable(frequency: Mapping[str, int], required: Iterable[str], parts: int = 1) -> list[str]:
    """Return the terms whose entries may be read, the rarest first and the ``required`` always."""
    must, most = set(required), min(MAX_READ * parts, max(MAX_READ, MAX_READ_TOGETHER))
    chosen: list[str] = []
    total = 0
    for term in sorted(frequency, key=lambda term: (term not in must, frequency[term])):
        total += frequency[term]
        if chosen and term not in must and total > most:
            break
        chosen.append(term)
    return chosen


@dataclass(frozen=True, slots=True)
class Lists:
    """The postings read for one query, by segment and term."""

    tables: Tables
    segments: Mapping[int, Mapping[str, Entries]]

    def __add__(self, other: Lists) -> Lists:
        """Return the postings of the terms of both."""
        firsts = dict.fromkeys((*self.segments, *other.segments))
        joined = {first: {**self.segments.get(first, {}), **other.segments.get(first, {})} for first in firsts}
        return Lists(self.tables, joined)

    def best(self, weighted: Sum, most: int, only: Passages | None = None) -> list[tuple[float, int]]:
        """Return (score, passage) of the ``most`` best, or of the best in ``only``. Some may be deleted passages."""
        found = (hit for first in self.segments for hit in self._best(first, weighted, most, only))
        return heapq.nsmallest(most, found, key=lambda hit: (-hit[0], hit[1]))

    def _best(self, first: int, weighted: Sum, most: int, only: Passages | None) -> list[tuple[float, int]]:
        import numpy as np

        begin = first // self.tables.step
        lists = {
            term: np.frombuffer(b"".join(data for _, data in entries), dtype=ENTRY)
            for term, entries in self.segments[first].items()
            if term in weighted.weights
        }
        if not lists or not weighted.required <= lists.keys():
            return []
        span = 1 + max(int(entries["at"].max()) for entries in lists.values())
        scores: npt.NDArray[np.float64] = np.zeros(span)
        having: npt.NDArray[np.int32] = np.zeros(span if weighted.required else 0, dtype=np.int32)
        for term, entries in lists.items():
            at, count = entries["at"].astype(np.int64), entries["count"].astype(np.float64)
            norm = K1 * (1.0 - B) + K1 * B / weighted.average * rounded(entries["length"])
            scores[at] += (K1 + 1.0) * weighted.weights[term] * count / (count + norm)
            if term in weighted.required:
                having[at] += 1
        if weighted.required:
            scores[having < len(weighted.required)] = 0.0
        if only is not None:
            here = only // self.tables.step - begin
            here = here[(here >= 0) & (here < span)]
            allowed = np.zeros(span)
            allowed[here] = scores[here]
            scores = allowed
        rarest = min((entries["at"] for entries in lists.values() if len(entries) > most), key=len, default=None)
        best = _highest(scores, most, rarest)
        slots = self._slots(first, lists, span)[best] if self.tables.distributed else itertools.repeat(0)
        number = self.tables.number
        return [(float(scores[at]), number(begin + int(at), int(slot))) for at, slot in zip(best, slots, strict=False)]

    def _slots(self, first: int, lists: Mapping[str, Any], span: int) -> Any:
        """Return the part of each passage of a segment, by its place in the list of parts."""
        import numpy as np

        found = np.zeros(span, dtype=np.int8)
        for term, entries in lists.items():
            sizes = [len(data) // ENTRY_BYTES for _, data in self.segments[first][term]]
            found[entries["at"]] = np.repeat([slot for slot, _ in self.segments[first][term]], sizes)
        return found

    def passages(self, term: str) -> Passages:
        """Return the numbers of the passages that have a term, in order; some of them may be deleted."""
        import numpy as np

        found: list[Any] = [np.empty(0, dtype=np.int64)]
        for first, rows in self.segments.items():
            for slot, data in rows.get(term, ()):
                at: Any = np.frombuffer(data, dtype=ENTRY)["at"].astype(np.int64)
                found.append(self.tables.number(first // self.tables.step + at, slot))
        return np.sort(np.concatenate(found), kind="stable")  # quick where it is already in order, as in one piece


@dataclass(slots=True)
class ReadPostings:
    """The postings that were read for one query; nothing is read twice."""

    database: Database
    tables: Tables
    terms: set[str] = field(default_factory=set)
    lists: Lists | None = None

    def of(self, terms: Iterable[str]) -> Lists:
        """Return the postings of these terms and of those read before."""
        fresh = [term for term in terms if term not in self.terms]
        if fresh or self.lists is None:
            more = Postings(self.database, self.tables).read(fresh)
            self.lists = more if self.lists is None else self.lists + more
            self.terms.update(fresh)
        return self.lists


def _highest(scores: Any, most: int, some: Any = None) -> Any:
    """Return the places of the ``most`` highest scores above 0; of equal ones at the end the first.

    ``some`` are more than ``most`` places: what is lower than their highest is left out before the rest is compared.
    """
    import numpy as np

    least = 0.0 if some is None else np.partition(scores[some], len(some) - most)[len(some) - most]
    above = np.flatnonzero(scores >= least) if least > 0.0 else np.flatnonzero(scores)
    if len(above) <= most:
        return above
    values = scores[above]
    edge = np.partition(values, len(values) - most)[len(values) - most]
    higher = above[values > edge]
    return np.concatenate([higher, above[values == edge][: most - len(higher)]])
