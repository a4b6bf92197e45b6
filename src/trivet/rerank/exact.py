"""Does the hit hold the very words that were asked for?

Fusing blends one perfect lexical hit with its near ties; a small bonus gives the perfect one its place back. It is
earned once per hit, by the query (or every quoted phrase of it) standing in title or passage as whole words, or by
being the title or the id. One plain word stands in too many texts to prove anything: a query counts from two words,
unless it is quoted or looks like an identifier.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from trivet.rerank.folding import fold
from trivet.rerank.reranker import Reranker, Verdict, best_first, option, scaled
from trivet.types import Hit, Query

_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|«([^»]+)»|「([^」]+)」')
_OPENING = " \t\r\n\"“”«»「」'‘’`¿¡"
_CLOSING = _OPENING + ".,;:!?…。！？、"
#: snake_case, camelCase, digits, names joined by punctuation (a.b, a/b, user@host); a hyphen joins plain words too.
_IDENTIFIER = re.compile(r"[0-9_]|[a-z][A-Z]|\w(?:[./\\@#:+=$]+)\w|\+\+|\w#$|^[#@$.-]+\w")
#: Scripts written without spaces (Thai to Khmer, kana, Han): no word edge to look for, about 2 characters to a word.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_UNSPACED_LEAST = 4


@dataclass(frozen=True)
class Exact(Reranker):
    name: ClassVar[str] = "exact"

    bonus: float = option(0.1, "what an exact match adds, as a part of the score", low=0.0, high=0.5)

    def rerank(self, hits: Sequence[Hit], query: Query) -> list[Hit]:
        whole = _trimmed(fold(query.text))
        finders = [_finder(phrase) for phrase in _phrases(query.text)]
        return best_first(self, (self._judged(hit, whole, finders) for hit in hits))

    def _judged(self, hit: Hit, whole: str, finders: Sequence[Callable[[str], bool]]) -> Verdict:
        reason = _match(hit, whole, finders)
        return hit, scaled(hit.score, 1.0 + self.bonus) if reason else hit.score, reason


def _match(hit: Hit, whole: str, finders: Sequence[Callable[[str], bool]]) -> str:
    """Where the match stands, or nothing."""
    title = fold(hit.document.title)
    if whole and whole == _trimmed(title):
        return "the query is the title"
    if whole and whole == fold(hit.document.id):
        return "the query is the id"
    if finders and all(found(title) for found in finders):
        return "the query stands in the title"
    if finders:
        text = fold(hit.passage.text)
        if all(found(text) or found(title) for found in finders):
            return "the query stands in the passage"
    return ""


def _phrases(text: str) -> list[str]:
    """What has to be found: each quoted phrase, else the query as a whole if it is telling enough."""
    quoted = [_trimmed(fold("".join(groups))) for groups in _QUOTED.findall(text)]
    if any(quoted):
        return [phrase for phrase in quoted if phrase]
    bare = _trimmed(fold(text))
    telling = " " in bare or _IDENTIFIER.search(_trimmed(text)) or len(_UNSPACED.findall(bare)) >= _UNSPACED_LEAST
    return [bare] if bare and telling else []


def _trimmed(text: str) -> str:
    """Without quotes and the end of a sentence; a leading dot or dash is part of a name (.net, --force)."""
    return text.lstrip(_OPENING).rstrip(_CLOSING)


def _finder(phrase: str) -> Callable[[str], bool]:
    """Whether ``phrase`` stands in a folded text as whole words; the plain search first, for most texts fail it."""
    before = "" if _UNSPACED.match(phrase[0]) else r"(?<!\w)"
    after = "" if _UNSPACED.match(phrase[-1]) else r"(?!\w)"
    pattern = re.compile(before + re.escape(phrase) + after)
    return lambda text: phrase in text and pattern.search(text) is not None
