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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trivet.stores.bm25 import K1, B, rounded
from trivet.stores.postgres.database import Connection, Database
from trivet.stores.postgres.shards import Shard

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PACK_FROM = 4_096  # passages after the last segment: fewer are ranked from their tsvectors in a few milliseconds
LARGEST = 1 << 18  # passages of one segment: what is summed up at a time, and sorted by the server when it is made
MAX_READ = 2_000_000  # entries of one shard read for a query, 20 MB; beyond that the commonest terms are left out

#: One passage in a row of the postings; ``at`` counts from the beginning of the segment.
ENTRY = [("at", ">i4"), ("length", ">i4"), ("count", ">i2")]

_PACK = """
INSERT INTO postings (cid, term, first, entries)
SELECT p.cid, u.lexeme, %(first)s::bigint,
       string_agg(int4send((p.pid / %(step)s - %(first)s / %(step)s)::integer) || int4send(p.length)
                  || int2send(cardinality(u.positions)::smallint), ''::bytea ORDER BY p.pid)
FROM passages p, unnest(p.words) AS u
WHERE p.cid = %(cid)s AND p.pid BETWEEN %(first)s AND %(last)s
GROUP BY p.cid, u.lexeme
"""

Passages = Any  # an array of passage numbers


@dataclass(frozen=True, slots=True)
class Sum:
    """What is summed up for a query: its terms with their weights, and which of them are required."""

    weights: Mapping[str, float]
    required: frozenset[str]
    average: float  # terms of a passage, in the whole collection


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of one shard."""

    database: Database
    shard: Shard

    def read(self, terms: Sequence[str]) -> Lists:
        """Read the postings of some terms."""
        if not terms:
            return Lists(self.shard, {})
        rows = self.database.all(
            "SELECT first, term, entries FROM postings WHERE cid = %s AND term = ANY(%s)", (self.shard.cid, list(terms))
        )
        segments: dict[int, list[tuple[str, bytes]]] = {}
        for first, term, entries in rows:
            segments.setdefault(first, []).append((term, entries))
        return Lists(self.shard, segments)

    def pack(self, last: int) -> None:
        """Pack the passages up to ``last``, all of which are committed; do nothing where another process does it."""
        with self.database.locked(f"postings_{self.shard.cid}") as mine:
            if mine:
                self.database.outside(lambda connection: self._pack(connection, last))

    def _pack(self, connection: Connection, last: int) -> None:
        sql = "SELECT first, last FROM segments WHERE cid = %s ORDER BY first"
        known = [(int(first), int(to)) for first, to in self.database.all(sql, (self.shard.cid,))]
        packed = known[-1][1] if known else 0
        if (last - packed) // self.shard.step < PACK_FROM:
            return
        for old, first, to in plan(known, last, self.shard.step):
            with self.database.transaction(connection, seconds=0):
                connection.execute("SET LOCAL work_mem TO '256MB'")
                for begin in old:
                    connection.execute("DELETE FROM postings WHERE cid = %s AND first = %s", (self.shard.cid, begin))
                    connection.execute("DELETE FROM segments WHERE cid = %s AND first = %s", (self.shard.cid, begin))
                connection.execute(_PACK, {"cid": self.shard.cid, "first": first, "last": to, "step": self.shard.step})
                sql = "INSERT INTO segments (cid, first, last) VALUES (%s, %s, %s)"
                connection.execute(sql, (self.shard.cid, first, to))
        connection.execute(f"ANALYZE {self.database.address.qualified('postings')}")

    def delete(self, connection: Connection) -> None:
        """Delete all postings of the shard."""
        connection.execute("DELETE FROM postings WHERE cid = %s", (self.shard.cid,))
        connection.execute("DELETE FROM segments WHERE cid = %s", (self.shard.cid,))


def plan(known: Sequence[tuple[int, int]], last: int, step: int = 1) -> list[tuple[list[int], int, int]]:
    """Return (segments to replace, first, last) of the segments that bring the postings up to ``last``.

    A segment that is not twice as large as what comes after it is made again with it: so there are few segments, and
    each passage is packed a few times at most.
    """
    kept, old, first = list(known), [], (known[-1][1] + 1 if known else 1)
    while kept and kept[-1][1] - kept[-1][0] < 2 * (last - first) and last - kept[-1][0] < LARGEST * step:
        first = kept[-1][0]
        old.append(kept.pop()[0])
    size = LARGEST * step
    starts = range(first, last + 1, size)
    return [(old if at == first else [], at, min(last, at + size - 1)) for at in starts]


def affordable(
    frequency: Mapping[str, int], required: Iterable[str], by_shard: Iterable[Mapping[str, int]]
) -> list[str]:
    """Return the terms whose entries may be read, the rarest first and the ``required`` always.

    They are the same for every shard, so that scores of two shards can be compared.
    """
    must = set(required)
    chosen: list[str] = []
    totals = [(own, [0]) for own in by_shard]
    for term in sorted(frequency, key=lambda term: (term not in must, frequency[term])):
        for own, total in totals:
            total[0] += own.get(term, 0)
        if chosen and term not in must and any(total[0] > MAX_READ for _, total in totals):
            break
        chosen.append(term)
    return chosen


@dataclass(frozen=True, slots=True)
class Lists:
    """The postings read for one query, by segment."""

    shard: Shard
    segments: Mapping[int, Sequence[tuple[str, bytes]]]

    def __add__(self, other: Lists) -> Lists:
        """Return the postings of the terms of both."""
        firsts = dict.fromkeys((*self.segments, *other.segments))
        joined = {first: [*self.segments.get(first, ()), *other.segments.get(first, ())] for first in firsts}
        return Lists(self.shard, joined)

    def best(self, weighted: Sum, most: int, only: Passages | None = None) -> list[tuple[float, int]]:
        """Return (score, passage) of the ``most`` best, or of the best in ``only``. Some may be deleted passages."""
        found = (hit for first in self.segments for hit in self._best(first, weighted, most, only))
        return heapq.nsmallest(most, found, key=lambda hit: (-hit[0], hit[1]))

    def _best(self, first: int, weighted: Sum, most: int, only: Passages | None) -> list[tuple[float, int]]:
        import numpy as np

        begin = first // self.shard.step
        lists = [
            (term, np.frombuffer(entries, dtype=ENTRY))
            for term, entries in self.segments[first]
            if term in weighted.weights
        ]
        if not lists or not weighted.required <= {term for term, _ in lists}:
            return []
        span = 1 + max(int(entries["at"][-1]) for _, entries in lists)
        scores: npt.NDArray[np.float64] = np.zeros(span)
        having: npt.NDArray[np.int32] = np.zeros(span if weighted.required else 0, dtype=np.int32)
        for term, entries in lists:
            at, count = entries["at"].astype(np.int64), entries["count"].astype(np.float64)
            norm = K1 * (1.0 - B) + K1 * B / weighted.average * rounded(entries["length"])
            scores[at] += (K1 + 1.0) * weighted.weights[term] * count / (count + norm)
            if term in weighted.required:
                having[at] += 1
        if weighted.required:
            scores[having < len(weighted.required)] = 0.0
        if only is not None:
            here = only // self.shard.step - begin
            here = here[(here >= 0) & (here < span)]
            allowed = np.zeros(span)
            allowed[here] = scores[here]
            scores = allowed
        return [(float(scores[at]), self.shard.number(begin + int(at))) for at in _highest(scores, most)]


def _highest(scores: Any, most: int) -> Any:
    """Return the places of the ``most`` highest scores above 0; of equal ones at the end the first."""
    import numpy as np

    above = np.flatnonzero(scores)
    if len(above) <= most:
        return above
    values = scores[above]
    edge = np.partition(values, len(values) - most)[len(values) - most]
    higher = above[values > edge]
    return np.concatenate([higher, above[values == edge][: most - len(higher)]])
