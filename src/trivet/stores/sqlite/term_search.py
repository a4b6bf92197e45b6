"""Passages ranked by BM25, over the term index on disk (``term_index.py``) and a tail in memory.

A tantivy commit costs about 80 ms of fsync. So the last few hundred passages are kept in the tail and scored with the
same BM25 over the statistics of both parts; beyond ``term_index.TAIL_LIMIT`` passages the index on disk takes them.

A filter that allows few documents and is used often gets a small index of its own (``filtered_index.py``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import tantivy

from trivet.stores.bm25 import K1, B, rounded_length
from trivet.stores.contract import Found
from trivet.stores.sqlite import filtered_index
from trivet.stores.sqlite.filtered_index import FilteredIndex
from trivet.stores.sqlite.forward_index import Positions
from trivet.stores.sqlite.scope import Scope
from trivet.text.spelling import beginnings, corrected, nearest_of

if TYPE_CHECKING:
    from trivet.stores.sqlite.term_index import TermIndex
    from trivet.text.analysis import ParsedQuery

FEW_ALLOWED = 1_024  # documents; so few become part of the query, more are taken from a longer list, which is faster
SPARE = 1.25  # ask for so many times the hits that should be left by the filter; each one more costs 1 µs
AND_TERMS = 4  # more words are hardly ever all in ``depth`` documents: that search would only cost time
# Of a long query the rarest terms are kept. Not too few: two sentences of Chinese have a hundred terms, and the topic
# is not among the rarest (memdaily_zh, noisy queries: nDCG@10 .53 at 64, .82 at 128, .86 at 256).
MAX_TERMS = 256


class TermSearch:
    """BM25 over a term index: the commit on disk and the tail in memory."""

    def __init__(self, index: TermIndex) -> None:
        self.index = index
        self._crowding = 1.5  # passages of one document among the hits; a running mean
        self._filtered: dict[Scope, tuple[int, FilteredIndex | None]] = {}  # highest passage number, and index

    def discard(self) -> None:
        self.index.discard()

    def bm25(
        self, query: ParsedQuery, match: str, depth: int, scope: Scope | None
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        """Return the best passage of each document, the score of a perfect match, and notes for the trace."""
        with self.index.lock:
            searcher, tail = self.index.searcher, self.index.tail
            query, corrections = corrected(
                query, lambda term: self._occurs(term, scope), lambda term: self._nearest(term, scope)
            )
            singles = tuple(words[0] for words in query.phrases if len(words) == 1)
            phrases = [words for words in query.phrases if len(words) > 1]
            terms, cut = self._rarest(query.terms, singles)
            boosts = dict(query.weights)
            idfs = {term: self.index.idf(term) * boosts.get(term, 1.0) for term in terms}
            weights = [sum(self.index.idf(word) for word in words) for words in phrases]
            average = self.index.average_length()
        ceiling = (K1 + 1.0) * (sum(idfs.values()) + sum(weights))
        notes = (*([f"the {MAX_TERMS} rarest of {len(query.terms)} terms"] if cut else []), *corrections)

        small = self._filtered_index(scope) if scope is not None and not phrases else None

        def search(required: Collection[str]) -> list[Found]:
            if small is not None:
                disk = small.bm25(idfs, required, average, depth, tail.removed)
            else:
                disk = self._search_disk(searcher, terms, boosts, required, phrases, depth, scope, tail.removed)
            with self.index.lock:
                fresh = tail.bm25(idfs, required, list(zip(phrases, weights, strict=True)), average) if tail else []
            return _best(disk, fresh, depth, scope)

        required = {*singles, *(term for term in query.required if term in idfs)}
        few = scope is not None and scope.count <= FEW_ALLOWED  # too few for all words to be in ``depth`` of them
        if match == "all" or (match == "auto" and 1 < len(query.required) <= AND_TERMS and not few):
            found = search(required)
            if match == "all" or len(found) >= depth:
                return found, ceiling, (*notes, "all words")
        return search(singles), ceiling, (*notes, "any word")

    def _filtered_index(self, scope: Scope) -> FilteredIndex | None:
        """Return the small index of a filter that is used often and allows few documents; None where there is none."""
        scope.searches += 1
        few = scope.count <= filtered_index.MOST and scope.count * filtered_index.SHARE <= self.index.documents
        if scope.searches < filtered_index.MIN_SEARCHES or not few or self.index.forward is None:
            return None
        with self.index.lock:
            forward, last = self.index.forward, self.index.disk_pid
            known, found = self._filtered.get(scope, (-1, None))
        if known == last or forward is None:
            return found
        passages = self.index.source.pids_of(scope.dids(), filtered_index.MOST_PASSAGES + 1)
        found = filtered_index.build(forward, passages, last)
        with self.index.lock:
            while len(self._filtered) >= filtered_index.KEPT:
                del self._filtered[next(iter(self._filtered))]
            self._filtered[scope] = (last, found)
        return found

    def _occurs(self, term: str, scope: Scope | None) -> bool:
        """Tell whether any document that may be seen has this term."""
        frequency = self.index.frequency(term)
        if not frequency or scope is None:
            return bool(frequency)
        if any(self.index.tail.dids[pid] in scope for pid in self.index.tail.postings.get(term, ())):
            return True
        known, small = self._filtered.get(scope, (-1, None))
        if small is not None and known == self.index.disk_pid:
            return small.occurs(term, self.index.tail.removed)
        if self.index.searcher is None:
            return False
        query = tantivy.Query.term_query(self.index.schema, "body", term, "basic")
        return bool(self._collect(self.index.searcher, query, 1, scope, self.index.tail.removed))

    def _nearest(self, term: str, scope: Scope | None) -> str | None:
        known: dict[str, int] = {}
        for begin in beginnings(term):
            if self.index.searcher is not None:
                known.update(self.index.searcher.terms_with_prefix("body", begin))
            for word, places in self.index.tail.postings.items():
                if places and word.startswith(begin):
                    known.setdefault(word, len(places))
        return nearest_of(term, known, lambda word: self._occurs(word, scope))

    def positions(self, pids: Sequence[int], terms: Collection[str]) -> dict[int, Positions]:
        """Map the passages that the index on disk has to the positions of these terms."""
        forward = self.index.forward
        if forward is None:
            return {}
        found = forward.positions(pids, terms)
        if forward.damaged and forward is self.index.forward:
            self.index.rebuild()
        return found

    def likeliest(self, terms: Sequence[str], depth: int, scope: Scope | None) -> list[Found]:
        """Return the best passages with any of the terms, several of one document too."""
        with self.index.lock:
            searcher, tail = self.index.searcher, self.index.tail
            idfs = {term: self.index.idf(term) for term in terms}
            fresh = tail.bm25(idfs, (), (), self.index.average_length()) if tail else []
        disk: list[Found] = []
        if searcher is not None:
            schema, should = self.index.schema, tantivy.Occur.Should
            parts = [(should, tantivy.Query.term_query(schema, "body", term, "basic")) for term in terms]
            query = tantivy.Query.boolean_query(parts)
            disk = self._collect(searcher, query, depth, scope, tail.removed, per_document=False)
        allowed = [hit for hit in disk + fresh if scope is None or hit[2] in scope]
        return sorted(allowed, key=lambda hit: (-hit[0], hit[1]))[:depth]

    def _search_disk(
        self,
        searcher: Any,
        terms: Sequence[str],
        boosts: Mapping[str, float],
        required: Collection[str],
        phrases: Sequence[tuple[str, ...]],
        depth: int,
        scope: Scope | None,
        removed: set[int],
    ) -> list[Found]:
        if searcher is None or not (terms or phrases):
            return []
        schema = self.index.schema
        must, should = tantivy.Occur.Must, tantivy.Occur.Should

        def weighted(term: str) -> Any:
            plain = tantivy.Query.term_query(schema, "body", term, "freq")
            return tantivy.Query.boost_query(plain, boosts[term]) if term in boosts else plain

        parts = [(must if term in required else should, weighted(term)) for term in terms]
        parts += [(must, tantivy.Query.phrase_query(schema, "body", list(words))) for words in phrases]
        return self._collect(searcher, tantivy.Query.boolean_query(parts), depth, scope, removed)

    def _collect(
        self,
        searcher: Any,
        query: Any,
        depth: int,
        scope: Scope | None,
        removed: Collection[int],
        per_document: bool = True,
    ) -> list[Found]:
        """Return the best ``depth`` allowed documents (or passages); take a longer list while too few are allowed."""
        limit = int(depth * self._crowding) + 16
        if scope is not None:
            if scope.count <= FEW_ALLOWED:
                query = tantivy.Query.boolean_query(
                    [(tantivy.Occur.Must, query), (tantivy.Occur.Must, self._only(scope))]
                )
            else:
                # a mask may count documents of other collections too, and more of them than this one has
                limit = max(limit, int((depth + 16) * SPARE * documents_in(searcher) / scope.count))
        while True:
            hits = searcher.search(query, limit, count=False).hits
            found = self._allowed(searcher, hits, scope, removed, per_document)
            if scope is None and found and per_document:
                self._crowding += (min(2.0, len(hits) / len(found)) - self._crowding) / 16
            if len(found) >= depth or len(hits) < limit:
                return found
            limit *= min(8, 2 * depth // len(found) + 1) if found else 8

    def _only(self, scope: Scope) -> Any:
        """Return the scope as a part of the query that changes no score; cached with the scope."""
        if scope.lookup is None:
            schema, should = self.index.schema, tantivy.Occur.Should
            numbers = [(should, tantivy.Query.term_query(schema, "did", did, "basic")) for did in scope.dids()]
            scope.lookup = tantivy.Query.const_score_query(tantivy.Query.boolean_query(numbers), 0.0)
        return scope.lookup

    def _allowed(
        self, searcher: Any, hits: list[Any], scope: Scope | None, removed: Collection[int], per_document: bool
    ) -> list[Found]:
        """Return those of the hits that may be seen; with ``per_document``, the best passage of each document."""
        dids = searcher.fast_field_values("did", [address for _, address in hits])
        if scope is not None:
            seen = np.flatnonzero(scope.rows(np.asarray(dids, dtype=np.int64))).tolist()
            hits, dids = [hits[at] for at in seen], [dids[at] for at in seen]
        pids = searcher.fast_field_values("pid", [address for _, address in hits])
        if None in dids or None in pids:
            raise ValueError("a passage without its numbers: the file is damaged")
        if not removed and (not per_document or len(set(dids)) == len(dids)):  # each document has one passage here
            return [(score, pid, did) for (score, _), pid, did in zip(hits, pids, dids, strict=True)]
        found: list[Found] = []
        taken: set[int] = set()
        for (score, _), pid, did in zip(hits, pids, dids, strict=True):
            if pid in removed or (per_document and did in taken):
                continue
            taken.add(did)
            found.append((score, pid, did))
        return found

    def _rarest(self, terms: Iterable[str], kept: Sequence[str]) -> tuple[list[str], bool]:
        """Return up to ``MAX_TERMS`` terms, with all those that must occur, and whether any was left out."""
        ordered = list(dict.fromkeys((*kept, *terms)))
        if len(ordered) <= MAX_TERMS:
            return ordered, False
        others = sorted(
            (term for term in ordered if term not in kept and self.index.frequency(term)), key=self.index.frequency
        )
        return [*dict.fromkeys(kept), *others[: max(0, MAX_TERMS - len(kept))]], True


def documents_in(searcher: Any) -> int:
    """Return how many passages a commit has: one document is its checkpoint."""
    return searcher.num_docs - 1 if searcher is not None else 0


def _best(disk: list[Found], fresh: list[Found], depth: int, scope: Scope | None) -> list[Found]:
    if not fresh:
        return disk[:depth]
    allowed = fresh if scope is None else [hit for hit in fresh if hit[2] in scope]
    best: dict[int, Found] = {}
    for hit in sorted(disk + allowed, key=lambda hit: (-hit[0], hit[2], hit[1])):
        best.setdefault(hit[2], hit)
        if len(best) == depth:
            break
    return list(best.values())


@dataclass(slots=True)
class Tail:
    """Passages and removals after the checkpoint of the index on disk."""

    dids: dict[int, int] = field(default_factory=dict)
    terms: dict[int, list[str]] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)  # rounded, as in the index on disk
    postings: dict[str, dict[int, int]] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)  # passages of the index on disk that were removed
    tokens: int = 0

    def __len__(self) -> int:
        return len(self.dids)

    def add(self, pid: int, did: int, terms: list[str]) -> None:
        self.dids[pid] = did
        self.terms[pid] = terms
        self.lengths[pid] = rounded_length(len(terms))
        self.tokens += len(terms)
        for term, count in Counter(terms).items():
            self.postings.setdefault(term, {})[pid] = count

    def remove(self, pid: int) -> None:
        if self.dids.pop(pid, None) is None:
            return
        terms = self.terms.pop(pid)
        del self.lengths[pid]
        self.tokens -= len(terms)
        for term in set(terms):
            self.postings[term].pop(pid)

    def frequency(self, term: str) -> int:
        return len(self.postings.get(term, ()))

    def bm25(
        self,
        idfs: Mapping[str, float],
        required: Collection[str],
        phrases: Sequence[tuple[tuple[str, ...], float]],
        average: float,
    ) -> list[Found]:
        """Score every passage that matches; ``required`` terms and the phrases (each with its idf) must occur."""
        scores: dict[int, float] = {}
        for term, weight in idfs.items():
            for pid, count in self.postings.get(term, {}).items():
                # as ``_saturation``: every passage of the tail may have a term, so no function is called for each
                norm = K1 * (1.0 - B + B * self.lengths[pid] / average)
                scores[pid] = scores.get(pid, 0.0) + weight * ((K1 + 1.0) * count / (count + norm))
        for term in required:
            here = self.postings.get(term, {})
            scores = {pid: score for pid, score in scores.items() if pid in here}
        matching: Collection[int] = scores if required else self.dids
        for words, weight in phrases:
            counts = {pid: self._occurrences(pid, words) for pid in matching}
            matching = scores = {
                pid: scores.get(pid, 0.0) + weight * self._saturation(pid, count, average)
                for pid, count in counts.items()
                if count
            }
        return [(score, pid, self.dids[pid]) for pid, score in scores.items()]

    def _saturation(self, pid: int, count: int, average: float) -> float:
        norm = K1 * (1.0 - B + B * self.lengths[pid] / average)
        return (K1 + 1.0) * count / (count + norm)

    def _occurrences(self, pid: int, words: tuple[str, ...]) -> int:
        if any(pid not in self.postings.get(word, ()) for word in words):
            return 0
        terms, first, width = self.terms[pid], words[0], len(words)
        return sum(1 for at, term in enumerate(terms) if term == first and tuple(terms[at : at + width]) == words)


def idf(documents: int, frequency: int) -> float:
    """Return the idf of Lucene and tantivy; the frequency counts removed passages that are not merged away yet."""
    return math.log(1.0 + (max(documents - frequency, 0) + 0.5) / (frequency + 0.5))
