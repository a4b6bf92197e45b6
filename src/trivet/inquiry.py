"""What is asked of the legs, and what did they say?

Both are filled in as the spine goes along, and handed on: what makes the page and what explains a hit read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trivet.types import Candidate, Degraded, Key, Query, Ranking, Stage

if TYPE_CHECKING:
    from trivet.legs.question import Leg, Question
    from trivet.stores.contract import Scope, State


@dataclass(frozen=True, slots=True)
class Asked:
    query: Query
    legs: list[Leg]
    questions: dict[str, Question]
    state: State
    degraded: tuple[Degraded, ...]
    scope: Scope | None = None
    exclude: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()


@dataclass(slots=True)
class Answers:
    rankings: list[Ranking] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    degraded: list[Degraded] = field(default_factory=list)
    pool: Sequence[Candidate] = ()
    stands_for: Mapping[Key, tuple[str, ...]] = field(default_factory=dict)
    found_as: dict[Key, Key] = field(default_factory=dict)  # what stands in another's place → what the legs found
    resolved: Callable[[Sequence[int]], Mapping[int, tuple[str, ...]]] = lambda dids: {}
    weights: Mapping[str, float] = field(default_factory=dict)  # this question's
    order: dict[str, int] = field(default_factory=dict)  # a higher row number was added later
    shown: dict[str, int] = field(default_factory=dict)  # document → the passage of it that its hit shows
    rewritten: bool = False  # has a document that was ranked another text by now?

    def best_passages(self, keys: set[Any]) -> dict[Any, int]:
        """The passage to show: that of the leg in which the document stands highest."""
        best: dict[Any, tuple[int, int]] = {}
        for ranking in self.rankings:
            places = ranking.places()
            for key in keys & places.keys():
                if key not in best or places[key] < best[key][0]:
                    best[key] = (places[key], ranking.passages[places[key]])
        return {key: pid for key, (_, pid) in best.items()}
