"""Cuts a document into passages that fit an embedding model.

A cut is before a heading if possible, else between paragraphs, sentences, lines or words, and inside a word only if
there is no other place. A code fence is not cut unless it is longer than a passage. Neighbouring passages overlap by a
sentence or two, so that a statement at a cut is found; there is no overlap before a heading. A form feed begins a new
page: no passage is on two.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from trivet.errors import InputError
from trivet.types import Passage

#: Estimated tokens. Models take 512: less than one English passage in a hundred has more than that.
PASSAGE_SIZE = 480

# About one token of a model. Fitted to the vocabulary of the built-in model (byte pairs, 50k): on scientific, chat,
# documentation and code texts the count is 0.94 to 1.24 times the true one in nine texts of ten.
_TOKEN = re.compile(r"[^\S ]| (?= )|[A-Z]{1,4}[a-z]{0,5}|[a-z]{1,7}|\d{1,2}|[^\sA-Za-z0-9]")
# From here on (CJK, emoji) the vocabulary has no letters and uses bytes: 2.2 tokens per character.
_SPELT = "\u2e80"
_SPELT_TOKENS = 2
_ANY_SPELT = re.compile(f"[{_SPELT}-\U0010ffff]")


class _Break(NamedTuple):
    """A kind of place to cut at, the end of a match; ``fill`` is how full a passage must be there, 0 to 1."""

    pattern: re.Pattern[str]
    fill: float
    in_fence: bool = False


_HEADING = _Break(re.compile(r"\n(?=#{1,6}[ \t])"), fill=0.25)
_PARAGRAPH = _Break(re.compile(r"\n[ \t]*\n\s*"), fill=0.5)
_SENTENCE = _Break(re.compile(r"[.!?…]++[\"'”’)\]]*\s+|[。！？][”’」』）]*"), fill=0.5)
_LINE = _Break(re.compile(r"\n"), fill=0.25, in_fence=True)
_WORD = _Break(re.compile(r"\s+|[、，；]"), fill=0.1, in_fence=True)
#: Best first.
_BREAKS = (_HEADING, _PARAGRAPH, _SENTENCE, _LINE, _WORD)
#: Characters that a pattern looks ahead: the marks of a heading and a blank.
_LOOK_AHEAD = 8

_PAGE = re.compile(r"\f\s*+")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)([^\n]*)\n?", re.MULTILINE)


def cut(text: str, *, size: int = PASSAGE_SIZE, overlap: int | None = None) -> list[Passage]:
    """Return the passages of ``text`` in order. Together they cover it, and there is at least one.

    ``size`` and ``overlap`` are estimated tokens; a size of 0 never cuts, the default overlap is a tenth of the size.
    """
    overlap = size // 10 if overlap is None else overlap
    if size < 0:
        raise InputError(f"passage size {size} is negative; use 0 to never cut")
    if not 0 <= overlap <= size // 2:
        raise InputError(f"passage overlap {overlap} is not between 0 and half the passage size, {size // 2}")
    spans = _spans_of_pages(text, size, overlap) if size else [(0, len(text))]
    return [Passage(ordinal, start, end, text[start:end]) for ordinal, (start, end) in enumerate(spans)]


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a model makes of ``text``."""
    tokens: list[str] = _TOKEN.findall(text)
    if text.isascii():
        return len(tokens)
    return len(tokens) + (_SPELT_TOKENS - 1) * sum(token >= _SPELT for token in tokens)


