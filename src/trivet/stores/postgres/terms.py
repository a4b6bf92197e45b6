"""How are our analyser's terms written so that PostgreSQL keeps them whole?

Its own parser would cut ``c++``, ``1.2.3`` and ``src/types.py`` anew and knows no Chinese words. So a passage's
``tsvector`` is written as a literal, with the places our analyser gave the words, and a question as a ``tsquery``
literal: no part of either is read as syntax. An index of pg_textsearch takes text only and does use that parser: there
a term is spelt with letters and digits alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MOST_PLACES = 255  # of one term; the server keeps no more
LAST_PLACE = 16_383  # words further on share it


def lexeme(term: str) -> str:
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def vector(terms: Sequence[str], title: Iterable[str]) -> str:
    """A ``tsvector`` literal; what is a term of the title, too, weighs A."""
    heavy = frozenset(title)
    places: dict[str, list[int]] = {}
    for place, term in enumerate(terms, start=1):
        known = places.setdefault(term, [])
        if len(known) < MOST_PLACES:
            known.append(min(place, LAST_PLACE))
    return " ".join(
        f"{lexeme(term)}:{','.join(f'{place}A' if term in heavy else str(place) for place in known)}"
        for term, known in places.items()
    )


def query(any_of: Sequence[str], all_of: Sequence[str], phrases: Sequence[Sequence[str]]) -> str:
    """A ``tsquery`` literal: all of some and every phrase; any of the others, where nothing else is asked."""
    parts = [lexeme(term) for term in all_of]
    parts += [f"({' <-> '.join(map(lexeme, words))})" for words in phrases]
    if not all_of and any_of:
        parts.append(f"({' | '.join(map(lexeme, any_of))})")
    return " & ".join(parts)


def spelt(term: str) -> str:
    """The term in letters and digits: what its parser would cut at is written in hex."""
    if term.isascii() and term.isalnum():
        return term if not term.startswith("zz") else f"zz{term}"
    return "".join(mark if _is_plain(mark) else f"zz{ord(mark):x}zz" for mark in term)


def _is_plain(mark: str) -> bool:
    return mark.isalpha() or ("0" <= mark <= "9")


def line(terms: Iterable[str]) -> str:
    return " ".join(map(spelt, terms))
