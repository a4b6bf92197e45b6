"""Comparison of the counts that are kept in ``heads`` and ``models`` with the rows."""

from __future__ import annotations

from dataclasses import dataclass

from trivet.stores.postgres.database import Select
from trivet.stores.postgres.tables import Tables


@dataclass(frozen=True, slots=True)
class KeptAndActual:
    """Documents, passages and vectors of the model that answers, as they are kept and as they were counted."""

    kept: tuple[int, int, int]
    actual: tuple[int, int, int]
    without_passage: int  # documents
    bm25: bool

    def problems(self) -> list[str]:
        """Return what differs."""
        found = [
            f"{name}: the count says {kept:,}, there are {actual:,}; run rebuild"
            for name, kept, actual in zip(("documents", "passages", "vectors"), self.kept, self.actual, strict=True)
            if kept != actual
        ]
        if self.without_passage:
            found.append(
                f"documents: {self.without_passage:,} have no passage and cannot be found; "
                "run rebuild, and add them again"
            )
        return found


def count(select: Select, tables: Tables) -> KeptAndActual:
    """Count in one statement: another process may write meanwhile."""
    bare = f"SELECT 1 FROM {tables.passages} p WHERE {tables.beside('p', 'd')} AND p.did = d.did"
    row = select(
        "SELECT h.documents, h.passages, coalesce(m.vectors, 0), h.bm25, "
        f"(SELECT count(*) FROM {tables.documents} d WHERE {tables.of('d')}), "
        f"(SELECT count(*) FROM {tables.passages} p WHERE {tables.of('p')}), "
        f"(SELECT count(*) FROM {tables.vectors} v WHERE {tables.of('v')} AND v.mid = "
        f"(SELECT h.mid FROM heads h WHERE {tables.of('h')})), "
        f"(SELECT count(*) FROM {tables.documents} d WHERE {tables.of('d')} AND NOT EXISTS ({bare})) "
        "FROM heads h LEFT JOIN models m ON m.cid = h.cid AND m.mid = h.mid "
        f"WHERE {tables.of('h')}",
        (),
    )[0]
    return KeptAndActual(row[:3], row[4:7], row[7], row[3])
