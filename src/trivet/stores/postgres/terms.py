"""Terms of our analyser in the form that PostgreSQL keeps whole.

The text parser of PostgreSQL would split ``c++``, ``1.2.3`` and ``src/types.py`` and does not know Chinese words. So
the ``tsvector`` of a passage is written as a literal, with our terms and their positions, and a query as a ``tsquery``
literal, in which nothing is read as syntax. An index of pg_textsearch takes text only and uses that parser: for it a
term is written with letters and digits alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

MAX_POSITIONS = 255  # of one term; PostgreSQL keeps no more
LAST_POSITION = 16_383  # PostgreSQL's highest position; terms after it share it


def lexeme(term: str) -> str:
    """Return the term as a quoted lexeme."""
    if "'" in term or "\\" in term:
        term = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{term}'"


def tsvector(terms: Sequence[str], title: Iterable[str]) -> str:
    """Return a ``tsvector`` literal; terms that are in the title too have weight A."""
    in_title = frozenset(title)
    positions: dict[str, list[str]] = {}
    numbers = itertools.chain(range(1, LAST_POSITION), itertools.repeat(LAST_POSITION))
    for position, term in zip(map(str, numbers), terms, strict=False):
        positions.setdefault(term, []).append(position)
    return " ".join(
        f"{lexeme(term)}:{'A,'.join(known[:MAX_POSITIONS])}A"
        if term in in_title
        else f"{lexeme(term)}:{','.join(known[:MAX_POSITIONS])}"
        for term, known in positions.items()
    )


def tsquery(any_of: Sequence[str], all_of: Sequence[str], phrases: Sequence[Sequence[str]]) -> str:
    """Return a ``tsquery`` literal: all of some terms and every phrase; without all_of, any of the others."""
    parts = [lexeme(term) for term in all_of]
    parts += [f"({' <-> '.join(map(lexeme, words))})" for words in phrases]
    if not all_of and any_of:
        parts.append(f"({' | '.join(map(lexeme, any_of))})")
    return " & ".join(parts)


def line(terms: Iterable[str]) -> str:
    """Return the terms as a text for pg_textsearch."""
    return " ".join(map(_alphanumeric, terms))


def _alphanumeric(term: str) -> str:
    """Write the term with letters and digits; other characters in hexadecimal."""
    if term.isascii() and term.isalnum():
        return term if not term.startswith("zz") else f"zz{term}"
    return "".join(mark if mark.isalpha() or "0" <= mark <= "9" else f"zz{ord(mark):x}zz" for mark in term)
