"""Tuning: choose settings on judged topics, and keep the start unless the gain holds on other topics.

Every candidate is scored once on every topic; the rest is arithmetic on that table. A candidate is valued by its mean
gain over the start profile minus ``CAUTION`` standard errors of that gain. This regularises towards the start: a
profile that ranks much like the start has gains that hardly vary and is accepted from few topics, a distant one needs a
larger gain, and the value of the start itself is 0.

The best of many candidates is always better than the start on the training topics. So each candidate is chosen without
the topics it is scored on: by the other folds of a cross-validation, repeated ``REPEATS`` times, or before a hold-out
is used. The start is kept unless a paired randomisation test shows that gain (``LEVEL``).

The constants were chosen by drawing 30, 100 and 300 topics from public test collections many times, tuning on them and
scoring on the rest. With the best of all candidates as the start, so that any change is a mistake, 3 of 100 draws of 30
topics changed it, 1 of 100 draws of 100 and none of 300 (without the test: 54, 31 and 11), over twelve sets. From RRF
with k = 60, a start 0.05 nDCG@10 below the best, 33, 65 and 95 of 100 draws changed it, all but one for the better.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, TypeVar

from trivet.errors import InputError, StoreError
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.lab import Lab
from trivet.evaluate.measures import MAIN, canonical, score
from trivet.evaluate.significance import FEW, paired
from trivet.evaluate.space import Space
from trivet.evaluate.tuning_result import LEVEL, REPEATS, Tuned, left_out, one_sided, reason, too_few, unanswered
from trivet.profile import Profile
from trivet.types import StepProgress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Qrels = Mapping[str, Mapping[str, int]]
Reading = TypeVar("Reading")

FOLDS = 5
#: Standard errors subtracted from a gain when choosing. Compared with 0, 0.5, a penalty on the distance of the settings
#: and the one-standard-error rule, 1 did the least harm of those that lose no gain (seven sets).
CAUTION = 1.0
NAME = "tuned"


def tune(
    lab: Lab,
    start: Profile,
    *,
    space: Space | None = None,
    measure: str = MAIN,
    folds: int = FOLDS,
    holdout: Dataset | None = None,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Tuned:
    """Return the best profile of ``space`` for the lab's topics, or ``start`` where its gain does not hold on others.

    The gain is tested by cross-validation over ``folds``, or on ``holdout``: other topics about the same documents.
    With fewer than ``FEW`` test topics the start is kept.
    """
    trial = _Trial.of(lab, start, measure, folds, holdout, seed)
    candidates = (space or Space.around(start, _has_meaning(lab, start))).candidates(start)
    table = trial.scores([candidate.profile for candidate in candidates], trial.topics, lab.dataset, progress)
    proposed = candidates[choose(table - table[:, :1])]
    if holdout is not None:
        chosen: tuple[Mapping[str, Any], ...] = (proposed.changes,)
        both = trial.scores([start, proposed.profile], trial.tested, holdout)
        before, after = both[:, 0], both[:, 1]
    else:
        before = table[:, 0]
        after, picked = _cross_validate(table, held_out(trial.topics, folds, seed))
        chosen = tuple(candidates[place].changes for place in picked)
    return trial.result(proposed.profile, before, after, chosen, len(candidates))


def prove(
    lab: Lab,
    start: Profile,
    read: Callable[[Sequence[Topic], Qrels, StepProgress | None], Reading],
    fitted: Callable[[Reading, Sequence[Topic]], tuple[Profile, Mapping[str, float]]],
    *,
    measure: str = MAIN,
    folds: int = FOLDS,
    holdout: Dataset | None = None,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Tuned:
    """Return the profile that ``fitted`` makes of the lab's topics, or ``start`` where its gain does not hold.

    ``read`` is called once for the training data, ``fitted`` for every fold without the topics of that fold; it returns
    the profile and the weights in it.
    """
    trial = _Trial.of(lab, start, measure, folds, holdout, seed)
    reading = read(trial.topics, lab.dataset.qrels, progress)
    proposed, weights = fitted(reading, trial.topics)
    before = trial.scores([start], trial.tested, holdout or lab.dataset)[:, 0]
    if holdout is not None:
        after, chosen = trial.scores([proposed], trial.tested, holdout)[:, 0], [weights]
    else:
        after, chosen = 0.0 * before, []
        for held in held_out(trial.topics, folds, seed):
            made, weights = fitted(reading, [topic for topic, out in zip(trial.topics, held, strict=True) if not out])
            tested = [topic for topic, out in zip(trial.topics, held, strict=True) if out]
            after[held] += trial.scores([made], tested, lab.dataset)[:, 0] / REPEATS
            chosen.append(weights)
            if progress:
                progress("prove", len(chosen), folds * REPEATS)
    return trial.result(proposed, before, after, chosen, len(weights), "weights")


@dataclass(frozen=True, slots=True)
class _Trial:
    """What stays the same during a tuning: the start, the topics to learn from and those to test on."""

    lab: Lab
    start: Profile
    measure: str
    folds: int
    holdout: Dataset | None
    seed: int
    topics: Sequence[Topic]
    tested: Sequence[Topic]

    @classmethod
    def of(cls, lab: Lab, start: Profile, measure: str, folds: int, holdout: Dataset | None, seed: int) -> _Trial:
        """Check the options before anything is run."""
        measure = canonical(measure)
        if seed < 0:
            raise InputError(f"seed is {seed}; give 0 or more")
        topics = sorted(lab.dataset.topics, key=lambda topic: topic.id)
        if holdout is None:
            deal(topics, folds, seed)
        tested = topics if holdout is None else _unseen(lab.dataset, holdout)
        return cls(lab, start, measure, folds, holdout, seed, topics, tested)

    def scores(
        self,
        profiles: Sequence[Profile],
        topics: Sequence[Topic],
        dataset: Dataset,
        progress: StepProgress | None = None,
    ) -> Floats:
        """Return the scores: topics × profiles."""
        import numpy as np

        table = np.zeros((len(topics), len(profiles)))
        for column, profile in enumerate(profiles):
            values = score(self.lab.rerun(profile, topics), dataset.qrels, (self.measure,))[self.measure]
            table[:, column] = [values[topic.id] for topic in topics]
            if progress:
                progress("tune", column + 1, len(profiles))
        return table

    def result(
        self,
        proposed: Profile,
        before: Floats,
        after: Floats,
        chosen: Sequence[Mapping[str, Any]],
        tried: int,
        what: str = "settings",
    ) -> Tuned:
        """Return the result: changed only where the gain on test topics is significant."""
        start, lab = self.start, self.lab
        ids = [topic.id for topic in self.tested]
        scores = [dict(zip(ids, map(float, values), strict=True)) for values in (before, after)]
        pair = paired(*scores, names=(start.name, NAME), measure=self.measure, seed=self.seed)
        better = proposed is not start and pair.n >= FEW and one_sided(pair) < LEVEL
        topics = lab.dataset.topics
        return Tuned(
            profile=proposed.with_changes({"name": NAME}) if better else start,
            changed=better,
            start=start,
            proposed=proposed,
            measure=self.measure,
            dataset=lab.dataset.identity,
            holdout=self.holdout.identity if self.holdout is not None else None,
            model=lab.model,
            topics=len(topics),
            folds=1 if self.holdout is not None else self.folds,
            pair=pair,
            reason=reason(start, proposed, pair, better, tried),
            chosen=tuple(chosen),
            tried=tried,
            what=what,
            warnings=(
                *too_few(len(topics), pair, self.holdout is not None),
                *left_out(self.holdout, pair.n),
                *unanswered(lab.rerun(start, topics)),
            ),
        )


def choose(gains: Floats) -> int:
    """Return the most valuable candidate (column) by its gains over the start (column 0) on each topic (row)."""
    if len(gains) < 2:
        return 0  # a single topic has no standard error
    worth = gains.mean(axis=0) - CAUTION * gains.std(axis=0, ddof=1) / sqrt(len(gains))
    return int(worth.argmax())  # the first of equals, so the start wins ties


def deal(topics: Sequence[Topic], folds: int, seed: int) -> list[int]:
    """Return each topic's fold. Every stratum is spread over the folds, and equal queries are in the same fold.

    Topics of the same conversation may be in different folds: on LoCoMo and BEAM they are no more alike than others.
    """
    import numpy as np

    if folds < 2:
        raise InputError(f"folds: {folds} is out of range; give 2 or more")
    alike: dict[str, list[int]] = {}
    for place, topic in enumerate(topics):
        alike.setdefault(_words(topic.text), []).append(place)
    if len(alike) < folds:
        raise InputError(
            f"folds: {folds} is more than the number of different queries ({len(alike)}); judge more, or take fewer"
        )
    groups = list(alike.values())
    order = [groups[at] for at in np.random.default_rng(seed).permutation(len(groups))]
    order.sort(key=lambda group: topics[group[0]].stratum)
    found = [0] * len(topics)
    for turn, group in enumerate(order):
        for place in group:
            found[place] = turn % folds
    return found


def held_out(topics: Sequence[Topic], folds: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Yield a mask of the held-out topics for every fold of every repeat."""
    import numpy as np

    for repeat in range(REPEATS):
        fold_of = np.array(deal(topics, folds, seed * REPEATS + repeat))
        for fold in range(folds):
            yield fold_of == fold


