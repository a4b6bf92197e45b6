"""The part of a long text that has most of a query's terms, for models that read only so much."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence

PIECE = 160  # characters from which a piece is cut at the next white space
_END = re.compile(r"[.!?。！？]+\s+|\n+")


def best_window(text: str, wanted: Collection[str], terms: Callable[[str], Sequence[str]], size: int) -> str:
    """Return at most about ``size`` characters of whole sentences with most of the wanted terms; the first of equals.

    A short text is returned whole. ``terms`` analyses a text as the index does.
    """
    if len(text) <= size:
        return text
    pieces = cut(text)
    found = [set(terms(piece)).intersection(wanted) for piece in pieces]
    best, chosen = -1, (0, 1)
    inside: Counter[str] = Counter()
    start = length = 0
    for end, piece in enumerate(pieces):
        inside.update(found[end])
        length += len(piece)
        while length > size and start < end:
            inside.subtract(found[start])
            length -= len(pieces[start])
            start += 1
        count = sum(times > 0 for times in inside.values())
        if count > best:
            best, chosen = count, (start, end + 1)
    return "".join(_filled(pieces, *chosen, size)).strip()


def cut(text: str) -> list[str]:
    """Cut a text after its sentences and lines, and long sentences at white space; joined, the pieces are the text."""
    ends = [match.end() for match in _END.finditer(text)]
    pieces: list[str] = []
    start = 0
    for end in [*ends, len(text)]:
        while end - start > 2 * PIECE:
            space = text.find(" ", start + PIECE, start + 2 * PIECE)
            stop = space + 1 if space >= 0 else start + PIECE
            pieces.append(text[start:stop])
            start = stop
        if end > start:
            pieces.append(text[start:end])
        start = end
    return pieces


def _filled(pieces: Sequence[str], start: int, end: int, size: int) -> Sequence[str]:
    """Extend the window by what follows and then by what precedes it, as far as it fits."""
    length = sum(map(len, pieces[start:end]))
    while end < len(pieces) and length + len(pieces[end]) <= size:
        length += len(pieces[end])
        end += 1
    while start and length + len(pieces[start - 1]) <= size:
        start -= 1
        length += len(pieces[start])
    return pieces[start:end]
