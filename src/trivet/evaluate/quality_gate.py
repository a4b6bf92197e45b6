"""The quality gate: compare an evaluation with a stored one, and fail when it is worse by more than a margin.

The margin decides, not the p-value: a drop of 0.03 on 40 topics is no proof of a regression and still should stop a
merge. The significance test is part of the verdict, so that a reader can judge the drop.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from trivet.errors import InputError
from trivet.evaluate.evaluation import Evaluation
from trivet.evaluate.measures import MAIN, canonical
from trivet.evaluate.significance import Paired, paired

MARGIN = 0.01  # of the measure, such as nDCG@10


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the gate passed, and the test of the stored against the current evaluation."""

    dataset: str
    margin: float
    pair: Paired  # stored against current
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.pair.difference >= -self.margin - 1e-9  # stored values are rounded

    def to_dict(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "passed": self.passed,
            "margin": self.margin,
            **asdict(self.pair),
            "warnings": list(self.warnings),
        }


def gate(stored: Evaluation, current: Evaluation, measure: str = MAIN, margin: float = MARGIN) -> Verdict:
    """Return whether ``current`` is at most ``margin`` below ``stored``; raise where their topics differ."""
    if not 0.0 <= margin <= 1.0:
        raise InputError(f"margin: {margin!r} is out of range; allowed: 0 to 1")
    measure = canonical(measure)
    if stored.dataset != current.dataset:
        raise InputError(
            f"gate: the stored result is of {stored.dataset}, this one of {current.dataset}: the dataset was changed; "
            "store a new result with trivet gate --write"
        )
    warnings = []
    if stored.model != current.model:
        warnings.append(f"the stored result is of the model {stored.model}, this one of {current.model}")
    pair = paired(stored.of(measure), current.of(measure), names=("stored", "current"), measure=measure)
    return Verdict(current.dataset, margin, pair, tuple(warnings))
