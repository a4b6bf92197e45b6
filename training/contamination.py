"""Finds passages that share 13 words in a row with an evaluation corpus."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

WORDS = 13
SEED = 15
#: Bytes of one text that are looked at, and of the joined texts that are hashed at once.
MOST_BYTES, BLOCK = 8_000, 2_000 * 8_001
Hashes = npt.NDArray[np.uint64]
_WORD = re.compile(r"\w+")
#: Which bytes belong to words: ASCII letters and digits, and every byte of other scripts.
_LETTERS = np.array([chr(byte).isalnum() or byte >= 128 for byte in range(256)])


class Windows:
    """Hashes of every window of ``WORDS`` words of the evaluation corpora."""

    def __init__(self, data: Path, kept: Path | None = None) -> None:
        """Read the corpora, or the hashes that ``kept`` has of the same files: to make them takes minutes."""
        rng = np.random.default_rng(SEED)
        self._factors = rng.integers(1, 2**63, WORDS, dtype=np.uint64) | np.uint64(1)
        # powers of an odd number and of its inverse modulo 2^64: the hash of a word does not depend on its place
        base = int(rng.integers(2**40, 2**62)) | 1
        self._powers, self._inverse = _powers(base), _powers(pow(base, -1, 2**64))
        self.queries = {plain(text) for file in sorted(data.glob("*/queries.jsonl.gz")) for text in _texts(file)}
        corpora = sorted(data.glob("*/corpus.jsonl.gz"))
        stamp = "".join(f"{file.parent.name} {file.stat().st_size} " for file in corpora)
        name = None if kept is None else kept / f"windows-{blake2b(stamp.encode(), digest_size=8).hexdigest()}.npy"
        if name is not None and name.exists():
            self._known = np.load(name)
            return
        found = []
        for file in corpora:
            texts = list(_texts(file))
            blocks = (texts[at : at + 2_000] for at in range(0, len(texts), 2_000))
            found += [np.unique(self._hashes(block)[0]) for block in blocks]
        self._known: Hashes = np.unique(np.concatenate(found))
        if name is not None:
            name.parent.mkdir(parents=True, exist_ok=True)
            np.save(name, self._known)

    def __len__(self) -> int:
        return len(self._known)

    def shared(self, texts: Sequence[str]) -> list[bool]:
        """Tell for each text whether it holds a window of the evaluation corpora."""
        found = np.zeros(len(texts), dtype=bool)
        for at in range(0, len(texts), 2_000):
            hashes, owners = self._hashes(texts[at : at + 2_000])
            places = np.searchsorted(self._known, hashes).clip(max=len(self._known) - 1)
            found[at + owners[self._known[places] == hashes]] = True
        return found.tolist()

    def _hashes(self, texts: Sequence[str]) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """Return a hash for every window inside one text, and the number of that text."""
        lowered = [text.lower().encode()[:MOST_BYTES] for text in texts]
        row = np.frombuffer(b" ".join(lowered) + b" ", dtype=np.uint8)
        ends = np.cumsum([len(text) + 1 for text in lowered])
        letter = _LETTERS[row]
        change = np.flatnonzero(np.diff(np.concatenate([[False], letter, [False]]).astype(np.int8)))
        starts, stops = change[::2], change[1::2]
        summed = np.concatenate([[np.uint64(0)], np.cumsum(row.astype(np.uint64) * self._powers[: len(row)])])
        hashes = _mixed((summed[stops] - summed[starts]) * self._inverse[starts])
        owners = np.searchsorted(ends, starts, side="right")
        count = max(len(hashes) - WORDS + 1, 0)
        total = np.zeros(count, dtype=np.uint64)
        for place, factor in enumerate(self._factors):
            total += hashes[place : place + count] * factor
        inside = owners[:count] == owners[WORDS - 1 :][:count]
        return total[inside], owners[:count][inside]


def _powers(base: int) -> Hashes:
    row = np.full(BLOCK, base, dtype=np.uint64)
    row[0] = 1
    return np.cumprod(row, dtype=np.uint64)


def _mixed(row: Hashes) -> Hashes:
    """Spread the bits of each number (the finaliser of splitmix64)."""
    row = (row ^ (row >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    row = (row ^ (row >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return row ^ (row >> np.uint64(31))


def plain(text: str) -> str:
    """Return the words of a text in lower case, joined by spaces."""
    return " ".join(_WORD.findall(text.lower()))


def _texts(file: Path) -> Iterator[str]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield f"{row.get('title') or ''} {row['text']}"
