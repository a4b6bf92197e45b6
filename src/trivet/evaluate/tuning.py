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
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError, StoreError
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.evaluation import made
from trivet.evaluate.lab import Lab, Progress
from trivet.evaluate.measures import MAIN, canonical, score
from trivet.evaluate.run import Run
from trivet.evaluate.significance import FEW, Paired, paired
from trivet.fusion.weighing import WEIGHINGS
from trivet.profile import LEGS, MAX_WEIGHT, Profile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FOLDS = 5
#: Cross-validations over differently dealt folds, averaged. Against a single one, from 100 topics of LongMemEval: 82
#: instead of 72 of 100 true gains of 0.04 shown, and 3 instead of 8 of 100 false ones. Ten folds were no better.
REPEATS = 5
#: Standard errors taken off a gain when choosing. Of 0, 0.5 and 1, a penalty on the distance of the settings and
#: the one-standard-error rule, 1 did least harm before the test among those that lose no gain after it (seven sets).
CAUTION = 1.0
#: The chance of a change that is no gain, which we accept. One-sided: the question is whether the tuned one is better.
LEVEL = 0.05
#: Standard errors a true gain needs to be shown four times in five: the normal quantiles of 1 - LEVEL and 0.8.
POWER = 1.645 + 0.842
MAX_CANDIDATES = 2_000
NAME = "tuned"

ALPHAS = tuple(step / 10 for step in range(1, 10))
#: Ranks are tried with constants that let a first place win. With 60, and with more normalisers than these, a third
#: more candidates gained nothing on five sets.
RRF_KS = (2.0, 10.0)
NORMALIZE = "zscore"
#: Half and three times as deep as the default. Worth less than 0.0005 on five sets; two depths are cheap.
DEPTHS = (50, 300)
FEW_ALPHAS = (0.3, 0.5, 0.7)
SHARES = (0.1, 0.2, 0.4, 0.8)  # of trigrams, beside words and meaning that sum to 1
TIMES = (0.0, 0.5, 1.0, 2.0)  # the start's own weight of trigrams
#: Settings that say how much is shown or how long is waited, not in which order: no ranking tells them apart.
NOT_LEARNT = ("name", "k", "min_relevance", "timeouts", *(f"{leg}_timeout" for leg in LEGS))


# --- what may be chosen -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choice:
    """A profile that may be chosen, and how it differs from the start."""

    changes: Mapping[str, Any]
    profile: Profile


@dataclass(frozen=True, slots=True)
class Space:
    """Which settings may change, and to what: every combination of the values of each grid.

    >>> Space(({"alpha": (0.2, 0.4, 0.6)}, {"fusion": ("rrf",), "rrf_k": (2, 10)}))

    Settings are named as in ``Profile.with_changes``. A grid that does not name ``weighing`` keeps the start's.
    """

    grids: tuple[Mapping[str, Sequence[Any]], ...]

    @classmethod
    def around(cls, start: Profile, meaning: bool = True, trigrams: bool = False) -> Space:
        """The balance of words and meaning, under the start's fusion and the likeliest others, and how deep to look.

        Trigrams take part where the start asks them or ``trigrams`` says so, and without ``meaning``, because nothing
        else is left to weigh words against. Not otherwise: on the turns of LongMemEval they gain 0.03 nDCG@10, and a
        search takes 295 ms instead of 4.
        """
        words, fragments, dense = (start.weights[leg] for leg in LEGS)
        if not meaning:
            return cls(({"trigram_weight": (0.0, *(words * share for share in SHARES))},) if words else ())
        balance: dict[str, Sequence[Any]] = {"weighing": _unique(start.weighing, *WEIGHINGS), "alpha": ALPHAS}
        if fragments:
            own = fragments / (words + dense or fragments)  # beside weights that sum to 1
            balance |= {"alpha": ALPHAS[::2], "trigram_weight": [min(MAX_WEIGHT, own * times) for times in TIMES]}
        scaled = start.normalize if start.fusion == "convex" else NORMALIZE
        grids: list[Mapping[str, Sequence[Any]]] = [
            {"fusion": ("convex",), "normalize": _unique(scaled, NORMALIZE), **balance},
            {"fusion": ("rrf",), "rrf_k": _unique(*((start.rrf_k,) if start.fusion == "rrf" else ()), *RRF_KS)}
            | balance,
            {"alpha": (0.0, 1.0)},
        ]
        for depth in DEPTHS:
            deep = {"lexical_depth": (depth,), "dense_depth": (depth,)}
            grids += [deep, {**deep, "alpha": FEW_ALPHAS}]
        if trigrams and not fragments:
            grids.append({"trigram_weight": SHARES, "alpha": FEW_ALPHAS})
        if start.fusion not in ("convex", "rrf"):
            grids.append({"fusion": (start.fusion,), **balance})
        return cls(tuple(grids))

    def candidates(self, start: Profile) -> list[Choice]:
        """The start first, then every other profile once."""
        found = {_ranked(start): Choice({}, start)}
        for grid in self.grids:
            for name, values in grid.items():
                if name in NOT_LEARNT:
                    raise InputError(f"space: {name} does not change the order of hits; there is nothing to learn")
                if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                    raise InputError(f"space: {name} is {values!r}; give the values to try, such as (0.3, 0.5)")
            for values in product(*grid.values()):
                changes = dict(zip(grid, values, strict=True))
                profile = start.with_changes({"weighing": start.weighing, **changes})
                found.setdefault(_ranked(profile), Choice(changes, profile))
                if len(found) > MAX_CANDIDATES:
                    raise InputError(f"space: more than {MAX_CANDIDATES:,} combinations; take fewer values")
        if len(found) == 1:
            raise InputError("space: it holds nothing but the profile to start from; name a setting with other values")
        return list(found.values())


