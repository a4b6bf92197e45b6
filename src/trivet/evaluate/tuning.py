"""Which settings answer these questions best, and does that hold for questions they were not chosen on?

Every candidate is scored once on every topic; the rest is arithmetic on that table. A candidate is worth its mean gain
over the start profile less ``CAUTION`` standard errors of that gain. That is the pull towards the start: a profile that
ranks much as the start does has gains that hardly vary and is believed from few topics, a distant one must earn its
noise, and the start itself is worth exactly 0.

The best of sixty is always better than the start on the topics it was chosen on. So it is chosen without the topics it
is judged on: by the other folds of a cross-validation, done ``REPEATS`` times over, or before a hold-out is looked at.
The start is kept unless that gain is shown by a paired randomisation test (``LEVEL``).

Every constant here was chosen by drawing 30, 100 and 300 topics from public test collections over and over, tuning on
them and scoring on the rest. Where the start was made the best of all candidates, so that any change is a mistake, 3 of
100 draws of 30 topics changed it, 1 of 100 draws of 100 and none of 300 (without the test: 54, 31 and 11), over twelve
sets. From RRF with k = 60, a start 0.05 nDCG@10 below the best, 33, 65 and 95 of 100 draws changed it, all but one for
the better.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, TypeVar

from trivet.errors import InputError, StoreError
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.lab import Lab, Progress
from trivet.evaluate.measures import MAIN, canonical, score
from trivet.evaluate.significance import FEW, paired
from trivet.evaluate.space import Space
from trivet.evaluate.tuned import LEVEL, REPEATS, Tuned, left_out, one_sided, reason, too_few, unanswered
from trivet.profile import Profile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Qrels = Mapping[str, Mapping[str, int]]
Reading = TypeVar("Reading")

FOLDS = 5
#: Standard errors taken off a gain when choosing. Of 0, 0.5 and 1, a penalty on the distance of the settings and
#: the one-standard-error rule, 1 did least harm before the test among those that lose no gain after it (seven sets).
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
    progress: Progress | None = None,
) -> Tuned:
    """The best of ``space`` for the lab's topics, or ``start`` where its gain does not hold out of sample.

    Judged by cross-validation over ``folds``, or on ``holdout``: other topics about the same documents, which the
    choice does not see. Fewer than ``FEW`` topics to judge on never change anything.
    """
    measure = canonical(measure)
    topics, judged_on = _dealt(lab, holdout, folds, seed)
    candidates = (space or Space.around(start, _has_meaning(lab, start))).candidates(start)
    table = _table(lab, [candidate.profile for candidate in candidates], topics, lab.dataset, measure, progress)
    proposed = candidates[choose(table - table[:, :1])]
    if holdout is not None:
        chosen: tuple[Mapping[str, Any], ...] = (proposed.changes,)
        both = _table(lab, [start, proposed.profile], judged_on, holdout, measure, None)
        before, after = both[:, 0], both[:, 1]
    else:
        before = table[:, 0]
        after, picked = _cross_validate(table, topics, folds, seed)
        chosen = tuple(candidates[place].changes for place in picked)
    return _judged(
        lab, start, proposed.profile, measure, before, after, judged_on, holdout, chosen, len(candidates), folds, seed
    )


def prove(
    lab: Lab,
    start: Profile,
    read: Callable[[Sequence[Topic], Qrels, Progress | None], Reading],
    fitted: Callable[[Reading, Sequence[Topic]], tuple[Profile, Mapping[str, float]]],
    *,
    measure: str = MAIN,
    folds: int = FOLDS,
    holdout: Dataset | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Tuned:
    """What ``fitted`` makes of the lab's topics, or ``start`` where its gain does not hold out of sample.

    ``read`` is asked once what there is to learn from, ``fitted`` for every fold, without the topics of that fold; it
    answers with the profile and the weights in it.
    """
    measure = canonical(measure)
    topics, judged_on = _dealt(lab, holdout, folds, seed)
    reading = read(topics, lab.dataset.qrels, progress)
    proposed, weights = fitted(reading, topics)
    judging = lab.dataset if holdout is None else holdout
    before = _table(lab, [start], judged_on, judging, measure, None)[:, 0]
    if holdout is not None:
        after, chosen = _table(lab, [proposed], judged_on, holdout, measure, None)[:, 0], [weights]
    else:
        after, chosen = 0.0 * before, []
        for held in _held(topics, folds, seed):
            made, weights = fitted(reading, [topic for topic, out in zip(topics, held, strict=True) if not out])
            asked = [topic for topic, out in zip(topics, held, strict=True) if out]
            after[held] += _table(lab, [made], asked, lab.dataset, measure, None)[:, 0] / REPEATS
            chosen.append(weights)
            if progress:
                progress("prove", len(chosen), folds * REPEATS)
    tried = len(weights)
    return _judged(
        lab, start, proposed, measure, before, after, judged_on, holdout, chosen, tried, folds, seed, "weights"
    )


def _dealt(lab: Lab, holdout: Dataset | None, folds: int, seed: int) -> tuple[list[Topic], list[Topic]]:
    """The topics to learn from and those to judge by; what cannot be judged is refused before anything is asked."""
    if seed < 0:
        raise InputError(f"seed is {seed}; give 0 or more")
    topics = sorted(lab.dataset.topics, key=lambda topic: topic.id)
    if holdout is not None:
        return topics, _unseen(lab.dataset, holdout)
    deal(topics, folds, seed)
    return topics, topics


def _judged(
    lab: Lab,
    start: Profile,
    proposed: Profile,
    measure: str,
    before: Floats,
    after: Floats,
    judged_on: Sequence[Topic],
    holdout: Dataset | None,
    chosen: Sequence[Mapping[str, Any]],
    tried: int,
    folds: int,
    seed: int,
    what: str = "settings",
) -> Tuned:
    """The record: changed only where the gain on what was not learnt from is shown."""
    names = [topic.id for topic in judged_on]
    pair = paired(
        dict(zip(names, map(float, before), strict=True)),
        dict(zip(names, map(float, after), strict=True)),
        names=(start.name, NAME),
        measure=measure,
        seed=seed,
    )
    better = proposed is not start and pair.n >= FEW and one_sided(pair) < LEVEL
    topics = lab.dataset.topics
    return Tuned(
        profile=proposed.with_changes({"name": NAME, "weighing": proposed.weighing}) if better else start,
        changed=better,
        start=start,
        proposed=proposed,
        measure=measure,
        dataset=lab.dataset.identity,
        holdout=holdout.identity if holdout is not None else None,
        model=lab.model,
        topics=len(topics),
        folds=1 if holdout is not None else folds,
        pair=pair,
        reason=reason(start, proposed, pair, better, tried),
        chosen=tuple(chosen),
        tried=tried,
        what=what,
        warnings=(
            *too_few(len(topics), pair, holdout is not None),
            *left_out(holdout, pair.n),
            *unanswered(lab.rerun(start, topics)),
        ),
    )


def choose(gains: Floats) -> int:
    """Which candidate (column) is worth most by its gains over the start (column 0) on each topic (row)?"""
    if len(gains) < 2:
        return 0  # one topic has no noise to measure a gain by
    worth = gains.mean(axis=0) - CAUTION * gains.std(axis=0, ddof=1) / sqrt(len(gains))
    return int(worth.argmax())  # of equals the first: the start before all


def deal(topics: Sequence[Topic], folds: int, seed: int) -> list[int]:
    """Topic → fold. Every stratum is spread over the folds, and a question that is asked twice is in one of them.

    Not by scope: on LoCoMo and BEAM, topics of the same conversation told no more about each other than others did.
    """
    import numpy as np

    if folds < 2:
        raise InputError(f"folds: {folds} is too few; with 2 or more one is kept to judge by")
    alike: dict[str, list[int]] = {}
    for place, topic in enumerate(topics):
        alike.setdefault(_words(topic.text), []).append(place)
    if len(alike) < folds:
        raise InputError(
            f"folds: {folds} are more than the {len(alike)} different questions there are; judge more, or take fewer"
        )
    groups = list(alike.values())
    order = [groups[at] for at in np.random.default_rng(seed).permutation(len(groups))]
    order.sort(key=lambda group: topics[group[0]].stratum)
    found = [0] * len(topics)
    for turn, group in enumerate(order):
        for place in group:
            found[place] = turn % folds
    return found


def _cross_validate(table: Floats, topics: Sequence[Topic], folds: int, seed: int) -> tuple[Floats, list[int]]:
    """Each topic's score under what was chosen without it, mean over the repeats, and every choice."""
    import numpy as np

    gains = table - table[:, :1]
    out_of_sample = np.zeros(len(table))
    picked: list[int] = []
    for held in _held(topics, folds, seed):
        picked.append(choose(gains[~held]))
        out_of_sample[held] += table[held, picked[-1]] / REPEATS
    return out_of_sample, picked


