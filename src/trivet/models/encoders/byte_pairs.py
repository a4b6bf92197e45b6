"""The tokenizer of the built-in embedder: byte pair encoding of the bytes of each word, as GPT-2 and RoBERTa do it.

It gives exactly the tokens of the package ``tokenizers`` (a test compares them). Its tables are searched as they are in
the file: nothing is built when they are opened.
"""

from __future__ import annotations

import heapq
import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from trivet.models.encoders.tokenizer import WHITE, Encoding, character_classes

#: The words of a text in which every character is replaced by one of its class (``_Classes``).
_WORDS = re.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\t-\r A-Za-z0-9]+|[\t-\r ]+(?![^\t-\r ])|[\t-\r ]+"
)
KEPT_WORDS = 65_536  # words whose tokens are kept; a word then takes 0.1 µs instead of 10


class _Classes(dict[int, str]):
    """A table for ``str.translate``: ASCII stays, other characters become one that stands for their class."""

    def __missing__(self, code: int) -> str:
        classes = character_classes()
        if code < 128:
            stands = chr(code)
        elif code in classes["letters"]:
            stands = "a"
        elif code in classes["numbers"]:
            stands = "1"
        else:
            stands = "\t" if chr(code) in WHITE else "!"
        self[code] = stands
        return stands


class BytePairTokenizer:
    """A tokenizer of single texts; thread-safe. ``tables`` are those of ``pack``."""

    def __init__(self, tables: bytes, limit: int) -> None:
        self.limit = limit
        head, _, _ = tables.partition(b"\n")
        settings = json.loads(head)
        self._first, self._last, self._special = settings["first"], settings["last"], settings["special"]
        self._strip = frozenset(settings["strip"])
        self._special_token = re.compile("|".join(map(re.escape, sorted(self._special, key=len, reverse=True))))
        after, size = memoryview(tables)[len(head) + 1 :], 8 * settings["merges"]
        self._bytes = after[:1024].cast("I").tolist()
        self._pairs, self._merged = (after[at : at + size].cast("Q") for at in (1024, 1024 + size))
        self._known: dict[str, list[int]] = {}
        self._classes = _Classes()

    def encode(self, text: str, pair: str | None = None) -> Encoding:
        """Return the tokens of a text. Words after the limit are not looked at."""
        if pair is not None:
            raise ValueError("this tokenizer reads single texts")
        ids, room = [self._first], self.limit - 1
        for part in self._tokens(text):
            ids += part
            if len(ids) > room:
                break
        ids[room:] = [self._last]
        return Encoding(ids, [0] * len(ids))

    def _tokens(self, text: str) -> Iterator[list[int]]:
        """Yield the tokens of each word, and of each special token that is written out in the text."""
        start = 0
        for found in self._special_token.finditer(text):
            before = text[start : found.start()]
            yield from self._words(before.rstrip(WHITE) if found[0] in self._strip else before)
            yield [self._special[found[0]]]
            start = found.end()
        yield from self._words(text[start:])

    def _words(self, text: str) -> Iterator[list[int]]:
        known = self._known
        for found in _WORDS.finditer(text if text.isascii() else text.translate(self._classes)):
            word = text[found.start() : found.end()]
            ids = known.get(word)
            if ids is None:
                ids = self._merge([self._bytes[byte] for byte in word.encode()])
                if len(known) >= KEPT_WORDS:
                    known.clear()
                known[word] = ids
            yield ids

    def _merge(self, ids: list[int]) -> list[int]:
        """Merge pairs, the pair of the lowest rank first, of several the leftmost, until there is none."""
        count = len(ids)
        after, before = list(range(1, count + 1)), list(range(-1, count - 1))
        waiting: list[tuple[int, int, int, int]] = []  # (rank and merged id, place, left, right)

        def offer(left: int, right: int) -> None:
            merged = self._merge_of(ids[left], ids[right])
            if merged >= 0:
                heapq.heappush(waiting, (merged, left, ids[left], ids[right]))

        for place in range(count - 1):
            offer(place, place + 1)
        while waiting:
            merged, place, left, right = heapq.heappop(waiting)
            other = after[place]
            if ids[place] != left or other >= count or ids[other] != right:
                continue  # one of them was merged meanwhile
            ids[place], ids[other] = merged & 0xFFFFFFFF, -1
            after[place] = following = after[other]
            if following < count:
                before[following] = place
                offer(place, following)
            if before[place] >= 0:
                offer(before[place], place)
        return [id for id in ids if id >= 0]

    def _merge_of(self, left: int, right: int) -> int:
        """Return the rank of a pair in the upper half of a number and what it becomes in the lower; -1 for none."""
        pair = left << 32 | right
        at = bisect_left(self._pairs, pair)
        return self._merged[at] if at < len(self._pairs) and self._pairs[at] == pair else -1


def pack(tokenizer_json: str) -> bytes:
    """Return the tables of a tokenizer.json: a line of JSON, the ids of the 256 bytes (u32), the pairs (u64), sorted,
    and for each its rank and what it becomes."""
    read = json.loads(tokenizer_json)
    model, ends = read["model"], read["post_processor"]
    _check(read)
    vocabulary: dict[str, int] = model["vocab"]
    merges = [item.split(" ") if isinstance(item, str) else item for item in model["merges"]]
    rows = sorted(
        (vocabulary[left] << 32 | vocabulary[right], rank << 32 | vocabulary[left + right])
        for rank, (left, right) in enumerate(merges)
    )
    special = read["added_tokens"]
    settings = {
        "first": ends["cls"][1],
        "last": ends["sep"][1],
        "special": {token["content"]: token["id"] for token in special},
        "strip": [token["content"] for token in special if token["lstrip"]],
        "merges": len(rows),
    }
    letters = _letters()
    return b"".join(
        (
            json.dumps(settings).encode() + b"\n",
            b"".join(vocabulary[letters[byte]].to_bytes(4, "little") for byte in range(256)),
            b"".join(pair.to_bytes(8, "little") for pair, _ in rows),
            b"".join(merged.to_bytes(8, "little") for _, merged in rows),
        )
    )


def _check(read: dict[str, Any]) -> None:
    """Refuse a tokenizer that works otherwise."""
    model, words, ends = read["model"], read["pre_tokenizer"], read["post_processor"]
    usual = (
        model["type"] == "BPE"
        and not any(model.get(name) for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"))
        and not model.get("ignore_merges")
        and read["normalizer"] is None
        and words == {**words, "type": "ByteLevel", "add_prefix_space": False}
        and words.get("use_regex", True)
        and ends["type"] == "RobertaProcessing"
        and not any(token["rstrip"] or token["single_word"] or token["normalized"] for token in read["added_tokens"])
    )
    if not usual:
        raise ValueError("tokenizer.json: only byte pairs of whole bytes, as RoBERTa has them, are read here")


def _letters() -> dict[int, str]:
    """Return the letter that a tokenizer.json writes for each byte: its own, or one more where that cannot be seen."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in shown]
    return {byte: chr(byte) for byte in shown} | {byte: chr(256 + at) for at, byte in enumerate(others)}
