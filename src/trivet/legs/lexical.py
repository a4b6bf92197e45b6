"""The lexical leg: BM25 over analysed terms.

With ``match="auto"``, all content words must occur; if too few documents have them all, any of them. Quoted phrases
must occur. An identifier (an error code, a path) counts more than its parts.

Query expansion by pseudo-relevance feedback is after RM3 (Abdul-Jaleel et al., TREC 2004): the terms of the first hits,
weighted by their share in each hit and by its score, are added to the query. It helps where the first hits are right
and drifts away where they are wrong, so it is off by default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from trivet.legs.leg import LegContext, LegQuery
from trivet.types import Ranking

if TYPE_CHECKING:
    from trivet.stores.contract import Collection, Found, State
    from trivet.text.analysis import ParsedQuery

EXACT = 1.5  # weight of an identifier's whole form; its parts count 1
FEEDBACK_HITS = 5  # hits whose terms expand the query
SHARE = 0.3  # of the weight of the whole query, for the new terms
READ = 4_000  # characters of a hit: its beginning says what it is about


@dataclass(frozen=True, slots=True)
class Lexical:
    """BM25 on the lexical index of a collection."""

    collection: Collection
    name: ClassVar[str] = "lexical"
    seeded: ClassVar[bool] = False
    incomplete: ClassVar[str] = ""

    @classmethod
    def build(cls, context: LegContext) -> Lexical | None:
        return cls(context.collection) if context.has_text else None

    def is_current(self, state: State) -> bool:
        return self.collection.lexical.is_current(state)

    def rank(self, query: LegQuery, depth: int) -> Ranking:
        parse = self.collection.analyzer.query
        parsed = parse(query.text)
        if not parsed.terms and not parsed.phrases:
            return Ranking(self.name, notes=("no words in the query",))
        if query.exact or query.lenient:
            wholes = dict.fromkeys(max(parse(name).terms, key=len, default="") for name in query.exact)
            weights = tuple((term, EXACT) for term in wholes if term in parsed.terms)
            parsed = replace(parsed, weights=weights, lenient=query.lenient)
        found, ceiling, notes = self._search(parsed, query, depth)
        if query.expansion:
            wider = self._expanded(parsed, found[:FEEDBACK_HITS], query.expansion)
            if wider is not parsed:
                found, ceiling, notes = self._search(wider, query, depth)
                notes = (*notes, f"{len(wider.terms) - len(parsed.terms)} words added")
        return Ranking.of(self.name, found, ceiling=ceiling, gate=query.gate, notes=notes)

    def _expanded(self, parsed: ParsedQuery, heads: list[Found], count: int) -> ParsedQuery:
        """Add the best terms of the first hits (pseudo-relevance feedback)."""
        documents = self.collection.documents.fetch([did for _, _, did in heads])
        texts = [(score, documents[did].text) for score, _, did in heads if did in documents]
        return expanded(parsed, texts, lambda text: self.collection.analyzer.query(text).required, count)

    def _search(self, parsed: ParsedQuery, query: LegQuery, depth: int) -> tuple[list[Found], float, tuple[str, ...]]:
        return self.collection.lexical.search(parsed, query.match, depth, query.scope, query.version)


def expanded(
    query: ParsedQuery, heads: Sequence[tuple[float, str]], content: Callable[[str], Sequence[str]], most: int
) -> ParsedQuery:
    """Add the ``most`` likeliest terms of the first hits, given as (score, text); return the query itself if none."""
    total = sum(score for score, _ in heads)
    likely: dict[str, float] = {}
    for score, text in heads:
        words = Counter(content(text[:READ]))
        size = sum(words.values())
        for word, count in words.items():
            likely[word] = likely.get(word, 0.0) + (score / total * count / size if total > 0.0 else 0.0)
    own = set(query.terms)
    best = sorted(likely.items(), key=lambda item: (-item[1], item[0]))
    new = [(word, part) for word, part in best if word not in own and part > 0.0][:most]
    if not new:
        return query
    weight = SHARE / (1.0 - SHARE) * len(query.terms) / sum(part for _, part in new)
    weights: Mapping[str, float] = {word: weight * part for word, part in new}
    return replace(query, terms=(*query.terms, *weights), weights=(*query.weights, *weights.items()))
