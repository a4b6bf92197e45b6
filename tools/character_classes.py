"""Write src/trivet/data/characters.txt: the classes of characters as the package ``tokenizers`` has them.

python tools/character_classes.py
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import normalizers, pre_tokenizers

FILE = Path(__file__).parent.parent / "src/trivet/data/characters.txt"
HEAD = "# Ranges of code points, in base 36: characters before the first, in it, between it and the next, in that ..."
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
SURROGATES = range(0xD800, 0xE000)


def classes() -> dict[str, list[int]]:
    """Ask the library about every character: what it is not separated from, and what is left of it."""
    words, bert = pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.BertPreTokenizer()
    normal = normalizers.BertNormalizer(lowercase=True)
    found: dict[str, list[int]] = {"letters": [], "numbers": [], "punctuation": [], "removed": []}
    for code in (code for code in range(0x110000) if code not in SURROGATES):
        character = chr(code)
        if len(words.pre_tokenize_str(f"a{character}a")) == 1:
            found["letters"].append(code)
        elif len(words.pre_tokenize_str(f"1{character}1")) == 1:
            found["numbers"].append(code)
        if len(bert.pre_tokenize_str(f"a{character}a")) == 3:
            found["punctuation"].append(code)
        if normal.normalize_str(f"a{character}a") == "aa":
            found["removed"].append(code)
    return found


def steps(codes: Iterable[int]) -> list[int]:
    """Return by how much to go on, from 0, to where each range begins and to where it has ended."""
    found, at = [], 0
    for code in codes:
        if found and code == at:
            found[-1] += 1
        else:
            found += [code - at, 1]
        at = code + 1
    return found


def base_36(number: int) -> str:
    return (base_36(number // 36) if number >= 36 else "") + DIGITS[number % 36]


if __name__ == "__main__":
    rows = [" ".join((name, *map(base_36, steps(codes)))) for name, codes in classes().items()]
    FILE.write_text("\n".join((HEAD, *rows)) + "\n", encoding="ascii")
