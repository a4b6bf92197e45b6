"""How the documents of one collection are divided between shards, each of which is on one worker of a cluster.

A collection has one shard unless it was created with the option ``spread``: then up to 64, and the id of a document
decides its shard. Every table of a cluster is distributed by the column ``cid``, and every shard has a number of its
own there: a statement about one shard runs on one worker. What exists once (settings, models, links, feedback) has the
number of the collection. Documents and passages are numbered over the whole collection, and the number gives the shard.
On a single server it works the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trivet.stores.postgres.database import Select

MAX_SHARDS = 64  # also the distance between two numbers of one shard


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard: its number in the column ``cid``, and which numbers of documents and passages it has."""

    cid: int
    slot: int = 0
    step: int = 1

    def number(self, count: int) -> int:
        """Return the number of the document or passage that is the ``count``-th of the collection."""
        return count * self.step + self.slot


@dataclass(frozen=True, slots=True)
class Shards:
    """All shards of a collection, in order; ``root`` is the number of the collection."""

    root: int
    all: tuple[Shard, ...]

    @classmethod
    def of(cls, root: int, spread: int) -> Shards:
        """Return the shards of a collection that was created with this value of ``spread``."""
        if not spread:
            return cls(root, (Shard(root),))
        return cls(root, tuple(Shard(root + 1 + slot, slot, MAX_SHARDS) for slot in range(spread)))

    def highest(self, count: int) -> int:
        """Return the highest number that can be in use after this many were given out."""
        return count if self.step == 1 else count * MAX_SHARDS + MAX_SHARDS - 1

    @property
    def step(self) -> int:
        """The distance between two numbers of one shard."""
        return self.all[0].step

    @property
    def cids(self) -> list[int]:
        return [shard.cid for shard in self.all]

    @property
    def spread(self) -> bool:
        """Whether the collection was created with ``spread``."""
        return self.all[0].cid != self.root

    def of_id(self, id: str) -> Shard:
        """Return the shard of a document, always the same for one id."""
        if len(self.all) == 1:
            return self.all[0]
        digest = blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return self.all[int.from_bytes(digest, "big") % len(self.all)]

    def by_id(self, ids: Iterable[str]) -> Mapping[Shard, list[str]]:
        """Group ids of documents by shard."""
        found: dict[Shard, list[str]] = {}
        for id in ids:
            found.setdefault(self.of_id(id), []).append(id)
        return found

    def by_number(self, numbers: Iterable[int]) -> Mapping[Shard, list[int]]:
        """Group numbers of documents or passages by shard, without those that belong to none."""
        if self.step == 1:
            same = list(numbers)
            return {self.all[0]: same} if same else {}
        found: dict[Shard, list[int]] = {}
        for number in numbers:
            slot = number % MAX_SHARDS
            if slot < len(self.all):
                found.setdefault(self.all[slot], []).append(number)
        return found

    def rows_by_id(self, select: Select, sql: str, ids: Iterable[str]) -> list[tuple[Any, ...]]:
        """Run a statement that takes a shard and ids for every shard that has some of these."""
        return [row for shard, own in self.by_id(ids).items() for row in select(sql, (shard.cid, own))]

    def rows_by_number(self, select: Select, sql: str, numbers: Iterable[int]) -> list[tuple[Any, ...]]:
        """Run a statement that takes a shard and numbers for every shard that has some of these."""
        return [row for shard, own in self.by_number(numbers).items() for row in select(sql, (shard.cid, own))]
