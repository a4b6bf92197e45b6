"""Texts on which a tokenizer is compared with the library: real ones, and characters and pieces put together."""

from __future__ import annotations

import json
import random
from importlib import resources

LONGEST = 2_000  # characters of a real text
#: (first, last) code points: ASCII, accents, combining marks, Greek to Arabic, Indic, signs, CJK, emoji, and all.
POOLS = (
    (0x00, 0x7F),
    (0x00, 0x24F),
    (0x300, 0x36F),
    (0x370, 0x6FF),
    (0x900, 0xFFF),
    (0x2000, 0x20FF),
    (0x3000, 0x30FF),
    (0x4E00, 0x4EFF),
    (0xFF00, 0xFFEF),
    (0x1F300, 0x1F6FF),
    (0x00, 0xD7FF),
    (0xE000, 0x10FFFF),
)
FRAGMENTS = (
    *("<s>", "<mask>", "</s>", " \n<mask> ", "[CLS]", "[MASK]", "'s", "don't", "I'LL", "'ré", "İ", "ΑΣ", "e\u0301"),
    *(" ", "  ", "\n\n", "\t", "\x1c", "\x85", "\u3000", "\u200d", "\x00", "\ufffd", "中文", "日本語", "한국어"),
    *("\U0001f469\u200d\U0001f467", "123,456.78", "½", "٣", "___", "...", "a" * 150, "z" * 3000, "naïve", "café"),
    *("ﬁ", "ß", "ﷺ", "\u037e", "\u1e9b\u0323"),
)


def texts(count: int) -> list[str]:
    """Return so many texts, the same ones in every run."""
    notes = resources.files("trivet.data").joinpath("field_notes.jsonl").read_text(encoding="utf-8").splitlines()
    found = [*FRAGMENTS, *(json.loads(line).get("text", "")[:LONGEST] for line in notes)]
    chance = random.Random(7)
    while len(found) < count:
        found.append("".join(_piece(chance) for _ in range(chance.randrange(1, 12))))
    return found


def _piece(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return chance.choice(FRAGMENTS)
    first, last = chance.choice(POOLS)
    return "".join(chr(chance.randint(first, last)) for _ in range(chance.randrange(1, 9)))
