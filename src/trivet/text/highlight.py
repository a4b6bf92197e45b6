"""Highlights the words of a query in a text and cuts the snippet to show, for terminals.

A word is highlighted if the analyser of the collection gives it a term of the query, and, if the trigram leg took part,
if it is spelt like a word of the query.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rich.cells import cell_len
from rich.text import Text

from trivet.text.analysis import Analyzer
from trivet.text.printable import clean
from trivet.text.trigrams import similarity

MARK = "bold #ffd75f"
ALIKE = 0.5  # pg_trgm similarity from which a word is taken as a misspelling of another
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\u0e01-\u0e4e"
_WORD = re.compile(rf"(?P<run>[{_UNSPACED}]+)|\d+(?:\.\d+)+|[^\W{_UNSPACED}]+")
_LAYOUT = re.compile(r"^(?:#{1,6} +|(?:```|~~~)\w*$)", re.MULTILINE)  # Markdown that a snippet does not show
_BREAKABLE = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+|\s+")

Span = tuple[int, int, str]  # start, end, term


class Marker:
    """Finds the words of one query in texts."""

    def __init__(self, query: str, language: str = "en", alike: bool = False) -> None:
        self._analyzer = Analyzer(language)
        self._terms = frozenset(self._analyzer.query(query).terms)
        self._keywords = self._analyzer.keywords(query) if alike else []
        self._term_of = lru_cache(maxsize=4096)(self._term)

    def spans(self, text: str) -> list[Span]:
        """Return where the words of the query are in the text."""
        found: list[Span] = []
        for word in _WORD.finditer(text):
            if word["run"]:
                found += self._in_run(word["run"], word.start())
            elif term := self._term_of(word[0]):
                found.append((word.start(), word.end(), term))
        return found

    def _term(self, word: str) -> str:
        if shared := self._terms.intersection(self._analyzer.terms(word)):
            return min(shared)
        if len(word) < 4:
            return ""
        return next((key for key in self._keywords if similarity(key, word) >= ALIKE), "")

    def _in_run(self, run: str, start: int) -> list[Span]:
        """Return the bigrams of the query in a run of a script without spaces."""
        pairs = ((at, run[at : at + 2]) for at in range(len(run) - 1))
        return [(start + at, start + at + 2, pair) for at, pair in pairs if pair in self._terms]

    def snippet(self, text: str, cells: int, title: str = "") -> Text:
        """Return the part of a text, at most ``cells`` wide, that has the most words of the query."""
        text = clean(" ".join(_LAYOUT.sub("", _without(text, title)).split()))
        spans = self.spans(text)
        room = cells if len(text) == 0 else int(cells * len(text) / max(1, cell_len(text)))
        start = 0 if len(text) <= room else _best_start(text, spans, room)
        shown = text[start:] if len(text) - start <= room else _cut(text[start : start + room - 1]) + "…"
        lead = "…" if start else ""
        snippet = Text(lead + shown)
        for begin, end, _ in spans:
            if start <= begin and end <= start + len(shown):
                snippet.stylize(MARK, begin - start + len(lead), end - start + len(lead))
        return snippet


def wrapped(text: Text, width: int, most: int) -> Text:
    """Wrap to at most ``most`` lines of ``width`` cells; unlike rich, break between any two Chinese characters."""
    lines: list[Text] = []
    start = end = room = 0
    for piece in _BREAKABLE.finditer(text.plain):
        size = cell_len(piece[0])
        if room + size > width and not piece[0].isspace():
            lines.append(text[start:end])
            start, room = piece.start(), 0
        end, room = piece.end(), room + size
    lines.append(text[start:end])
    for line in lines:
        line.rstrip()
    if len(lines) > most:
        lines[most - 1].truncate(width - 1)
        lines[most - 1].append("…")
    return Text("\n", overflow="fold").join(lines[:most])


def _without(text: str, title: str) -> str:
    """Remove the title from the start of a Markdown text, because it is shown above."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if title and rest.strip() and first.lstrip("# ").strip() == title.strip() else text


def _best_start(text: str, spans: list[Span], room: int) -> int:
    """Return the start of the window with the most distinct words, at the start of a sentence if one is near."""
    best, most = 0, 0
    for begin, _, _ in spans:
        distinct = len({term for start, end, term in spans if begin <= start and end <= begin + room * 3 // 4})
        if distinct > most:
            best, most = begin, distinct
    if best < room * 3 // 4 and most == len({term for _, end, term in spans if end <= room}):
        return 0
    start, last = _drawn_back(text, best, room), len(text) - room
    if start <= last:
        return start
    blank = text.find(" ", last, start)  # a later window would not be full
    return blank + 1 if blank >= 0 else last


def _drawn_back(text: str, best: int, room: int) -> int:
    """Move the start back to that of a sentence or word, by at most a quarter of the window."""
    sentence = max(text.rfind(stop, max(0, best - room // 4), best) for stop in (". ", "! ", "? ", "。", ": "))
    if sentence >= 0:
        return sentence + (1 if text[sentence] == "。" else 2)
    return text.rfind(" ", 0, max(0, best - room // 8)) + 1 if " " in text[max(0, best - room // 4) : best] else best


def _cut(text: str) -> str:
    """Cut at the end of a word, if there is one near the end."""
    at = text.rfind(" ")
    return text[:at].rstrip() if at > len(text) * 0.8 else text
