"""On how many workers of a cluster does one collection lie?

On one, unless it was made to be *spread*: then its documents are dealt out, by their ids, to up to 64 parts. A part has
a number of its own in the column that a cluster distributes by, so each part lies on one worker, with everything that
hangs on its documents, and every statement to a part is one worker's. What there is once (settings, models, links,
verdicts) stays with the collection's own number. Documents and passages are numbered by the collection, and the number
says which part they are in. On a single server it is all the same, only slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

MOST = 64  # parts; also how far apart the numbers of a part are


@dataclass(frozen=True, slots=True)
class Part:
    """One part: the number it is kept under, and which of the collection's numbers are its own."""

    cid: int
    slot: int = 0
    step: int = 1

    def number(self, count: int) -> int:
        """Its document or passage with this count."""
        return count * self.step + self.slot


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts of a collection, in order."""

    root: int
    every: tuple[Part, ...]

    @classmethod
    def of(cls, root: int, spread: int) -> Parts:
        if not spread:
            return cls(root, (Part(root),))
        return cls(root, tuple(Part(root + 1 + slot, slot, MOST) for slot in range(spread)))

    def up_to(self, count: int) -> int:
        """The highest number that may have been given out when this many were."""
        return count if self.every[0].step == 1 else count * MOST + MOST - 1

    @property
    def cids(self) -> list[int]:
        return [part.cid for part in self.every]

    @property
    def spread(self) -> bool:
        return len(self.every) > 1 or self.every[0].cid != self.root

    def of_id(self, identifier: str) -> Part:
        """The part a document goes to, whoever asks and whenever."""
        if len(self.every) == 1:
            return self.every[0]
        mark = blake2b(identifier.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return self.every[int.from_bytes(mark, "big") % len(self.every)]

    def by_id(self, ids: Iterable[str]) -> Mapping[Part, list[str]]:
        found: dict[Part, list[str]] = {}
        for identifier in ids:
            found.setdefault(self.of_id(identifier), []).append(identifier)
        return found

    def by_number(self, numbers: Iterable[int]) -> Mapping[Part, list[int]]:
        """Numbers of documents or passages, by the part they are in; one that is in none is passed over."""
        if len(self.every) == 1 and self.every[0].step == 1:
            same = list(numbers)
            return {self.every[0]: same} if same else {}
        found: dict[Part, list[int]] = {}
        for number in numbers:
            slot = number % MOST
            if slot < len(self.every):
                found.setdefault(self.every[slot], []).append(number)
        return found
