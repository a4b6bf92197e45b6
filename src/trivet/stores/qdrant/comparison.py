"""The difference between the points that Qdrant has and those that the truth asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trivet.stores.qdrant.points import Row
from trivet.stores.qdrant.tags import FIELD

CLOSE = 1e-3  # how far from 1 the cosine of a vector and its copy may be: a server may keep it quantised


@dataclass(frozen=True, slots=True)
class Difference:
    """What is wrong with some points; the kinds name their numbers, for a report."""

    wrong: list[Row] = field(default_factory=list)  # as they should be
    strays: list[int] = field(default_factory=list)
    kinds: Mapping[str, list[int]] = field(default_factory=dict)

    def __add__(self, other: Difference) -> Difference:
        kinds = {
            kind: [*self.kinds.get(kind, ()), *other.kinds.get(kind, ())] for kind in {**self.kinds, **other.kinds}
        }
        return Difference([], [*self.strays, *other.strays], kinds)

    def named(self) -> list[tuple[str, list[int]]]:
        """Return each kind with the numbers of its points."""
        return [*self.kinds.items(), ("without a passage", self.strays)]


def difference_of(rows: Sequence[Row], here: Mapping[int, Row], vectors: bool) -> Difference:
    """Compare the points there should be with those that are here, by vector too where these were read."""
    wrong: list[Row] = []
    kinds: dict[str, list[int]] = {}
    for row in rows:
        kind = _kind(row, here.get(row[0]), vectors)
        if kind:
            wrong.append(row)
            kinds.setdefault(kind, []).append(row[0])
    return Difference(wrong, [], kinds)


def _kind(row: Row, here: Row | None, vectors: bool) -> str:
    """What is wrong with a point; nothing where it is as it should be."""
    if here is None:
        return "missing"
    _, vector, payload = row
    if any(here[2].get(name) != payload[name] for name in ("did", "hash")):
        return "of another passage"
    if here[2] != payload:
        return "with other metadata" if here[2].get(FIELD) != payload[FIELD] else "with another tenant"
    return "with another vector" if vectors and not _alike(vector, here[1]) else ""


def _alike(one: Sequence[float], other: Sequence[float]) -> bool:
    import numpy as np

    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if first.shape != second.shape:
        return False
    lengths = float(np.linalg.norm(first) * np.linalg.norm(second))
    if lengths == 0.0:
        return not first.any() and not second.any()
    return bool(first @ second / lengths >= 1.0 - CLOSE)
