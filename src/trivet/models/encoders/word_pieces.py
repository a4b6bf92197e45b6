"""The tokenizer of the built-in reader: WordPiece over normalised words, as BERT does it.

It gives exactly the tokens of the package ``tokenizers`` (a test compares them).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from trivet.models.encoders.tokenizer import WHITE, Encoding, character_classes

LONGEST = 100  # characters; a longer word is one unknown token
KEPT_WORDS = 65_536  # words whose tokens are kept
INSIDE = "##"  # begins a piece that does not begin a word
#: Ideographs, each of which is a word: the blocks that BERT names.
IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_NORMALIZER = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}


class _NormalForms(dict[int, str]):
    """A table for ``str.translate``: a character's normal form, with spaces around what is a word by itself."""

    def __missing__(self, code: int) -> str:
        form = self[code] = _normal_form(chr(code), character_classes())
        return form


def _normal_form(character: str, classes: Mapping[str, Any]) -> str:
    if ord(character) in classes["removed"]:
        return ""
    if character in WHITE:
        return " "
    parts = (part for part in unicodedata.normalize("NFD", character) if ord(part) not in classes["removed"])
    form = "".join(lower for part in parts for lower in part.lower())
    if any(first <= ord(character) <= last for first, last in IDEOGRAPHS):
        return f" {form} "
    return "".join(f" {part} " if ord(part) in classes["punctuation"] else part for part in form)


class WordPieceTokenizer:
    """A tokenizer of single texts and of pairs; thread-safe."""

    def __init__(self, tokenizer_json: str, limit: int) -> None:
        read = json.loads(tokenizer_json)
        model = read["model"]
        if (
            (model["type"], model["max_input_chars_per_word"]) != ("WordPiece", LONGEST)
            or (read["normalizer"], read["pre_tokenizer"]) != (_NORMALIZER, {"type": "BertPreTokenizer"})
            or model["continuing_subword_prefix"] != INSIDE
        ):
            raise ValueError("tokenizer.json: only lower-cased word pieces, as BERT has them, are read here")
        self.limit = limit
        self._pieces: dict[str, int] = model["vocab"]
        self._special = {token["content"]: token["id"] for token in read["added_tokens"]}
        self._special_token = re.compile("|".join(map(re.escape, self._special)))
        self._first, self._last = self._pieces["[CLS]"], self._pieces["[SEP]"]
        self._unknown = [self._pieces[model["unk_token"]]]
        self._forms = _NormalForms()
        self._known: dict[str, list[int]] = {}

    def encode(self, text: str, pair: str | None = None) -> Encoding:
        """Return the tokens of a text, or of two; of two that are too long together, the longer one is cut first."""
        if pair is None:
            ids = [*chain.from_iterable(self._tokens(text))][: self.limit - 2]
            return Encoding([self._first, *ids, self._last], [0] * (len(ids) + 2))
        left, right = ([*chain.from_iterable(self._tokens(part))] for part in (text, pair))
        first, second = shares(len(left), len(right), self.limit - 3)
        ids = [self._first, *left[:first], self._last, *right[:second], self._last]
        return Encoding(ids, [0] * (first + 2) + [1] * (second + 1))

    def _tokens(self, text: str) -> Iterator[list[int]]:
        """Yield the tokens of each word, and of each special token that is written out in the text."""
        start = 0
        for found in self._special_token.finditer(text):
            yield from self._words(text[start : found.start()])
            yield [self._special[found[0]]]
            start = found.end()
        yield from self._words(text[start:])

    def _words(self, text: str) -> Iterator[list[int]]:
        known = self._known
        for word in text.translate(self._forms).split(" "):
            if not word:
                continue
            ids = known.get(word)
            if ids is None:
                ids = self._pieces_of(word)
                if len(known) >= KEPT_WORDS:
                    known.clear()
                known[word] = ids
            yield ids

    def _pieces_of(self, word: str) -> list[int]:
        """Return the longest pieces, from left to right; the unknown token where the word has a part without one."""
        if len(word) > LONGEST:
            return self._unknown
        found, start, pieces = [], 0, self._pieces
        while start < len(word):
            before = INSIDE if start else ""
            stop = next((stop for stop in range(len(word), start, -1) if before + word[start:stop] in pieces), 0)
            if not stop:
                return self._unknown
            found.append(pieces[before + word[start:stop]])
            start = stop
        return found


def shares(first: int, second: int, limit: int) -> tuple[int, int]:
    """Return how many tokens of each of two texts are kept: the longer one is cut first, then both to a half."""
    if first + second <= limit:
        return first, second
    short, long = sorted((first, second))
    long = short if short > limit else max(short, limit - short)
    if short + long > limit:
        short, long = limit // 2, limit // 2 + limit % 2
    return (short, long) if first <= second else (long, short)
