"""The difference between the points that Qdrant has and those that the records require."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trivet.stores.qdrant.points import Row
from trivet.stores.qdrant.tags import FIELD

CLOSE = 1e-3  # 1 minus the cosine of a vector and its copy: a server may quantise vectors


@dataclass(frozen=True, slots=True)
class Difference:
    """The points that are wrong; ``kinds`` has their numbers by what is wrong, for a report."""

    wrong: list[Row] = field(default_factory=list)  # as they should be
    strays: list[int] = field(default_factory=list)
    kinds: Mapping[str, list[int]] = field(default_factory=dict)

    def __add__(self, other: Difference) -> Difference:
        kinds = {
            kind: [*self.kinds.get(kind, ()), *other.kinds.get(kind, ())] for kind in {**self.kinds, **other.kinds}
        }
        return Difference([], [*self.strays, *other.strays], kinds)

    def by_kind(self) -> list[tuple[str, list[int]]]:
        """Return each kind with the numbers of its points."""
        return [*self.kinds.items(), ("without a passage", self.strays)]


def difference_of(rows: Sequence[Row], here: Mapping[int, Row], vectors: bool) -> Difference:
    """Compare the points that should exist with those that do; also their vectors if ``vectors``."""
    wrong: list[Row] = []
    kinds: dict[str, list[int]] = {}
    for row in rows:
        kind = _kind(row, here.get(row[0]), vectors)
        if kind:
            wrong.append(row)
            kinds.setdefault(kind, []).append(row[0])
    return Difference(wrong, [], kinds)


def _kind(row: Row, here: Row | None, vectors: bool) -> str:
    """Return what is wrong with a point, or an empty text."""
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
