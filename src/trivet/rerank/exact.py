"""Promotes hits that contain the query literally.

Fusion can rank a perfect lexical hit below similar ones; a small bonus corrects that. A hit gets it once, if the query
(or every quoted phrase of it) is in the title or the passage as whole words, or is the title or the id. A query of one
plain word gets no bonus, because too many texts contain it, unless it is quoted or looks like an identifier.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank.reranker import Reranker, Verdict, best_first, option, scaled
from trivet.text.tokens import comparable
from trivet.types import Hit, Query

_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»|「([^」]+)」')
_OPENING = " \t\r\n\"“”«»「」'‘’`¿¡"
_CLOSING = _OPENING + ".,;:!?…。！？、"
#: snake_case, camelCase, digits, names joined by punctuation (a.b, a/b, user@host). Not hyphens: plain words have them.
_IDENTIFIER = re.compile(r"[0-9_]|[a-z][A-Z]|\w(?:[./\\@#:+=$]+)\w|\+\+|\w#$|^[#@$.-]+\w")
#: Scripts written without spaces (Thai to Khmer, kana, Han). They have no word boundaries; about 2 characters a word.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_UNSPACED_LEAST = 4  # characters: about two words


@dataclass(frozen=True)
class Exact(Reranker):
    """Promotes hits that contain the query literally."""

    name: ClassVar[str] = "exact"

    bonus: float = option(0.1, "bonus of an exact match, as a part of the score", low=0.0, high=0.5)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        whole = _trimmed(comparable(query.text))
        finders = [_finder(phrase) for phrase in _phrases(query.text)]
        return best_first(self, (self._judged(hit, whole, finders) for hit in hits))

    def _judged(self, hit: Hit, whole: str, finders: Sequence[Callable[[str], bool]]) -> Verdict:
        reason = _match(hit, whole, finders)
        return hit, scaled(hit.score, 1.0 + self.bonus) if reason else hit.score, reason


def _match(hit: Hit, whole: str, finders: Sequence[Callable[[str], bool]]) -> str:
    """Return where the match is, in words; empty if there is none."""
    title = comparable(hit.document.title)
    if whole and whole == _trimmed(title):
        return "the query is the title"
    if whole and whole == comparable(hit.document.id):
        return "the query is the id"
    if finders and all(found(title) for found in finders):
        return "the query is in the title"
    if finders:
        text = comparable(hit.passage.text)
        if all(found(text) or found(title) for found in finders):
            return "the query is in the passage"
    return ""


def _phrases(text: str) -> list[str]:
    """Return what a hit must contain: each quoted phrase, else the whole query if it is specific enough."""
    quoted = [_trimmed(comparable("".join(groups))) for groups in _QUOTED.findall(text)]
    if any(quoted):
        return [phrase for phrase in quoted if phrase]
    bare = _trimmed(comparable(text))
    specific = " " in bare or _IDENTIFIER.search(_trimmed(text)) or len(_UNSPACED.findall(bare)) >= _UNSPACED_LEAST
    return [bare] if bare and specific else []


def _trimmed(text: str) -> str:
    """Strip quotes and final punctuation; keep a leading dot or dash, which is part of a name (.net, --force)."""
    return text.lstrip(_OPENING).rstrip(_CLOSING)


def _finder(phrase: str) -> Callable[[str], bool]:
    """Return a function that tells whether a folded text contains ``phrase`` as whole words."""
    before = "" if _UNSPACED.match(phrase[0]) else r"(?<!\w)"
    after = "" if _UNSPACED.match(phrase[-1]) else r"(?!\w)"
    pattern = re.compile(before + re.escape(phrase) + after)
    return lambda text: phrase in text and pattern.search(text) is not None  # most texts fail the fast first test
