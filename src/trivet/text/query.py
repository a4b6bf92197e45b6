"""Query understanding: fields, negation, identifiers and times in the text of a query.

``field:value`` becomes a filter, a negated part is cut out, identifiers are matched exactly, a time becomes a window
(``times.py``). Quoted parts are left to the analyser. A query is never a syntax error: what is not understood stays
text. Everything here is pure: what it needs to know is passed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from trivet.filters import BUILT_IN_FIELDS, TIME_FIELDS, And, Eq, Filter, Not, Or, Range
from trivet.types import Understood

#: ``plain`` takes the query as words only; ``full`` looks for all of the above.
UNDERSTANDINGS = ("plain", "full")


def understand(
    text: str,
    fields: Callable[[], Collection[str]],
    holds: Callable[[Filter], bool],
    at: datetime,
    language: str = "en",
    times: bool = True,
) -> Understood:
    """Return what the text of a query asks for.

    ``fields`` returns the metadata keys, ``holds`` whether any document passes a filter, ``at`` is the time of the
    query. Without ``times``, times in the text are not looked for.
    """
    named = [field for field in find_fields(text, fields) if holds(field.where)] if ":" in text else []
    left = without_fields(text, named)  # also joins runs of white space
    wanted, avoided = split_negation(left)
    window = None
    if times:
        from trivet.text.times import find_window

        window = find_window(wanted, at, language)
    wheres = tuple(field.where for field in named)
    return Understood(
        text=wanted or left or text,
        avoided=avoided,
        where=None if not wheres else wheres[0] if len(wheres) == 1 else And(wheres),
        fields=tuple(field.written for field in named),
        identifiers=find_identifiers(wanted),
        window=window,
    )


# --- fields ---------------------------------------------------------------------------------------------------------
#
# The field must be built in or a metadata key of the collection. Everything else stays text: ``12:30``, ``std::sort``,
# ``http://…``, ``note: buy milk``. If no document has the value, ``understand`` keeps the field as text.

_FIELD = re.compile(r'(?<!\S)(-?)([^\W\d][\w.-]*):(?:"([^"]+)"|([^\s:/"][^\s"]*))(?=\s|$)')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Field:
    """A field as it was written, and its filter."""

    written: str
    where: Filter


def find_fields(text: str, known: Callable[[], Collection[str]]) -> list[Field]:
    """Return the fields in a query; ``known`` returns the metadata keys and is called only if needed."""
    found: list[Field] = []
    keys: Collection[str] | None = None
    for match in _FIELD.finditer(text):
        minus, name, quoted, bare = match.groups()
        if name not in BUILT_IN_FIELDS:
            keys = known() if keys is None else keys
            if name.removeprefix("meta.") not in keys:
                continue
        value = quoted or bare.rstrip(",;?!")
        where = _moment(name, value) if name in TIME_FIELDS else _equal(name, value)
        if where is not None:
            found.append(Field(match[0], Not(where) if minus else where))
    return found


def without_fields(text: str, fields: Collection[Field]) -> str:
    """Return the text without these fields."""
    for field in fields:
        text = text.replace(field.written, " ", 1)
    return " ".join(text.split())


def _equal(name: str, value: str) -> Filter:
    """Return the filter for a value as text, and also as a number or boolean if it can be one."""
    readings: list[Filter] = [Eq(name, value)]
    if _NUMBER.fullmatch(value):
        readings.append(Eq(name, float(value)))
    elif value.lower() in _BOOLEANS:
        readings.append(Eq(name, _BOOLEANS[value.lower()]))
    if name == "importance":
        return readings[-1]
    return readings[0] if len(readings) == 1 else Or(tuple(readings))


def _moment(name: str, value: str) -> Filter | None:
    """Return the filter for a year, a month or a day; None for anything else."""
    match = _DATE.fullmatch(value)
    if match is None:
        return None
    year, month, day = (int(part) if part else None for part in match.groups())
    try:
        begin = datetime(year or 1, month or 1, day or 1, tzinfo=UTC)
        if day:
            return Range(name, gte=begin.timestamp(), lt=begin.timestamp() + 86_400)
        if month:
            end = begin.replace(year=begin.year + month // 12, month=month % 12 + 1)
        else:
            end = begin.replace(year=begin.year + 1)
    except ValueError:  # no such month, no such day
        return None
    return Range(name, gte=begin.timestamp(), lt=end.timestamp())


# --- negation -------------------------------------------------------------------------------------------------------
#
# "Moods of the sea but not storms", "except …", "(excluding …)", "außer …", "sauf …", a trailing ``-word``: the part
# after such a cue (before it, in Japanese and Korean) is cut out. The rest is searched, and a hit is demoted for what
# was cut out.
#
# Not every negation excludes something. "How do I sort without recursion" is answered by texts about recursion, and
# "why does it not start" is about not starting. So "without" counts only if the query asks for a description ("an
# introduction to … without …"), and "not" alone never counts.

MAX_WORDS = 12  # of an excluded part; a longer one is a new sentence


class Negation(NamedTuple):
    """The text to search for, and the excluded parts."""

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
#: "X without Y" if X is to be described.
_DESCRIBED_WITHOUT = re.compile(
    r"^\W*(?:please\s+)?(?:provide|give|write|introduce|describe|summari[sz]e|outline|list|tell|explain|discuss|explore|examine"
    r"|analy[sz]e|beschreibe?|nenne?|décris|décrivez|donne[zr]?|describe|enumera|explica)\b.*?\b(without|ohne|sans|sin)\s+",
    re.IGNORECASE | re.DOTALL,
)
_CUE = re.compile(rf"(?<!\w)(?:{'|'.join(_BEFORE_CUE)})\s*:?\s+", re.IGNORECASE)
#: The end of an excluded part: a clause, a bracket, another question.
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
#: -word at the end, as in search engines. Options of a command (-x, -xzf, find . -name) are not excluded.
_TRAILING = re.compile(
    r"(?:\s-(?=[^\W\d_]*[aeiouyäöüáéíóú])[^\W\d_]{3,}|\s-\"[^\"]+\"|\sNOT\s+(?:\w+|\"[^\"]+\"))+\s*$"
)
_COMMAND = re.compile(r"(?<!\S)(?:--?\w\b|--\w|[.~/|&$<>]|\S+/\S|\S+\.\w{1,4}(?!\S))")


def split_negation(text: str) -> Negation:
    """Return the query without its excluded parts, and those parts. If nothing would be left, nothing is cut out."""
    avoided: list[str] = []
    wanted = _trailing(text, avoided)
    wanted = _cut(wanted, _CJK_AFTER, avoided)
    wanted = _cut(wanted, _CJK_BEFORE, avoided)
    at = 0
    while cue := _CUE.search(wanted, at):
        wanted, at = _without(wanted, cue.start(), cue.end(), avoided)
    if described := _DESCRIBED_WITHOUT.search(wanted):
        wanted, _ = _without(wanted, described.start(1), described.end(), avoided)
    parts = tuple(part for part in (part.strip(" '\"“”") for part in avoided) if part)
    if not parts or not re.search(r"\w{2}|" + _CJK, wanted):
        return Negation(text)
    return Negation(" ".join(wanted.split()), parts)


def _without(text: str, cue: int, begin: int, avoided: list[str]) -> tuple[str, int]:
    """Return ``text`` without the part from ``begin`` to the end of its clause, and where to go on."""
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


# --- identifiers ----------------------------------------------------------------------------------------------------
#
# Error codes, CVE numbers, UUIDs, hashes, versions, paths, constants, names in code. The analyser indexes each as a
# whole and by its parts; for an identifier in a query only the whole counts. Plain words, years and counts are not
# identifiers.

_IDENTIFIER = re.compile(
    r"""(?<![\w/.@-])(?:
      [0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}       # UUID
    | CVE-\d{4}-\d{4,}                                            # CVE-2021-44228
    | [A-Z]{1,10}-?\d{3,}[A-Z0-9]*                                # E1234, ORA-00942, ABC-123; not CD34, IL-10
    | 0x[0-9a-fA-F]{2,}                                           # 0x80070005
    | (?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}                   # a commit
    | [A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+                      # ERR_FOO_BAR, snake_case
    | v?\d+\.\d+(?:\.\d+)+(?:[-+.][0-9A-Za-z.]+)?                 # 1.2.3, v2.0.1-rc1
    | \.{0,2}/?(?:[\w.@-]+/)+[\w.@-]+\.\w{1,5}                    # src/types.py
    | [A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w+)+(?:\(\))?             # os.path.join, std::sort
    | [a-z]{2,}(?:[A-Z][a-z]+)+                                   # getUserName; not mRNA
    )(?![\w@-])""",
    re.VERBOSE,
)
_YEAR_OR_DAY = re.compile(r"[A-Z]{0,2}(?:19|20)\d\d")
_SENTENCE = re.compile(r"[a-z]{2,}\.[A-Z][a-z]+")  # two sentences without a blank: "the end.Then"
MAX_IDENTIFIERS = 16


def find_identifiers(text: str) -> tuple[str, ...]:
    """Return the identifiers in the text, in order, each once."""
    found = dict.fromkeys(match[0].removesuffix("()") for match in _IDENTIFIER.finditer(text))
    names = [name for name in found if not _YEAR_OR_DAY.fullmatch(name) and not _SENTENCE.fullmatch(name)]
    return tuple(names[:MAX_IDENTIFIERS])
