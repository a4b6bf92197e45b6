"""Which scorer needs no model?

The share of the question's different words that the passage has, a little less for every word it has beside them. It
knows spelling, not meaning: for tests and for trying a profile out. Stable between processes and platforms.
"""

from __future__ import annotations

import re
import unicodedata

from trivet.errors import InputError

_WORD = re.compile(r"\w+")
#: Words in which a passage's advantage for being short halves.
HALF = 1000


def load(argument: str) -> Words:
    """``words``."""
    if argument:
        raise InputError(f"scorer 'words:{argument}': it has no settings; write 'words'")
    return Words()


class Words:
    spec, id, batch = "words", "words/1", 64

    def scores(self, query: str, passages: list[str]) -> list[float]:
        asked = set(_words(query))
        return [_share(asked, _words(passage)) for passage in passages]


def _share(asked: set[str], words: list[str]) -> float:
    shared = len(asked.intersection(words)) / len(asked) if asked else 0.0
    return shared * HALF / (HALF + len(words))


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
