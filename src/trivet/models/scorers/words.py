"""A scorer without a model: the share of the query's distinct words that a passage has.

A longer passage with the same words scores a little lower. It knows spelling, not meaning: for tests and for trying out
a profile. The scores are the same on every platform.
"""

from __future__ import annotations

import re
import unicodedata

from trivet.errors import InputError

_WORD = re.compile(r"\w+")
HALF = 1000  # words of a passage at which its score is halved


def load(argument: str) -> Words:
    """Return the scorer of the spec ``words``, which has no argument."""
    if argument:
        raise InputError(f"scorer 'words:{argument}': it takes no argument; write 'words'")
    return Words()


class Words:
    """Scores passages by the words they share with the query."""

    spec, id, batch = "words", "words/1", 64

    def scores(self, query: str, passages: list[str]) -> list[float]:
        query_words = set(_words(query))
        return [_share(query_words, _words(passage)) for passage in passages]


def _share(query_words: set[str], words: list[str]) -> float:
    shared = len(query_words.intersection(words)) / len(query_words) if query_words else 0.0
    return shared * HALF / (HALF + len(words))


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
