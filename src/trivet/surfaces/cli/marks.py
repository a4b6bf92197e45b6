"""Which words of this text were asked for, and which part of it should be shown?

Best effort, for eyes only: the collection's own analyser says whether a word of the text shares a term with the
question; where the trigram leg took part, a word that is spelt alike counts too.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rich.cells import cell_len
from rich.text import Text

from trivet.analysis import Analyzer
from trivet.surfaces.cli.screen import clean
from trivet.trigrams import similarity

MARK = "bold #ffd75f"
ALIKE = 0.5  # pg_trgm similarity of two words from which one reads as a misspelling of the other
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\u0e01-\u0e4e"
_WORD = re.compile(rf"(?P<run>[{_UNSPACED}]+)|\d+(?:\.\d+)+|[^\W{_UNSPACED}]+")
_LAYOUT = re.compile(r"^(?:#{1,6} +|(?:```|~~~)\w*$)", re.MULTILINE)  # Markdown that only takes room in a snippet
_BREAKABLE = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+|\s+")

Span = tuple[int, int, str]  # start, end, the term it stands for


class Marker:
    """Finds the words of one question in texts."""

    def __init__(self, question: str, language: str = "en", alike: bool = False) -> None:
        self._analyzer = Analyzer(language)
        self._terms = frozenset(self._analyzer.query(question).terms)
        self._keywords = self._analyzer.keywords(question) if alike else []
        self._term_of = lru_cache(maxsize=4096)(self._term)

    def spans(self, text: str) -> list[Span]:
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
        """A script without spaces goes by its bigrams."""
        pairs = ((at, run[at : at + 2]) for at in range(len(run) - 1))
        return [(start + at, start + at + 2, pair) for at, pair in pairs if pair in self._terms]

    def snippet(self, text: str, cells: int, title: str = "") -> Text:
        """The part of a text, ``cells`` wide at most, that holds most of the question's words."""
        text = " ".join(clean(_LAYOUT.sub("", _without(text, title))).split())
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
    """At most ``most`` lines of ``width`` cells; unlike rich, a line ends between any two characters of Chinese."""
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
    """A Markdown file starts with its title, which is shown above already."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if title and rest.strip() and first.lstrip("# ").strip() == title.strip() else text


def _best_start(text: str, spans: list[Span], room: int) -> int:
    """Where the window with most different words begins, moved back to the start of its sentence if that is near."""
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
    blank = text.find(" ", last, start)  # a later window would not be full, and an earlier one would lose the end
    return blank + 1 if blank >= 0 else last


def _drawn_back(text: str, best: int, room: int) -> int:
    """By a quarter of the window at most: what was counted stays in it."""
    sentence = max(text.rfind(stop, max(0, best - room // 4), best) for stop in (". ", "! ", "? ", "。", ": "))
    if sentence >= 0:
        return sentence + (1 if text[sentence] == "。" else 2)
    return text.rfind(" ", 0, max(0, best - room // 8)) + 1 if " " in text[max(0, best - room // 4) : best] else best


def _cut(text: str) -> str:
    """End at a word, if one ends near."""
    at = text.rfind(" ")
    return text[:at].rstrip() if at > len(text) * 0.8 else text
