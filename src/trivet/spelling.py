"""A word of the question is in no document: which one was meant?

The nearest word of the collection by Damerau's distance: letters put in, left out, swapped, or mistaken for another.
One slip in words from 6 letters on, a mistaken letter from 8, two slips from 10: below that the nearest word of a small
collection is mostly another word ("claim", "clam"; "inhabit", "inhibit"). The first two letters are taken as right, as
they nearly always are, or one of them as left out or swapped with the third: that leaves a page or two of the
dictionary to look through. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

SHORTEST, MISTAKEN_FROM, TWO_SLIPS_FROM = 6, 8, 10  # letters
SUGGESTIONS = 8  # words looked at, nearest first, for one that the caller may see


def may_be_misspelt(term: str) -> bool:
    """Letters only, and long enough: a number or a name of code that is not there is not there."""
    return len(term) >= SHORTEST and term.isalpha()


def beginnings(term: str) -> tuple[str, ...]:
    """How the word that was meant may begin."""
    return tuple(dict.fromkeys((term[:2], term[0] + term[2])))


def nearest_of(term: str, known: Mapping[str, int], occurs: Callable[[str], bool]) -> str | None:
    """Return the nearest of the known words (word → how many passages have it) that also ``occurs``."""
    left = dict(known)
    for _ in range(SUGGESTIONS):
        word = nearest(term, left.items())
        if word is None or occurs(word):
            return word
        del left[word]
    return None


def nearest(term: str, known: Iterable[tuple[str, int]]) -> str | None:
    """The likeliest of the known words with their counts: fewest slips, then the commonest. None is often right."""
    slips = 1 if len(term) < TWO_SLIPS_FROM else 2
    letters = set(term)
    found: list[tuple[int, int, str]] = []
    for word, count in known:
        # each slip changes the length by one at most, and which letters there are by two
        if abs(len(word) - len(term)) > slips or len(letters.symmetric_difference(word)) > 2 * slips:
            continue
        distance = _distance(term, word, slips)
        mistaken = len(word) == len(term) and sorted(word) != sorted(term)
        if distance <= slips and word.isalpha() and not (mistaken and len(term) < MISTAKEN_FROM):
            found.append((distance, -count, word))
    return min(found)[2] if found else None


def _distance(one: str, other: str, most: int) -> int:
    """Damerau's distance where no letter is touched twice; ``most + 1`` for anything further."""
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
