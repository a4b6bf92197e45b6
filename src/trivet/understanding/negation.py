"""Which part of the question says what is not wanted?

"Moods of the sea but not storms", "except …", "(excluding …)", "außer …", "sauf …", a trailing ``-word``: the part
after such a cue (before it, in Japanese and Korean) is cut out. What is left is looked for; what was cut out is what a
hit is demoted for.

Only what is said to be left out counts. "How do I sort without recursion" is answered by texts that speak of recursion,
and "why does it not start" is about not starting: "without" counts where something is told or described ("an
introduction to … without …"), a bare "not" never.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_WORDS = 12  # of a part: what goes on longer is a sentence of its own


class Negation(NamedTuple):
    wanted: str
    avoided: tuple[str, ...] = ()


_BEFORE_CUE = (
    # English
    r"(?:but|and|,)\s+(?:do\s+not|don['’]t|please\s+don['’]t|not)\s+(?:mention|mentioning|includ\w+|discuss\w*|consider\w*|cover\w*"
    r"|talk\w*\s+about|about)",
    r"(?:but|and)\s+not(?:\s+(?:in|on|at|with|by|from|for|of|including))?",
    r"not\s+(?:including|about|counting|considering|mentioning)",
    r"exclud(?:e|es|ed|ing)|except(?:ing)?(?:\s+(?:for|that))?|leaving\s+(?:out|aside)|omitting",
    r"other\s+than|apart\s+from|aside\s+from|without\s+(?:mention\w*|includ\w+|discuss\w*|consider\w*|referenc\w*|talking\s+about)",
    # German, French, Spanish, Italian, Portuguese, Dutch
    r"aber\s+(?:nicht|kein\w*|ohne)|au(?:ß|ss)er|ausgenommen|abgesehen\s+von|nicht\s+aber",
    r"mais\s+(?:pas|sans)|sauf|hormis|except[ée]|à\s+l['’]exception\s+d(?:e|u|es)|en\s+excluant",
    r"pero\s+(?:no|sin)|excepto|salvo|excluyendo|con\s+excepci[óo]n\s+de",
    r"ma\s+(?:non|senza)|tranne|eccetto|escludendo",
    r"mas\s+(?:n[ãa]o|sem)|exceto|excluindo",
    r"maar\s+(?:niet|geen|zonder)|behalve|uitgezonderd",
)
#: "X without Y" where X is to be told: the text that tells it well is not about Y.
_TOLD_WITHOUT = re.compile(
    r"^\W*(?:please\s+)?(?:provide|give|write|introduce|describe|summari[sz]e|outline|list|tell|explain|discuss|explore|examine"
    r"|analy[sz]e|beschreibe?|nenne?|décris|décrivez|donne[zr]?|describe|enumera|explica)\b.*?\b(without|ohne|sans|sin)\s+",
    re.IGNORECASE | re.DOTALL,
)
_CUE = re.compile(rf"(?<!\w)(?:{'|'.join(_BEFORE_CUE)})\s*:?\s+", re.IGNORECASE)
#: Where the part ends: a clause, a bracket, another question.
_END = re.compile(
    r"[.,;:!?()\[\]\n…。，；？！、]|\s(?=(?:and|but|,)\s+(?:how|what|why|who|when|where|which|does|do|is|are|did)\b)"
    r"|\s[–—-]\s"
)
_CJK = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]"
_CJK_AFTER = re.compile(rf"(?:但不?包括|不包括|不包含|不含|排除|但不要|但不是|但没有)((?:{_CJK}|[\w ])+)")
_CJK_BEFORE = re.compile(
    rf"除了?((?:{_CJK}|\w)+?)(?:之外|以外|外)的?(?!.*[还也])"
    rf"|(?:^|[\s，、。,])((?:{_CJK}|\w)+?)(?:以外の?|を除いた?て?|を除く|ではなく|을?를?\s?제외(?:하고|한)?|\s?(?:빼고|말고))"
)
#: -word at the end, as search engines have it. Options of a command (-x, -xzf, find . -name) are words to be found.
_TRAILING = re.compile(
    r"(?:\s-(?=[^\W\d_]*[aeiouyäöüáéíóú])[^\W\d_]{3,}|\s-\"[^\"]+\"|\sNOT\s+(?:\w+|\"[^\"]+\"))+\s*$"
)
_COMMAND = re.compile(r"(?<!\S)(?:--?\w\b|--\w|[.~/|&$<>]|\S+/\S|\S+\.\w{1,4}(?!\S))")


def split_negation(text: str) -> Negation:
    """The question without what it does not want, and that. Nothing is cut out where nothing would be left."""
    avoided: list[str] = []
    wanted = _trailing(text, avoided)
    wanted = _cut(wanted, _CJK_AFTER, avoided)
    wanted = _cut(wanted, _CJK_BEFORE, avoided)
    at = 0
    while cue := _CUE.search(wanted, at):
        wanted, at = _without(wanted, cue.start(), cue.end(), avoided)
    if told := _TOLD_WITHOUT.search(wanted):
        wanted, _ = _without(wanted, told.start(1), told.end(), avoided)
    parts = tuple(part for part in (part.strip(" '\"“”") for part in avoided) if part)
    if not parts or not re.search(r"\w{2}|" + _CJK, wanted):
        return Negation(text)
    return Negation(" ".join(wanted.split()), parts)


def _without(text: str, cue: int, begin: int, avoided: list[str]) -> tuple[str, int]:
    """``text`` without its part from ``begin``, and where to go on; the part ends with its clause."""
    end = _END.search(text, begin)
    stop = end.start() if end else len(text)
    words = list(re.finditer(r"\S+", text[begin:stop]))
    if not words:
        return text, begin
    if len(words) > MAX_WORDS:
        stop = begin + words[MAX_WORDS - 1].end()
    avoided.append(text[begin:stop])
    return f"{text[:cue]} {text[stop:]}", cue


def _cut(text: str, pattern: re.Pattern[str], avoided: list[str]) -> str:
    for found in pattern.finditer(text):
        avoided.extend(part for part in found.groups() if part)
    return pattern.sub(" ", text) if avoided else text


def _trailing(text: str, avoided: list[str]) -> str:
    found = _TRAILING.search(text)
    if found is None or not text[: found.start()].strip() or _COMMAND.search(text[: found.start()]):
        return text
    avoided += [part.strip().strip('"') for part in re.split(r"\s-|\sNOT\s", found[0]) if part.strip()]
    return text[: found.start()]
