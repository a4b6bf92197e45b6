"""Delimiters around recalled text, and the escaping of the text inside.

Recalled text was written by somebody, and it must stay data. Three things ensure that. The delimiters of a block carry
a token that no author of a document can know. Every recalled line is quoted, so none starts like a line of ours. And
text that a person or a model would read as a delimiter, or would not see at all, is made visible: ``neutral`` for
running text, ``label`` for a name in a field of its own, ``quote`` for a name within a sentence of ours.

Running text keeps what languages and emoji need: joiners, direction marks, combining marks, single variation
selectors. A name is told apart without them, so every invisible character in a name is escaped.
"""

from __future__ import annotations

import json
import re
import secrets
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Any

NAME = "recalled-data"
#: The prefix of every recalled line: no line of ours starts with it.
QUOTE = "> "

_SECRET = secrets.token_bytes(32)  # new in every process
# Letters only: a mix of digits and letters would take a different number of model tokens each time.
_LETTERS = str.maketrans("0123456789abcdef", "bcdfghjkmnpqrtvw")
_TOKEN_BYTES = 8  # 64 bits cannot be guessed within the life of a process


def delimiters(body: str) -> tuple[str, str]:
    """Return the opening and the closing delimiter of a block with this body.

    The token is a hash of the body, keyed with a secret of this process. An author cannot know it, and a document that
    repeats an earlier token changes the body and so the token. Unlike a random token it is the same for the same body,
    so an unchanged prompt is the same text, and a provider's prompt cache still works.
    """
    token = blake2b(body.encode("utf-8", "surrogatepass"), key=_SECRET, digest_size=_TOKEN_BYTES).hexdigest()
    token = token.translate(_LETTERS)
    return f"<{NAME} {token}>", f"</{NAME} {token}>"


def delimited(body: str) -> str:
    """Return the body between its delimiters. The caller has quoted the recalled text in it."""
    opening, closing = delimiters(body)
    return f"{opening}\n{body}\n{closing}"


def quoted(text: str) -> str:
    """Return the text as ``neutral`` returns it, each line after ``QUOTE``."""
    return "\n".join(f"{QUOTE}{line}" for line in neutral(text).split("\n")) if text else ""


# --- text that looks like a delimiter ---------------------------------------------------------------------------------

# Characters that look like "<" (confusables.txt of UTS #39, and the quotation marks and brackets of that shape).
_BRACKETS = (
    "<\u00ab\u02c2\u1438\u16b2\u2039\u226a\u226e\u227a\u22d6\u2329\u276c\u276e\u2770\u27e8\u27ea\u2991\u29fc\u3008\u300a"
    "\ufe64\uff1c\U0001d236"
)
_BRACKET = re.compile(rf"[{_BRACKETS}]|&(?:lt|#0*60|#x0*3c);?", re.IGNORECASE)
_SLASHES = "/\\\u2044\u2215\u2571\u29f8\u27cb\u3033"
#: The part of the name that makes a delimiter: "<recalled" alone already reads as one.
_KNOWN_BY = "recalled"
#: Replaces the bracket of a false delimiter: it reads the same, and no Unicode folding turns it into "<".
_HARMLESS = "("

# Characters that look like the letters of the name after NFKD and case folding (confusables.txt; only these letters
# matter). NFKD itself maps wide, mathematical, circled and accented letters.
_LOOK_ALIKES = {
    "r": "\u0280\u0433\u1d26\u2c85\uab47\uab48\u13a1\u13d2\ua4e3",
    "e": "\u03b5\u0435\u0454\u04bd\u1d07\u0259\u025b\u212e\uab32\u13ac\u2d39\ua4f0\u22ff",
    # "\u03c3" is what NFKD and case folding make of the lunate sigma, which is the look-alike.
    "c": "\u03c3\u0441\u1d04\u2ca5\u13df\ua4da\u2282",
    "a": "\u03b1\u0430\u0251\u1d00\u13aa\u15c5\ua4ee\u237a",
    "l": "i1|!\u0131\u01c0\u0269\u026a\u029f\u03b9\u0456\u04cf\u05c0\u05d5\u05df\u0627\u0661\u06f1\u07ca\u13de\u14aa"
    "\u16c1\u2223\u23fd\u2cd1\u2d4f\ua4e1\ua4f2",
    "d": "\u0501\u0257\u0256\u1d05\u13a0\u13e7\u15de\u15ea\u146f\ua4d2\ua4d3",
}
_LETTER = {ord(other): letter for letter, others in _LOOK_ALIKES.items() for other in others}
# Letters in boxes and the halves of flags have no decomposition.
for _first in (0x1F150, 0x1F170, 0x1F1E6):
    _LETTER.update({_first + at: chr(ord("a") + at) for at in range(26)})

