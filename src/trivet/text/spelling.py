"""Spelling correction: the word of a collection that is nearest to a word that no document has.

The distance is that of Damerau: letters inserted, left out, swapped or replaced. One error is allowed in words of at
least 6 letters, a replaced letter from 8, two errors from 10. In shorter words, the nearest word of a small collection
is mostly a different one ("claim" and "clam", "inhabit" and "inhibit"). The first two letters are taken as correct, as
they nearly always are, or one of them as left out or swapped with the third. So only a small part of the vocabulary has
to be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trivet.text.analysis import ParsedQuery

SHORTEST, REPLACED_FROM, TWO_ERRORS_FROM = 6, 8, 10  # letters
SUGGESTIONS = 8  # nearest words that are tried until the caller may see one


def may_be_misspelt(term: str) -> bool:
    """Return whether a term can be corrected: letters only, and long enough. Numbers and identifiers are not."""
    return len(term) >= SHORTEST and term.isalpha()


def beginnings(term: str) -> tuple[str, ...]:
    """Return how the intended word may start."""
    return tuple(dict.fromkeys((term[:2], term[0] + term[2])))


def corrected(
    query: ParsedQuery,
    occurs: Callable[[str], bool],
    nearest: Callable[[str], str | None],
    prepare: Callable[[Sequence[str]], object] = len,
) -> tuple[ParsedQuery, tuple[str, ...]]:
    """Replace each required word that no document has; return the query, and notes on what was replaced.

    An alternative of the word goes before the ``nearest`` word. ``occurs`` and ``nearest`` must know only words of
    documents that may be seen: a note must not tell a word that is in others alone. ``prepare`` is called with words
    before ``occurs`` is asked about them.
    """
    instead: dict[str, tuple[str, ...]] = {}
    for term in query.required if query.lenient else ():
        if not (query.alternatives or may_be_misspelt(term)) or occurs(term):
            continue
        others = query.alternatives(term) if query.alternatives else ()
        if others:
            prepare([word for words in others for word in words])
        found = next((other for other in others if all(map(occurs, other))), None)
        if found is None and may_be_misspelt(term) and (word := nearest(term)):
            found = (word,)
        if found:
            instead[term] = found
    if not instead:
        return query, ()
    terms, required = (
        tuple(dict.fromkeys(word for term in of for word in instead.get(term, (term,))))
        for of in (query.terms, query.required)
    )
    notes = tuple(f"did you mean {' '.join(words)!r} for {term!r}?" for term, words in instead.items())
    return replace(query, terms=terms, required=required), notes


def nearest_of(term: str, known: Mapping[str, int], occurs: Callable[[str], bool]) -> str | None:
    """Return the nearest of the known words (with the number of their passages) for which ``occurs`` holds."""
    left = dict(known)
    for _ in range(SUGGESTIONS):
        word = nearest(term, left.items())
        if word is None or occurs(word):
            return word
        del left[word]
    return None


def nearest(term: str, known: Iterable[tuple[str, int]]) -> str | None:
    """Return the known word with the fewest errors, then the most frequent; None if all are too different."""
    errors = 1 if len(term) < TWO_ERRORS_FROM else 2
    letters = set(term)
    found: list[tuple[int, int, str]] = []
    for word, count in known:
        # an error changes the length by at most one, and the set of letters by at most two
        if abs(len(word) - len(term)) > errors or len(letters.symmetric_difference(word)) > 2 * errors:
            continue
        distance = _distance(term, word, errors)
        replaced = len(word) == len(term) and sorted(word) != sorted(term)
        if distance <= errors and word.isalpha() and not (replaced and len(term) < REPLACED_FROM):
            found.append((distance, -count, word))
    return min(found)[2] if found else None


def _distance(one: str, other: str, most: int) -> int:
    """Return the distance of Damerau with no letter edited twice; ``most + 1`` if it is larger than ``most``."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        earlier, before, row = before, row, [at]
        for place, there in enumerate(other, start=1):
            cost = min(before[place] + 1, row[place - 1] + 1, before[place - 1] + (letter != there))
            if at > 1 and place > 1 and letter == other[place - 2] and one[at - 2] == there:
                cost = min(cost, earlier[place - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
