"""Comparison of the counts that are kept in ``heads`` and ``models`` with the rows."""

from __future__ import annotations

from dataclasses import dataclass

from trivet.stores.postgres.database import Select
from trivet.stores.postgres.shards import Shards

_ACTUAL = (
    "(SELECT count(*) FROM documents d WHERE d.cid = {cid}), (SELECT count(*) FROM passages p WHERE p.cid = {cid}), "
    "(SELECT count(*) FROM vectors v WHERE v.cid = {cid} AND v.mid = {mid}), "
    "(SELECT count(*) FROM documents d WHERE d.cid = {cid} AND NOT EXISTS "
    "(SELECT 1 FROM passages p WHERE p.cid = {cid} AND p.did = d.did))"
)
_KEPT = "SELECT h.documents, h.passages, coalesce(m.vectors, 0), h.bm25, {actual} FROM heads h "
_MODEL = "LEFT JOIN models m ON m.cid = h.cid AND m.mid = h.mid WHERE h.cid = {cid}"


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


def count(select: Select, shards: Shards) -> KeptAndActual:
    """Count in one statement where there is one shard: another process may write meanwhile."""
    root = shards.root
    if not shards.spread:
        row = select((_KEPT + _MODEL).format(actual=_ACTUAL.format(cid=root, mid="h.mid"), cid=root), ())[0]
        return KeptAndActual(row[:3], row[4:7], row[7], row[3])
    row = select((_KEPT + _MODEL).format(actual="coalesce(h.mid, 0)", cid=root), ())[0]
    rows = [select(f"SELECT {_ACTUAL.format(cid=shard.cid, mid=int(row[4]))}", ())[0] for shard in shards.all]
    documents, passages, vectors, without_passage = (sum(column) for column in zip(*rows, strict=True))
    return KeptAndActual(row[:3], (documents, passages, vectors), without_passage, row[3])