# Invisible letters and marks that Unicode counts as printable.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def _is_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef" or "\u180b" <= char <= "\u180f"


def _is_invisible(char: str) -> bool:
    """Return whether a character is invisible, a control or a line break. Spaces of any width are visible."""
    if char.isprintable():
        return char in _BLANK or _is_selector(char)
    return unicodedata.category(char) != "Zs"


@lru_cache(maxsize=4096)
def _folded(char: str) -> str:
    """Return the plain letters a character is read as; nothing for an invisible one."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold()).translate(_LETTER)
    return "".join(
        part
        for part in plain
        if not part.isspace() and not _is_invisible(part) and unicodedata.category(part) not in ("Mn", "Me")
    )


def _reads_as_delimiter(text: str, at: int) -> bool:
    """Return whether the name follows here, after any slashes, however it is spaced, cased, spelt or hidden."""
    expected = iter(_KNOWN_BY)
    letter, started = next(expected), False
    for place in range(at, len(text)):
        for part in _folded(text[place]):
            if not started and part in _SLASHES:
                continue
            if part != letter:
                return False
            started = True
            letter = next(expected, "")
            if not letter:
                return True
    return False


def _brackets(text: str) -> Iterator[re.Match[str]]:
    """Yield the brackets that start a false delimiter. Linear: no match goes past the next bracket."""
    return (found for found in _BRACKET.finditer(text) if _reads_as_delimiter(text, found.end()))


# --- running text -----------------------------------------------------------------------------------------------------

# The three flags written in tag characters (England, Scotland, Wales). No others are in general use, and elsewhere tags
# are an alphabet that a model reads and a person does not see.
_FLAGS = "|".join(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
_SELECTOR = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
# Controls (escape sequences), bidirectional embeddings, overrides and isolates, deprecated and annotation characters,
# tags, and a variation selector after another one, which is not a selector but a byte of a hidden text.
_DECEPTIVE = re.compile(
    rf"({_FLAGS})|(?<={_SELECTOR}){_SELECTOR}"
    "|[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def neutral(text: str) -> str:
    """Return running text without false delimiters, hidden characters and changes of direction.

    A hidden character becomes its escape, so that a reader sees that it was there. Every line break becomes "\\n".
    """
    return "\n".join(_DECEPTIVE.sub(_escaped, _without_delimiters(text)).splitlines())


def _without_delimiters(text: str) -> str:
    parts, at = [], 0
    for found in _brackets(text):
        parts += [text[at : found.start()], _HARMLESS]
        at = found.end()
    return "".join([*parts, text[at:]])


def _escaped(found: re.Match[str]) -> str:
    return found[1] or _escape(found[0])


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"


# --- names ------------------------------------------------------------------------------------------------------------


def line(text: str) -> str:
    """Return running text on one line, such as a title or an error."""
    return " ".join(neutral(text).split())


def label(text: str) -> str:
    """Return a name for a field of its own: unchanged, unless part of it is invisible or reads as a delimiter."""
    return "".join(_escape(char) if _is_invisible(char) else char for char in _without_delimiters(text))


def quote(text: str) -> str:
    """Return a name for a sentence of ours: a JSON string that decodes to exactly the name."""
    brackets = {found.start() for found in _brackets(text)}
    if not brackets and not any(map(_is_invisible, text)):
        return json.dumps(text, ensure_ascii=False)
    return f'"{"".join(_json(char, at in brackets) for at, char in enumerate(text))}"'


def _json(char: str, escaped: bool) -> str:
    if escaped and char.isascii():
        return f"\\u{ord(char):04x}"
    return json.dumps(char, ensure_ascii=escaped or _is_invisible(char))[1:-1]


def as_json(value: Any) -> str:
    """Return plain data as JSON on one line, every text in it as ``quote`` returns it."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quote(str(name))}: {as_json(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(as_json, value)) + "]"
    return json.dumps(value)
