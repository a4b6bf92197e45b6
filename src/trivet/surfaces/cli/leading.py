"""May one of them be called best?

Only where it is better than each of the others by the paired test, corrected over all pairs: which one leads was seen
on the same topics, so the pairs it does not take part in belong to the family as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trivet.evaluate import Evaluation, Paired


@dataclass(frozen=True, slots=True)
class Standing:
    measure: str
    first: str  # has the highest mean
    pairs: tuple[Paired, ...]  # every two, the one with the higher mean as challenger

    @property
    def against_others(self) -> list[Paired]:
        return [pair for pair in self.pairs if pair.challenger == self.first]

    @property
    def best(self) -> str | None:
        return self.first if all(_shown(pair) for pair in self.against_others) else None

    @property
    def words(self) -> str:
        from trivet.evaluate.significance import FEW

        lost = [f"{pair.baseline} (p {_p(pair)})" for pair in self.against_others if _shown(pair)]
        level = [f"{pair.baseline} (p {_p(pair)})" for pair in self.against_others if not _shown(pair)]
        family = f"; Holm-corrected over {len(self.pairs)} pairs" if len(self.pairs) > 1 else ""
        if self.best:
            return f"{self.best} is best on {self.measure}: better than {', '.join(lost)}{family}"
        if self.pairs[0].n < FEW:
            return f"{self.pairs[0].n} topics are too few to tell which is better"
        told = f"{self.first} has the highest mean: "
        told += f"better than {', '.join(lost)}, " if lost else ""
        return f"{told}no difference shown to {', '.join(level)}{family}"


def standing(evaluations: Sequence[Evaluation], measure: str) -> Standing | None:
    """Who leads, and is it more than luck? Nothing where there is only one."""
    from trivet.evaluate.significance import holm, paired

    if len(evaluations) < 2:
        return None
    ordered = sorted(evaluations, key=lambda item: -item.mean(measure))
    pairs = [
        paired(low.of(measure), high.of(measure), names=(low.name, high.name), measure=measure)
        for high, low in combinations(ordered, 2)
    ]
    corrected = holm([pair.p for pair in pairs])
    family = tuple(replace(pair, p_holm=value) for pair, value in zip(pairs, corrected, strict=True))
    return Standing(measure, ordered[0].name, family)


def _shown(pair: Paired) -> bool:
    from trivet.evaluate.significance import FEW

    return pair.significant and pair.n >= FEW


def _p(pair: Paired) -> str:
    from trivet.surfaces.cli import tables

    told = tables.p(pair.p_holm)
    return told if told.startswith("<") else f"= {told}"
