"""Which passages are spelt like this?

pg_trgm's own ``word_similarity``, with its index. Of a large collection nearly every passage has three tenths of a long
question's trigrams, and each of those must be compared; so the alike are asked for first and the less alike only where
there are too few of them. The answer is the same, and where the last step takes too long there is one all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trivet.stores.contract import Found
from trivet.stores.postgres.database import Database, SlowError
from trivet.stores.postgres.parts import Part, Parts
from trivet.stores.postgres.ranks import best
from trivet.stores.postgres.scope import Scope

STEPS = (0.6, 0.45)  # similarities asked for before the threshold itself; 0.6 is pg_trgm's own default
STEP_SECONDS = 3.0  # a step that takes longer ends the search with what there is


@dataclass(frozen=True, slots=True)
class Spelling:
    database: Database
    parts: Parts

    def find_alike(
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
                return found, ("pg_trgm", f"none less alike than {reached:g}: that took over {STEP_SECONDS:g} s")
            reached = step
            if len(found) >= depth:
                break
        return found, ("pg_trgm",)

    def _at_least(self, threshold: float, keywords: str, depth: int, scope: Scope | None) -> list[Found]:
        asked = self.database.together(lambda part: self._of(part, threshold, keywords, depth, scope), self.parts.every)
        return best([row for rows in asked for row in rows], depth)

    def _of(self, part: Part, threshold: float, keywords: str, depth: int, scope: Scope | None) -> list[Found]:
        within, values = scope.within("p.did", part) if scope is not None else ("", [])
        local = (
            f"SET LOCAL pg_trgm.word_similarity_threshold TO {max(threshold, 0.01):.6f}; "
            f"SET LOCAL statement_timeout TO {int(min(STEP_SECONDS, self.database.address.statement_timeout) * 1000)}"
        )
        limit = depth + depth // 2 + 16
        while True:
            rows: list[tuple[Any, ...]] = self.database.all_within(
                local,
                "WITH alike AS MATERIALIZED (SELECT word_similarity(%s, p.body) AS score, p.pid, p.did "
                f"FROM passages p WHERE p.cid = {part.cid} AND %s <%% p.body{within}) "
                "SELECT score, pid, did FROM alike WHERE score >= %s ORDER BY score DESC, did, pid LIMIT %s",
                (keywords, keywords, *values, threshold, limit),
            )
            found = best(rows, depth)
            if len(found) >= depth or len(rows) < limit:
                return found
            limit *= 4
