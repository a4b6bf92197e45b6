"""The trigram leg on a PostgreSQL server: ``word_similarity`` of pg_trgm, with its index.

In a large collection nearly every passage has 30 % of the trigrams of a long query, and each of them must be compared.
So a search first asks for a high similarity, and for a lower one only where too few passages have it. The result is the
same, and where the last step takes too long there is still a result.
"""

from __future__ import annotations

from dataclasses import dataclass

from trivet.stores.contract import Found, State
from trivet.stores.postgres.database import Database, SlowError
from trivet.stores.postgres.scope import Scope
from trivet.stores.postgres.tables import Tables
from trivet.stores.ranking import best_passages

STEPS = (0.6, 0.45)  # similarities searched for before the threshold; 0.6 is the default of pg_trgm
STEP_SECONDS = 3.0  # a step that takes longer ends the search with what was found


@dataclass(frozen=True, slots=True)
class PostgresTrigrams:
    """The trigrams of one collection."""

    database: Database
    tables: Tables

    def is_current(self, state: State) -> bool:
        return True  # the server updates its indexes with every write

    def search(
        self, keywords: str, threshold: float, depth: int, scope: Scope | None, version: int
    ) -> tuple[list[Found], tuple[str, ...]]:
        found: list[Found] = []
        reached = 1.0
        for step in (*(step for step in STEPS if step > threshold), threshold):
            try:
                found = self._at_least(step, keywords, depth, scope)
            except SlowError:
                if reached == 1.0:
                    raise
                return found, (
                    "pg_trgm",
                    f"stopped at a similarity of {reached:g}: the next step took over {STEP_SECONDS:g} s",
                )
            reached = step
            if len(found) >= depth:
                break
        return found, ("pg_trgm",)

    def _at_least(self, threshold: float, keywords: str, depth: int, scope: Scope | None) -> list[Found]:
        within, values = scope.within("p.did") if scope is not None else ("", [])
        local = (
            f"SET LOCAL pg_trgm.word_similarity_threshold TO {max(threshold, 0.01):.6f}; "
            f"SET LOCAL statement_timeout TO {int(min(STEP_SECONDS, self.database.address.statement_timeout) * 1000)}"
        )
        sql = (
            f"SELECT word_similarity(%s, p.body) AS score, p.pid, p.did FROM {self.tables.passages} p "
            f"WHERE {self.tables.of('p')} AND %s <%% p.body{within} ORDER BY score DESC, p.did, p.pid LIMIT %s"
        )
        limit = depth + depth // 2 + 16
        while True:
            rows = self.database.all_within(local, sql, (keywords, keywords, *values, limit))
            found = best_passages([row for row in rows if row[0] >= threshold], depth)
            if len(found) >= depth or len(rows) < limit:
                return found
            limit *= 4
