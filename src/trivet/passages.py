"""Where do I cut a document?

Into passages that an embedding model can take whole: before a heading if there is one, else between paragraphs, else
between sentences, lines or words, and only as a last resort inside a word. A code fence stays in one piece unless it is
longer than a passage. Neighbours overlap by a sentence or two, so that what straddles a cut is found too; a section
under its own heading starts clean.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from trivet.errors import InputError
from trivet.types import Passage

#: Estimated tokens. A model takes 512: fewer than one real English passage in a hundred turns out longer than that.
PASSAGE_SIZE = 480

# What costs a model about one token. Fitted to the built-in model's vocabulary (byte pairs, 50k): on scientific, chat,
# documentation and code texts the count is .94 to 1.24 times the true one in nine texts of ten.
_TOKEN = re.compile(r"[^\S ]| (?= )|[A-Z]{1,4}[a-z]{0,5}|[a-z]{1,7}|\d{1,2}|[^\sA-Za-z0-9]")
# From here on (CJK, emoji) that vocabulary has no letters and spells in bytes: 2.2 tokens a character.
_SPELT = "\u2e80"
_SPELT_TOKENS = 2


class _Break(NamedTuple):
    """A kind of place to cut at, where a match ends; ``fill`` is how full a passage must be for it, 0 to 1."""

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
#: Characters a pattern looks ahead: a heading's marks and its blank.
_LOOK_AHEAD = 8

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)([^\n]*)\n?", re.MULTILINE)


def cut(text: str, *, size: int = PASSAGE_SIZE, overlap: int | None = None) -> list[Passage]:
    """The passages of ``text``, in order; together they cover it, and there is always one.

    ``size`` and ``overlap`` are estimated tokens; size 0 never cuts, overlap is a tenth of the size unless given.
    """
    overlap = size // 10 if overlap is None else overlap
    if size < 0:
        raise InputError(f"passage size {size} is negative; use 0 to never cut")
    if not 0 <= overlap <= size // 2:
        raise InputError(f"passage overlap {overlap} is not between 0 and half the passage size, {size // 2}")
    spans = _spans(text, size, overlap) if size else [(0, len(text))]
    return [Passage(ordinal, start, end, text[start:end]) for ordinal, (start, end) in enumerate(spans)]


def estimate_tokens(text: str) -> int:
    """About how many tokens a model makes of ``text``."""
    tokens: list[str] = _TOKEN.findall(text)
    if text.isascii():
        return len(tokens)
    return len(tokens) + (_SPELT_TOKENS - 1) * sum(token >= _SPELT for token in tokens)


def _spans(text: str, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    start, end, limit = 0, 0, _reach(text, 0, size)
    fences = _fences(text) if limit < len(text) else _Fences([], [])
    while limit < len(text):
        end = _end(text, start, end, limit, size, fences)
        yield start, end
        start = _overlapping(text, start, end, overlap / size, fences)
        limit = _reach(text, start, size)
        if limit - end < end - start:  # mostly a repetition of the passage before
            start, limit = end, _reach(text, end, size)
    yield start, limit


def _reach(text: str, start: int, size: int) -> int:
    """The furthest end of a passage of ``size`` tokens from ``start``."""
    tokens = _TOKEN.finditer(text, start)
    if text.isascii():
        beyond = next(islice(tokens, size, None), None)
        return beyond.start() if beyond else len(text)
    left = size
    for token in tokens:
        left -= _SPELT_TOKENS if token[0] >= _SPELT else 1
        if left < 0:
            return max(token.start(), start + 1)
    return len(text)


def _end(text: str, start: int, after: int, limit: int, size: int, fences: _Fences) -> int:
    """The best place to end a passage that starts at ``start`` and must end after ``after`` and by ``limit``."""
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
    """Where the next passage starts: at most ``share`` of the last one before its end."""
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
    """Where code fences open and close, in order."""

    openings: list[int]
    closings: list[int]

    def around(self, position: int) -> tuple[int, int]:
        """The fence that a cut at ``position`` would break, or (-1, -1)."""
        index = bisect_left(self.openings, position) - 1
        if index >= 0 and position < self.closings[index]:
            return self.openings[index], self.closings[index]
        return -1, -1

    def hold(self, position: int) -> bool:
        return self.around(position) != (-1, -1)

    def open_at(self, position: int) -> bool:
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
