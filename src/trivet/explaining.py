"""Why is this document an answer, or why is it not?

The question is answered as ever; then each leg is asked about this one document, however far down it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trivet.profile import MAX_K, SEEDED, Profile
from trivet.types import Explanation, Hit, LegVerdict, Ranking

if TYPE_CHECKING:
    from trivet.inquiry import Answers, Asked
    from trivet.legs.question import Leg
    from trivet.stores.contract import Shelf
    from trivet.types import Key, Results


class Explainer:
    """Documents of one collection, under a question that has been asked."""

    def __init__(
        self,
        shelf: Shelf,
        path: Callable[[Ranking, Key, Asked], tuple[str, ...]],
        profile: Profile,
        asked: Asked,
        answers: Answers,
    ) -> None:
        """``path`` says in words how a walk came to a document."""
        self._shelf, self._path, self._profile, self._asked, self._answers = shelf, path, profile, asked, answers

    def explain(self, query: str, id: str, did: int, results: Results) -> Explanation:
        hit = next((hit for hit in results.hits if hit.id == id), None)
        heir = next((hit for hit in results.hits if id in hit.stands_for), None)
        verdicts = tuple(self._verdict(leg, did) for leg in self._asked.legs)
        reason = self._reason(hit, heir, did, verdicts)
        return Explanation(query, id, hit.rank if hit else None, verdicts, str(self._profile), hit, reason)

    def _verdict(self, leg: Leg, did: int) -> LegVerdict:
        profile, weight = self._profile, self._answers.weights[leg.name]
        depth = profile.depth(leg.name, profile.k)
        ranking = next((ranking for ranking in self._answers.rankings if ranking.leg == leg.name), Ranking(leg.name))
        if did in ranking.keys:
            at = ranking.keys.index(did)
            path = " → ".join(self._path(ranking, did, self._asked)) if ranking.paths else ""
            found = ranking.scores[at]
            return LegVerdict(leg.name, weight, at + 1, found, depth, ranking.strength(found), path)
        if failed := next((item.reason for item in self._answers.degraded if item.part == leg.name), ""):
            return LegVerdict(leg.name, weight, None, None, depth, note=f"did not answer: {failed}")
        question = self._asked.questions[leg.name]
        score: float | None
        if leg.name in SEEDED:  # it goes through other documents: asked for all it reaches
            single = leg.rank(replace(question, gate=None), MAX_K)
            score = dict(zip(single.keys, single.scores, strict=True)).get(did)
        else:
            alone = self._shelf.only(did)  # the same leg, asked about this one document
            single = leg.rank(replace(question, scope=alone, gate=None, match="any"), 1)
            score = single.scores[0] if single.keys else None
        if score is None:
            nothing = "nothing leads to it" if leg.name in SEEDED else "does not match"
            return LegVerdict(leg.name, weight, None, None, depth, note=nothing)
        gate = profile.gates.get(leg.name)
        if question.scope is not None and did not in question.scope:
            note = "left out by the filter or the exclusion"
        else:
            note = f"below the gate {gate:g}" if gate is not None and score < gate else f"not among the best {depth}"
        return LegVerdict(leg.name, weight, None, score, depth, single.strength(score), note)

    def _reason(self, hit: Hit | None, heir: Hit | None, did: int, verdicts: Sequence[LegVerdict]) -> str:
        if hit is not None:
            place = f", in the place of {', '.join(map(repr, hit.stands_for))}" if hit.stands_for else ""
            return f"rank {hit.rank}{place}"
        if heir is not None:
            return f"superseded: {heir.id!r} is shown in its place, at rank {heir.rank}"
        questions = self._asked.questions.values()
        if any(question.scope is not None and did not in question.scope for question in questions):
            return "left out by the filter or the exclusion"
        if not any(verdict.rank for verdict in verdicts):
            return "no leg has it among its best"
        limit = f"the best {self._profile.k} above relevance {self._profile.min_relevance:g}"
        return f"found, but not among {limit} after fusion and reranking"
