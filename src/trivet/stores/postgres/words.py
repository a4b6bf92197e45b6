"""Which passages have these words?

BM25, as in the embedded store: our analyser's words, Lucene's idf from a table of how many passages have each word, and
how often a passage has it out of its ``tsvector``. The inverted index proposes the passages with the question's rarer
words; the commoner ones are counted too, and the look goes wider until they could not change the answer (MaxScore).
Where the server has pg_textsearch, its index gives the best of a large collection at once. All content words first;
when too few documents have them all, any of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trivet.stores.contract import Found
from trivet.stores.postgres import terms
from trivet.stores.postgres.database import Database
from trivet.stores.postgres.scope import Scope

if TYPE_CHECKING:
    from trivet.analysis import ParsedQuery

MAX_TERMS = 64  # of a long question the rarest are kept: the rest cost time and rank next to nothing
AND_TERMS = 4  # more words are hardly ever all in `depth` documents
FEW_ALLOWED = 2_000  # documents: a scope this small is scored whole, a larger one sifted
FIRST_LOOK = 2_000  # passages the rarer words are in, scored before it is asked whether that was enough
MOST_SIFTED = 5_000  # passages pg_textsearch is asked for, for a scope to leave enough of
K1, B = 1.2, 0.75  # the constants of the embedded store, and of the index

Answer = tuple[list[Found], float, tuple[str, ...]]


@dataclass(frozen=True)
class Words:
    """The words of one collection; ``table`` is the one that pg_textsearch has indexed, if there is one."""

    database: Database
    cid: int
    table: str | None
    passages: int
    average: float  # terms a passage

    def find(self, query: ParsedQuery, match: str, depth: int, scope: Scope | None) -> Answer:
        singles = tuple(words[0] for words in query.phrases if len(words) == 1)
        phrases = [words for words in query.phrases if len(words) > 1]
        asked = _Asked(self, (*singles, *query.terms, *(word for words in phrases for word in words)), singles)
        every = list(dict.fromkeys([*singles, *(term for term in query.required if term in asked.idfs)]))
        if match == "all" or (match == "auto" and 1 < len(query.required) <= AND_TERMS):
            found = asked.best(terms.query((), every, phrases), depth, scope)
            if match == "all" or len(found) >= depth:
                return found, asked.ceiling, (*asked.notes, "all words")
        found = asked.best(terms.query((), singles, phrases), depth, scope)
        return found, asked.ceiling, (*asked.notes, "any word")


class _Asked:
    """The words of one question, with how rare they are."""

    def __init__(self, words: Words, wanted: Sequence[str], kept: Sequence[str]) -> None:
        self._words = words
        every = list(dict.fromkeys(wanted))
        sql = "SELECT term, passages FROM lexicon WHERE cid = %s AND term = ANY(%s)"
        known = dict(words.database.all(sql, (words.cid, every)))
        self._frequency = {term: int(known.get(term, 0)) for term in every}
        rarest = sorted((term for term in every if term not in kept), key=self._frequency.__getitem__)
        chosen = [*dict.fromkeys(kept), *rarest[: max(0, MAX_TERMS - len(kept))]]
        self.idfs = {term: self._idf(term) for term in every if term in chosen}
        self.ceiling = (K1 + 1.0) * sum(self.idfs.values())
        cut = (f"the {MAX_TERMS} rarest of {len(every)} terms",) if len(chosen) < len(every) else ()
        self.notes: tuple[str, ...] = cut

    def _idf(self, term: str) -> float:
        frequency = self._frequency[term]
        return math.log(1.0 + (max(self._words.passages - frequency, 0) + 0.5) / (frequency + 0.5))

    def best(self, must: str, depth: int, scope: Scope | None) -> list[Found]:
        if not self.idfs:
            return []
        if must or (scope is not None and scope.count <= FEW_ALLOWED):
            return self._scored(must or terms.query(list(self.idfs), (), ()), depth, scope)
        if self._words.table is not None:
            found = self._from_index(depth, scope)
            if found is not None:
                return found
        return self._rarest_first(depth, scope)

    # --- by the inverted index ----------------------------------------------------------------------------------------

    def _rarest_first(self, depth: int, scope: Scope | None) -> list[Found]:
        """The best passages of those with the rarer words, widened until no other could be among them."""
        ordered = sorted(self.idfs, key=self._frequency.__getitem__)
        room = FIRST_LOOK
        while True:
            taken, total = 0, 0
            while taken < len(ordered) and (total < room or taken == 0):
                total += self._frequency[ordered[taken]]
                taken += 1
            found = self._scored(terms.query(ordered[:taken], (), ()), depth, scope)
            most = (K1 + 1.0) * sum(
                self.idfs[term] for term in ordered[taken:]
            )  # what one without any of them can have
            if taken == len(ordered) or (len(found) >= depth and found[-1][0] >= most):
                return found
            room *= 8

    def _scored(self, query: str, depth: int, scope: Scope | None) -> list[Found]:
        """Every passage the query matches, scored; one a document."""
        if not query:
            return []
        join, values = scope.join("p.did") if scope is not None else ("", [])
        score, lexemes = self._score
        limit = depth + depth // 2 + 16
        while True:
            rows = self._rows(
                f"SELECT {score} AS score, p.pid, p.did FROM passages p{join} "
                f"WHERE p.cid = {self._words.cid} AND p.words @@ %s::tsquery "
                "ORDER BY score DESC, p.did, p.pid LIMIT %s",
                (*lexemes, *values, query, limit),
            )
            found = best(rows, depth)
            if len(found) >= depth or len(rows) < limit:
                return found
            limit *= 8

    @cached_property
    def _score(self) -> tuple[str, list[str]]:
        """BM25 of a passage ``p`` as an expression, and its parameters."""
        norm = f"({K1 * (1.0 - B):.9g} + {K1 * B / max(1.0, self._words.average):.9g} * p.length)"
        parts, lexemes = [], []
        for term, idf in self.idfs.items():
            if not self._frequency[term]:
                continue
            count = f"width_bucket(ts_rank('{{1,1,1,1}}', p.words, %s::tsquery), '{_STEPS}'::real[])"
            parts.append(f"(SELECT {(K1 + 1.0) * idf:.9g} * n / (n + {norm}) FROM (SELECT {count} AS n OFFSET 0) t)")
            lexemes.append(terms.lexeme(term))
        return " + ".join(parts) or "0.0", lexemes

    # --- by pg_textsearch ---------------------------------------------------------------------------------------------

    def _from_index(self, depth: int, scope: Scope | None) -> list[Found] | None:
        """The best of its index, sifted by the scope; None where that would take too many."""
        question = terms.line(self.idfs)
        index = f"{self._words.table}_bm25"
        limit = depth + depth // 2 + 16
        if scope is not None:
            limit = int(limit * 1.5 * self._words.passages / max(1, scope.count))
        while limit <= MOST_SIFTED or scope is None:
            rows = self._rows(  # nothing but this: it knows the scores it has computed in no other shape of statement
                f"SELECT -(words <@> to_bm25query(%s, '{index}')), pid, did FROM {self._words.table} "
                f"ORDER BY words <@> to_bm25query(%s, '{index}') LIMIT %s",
                (question, question, limit),
            )
            if scope is not None:
                scope.expect(did for _, _, did in rows)
            seen = [row for row in rows if row[0] > 0.0 and (scope is None or row[2] in scope)]
            found = best(seen, depth)
            if len(found) >= depth or len(rows) < limit:
                self.notes = (*self.notes, "pg_textsearch")
                return found
            limit *= 8
        return None

    def _rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        # planned with the question's own words: a plan for any question cannot know how many passages they are in
        return self._words.database.ask(lambda connection: connection.execute(sql, values, prepare=False).fetchall())


def best(rows: Sequence[tuple[Any, ...]], depth: int) -> list[Found]:
    """The best passage of each of the best ``depth`` documents.

    Sorted here: an index gives its rows in the order of its own, rounded scores, and the planner believes it.
    """
    found: dict[int, Found] = {}
    for score, pid, did in sorted(rows, key=lambda row: (-row[0], row[2], row[1])):
        found.setdefault(did, (float(score), pid, did))
        if len(found) == depth:
            break
    return list(found.values())


def _steps(most: int = 48) -> str:
    """Where ``ts_rank`` of one word goes from one count of it to the next.

    With all weights 1 it is the sum of 1/i² over the word's places, divided by the limit of that sum: so the number of
    places can be read off it. Counts past ``most`` are too close to tell and hardly matter, BM25 being saturated.
    """
    sums = [0.0]
    for count in range(1, most + 1):
        sums.append(sums[-1] + 1.0 / (count * count))
    middles = [(low + high) / 2 / 1.64493406685 for low, high in itertools.pairwise(sums)]
    return "{" + ",".join(f"{middle:.7f}" for middle in middles) + "}"


_STEPS = _steps()