def _ranked(profile: Profile) -> str:
    """The digest of what ranks, without the name."""
    return profile.identity.rpartition("#")[2]


def _unique(*values: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


# --- what was found ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tuned:
    """The profile to use, and why."""

    profile: Profile  # the tuned one, or the start, unchanged, where it was kept
    changed: bool
    start: Profile
    proposed: Profile  # what all topics together would choose, used or not
    measure: str
    dataset: str  # Dataset.identity of the topics it was chosen on
    holdout: str | None  # and of those it was judged on, where they are others
    model: str | None
    topics: int
    folds: int  # 1 for a hold-out
    pair: Paired  # out of sample: the start against what was chosen without the topic
    reason: str
    chosen: tuple[Mapping[str, Any], ...] = field(repr=False)  # by each fold of each repeat; {} is the start
    tried: int
    warnings: tuple[str, ...] = ()
    made: Mapping[str, Any] = field(default_factory=made, repr=False)

    @property
    def p(self) -> float:
        """One-sided: how likely is such a gain where there is none? Half the pair's, for signs are flipped alike."""
        return _one_sided(self.pair)

    @property
    def votes(self) -> dict[str, int]:
        """What the folds chose, in words, and how often: most first."""
        told = (", ".join(f"{name} {_plain(value)}" for name, value in item.items()) for item in self.chosen)
        return dict(Counter(item or self.start.name for item in told).most_common())

    def to_dict(self) -> dict[str, Any]:
        return {
            "changed": self.changed,
            "reason": self.reason,
            "profile": self.profile.to_dict(),
            "identity": self.profile.identity,
            "start": self.start.identity,
            "proposed": self.proposed.to_dict(),
            "measure": self.measure,
            "dataset": self.dataset,
            "holdout": self.holdout,
            "model": self.model,
            "topics": self.topics,
            "folds": self.folds,
            "p": self.p,
            "pair": {**asdict(self.pair), "significant": self.pair.significant, "verdict": self.pair.verdict},
            "tried": self.tried,
            "chosen": [dict(item) for item in self.chosen],
            "warnings": list(self.warnings),
            "made": dict(self.made),
        }

    def to_toml(self) -> str:
        """The profile as TOML, its evidence as comments on top; ``Profile.from_toml`` reads it back."""
        pair = self.pair
        how = f"{self.folds}-fold cross-validation, {REPEATS} times over"
        if self.holdout is not None:
            how = f"a hold-out: {self.holdout}, {pair.n:,} topics"
        evidence = [
            f"{self.reason}",
            f"learnt from {self.dataset}: {self.topics:,} judged topics, {self.tried:,} settings tried",
            f"judged by {how}",
            f"{self.measure}: {pair.mean_baseline:.4f} with {self.start.identity}, {pair.mean_challenger:.4f} tuned "
            f"({pair.difference:+.4f}, 95 % interval {pair.low:+.4f} to {pair.high:+.4f}, one-sided p = {self.p:.4f})",
            "the folds chose: " + "; ".join(f"{what} ({count} times)" for what, count in self.votes.items()),
            f"model {self.model}; trivet {self.made['version']}, commit {self.made['commit']}, {self.made['at']}",
            *(f"warning: {warning}" for warning in self.warnings),
        ]
        return "".join(f"# {_printable(line)}\n" for line in evidence) + "\n" + self.profile.to_toml()


# --- finding it -------------------------------------------------------------------------------------------------------


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
    if seed < 0:
        raise InputError(f"seed is {seed}; give 0 or more")
    topics = sorted(lab.dataset.topics, key=lambda topic: topic.id)
    # what cannot be judged is refused before anything is asked
    judged_on = topics if holdout is None else _unseen(lab.dataset, holdout)
    if holdout is None:
        deal(topics, folds, seed)
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
    names = [topic.id for topic in judged_on]
    pair = paired(
        dict(zip(names, map(float, before), strict=True)),
        dict(zip(names, map(float, after), strict=True)),
        names=(start.name, NAME),
        measure=measure,
        seed=seed,
    )
    better = proposed.profile is not start and pair.n >= FEW and _one_sided(pair) < LEVEL
    tuned = proposed.profile.with_changes({"name": NAME}) if better else start
    return Tuned(
        profile=tuned,
        changed=better,
        start=start,
        proposed=proposed.profile,
        measure=measure,
        dataset=lab.dataset.identity,
        holdout=holdout.identity if holdout is not None else None,
        model=lab.model,
        topics=len(topics),
        folds=1 if holdout is not None else folds,
        pair=pair,
        reason=_reason(start, proposed.profile, pair, better, len(candidates)),
        chosen=chosen,
        tried=len(candidates),
        warnings=(
            *_too_few(len(topics), pair, holdout is not None),
            *_left_out(holdout, pair.n),
            *_unanswered(lab.rerun(start, topics)),
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
    for repeat in range(REPEATS):
        fold_of = np.array(deal(topics, folds, seed * REPEATS + repeat))
        for fold in range(folds):
            held = fold_of == fold
            picked.append(choose(gains[~held]))
            out_of_sample[held] += table[held, picked[-1]] / REPEATS
    return out_of_sample, picked


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


# --- saying it --------------------------------------------------------------------------------------------------------


def _reason(start: Profile, proposed: Profile, pair: Paired, better: bool, tried: int) -> str:
    """What was done and on what evidence; never more than the test shows."""
    if proposed is start:
        return f"kept {start.name}: none of {tried - 1:,} other settings gains more than its own noise"
    what, kept = differences(start, proposed), f"kept {start.name}"
    gain = (
        f"{pair.difference:+.4f} {pair.measure} out of sample "
        f"(95 % interval {pair.low:+.4f} to {pair.high:+.4f}, one-sided p = {_one_sided(pair):.4f}, {pair.n:,} topics)"
    )
    if better:
        return f"changed {what}: {gain}"
    if pair.n < FEW:
        return f"{kept}: {pair.n} topics are too few to tell whether to change {what}: {gain}"
    if pair.difference <= 0:
        return f"{kept}: what is better on the topics it is chosen on ({what}) does not hold on others: {gain}"
    return f"{kept}: a gain from changing {what} is not shown: {gain}"


def _too_few(topics: int, pair: Paired, held_out: bool) -> list[str]:
    """What more topics would do, where more would do something."""
    found = []
    for what, count in {"judged": topics, **({"held-out": pair.n} if held_out else {})}.items():
        if count < FEW:
            found.append(
                f"{count} {what} topics are too few: {FEW} are the least to go by, and 100 show a gain of 0.05 nDCG@10 "
                f"three times in four; judge {FEW - count} more"
            )
    unsure = pair.n >= FEW and pair.difference > 0 and _one_sided(pair) >= LEVEL
    if unsure and (needed := _needed(pair)) > pair.n:
        found.append(f"were the true gain {pair.difference:+.4f}, about {needed:,} topics would be needed to show it")
    return found


def _left_out(holdout: Dataset | None, judged: int) -> list[str]:
    twice = len(holdout.topics) - judged if holdout is not None else 0
    return [f"{twice:,} held-out questions are among those learnt from: left out"] if twice else []


def _unanswered(run: Run) -> list[str]:
    """What should have taken part and did not."""
    reasons = Counter(reason for answer in run.answers.values() for reason in answer.degraded)
    return [f"{count:,} of {len(run.answers):,} topics: {reason}" for reason, count in reasons.most_common(3)]


def _needed(pair: Paired) -> int:
    """Topics that would show a gain of this size four times in five, told to two places."""
    exact = ceil((POWER / pair.effect) ** 2)
    step = int(10 ** max(0, len(str(exact)) - 2))
    return -(-exact // step) * step


def _one_sided(pair: Paired) -> float:
    return pair.p / 2 if pair.difference > 0 else 1 - pair.p / 2


def differences(start: Profile, other: Profile) -> str:
    """In which settings another profile differs, from what to what; those that it does not rank by are left out."""
    before, after = _settings(start), _settings(other)
    changed = [(name, before.get(name), value) for name, value in after.items() if before.get(name) != value]
    return ", ".join(
        f"{name} {_plain(value)}" if old is None else f"{name} {_plain(old)} -> {_plain(value)}"
        for name, old, value in changed
    )


def _settings(profile: Profile) -> dict[str, Any]:
    """What a profile ranks by, under the names a person sets it by."""
    words, fragments, dense = (profile.weights[leg] for leg in LEGS)
    asked = [leg for leg in LEGS if profile.weights[leg]]
    found: dict[str, Any] = {"alpha": dense / (words + dense)} if words + dense else {}
    found |= {"trigram_weight": fragments / (words + dense or 1.0), "weighing": profile.weighing}
    found |= {"fusion": profile.fusion}
    if profile.fusion == "rrf":
        found |= {"rrf_k": profile.rrf_k}
    elif profile.fusion != "isr":
        found |= {"normalize": profile.normalize}
    found |= {f"{leg}_depth": profile.depths[leg] for leg in asked}
    found |= {f"{leg}_gate": profile.gates[leg] for leg in asked if leg in profile.gates}
    steps = [f"{step.name}{dict(step.options) or ''}" for step in profile.rerankers]
    return found | {"match": profile.match, "pool": profile.pool, "rerankers": "+".join(steps)}


def _plain(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _printable(line: str) -> str:
    """A comment of TOML is one line of printable characters, whatever a folder is called."""
    return "".join(letter if letter.isprintable() else " " for letter in line)
