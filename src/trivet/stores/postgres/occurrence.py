"""Whether a document that a query may see has a term, for the correction of its spelling.

Where a filter allows many documents, one of a few passages with the term is nearly always among them, and the postings
of the query, which are read anyway, name these passages. Where none of them may be seen, the server looks through all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trivet.stores.postgres import terms
from trivet.stores.postgres.database import Database
from trivet.stores.postgres.postings import Passages, ReadPostings
from trivet.stores.postgres.scope import Scope, among
from trivet.stores.postgres.tables import Tables

FEW_PASSAGES = 2_000  # with a term: they are read, and looked up in the scope, in some milliseconds
SAMPLE = 32  # passages of each term that are looked up first: a filter that allows half hides all of them never


@dataclass(slots=True)
class Occurrence:
    """The terms of one query, and where they occur."""

    database: Database
    tables: Tables
    scope: Scope | None
    read: ReadPostings
    together: Sequence[str]  # terms of the query whose postings are looked up at once, before the first answer
    reach: int  # the last passage in the postings
    last: int  # the highest number that a passage can have
    _looked_up: bool = False
    _seen: set[str] = field(default_factory=set)  # those of them that a passage in the postings has that may be seen

    def of(self, term: str, frequency: int) -> bool:
        """Tell whether a document in the scope has this term, which so many passages have."""
        scope = self.scope
        if scope is None or not frequency:
            return bool(frequency)
        if term in self.together and self.reach:
            self._look_up(scope)
            if term in self._seen or (scope.is_few and self.reach >= self.last):
                return term in self._seen
        having = f"FROM {self.tables.passages} p WHERE {self.tables.of('p')} AND p.words @@ %s::tsquery"
        query = terms.tsquery([term], (), ())
        if frequency <= FEW_PASSAGES:  # for one row the planner would look through all passages, not through the index
            dids = [did for (did,) in self.database.planned(f"SELECT p.did {having}", (query,))]
            scope.expect(dids)
            return any(did in scope for did in dids)
        within, values = scope.within("p.did")
        return bool(self.database.planned(f"SELECT 1 {having}{within} LIMIT 1", (query, *values)))

    def _look_up(self, scope: Scope) -> None:
        if not self._looked_up:
            self._looked_up = True
            lists = self.read.of(self.together)
            every = {term: lists.passages(term) for term in self.together}
            self._seen.update(self._of_few(every, scope) if scope.is_few else self._of_some(every, scope))

    def _of_few(self, every: Mapping[str, Passages], scope: Scope) -> Iterator[str]:
        pids, dids = scope.passages()
        for term, having in every.items():
            if any(int(did) in scope for did in dids[among(pids, having)]):
                yield term

    def _of_some(self, every: Mapping[str, Passages], scope: Scope) -> Iterator[str]:
        # over the whole length: passages of one time, or of one owner, lie together
        some = {term: pids[:: max(1, len(pids) // SAMPLE)][:SAMPLE].tolist() for term, pids in every.items()}
        pids = sorted({pid for sample in some.values() for pid in sample})
        head = f"SELECT pid, did FROM {self.tables.passages}"
        dids = dict(self.tables.select(self.database.all, head, "pid", pids)) if pids else {}
        scope.expect(dids.values())
        return (term for term, sample in some.items() if any(pid in dids and dids[pid] in scope for pid in sample))
