"""The tables of one collection: in one piece, or distributed by document.

A collection in one piece is on one worker of a cluster: its tables are distributed by the column ``cid``, the number of
the collection. One that outgrows a worker has its documents, passages, vectors, fields and postings in a second set of
tables, which the cluster distributes by the column ``part``. There is a part for each shard of these tables, and the id
of a document decides its part. A statement names no part, or those that it needs; the cluster sends it to the workers
and merges what they return. What exists once (settings, models, links, the lexicon) stays in the first set.

The documents and passages of a distributed collection are numbered over the whole collection, and the last six bits of
a number tell the part. On a single server it works the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trivet.stores.postgres.nul_characters import stored

if TYPE_CHECKING:
    from trivet.stores.postgres.database import Select

MAX_PARTS = 64  # also the distance between two numbers of one part
SET_PREFIX = "distributed_"
#: The tables of which there are two.
BY_DOCUMENT = ("documents", "passages", "vectors", "fields", "postings")
PARTS = f"{SET_PREFIX}parts"
#: The place of a document in the list of parts, as SQL; ``slot_of`` in Python.
SLOT = "mod(('x' || substr(md5({id}), 1, 7))::bit(28)::integer, {parts})"


def index_name(tables: Tables, mid: int) -> str:
    """Return the name of the HNSW index of a model."""
    return f"meaning_{tables.root}_{mid}"


@dataclass(frozen=True, slots=True)
class Tables:
    """Where the rows of one collection are; ``parts`` are the values of the column ``part``, none for one piece."""

    root: int  # the number of the collection
    parts: tuple[int, ...] = ()

    @property
    def distributed(self) -> bool:
        """Whether the collection is distributed by document."""
        return bool(self.parts)

    @property
    def documents(self) -> str:
        return self.name_of("documents")

    @property
    def passages(self) -> str:
        return self.name_of("passages")

    @property
    def vectors(self) -> str:
        return self.name_of("vectors")

    @property
    def fields(self) -> str:
        return self.name_of("fields")

    @property
    def postings(self) -> str:
        return self.name_of("postings")

    def name_of(self, table: str) -> str:
        """Return the name of one of the tables of which there are two."""
        return f"{SET_PREFIX}{table}" if self.parts else table

    # --- conditions ---------------------------------------------------------------------------------------------------

    def of(self, alias: str = "") -> str:
        """Return the condition that a row is of this collection."""
        return f"{alias}.cid = {self.root}" if alias else f"cid = {self.root}"

    def beside(self, alias: str, other: str) -> str:
        """Return the condition that a row is of this collection, and on the shard of another one, as every join is."""
        return self.of(alias) + (f" AND {alias}.part = {other}.part" if self.parts else "")

    def having(self, column: str, numbers: Iterable[int]) -> tuple[str, list[Any]]:
        """Return the condition that a column has one of these numbers of documents or passages, and its values."""
        listed = list(numbers)
        slots = sorted({number % MAX_PARTS for number in listed}) if self.parts else ()
        return self._among(column, listed, slots)

    def having_id(self, column: str, ids: Iterable[str]) -> tuple[str, list[Any]]:
        """Return the condition that a column has one of these ids of documents, and its values."""
        listed = list(dict.fromkeys(ids))
        return self._among(column, listed, sorted({self.slot_of(id) for id in listed}))

    def _among(self, column: str, listed: Sequence[Any], slots: Sequence[int]) -> tuple[str, list[Any]]:
        alias, dot, _ = column.rpartition(".")
        if not self.parts:
            return f"{self.of(alias)} AND {column} = ANY(%s)", [listed]
        parts = [self.parts[slot] for slot in slots if slot < len(self.parts)]
        return f"{self.of(alias)} AND {alias}{dot}part = ANY(%s) AND {column} = ANY(%s)", [parts, listed]

    def of_its_part(self, column: str, numbers: Iterable[int]) -> tuple[str, list[Any]]:
        """Return the condition that a column has one of these numbers, for a statement that reads ``PARTS h`` too.

        Each shard of a distributed collection looks up the numbers of its part, and not those of all.
        """
        if not self.parts:
            return self.having(column, numbers)
        alias = column.partition(".")[0]
        lists: list[list[str]] = [[] for _ in self.parts]
        for number in numbers:
            if number % MAX_PARTS < len(self.parts):
                lists[number % MAX_PARTS].append(str(number))
        own = "string_to_array(split_part(%s, ';', array_position(%s::integer[], h.part)), ',')::bigint[]"
        asked = [part for part, listed in zip(self.parts, lists, strict=True) if listed]
        joined = f"{self.of('h')} AND h.part = ANY(%s) AND {self.of(alias)} AND {alias}.part = h.part"
        values = [asked, ";".join(map(",".join, lists)), list(self.parts)]
        return f"{joined} AND {column} = ANY({own})", values

    @property
    def and_parts(self) -> str:
        """What a statement with ``of_its_part`` reads beside its table."""
        return f", {PARTS} h" if self.parts else ""

    def select(
        self, select: Select, head: str, column: str, numbers: Iterable[int], tail: str = ""
    ) -> list[tuple[Any, ...]]:
        """Run ``head`` WHERE a column has one of these numbers ``tail``."""
        condition, values = self.having(column, numbers)
        return select(f"{head} WHERE {condition}{tail}", values)

    def select_ids(
        self, select: Select, head: str, column: str, ids: Iterable[str], tail: str = ""
    ) -> list[tuple[Any, ...]]:
        """Run ``head`` WHERE a column has one of these ids ``tail``."""
        condition, values = self.having_id(column, ids)
        return select(f"{head} WHERE {condition}{tail}", values)

    # --- numbers ------------------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """The distance between two numbers of one part."""
        return MAX_PARTS if self.parts else 1

    def slot_of(self, id: str) -> int:
        """Return the place of a document in ``parts``, always the same for one id."""
        if not self.parts:
            return 0
        return int(hashlib.md5(stored(id), usedforsecurity=False).hexdigest()[:7], 16) % len(self.parts)

    def number(self, count: int, slot: int) -> int:
        """Return the number of the ``count``-th document or passage of the collection."""
        return count * MAX_PARTS + slot if self.parts else count

    def highest(self, count: int) -> int:
        """Return the highest number that can be in use after this many were given out."""
        return self.number(count, MAX_PARTS - 1) if self.parts else count

    @property
    def key(self) -> str:
        """The first columns of every row, for INSERT and COPY."""
        return "cid, part" if self.parts else "cid"

    def key_of(self, number: int) -> tuple[int, ...]:
        """Return the values of ``key`` for a document or passage."""
        return (self.root, self.parts[number % MAX_PARTS]) if self.parts else (self.root,)
