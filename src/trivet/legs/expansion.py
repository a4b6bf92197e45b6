"""Which other words do the best answers use?

Pseudo-relevance feedback after RM3 (Abdul-Jaleel et al., TREC 2004): the words of the first hits, weighed by their
share in each and by the hit's score, are added to the question's own. It finds what is said in other words where the
first hits are right, and runs away with the question where they are not: an option, off unless it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trivet.analysis import ParsedQuery

HEADS = 5  # hits that are read
SHARE = 0.3  # of the weight of the whole question that the new words get
READ = 4_000  # characters of a hit: its beginning says what it is about


def expanded(
    query: ParsedQuery, heads: Sequence[tuple[float, str]], content: Callable[[str], Sequence[str]], most: int
) -> ParsedQuery:
    """The query with the ``most`` likeliest words of its heads, each (score, text); as it was where they have none."""
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