def _cross_validate(table: Floats, folds: Iterable[NDArray[np.bool_]]) -> tuple[Floats, list[int]]:
    """Return each topic's mean score under the candidates chosen without it, and every choice."""
    import numpy as np

    gains = table - table[:, :1]
    out_of_sample = np.zeros(len(table))
    picked: list[int] = []
    for held in folds:
        picked.append(choose(gains[~held]))
        out_of_sample[held] += table[held, picked[-1]] / REPEATS
    return out_of_sample, picked


def _has_meaning(lab: Lab, start: Profile) -> bool:
    """Return whether the dense leg can run here."""
    try:
        lab.rerun(start.with_changes({"alpha": 1.0, "trigram_weight": 0.0}), lab.dataset.topics[:1])
    except StoreError:
        return False
    return True


def _unseen(dataset: Dataset, holdout: Dataset) -> list[Topic]:
    """Return the hold-out topics whose queries are not training queries; raise where topics are shared by id.

    SciFact's test split, for example, has two queries of its train split.
    """
    known, other = ({document["id"] for document in each.documents} for each in (dataset, holdout))
    if known != other:
        raise InputError(
            f"holdout: {holdout.identity} is about other documents than {dataset.identity}; "
            "give other topics of the same collection, such as another split"
        )
    ids = {topic.id for topic in dataset.topics}
    if shared := [topic.id for topic in holdout.topics if topic.id in ids]:
        raise InputError(
            f"holdout: it shares topics with {dataset.identity}: {len(shared):,} of {len(holdout.topics):,} "
            f"({shared[0]!r}); give topics that are not used for tuning"
        )
    known_queries = {(_words(topic.text), topic.where) for topic in dataset.topics}
    unseen = [topic for topic in holdout.topics if (_words(topic.text), topic.where) not in known_queries]
    if not unseen:
        raise InputError(f"holdout: every query of {holdout.identity} is also in {dataset.identity}")
    return unseen


def _words(text: str) -> str:
    """Return the words of a query without case, white space and punctuation."""
    return " ".join(re.findall(r"\w+", text.casefold())) or text
