"""How often does which passage have a word, ready to be summed up?

A projection of the passages' ``tsvector``s: one row a word and *segment* (a run of passage numbers), holding for every
passage of the run that has the word its number, its length and how often it has it, ten bytes each. Reading the rows of
a question's words and adding up BM25 takes milliseconds where ranking as many ``tsvector``s takes hundreds. The server
makes the rows itself. What is newer than the last segment is ranked from the ``tsvector``s, so a write has nothing to
do here; segments are made after a bulk load or in the background, and a small one is made anew together with what came
after it, so that there are few. A passage that is gone stays in its segment until then: whoever reads looks it up.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trivet.stores.postgres.database import Connection, Database
from trivet.stores.postgres.parts import Part

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

K1, B = 1.2, 0.75  # the constants of the embedded store, and of pg_textsearch's index

PACK_FROM = 4_096  # passages behind the last segment: as many are ranked from their tsvectors in a few milliseconds
LARGEST = 1 << 18  # passages of one segment: what is summed up at a time, and sorted by the server when it is made
MOST_READ = 2_000_000  # entries read for one question, 20 MB; the words with the most are left out beyond

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

Passages = Any  # an array of passages' numbers


@dataclass(frozen=True, slots=True)
class Sum:
    """What is added up for a question: its words with their weights (idf and all), those that must all be there."""

    weights: Mapping[str, float]
    required: frozenset[str]
    average: float  # terms a passage, in the whole collection


@dataclass(frozen=True, slots=True)
class Postings:
    """Of one part of a collection."""

    database: Database
    part: Part

    def read(self, terms: Sequence[str]) -> Lists:
        rows = self.database.all(
            "SELECT first, term, entries FROM postings WHERE cid = %s AND term = ANY(%s)", (self.part.cid, list(terms))
        )
        segments: dict[int, list[tuple[str, bytes]]] = {}
        for first, term, entries in rows:
            segments.setdefault(first, []).append((term, entries))
        return Lists(self.part, segments)

    # --- making it ----------------------------------------------------------------------------------------------------

    def pack(self, last: int) -> None:
        """Take in the passages up to ``last``, all of which are committed; who comes second finds it done."""
        self.database.outside(lambda connection: self._pack(connection, last))

    def _pack(self, connection: Connection, last: int) -> None:
        lock = f"{self.database.address.schema}.postings_{self.part.cid}"
        (mine,) = connection.execute("SELECT pg_try_advisory_lock(hashtext(%s))", (lock,)).fetchone() or (False,)
        if not mine:
            return
        sql = "SELECT first, last FROM segments WHERE cid = %s ORDER BY first"
        known = [(int(first), int(to)) for first, to in connection.execute(sql, (self.part.cid,)).fetchall()]
        begun = known[-1][1] if known else 0
        if (last - begun) // self.part.step < PACK_FROM:
            return
        connection.execute("SET work_mem TO '256MB'")
        for old, first, to in plan(known, last, self.part.step):
            with connection.transaction():
                for gone in old:
                    connection.execute("DELETE FROM postings WHERE cid = %s AND first = %s", (self.part.cid, gone))
                    connection.execute("DELETE FROM segments WHERE cid = %s AND first = %s", (self.part.cid, gone))
                connection.execute(_PACK, {"cid": self.part.cid, "first": first, "last": to, "step": self.part.step})
                sql = "INSERT INTO segments (cid, first, last) VALUES (%s, %s, %s)"
                connection.execute(sql, (self.part.cid, first, to))
        connection.execute("ANALYZE postings")

    def forget(self, connection: Connection) -> None:
        connection.execute("DELETE FROM postings WHERE cid = %s", (self.part.cid,))
        connection.execute("DELETE FROM segments WHERE cid = %s", (self.part.cid,))


def plan(known: Sequence[tuple[int, int]], last: int, step: int = 1) -> list[tuple[list[int], int, int]]:
    """(segments to make anew, first, last) of what brings the segments up to ``last``.

    A segment that is not twice as large as what comes behind it is made anew with it: there are few, and each passage
    is taken in a few times at most.
    """
    kept, old, first = list(known), [], (known[-1][1] + 1 if known else 1)
    while kept and kept[-1][1] - kept[-1][0] < 2 * (last - first) and last - kept[-1][0] < LARGEST * step:
        first = kept[-1][0]
        old.append(kept.pop()[0])
    size = LARGEST * step
    starts = range(first, last + 1, size)
    return [(old if at == first else [], at, min(last, at + size - 1)) for at in starts]


def affordable(frequency: Mapping[str, int], kept: Iterable[str]) -> list[str]:
    """The words whose entries may be read, the rarest first; those that must occur among them always."""
    must = set(kept)
    chosen: list[str] = []
    total = 0
    for term in sorted(frequency, key=lambda term: (term not in must, frequency[term])):
        total += frequency[term]
        if chosen and total > MOST_READ and term not in must:
            break
        chosen.append(term)
    return chosen


@dataclass(frozen=True, slots=True)
class Lists:
    """What was read for one question, segment by segment."""

    part: Part
    segments: Mapping[int, Sequence[tuple[str, bytes]]]

    def best(self, asked: Sum, most: int, only: Passages | None = None) -> list[tuple[float, int]]:
        """(score, passage) of the ``most`` best, ``only`` of these; the best first. Some of them may be gone."""
        found = (hit for first in self.segments for hit in self._best(first, asked, most, only))
        return heapq.nsmallest(most, found, key=lambda hit: (-hit[0], hit[1]))

    def _best(self, first: int, asked: Sum, most: int, only: Passages | None) -> list[tuple[float, int]]:
        import numpy as np

        begin = first // self.part.step
        lists = [(term, np.frombuffer(entries, dtype=ENTRY)) for term, entries in self.segments[first]]
        if not asked.required <= {term for term, _ in lists}:
            return []
        span = 1 + max(int(entries["at"][-1]) for _, entries in lists)
        scores: npt.NDArray[np.float64] = np.zeros(span)
        having: npt.NDArray[np.int32] = np.zeros(span if asked.required else 0, dtype=np.int32)
        for term, entries in lists:
            at, count = entries["at"].astype(np.int64), entries["count"].astype(np.float64)
            norm = K1 * (1.0 - B) + K1 * B / asked.average * entries["length"]
            scores[at] += (K1 + 1.0) * asked.weights[term] * count / (count + norm)
            if term in asked.required:
                having[at] += 1
        if asked.required:
            scores[having < len(asked.required)] = 0.0
        if only is not None:
            here = only // self.part.step - begin
            here = here[(here >= 0) & (here < span)]
            allowed = np.zeros(span)
            allowed[here] = scores[here]
            scores = allowed
        return [(float(scores[at]), self.part.number(begin + int(at))) for at in _highest(scores, most)]


def _highest(scores: Any, most: int) -> Any:
    """Where the ``most`` highest are, of those above 0; of equals at the edge the lower numbers."""
    import numpy as np

    above = np.flatnonzero(scores)
    if len(above) <= most:
        return above
    values = scores[above]
    edge = np.partition(values, len(values) - most)[len(values) - most]
    higher = above[values > edge]
    return np.concatenate([higher, above[values == edge][: most - len(higher)]])
