"""The similarities of PostgreSQL's ``pg_trgm``, in Python.

``word_similarity`` is how well the best stretch of a text fits the query; it tolerates typing errors and finds parts of
words. ``tests/golden`` has the values of a real server.

On a server, the locale defines what a letter is. Here it is as in C.UTF-8, except for some rare marks. In the locale C,
only ASCII has letters, and pg_trgm does not see Russian or Chinese.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from itertools import chain

_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
# Letters whose lower case in Python is two letters or depends on the neighbours, unlike on a server.
_SIMPLE_LOWER = str.maketrans({"İ": "i", "Σ": "σ"})
#: Words whose trigrams are cached: the frequent vocabulary of a large corpus, about 50 MB.
_CACHED_WORDS = 1 << 16


def trigrams(text: str) -> list[str]:
    """Return every trigram in reading order, with repeats; a word has two blanks before it and one after it."""
    return [trigram for word in _words(text) for trigram in _word_trigrams(word)]


def similarity(one: str, other: str) -> float:
    """Return the share of their distinct trigrams that two texts have in common, 0 to 1."""
    left, right = set(trigrams(one)), set(trigrams(other))
    return len(left & right) / len(left | right) if left and right else 0.0


def word_similarity(query: str, text: str) -> float:
    """Return how well the best stretch of ``text`` fits ``query``, 0 to 1; it is not symmetric."""
    return PreparedQuery(query).score(text)


def upper_bound(shared: int, query_size: int) -> float:
    """Return the upper bound of ``word_similarity`` for a text with ``shared`` of the query's distinct trigrams."""
    return shared / query_size if query_size else 0.0


class PreparedQuery:
    """A query with its trigrams, to score many texts."""

    def __init__(self, text: str) -> None:
        #: Distinct trigrams in reading order, each with its index.
        self.trigrams = {trigram: index for index, trigram in enumerate(dict.fromkeys(trigrams(text)))}
        self._steps: dict[str, tuple[_Step, ...]] = {}

    @property
    def size(self) -> int:
        """The number of distinct trigrams of the query."""
        return len(self.trigrams)

    def score(self, text: str, at_least: float = 0.0) -> float:
        """Return ``word_similarity`` of the query and ``text``; 0 if the upper bound is below ``at_least``."""
        known = self._steps
        words = [known.get(word) or self._read(word) for word in _words(text)]
        if at_least:
            shared = len({in_query for steps in words for _, in_query in steps if in_query})
            if upper_bound(shared, self.size) < at_least:
                return 0.0
        stretch = _Stretch(self.size)
        passed: list[str] = []
        for others, in_query in chain.from_iterable(words):
            passed += others
            if in_query:
                stretch.extend(passed, in_query)
                passed.clear()
        return stretch.best_shared / stretch.best_union

    def _read(self, word: str) -> tuple[_Step, ...]:
        """Return the word as steps to each next trigram of the query, with the others before it."""
        steps: list[_Step] = []
        others: list[str] = []
        for trigram in _word_trigrams(word):
            if trigram in self.trigrams:
                steps.append((tuple(others), trigram))
                others = []
            else:
                others.append(trigram)
        if len(self._steps) >= _CACHED_WORDS:
            self._steps.clear()
        self._steps[word] = read = (*steps, (tuple(others), ""))
        return read


#: Trigrams that the query does not have, then one that it has, or "" at the end of a word.
_Step = tuple[tuple[str, ...], str]


class _Stretch:
    """The stretch of a text that fits a query best, found in the way of pg_trgm.

    The score of a stretch is shared / (size + others): ``shared`` trigrams are in the query, ``others`` are not, each
    counted once. The stretch is extended to each next trigram of the query, an *anchor*; then its start moves forward
    to where the score is highest, and never back. The best start is always an anchor. So the others need no positions:
    they are counted per gap between two anchors, in the gap where they were last seen.
    """

    __slots__ = ("_fresh", "_gap", "_others", "_seen", "_shared", "_size", "_start", "best_shared", "best_union")

    def __init__(self, size: int) -> None:
        self._size = size
        self._seen: dict[str, int] = {}  # trigram -> its last anchor or gap
        self._fresh: list[int] = []  # per anchor: 1, or 0 if its trigram occurs again later
        self._gap: list[int] = []  # per anchor: others last seen between it and the next anchor
        self._start = self._shared = self._others = 0
        self.best_shared, self.best_union = 0, 1

    def extend(self, passed: list[str], in_query: str) -> None:
        """Add the others up to the next trigram of the query, and that trigram."""
        if passed and self._gap:
            self._pass_over(set(passed))
        earlier = self._seen.get(in_query, -1)
        if earlier < self._start:
            self._shared += 1
        else:
            self._fresh[earlier] = 0
        self._seen[in_query] = len(self._gap)
        self._fresh.append(1)
        self._gap.append(0)
        self._tighten()

    def _pass_over(self, others: set[str]) -> None:
        seen, gap, start, here = self._seen, self._gap, self._start, len(self._gap) - 1
        new = len(others)
        for trigram in others:
            if trigram in seen and (earlier := seen[trigram]) >= start:
                gap[earlier] -= 1
                new -= 1
            seen[trigram] = here
        gap[here] = len(others)
        self._others += new

    def _tighten(self) -> None:
        size, fresh, gap = self._size, self._fresh, self._gap
        shared, others = self._shared, self._others
        top, union = shared, size + others
        for anchor in range(self._start, len(gap) - 1):
            shared -= fresh[anchor]
            others -= gap[anchor]
            if shared * union <= top * size:  # even without others it would not be better
                break
            if shared * union > top * (size + others):
                top, union = shared, size + others
                self._start, self._shared, self._others = anchor + 1, shared, others
        if top * self.best_union > self.best_shared * union:
            self.best_shared, self.best_union = top, union


def lowered(char: str) -> str:
    """Return the letter of this character in a trigram; empty if it is not part of a word."""
    return char.translate(_SIMPLE_LOWER).lower() if _words(char) else ""


def _words(text: str) -> list[str]:
    return _ASCII_WORD.findall(text) if text.isascii() else _unicode_word().findall(text)


@cache
def _unicode_word() -> re.Pattern[str]:
    """Return the pattern of a word: letters, digits and vowel signs, without ² and ½, as in C.UTF-8."""
    style = range(0xFE00, 0xFE10)  # variation selectors, which choose between an emoji and a text symbol
    plane = (chr(code) for code in range(0x10000) if code not in style)
    letters = "".join(char for char in plane if _is_letter(char))
    return re.compile(rf"(?:[{letters}]++|[^\W_\u0000-\uffff]++)++")


def _is_letter(char: str) -> bool:
    category = unicodedata.category(char)
    if category in {"Mn", "Mc"}:
        return not unicodedata.combining(char)
    return char.isalnum() and category != "No"


@lru_cache(_CACHED_WORDS)
def _word_trigrams(word: str) -> tuple[str, ...]:
    padded = f"  {word.translate(_SIMPLE_LOWER).lower()} "
    return tuple(padded[at : at + 3] for at in range(len(padded) - 2))
