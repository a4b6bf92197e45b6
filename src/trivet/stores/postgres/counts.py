"""Do the counts every search relies on agree with the rows?"""

from __future__ import annotations

from dataclasses import dataclass

from trivet.stores.postgres.links import All
from trivet.stores.postgres.parts import Parts

_THERE = (
    "(SELECT count(*) FROM documents d WHERE d.cid = {cid}), (SELECT count(*) FROM passages p WHERE p.cid = {cid}), "
    "(SELECT count(*) FROM vectors v WHERE v.cid = {cid} AND v.mid = {mid}), "
    "(SELECT count(*) FROM documents d WHERE d.cid = {cid} AND NOT EXISTS "
    "(SELECT 1 FROM passages p WHERE p.cid = {cid} AND p.did = d.did))"
)
_SAID = "SELECT h.documents, h.passages, coalesce(m.vectors, 0), h.bm25, {there} FROM heads h "
_MODEL = "LEFT JOIN models m ON m.cid = h.cid AND m.mid = h.mid WHERE h.cid = {cid}"


@dataclass(frozen=True, slots=True)
class Counts:
    said: tuple[int, int, int]  # documents, passages, vectors of the model that answers
    there: tuple[int, int, int]
    unfindable: int  # documents without a passage
    bm25: bool

    def problems(self) -> list[str]:
        found = [
            f"{name}: the count says {said:,}, there are {there:,}"
            for name, said, there in zip(("documents", "passages", "vectors"), self.said, self.there, strict=True)
            if said != there
        ]
        if self.unfindable:
            found.append(f"documents: {self.unfindable:,} have no passage and cannot be found")
        return found


def counts(ask: All, parts: Parts) -> Counts:
    """Of a collection that is one part in one statement, which sees one moment: another process may be writing."""
    root = parts.root
    if not parts.spread:
        row = ask((_SAID + _MODEL).format(there=_THERE.format(cid=root, mid="h.mid"), cid=root), ())[0]
        return Counts(row[:3], row[4:7], row[7], row[3])
    row = ask((_SAID + _MODEL).format(there="coalesce(h.mid, 0)", cid=root), ())[0]
    rows = [ask(f"SELECT {_THERE.format(cid=part.cid, mid=int(row[4]))}", ())[0] for part in parts.every]
    documents, passages, vectors, unfindable = (sum(column) for column in zip(*rows, strict=True))
    return Counts(row[:3], (documents, passages, vectors), unfindable, row[3])