def _spans_of_pages(text: str, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of each page, so that a hit names one page; a blank page belongs to the one before."""
    start = 0
    for match in _PAGE.finditer(text):
        if match.end() < len(text) and text[start : match.start()].strip():
            yield from ((start + first, start + end) for first, end in _spans(text[start : match.end()], size, overlap))
            start = match.end()
    rest = text[start:] if start else text
    yield from ((start + first, start + end) for first, end in _spans(rest, size, overlap))


def _spans(text: str, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    start, end, limit = 0, 0, _reach(text, 0, size)
    fences = _fences(text) if limit < len(text) else _Fences([], [])
    while limit < len(text):
        end = _end(text, start, end, limit, size, fences)
        yield start, end
        start = _overlapping(text, start, end, overlap / size, fences)
        limit = _reach(text, start, size)
        if limit - end < end - start:  # the rest is shorter than the overlap
            start, limit = end, _reach(text, end, size)
    yield start, limit


def _reach(text: str, start: int, size: int) -> int:
    """Return the last end of a passage of ``size`` tokens from ``start``."""
    beyond = _tokens(size).match(text, start)
    reach = beyond.end() if beyond else len(text)
    if text.isascii() or not _ANY_SPELT.search(text, start, reach):
        return reach
    left = size
    for token in _TOKEN.finditer(text, start):
        left -= _SPELT_TOKENS if token[0] >= _SPELT else 1
        if left < 0:
            return max(token.start(), start + 1)
    return len(text)


@cache
def _tokens(size: int) -> re.Pattern[str]:
    """Return the pattern of ``size`` tokens with one more after them: no object is made of each.

    The one character that belongs to no token is a single blank.
    """
    token = _TOKEN.pattern
    return re.compile(rf"(?>{token}| (?:{token})){{{size}}} ??(?={token})")


def _end(text: str, start: int, after: int, limit: int, size: int, fences: _Fences) -> int:
    """Return the best end of a passage from ``start``, after ``after`` and not after ``limit``."""
    opening, closing = fences.around(limit)
    if opening > after and _reach(text, opening, size) >= closing:
        limit = opening  # the fence fits into the next passage
        breaks: tuple[_Break, ...] = (_HEADING,)
    else:
        breaks = _BREAKS
    for kind in breaks:
        least = max(after + 1, start + int(kind.fill * (limit - start)))
        ends = [match.end() for match in kind.pattern.finditer(text, least - 1, limit + _LOOK_AHEAD)]
        for end in reversed(ends):
            if least <= end <= limit and (kind.in_fence or not fences.hold(end)):
                return end
    return limit


def _overlapping(text: str, start: int, end: int, share: float, fences: _Fences) -> int:
    """Return the start of the next passage: at most ``share`` of this one before its end."""
    earliest = end - int(share * (end - start))
    fence = fences.around(end)
    if earliest == end or fences.open_at(end) or _HEADING.pattern.match(text, end - 1):
        return end
    for kind in (_PARAGRAPH, _SENTENCE, _LINE, _WORD):
        for match in kind.pattern.finditer(text, earliest, end):
            if match.end() < end and fences.around(match.end()) == fence:
                return match.end()
    return earliest if fences.around(earliest) == fence else end


class _Fences(NamedTuple):
    """The positions where code fences open and close, in order."""

    openings: list[int]
    closings: list[int]

    def around(self, position: int) -> tuple[int, int]:
        """Return the start and end of the fence that a cut at ``position`` would break; (-1, -1) if there is none."""
        index = bisect_left(self.openings, position) - 1
        if index >= 0 and position < self.closings[index]:
            return self.openings[index], self.closings[index]
        return -1, -1

    def hold(self, position: int) -> bool:
        """Return whether the position is inside a fence."""
        return self.around(position) != (-1, -1)

    def open_at(self, position: int) -> bool:
        """Return whether a fence starts at the position."""
        index = bisect_left(self.openings, position)
        return index < len(self.openings) and self.openings[index] == position


def _fences(text: str) -> _Fences:
    found = _Fences([], [])
    marks = ""  # of the fence that is open
    for line in _FENCE.finditer(text):
        if not marks and not (line[1][0] == "`" and "`" in line[2]):
            marks = line[1]
            found.openings.append(line.start())
        elif marks and line[1].startswith(marks) and not line[2].strip():
            marks = ""
            found.closings.append(line.end())
    if marks:
        found.closings.append(len(text))
    return found