def _held(topics: Sequence[Topic], folds: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Which topics are held out: fold after fold, dealt anew for every repeat."""
    import numpy as np

    for repeat in range(REPEATS):
        fold_of = np.array(deal(topics, folds, seed * REPEATS + repeat))
        for fold in range(folds):
            yield fold_of == fold


def _table(
    lab: Lab,
    profiles: Sequence[Profile],
    topics: Sequence[Topic],
    dataset: Dataset,
    measure: str,
    progress: Progress | None,
) -> Floats:
    """Topics × profiles: each one's score."""
    import numpy as np

    table = np.zeros((len(topics), len(profiles)))
    for column, profile in enumerate(profiles):
        values = score(lab.rerun(profile, topics), dataset.qrels, (measure,))[measure]
        table[:, column] = [values[topic.id] for topic in topics]
        if progress:
            progress("tune", column + 1, len(profiles))
    return table


def _has_meaning(lab: Lab, start: Profile) -> bool:
    """Can meaning alone answer a question here?"""
    try:
        lab.rerun(start.with_changes({"alpha": 1.0, "trigram_weight": 0.0}), lab.dataset.topics[:1])
    except StoreError:
        return False
    return True


def _unseen(dataset: Dataset, holdout: Dataset) -> list[Topic]:
    """The held-out topics; judged on what it was chosen by, anything looks good.

    A question that is asked in both under two ids is left out: SciFact's own test split has two of its train split.
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
            f"holdout: {len(shared):,} of its {len(holdout.topics):,} topics are in {dataset.identity} too "
            f"({shared[0]!r}); it must hold none that the choice has seen"
        )
    asked = {(_words(topic.text), topic.where) for topic in dataset.topics}
    unseen = [topic for topic in holdout.topics if (_words(topic.text), topic.where) not in asked]
    if not unseen:
        raise InputError(f"holdout: every question of {holdout.identity} is asked in {dataset.identity} too")
    return unseen


def _words(text: str) -> str:
    """What a question says, whatever its case, blanks and marks."""
    return " ".join(re.findall(r"\w+", text.casefold())) or text
