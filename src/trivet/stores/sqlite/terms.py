"""Which passages have these words?

BM25 over the index on disk and the tail in memory (``words.py``), the best passage of each document; under a filter
that leaves little and is asked for again, over an index of just that (``narrow.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import tantivy

from trivet.spelling import beginnings, may_be_misspelt, nearest_of
from trivet.stores.sqlite import narrow
from trivet.stores.sqlite.forward import Places
from trivet.stores.sqlite.narrow import Narrow
from trivet.stores.sqlite.scope import Scope
from trivet.stores.sqlite.tail import K1, Found, idf
from trivet.stores.sqlite.words import Words

if TYPE_CHECKING:
    from trivet.analysis import ParsedQuery

FEW_ALLOWED = (
    1_024  # a scope this small is part of the query; a larger one is sifted from a longer list, which is faster
)
SPARE = 1.25  # times what a mask is likely to leave is asked for: every hit of a longer list costs a microsecond
AND_TERMS = 4  # more words are hardly ever all in `depth` documents: asking would only cost time
# Of a long query the rarest terms are kept. Not too few: two sentences of Chinese have a hundred terms, and what was
# asked is not what is rarest in them (memdaily_zh, noisy questions: nDCG@10 .53 at 64, .82 at 128, .86 at 256).
MAX_TERMS = 256


class TermIndex(Words):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._crowding = 1.5  # passages to a document among those found; a running mean
        self._narrow: dict[Scope, tuple[int, Narrow | None]] = {}  # with the last passage that it knows

    def bm25(
        self, query: ParsedQuery, match: str, depth: int, scope: Scope | None
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        """Best passages by BM25, one per document; the score a perfect match would have; how it was asked."""
        with self._lock:
            searcher, tail = self._searcher, self._tail
            query, meant = self._meant(query, scope)
            singles = tuple(words[0] for words in query.phrases if len(words) == 1)
            phrases = [words for words in query.phrases if len(words) > 1]
            terms, cut = self._rarest(query.terms, singles)
            boosts = dict(query.weights)
            idfs = {term: self._idf(term) * boosts.get(term, 1.0) for term in terms}
            weights = [sum(self._idf(word) for word in words) for words in phrases]
            average = self._average_length()
        ceiling = (K1 + 1.0) * (sum(idfs.values()) + sum(weights))
        notes = (*([f"the {MAX_TERMS} rarest of {len(query.terms)} terms"] if cut else []), *meant)

        small = self._small(scope) if scope is not None and not phrases else None

        def ask(required: Collection[str]) -> list[Found]:
            if small is not None:
                disk = small.bm25(idfs, required, average, depth, tail.removed)
            else:
                disk = self._ask_disk(searcher, terms, boosts, required, phrases, depth, scope, tail.removed)
            with self._lock:
                fresh = tail.bm25(idfs, required, list(zip(phrases, weights, strict=True)), average) if tail else []
            return _best(disk, fresh, depth, scope)

        every = {*singles, *(term for term in query.required if term in idfs)}
        starved = scope is not None and scope.count <= FEW_ALLOWED  # hardly ever are all words in enough of so few
        if match == "all" or (match == "auto" and 1 < len(query.required) <= AND_TERMS and not starved):
            found = ask(every)
            if match == "all" or len(found) >= depth:
                return found, ceiling, (*notes, "all words")
        return ask(singles), ceiling, (*notes, "any word")

    def _small(self, scope: Scope) -> Narrow | None:
        """The index of a scope that leaves little and is asked again and again; None: the large one is asked."""
        scope.asked += 1
        few = scope.count <= narrow.MOST and scope.count * narrow.SHARE <= self._documents(self._searcher)
        if scope.asked < narrow.WORTH_IT or not few or self._forward is None:
            return None
        with self._lock:
            forward, last = self._forward, self._disk_pid
            known, found = self._narrow.get(scope, (-1, None))
        if known == last or forward is None:
            return found
        found = narrow.narrow(forward, self._source.pids_of(scope.dids(), narrow.MOST_PASSAGES + 1), last)
        with self._lock:
            while len(self._narrow) >= narrow.KEPT:
                del self._narrow[next(iter(self._narrow))]
            self._narrow[scope] = (last, found)
        return found

    def _meant(self, query: ParsedQuery, scope: Scope | None) -> tuple[ParsedQuery, tuple[str, ...]]:
        """The query with the nearest word in the place of each that no document has; and what was changed. Only of
        documents that may be seen: a suggestion must not tell a word that stands in others alone."""
        missing = [term for term in query.required if query.lenient and may_be_misspelt(term)]
        meant = {
            term: word for term in missing if not self._occurs(term, scope) and (word := self._nearest(term, scope))
        }
        if not meant:
            return query, ()
        terms, required = (
            tuple(dict.fromkeys(meant.get(term, term) for term in of)) for of in (query.terms, query.required)
        )
        told = tuple(f"did you mean {word!r} for {term!r}?" for term, word in meant.items())
        return replace(query, terms=terms, required=required), told

    def _occurs(self, term: str, scope: Scope | None) -> bool:
        """Has any document that may be seen this term?"""
        if not self._frequency(term) or scope is None:
            return bool(self._frequency(term))
        if any(self._tail.dids[pid] in scope for pid in self._tail.postings.get(term, ())):
            return True
        known, small = self._narrow.get(scope, (-1, None))
        if small is not None and known == self._disk_pid:
            return small.occurs(term, self._tail.removed)
        if self._searcher is None:
            return False
        asked = tantivy.Query.term_query(self._schema, "body", term, "basic")
        return bool(self._collect(self._searcher, asked, 1, scope, self._tail.removed))

    def _nearest(self, term: str, scope: Scope | None) -> str | None:
        known: dict[str, int] = {}
        for begin in beginnings(term):
            if self._searcher is not None:
                known.update(self._searcher.terms_with_prefix("body", begin))
            for word, places in self._tail.postings.items():
                if places and word.startswith(begin):
                    known.setdefault(word, len(places))
        return nearest_of(term, known, lambda word: self._occurs(word, scope))

    def places(self, pids: Sequence[int], terms: Collection[str]) -> dict[int, Places]:
        """Where these terms stand in those of the passages that the index on disk has read."""
        forward = self._forward
        if forward is None:
            return {}
        found = forward.places(pids, terms)
        if forward.damaged and forward is self._forward:
            self._make_anew()
        return found

    def likeliest(self, terms: Sequence[str], depth: int, scope: Scope | None) -> list[Found]:
        """Passages with any of the terms, best by BM25, several of a document if need be."""
        with self._lock:
            searcher, tail = self._searcher, self._tail
            idfs = {term: self._idf(term) for term in terms}
            fresh = tail.bm25(idfs, (), (), self._average_length()) if tail else []
        disk: list[Found] = []
        if searcher is not None:
            schema, should = self._schema, tantivy.Occur.Should
            parts = [(should, tantivy.Query.term_query(schema, "body", term, "basic")) for term in terms]
            query = tantivy.Query.boolean_query(parts)
            disk = self._collect(searcher, query, depth, scope, tail.removed, per_document=False)
        allowed = [hit for hit in disk + fresh if scope is None or hit[2] in scope]
        return sorted(allowed, key=lambda hit: (-hit[0], hit[1]))[:depth]

    def _ask_disk(
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
        schema = self._schema
        must, should = tantivy.Occur.Must, tantivy.Occur.Should

        def asked(term: str) -> Any:
            plain = tantivy.Query.term_query(schema, "body", term, "freq")
            return tantivy.Query.boost_query(plain, boosts[term]) if term in boosts else plain

        parts = [(must if term in required else should, asked(term)) for term in terms]
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
        """The best ``depth`` allowed documents (or passages); deepened until the scope gave enough: the cut is last."""
        limit = int(depth * self._crowding) + 16
        if scope is not None:
            if scope.count <= FEW_ALLOWED:
                query = tantivy.Query.boolean_query(
                    [(tantivy.Occur.Must, query), (tantivy.Occur.Must, self._only(scope))]
                )
            else:
                # a mask may count row numbers of other collections as well, and more of them than this one has
                limit = max(limit, int((depth + 16) * SPARE * self._documents(searcher) / scope.count))
        while True:
            hits = searcher.search(query, limit, count=False).hits
            found = self._sift(searcher, hits, scope, removed, per_document)
            if scope is None and found and per_document:
                self._crowding += (min(2.0, len(hits) / len(found)) - self._crowding) / 16
            if len(found) >= depth or len(hits) < limit:
                return found
            limit *= min(8, 2 * depth // len(found) + 1) if found else 8

    def _only(self, scope: Scope) -> Any:
        """The scope as a part of the query that changes no score; kept, for a conversation asks within the same one."""
        if scope.lookup is None:
            schema, should = self._schema, tantivy.Occur.Should
            ones = [(should, tantivy.Query.term_query(schema, "did", did, "basic")) for did in scope.dids()]
            scope.lookup = tantivy.Query.const_score_query(tantivy.Query.boolean_query(ones), 0.0)
        return scope.lookup

    def _sift(
        self, searcher: Any, hits: list[Any], scope: Scope | None, removed: Collection[int], per_document: bool
    ) -> list[Found]:
        """What of these hits may be seen, the best passage of each document where that is wanted."""
        dids = searcher.fast_field_values("did", [address for _, address in hits])
        if scope is not None:
            seen = np.flatnonzero(scope.rows(np.asarray(dids, dtype=np.int64))).tolist()
            hits, dids = [hits[at] for at in seen], [dids[at] for at in seen]
        pids = searcher.fast_field_values("pid", [address for _, address in hits])
        if None in dids or None in pids:
            raise ValueError("a passage without its numbers: the file is damaged")
        found: list[Found] = []
        taken: set[int] = set()
        for (score, _), pid, did in zip(hits, pids, dids, strict=True):
            if pid in removed or (per_document and did in taken):
                continue
            taken.add(did)
            found.append((score, pid, did))
        return found

    def _idf(self, term: str) -> float:
        return idf(self._documents(self._searcher) + len(self._tail), self._frequency(term))

    def _frequency(self, term: str) -> int:
        on_disk = self._searcher.doc_freq("body", term) if self._searcher is not None else 0
        return int(on_disk) + self._tail.frequency(term)

    def _rarest(self, terms: Iterable[str], kept: Sequence[str]) -> tuple[list[str], bool]:
        """At most ``MAX_TERMS``, and those that must occur whatever their number; were any left out?"""
        ordered = list(dict.fromkeys((*kept, *terms)))
        if len(ordered) <= MAX_TERMS:
            return ordered, False
        others = sorted((term for term in ordered if term not in kept and self._frequency(term)), key=self._frequency)
        return [*dict.fromkeys(kept), *others[: max(0, MAX_TERMS - len(kept))]], True

    def _average_length(self) -> float:
        documents = self._documents(self._searcher) + len(self._tail) - len(self._tail.removed)
        return max(1.0, (self._disk_tokens + self._tail.tokens) / max(1, documents))


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
