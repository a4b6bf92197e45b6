"""What was learnt, from what, and how is it told?

Never more than the test shows: a profile is kept, or changed for a gain that held out of sample, and the record says
which, by how much, and what more topics would do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any

from trivet.evaluate.dataset import Dataset
from trivet.evaluate.evaluation import made
from trivet.evaluate.run import Run
from trivet.evaluate.significance import FEW, Paired
from trivet.profile import LEGS, Profile
from trivet.rerank import build
from trivet.rerank.learned import Learned

#: Cross-validations over differently dealt folds, averaged. Against a single one, from 100 topics of LongMemEval: 82
#: instead of 72 of 100 true gains of 0.04 shown, and 3 instead of 8 of 100 false ones. Ten folds were no better.
REPEATS = 5
#: The chance of a change that is no gain, which we accept. One-sided: the question is whether the tuned one is better.
LEVEL = 0.05
#: Standard errors a true gain needs to be shown four times in five: the normal quantiles of 1 - LEVEL and 0.8.
POWER = 1.645 + 0.842


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
    tried: int  # settings, or the weights that were fitted
    what: str = "settings"  # that were tried, or "weights" that were fitted
    warnings: tuple[str, ...] = ()
    made: Mapping[str, Any] = field(default_factory=made, repr=False)

    @property
    def p(self) -> float:
        """One-sided: how likely is such a gain where there is none? Half the pair's, for signs are flipped alike."""
        return one_sided(self.pair)

    @property
    def votes(self) -> dict[str, int]:
        """What the folds chose, in words, and how often: most first."""
        told = (", ".join(f"{name} {_plain(value)}" for name, value in item.items()) for item in self.chosen)
        return dict(Counter(item or self.start.name for item in told).most_common())

    @property
    def spreads(self) -> dict[str, tuple[float, float]]:
        """Each fitted weight: the lowest and the highest of the folds. Where they are far apart it is not known."""
        if self.what != "weights":
            return {}
        return {name: (min(found), max(found)) for name in self.chosen[0] if (found := [w[name] for w in self.chosen])}

    @property
    def effort(self) -> str:
        return f"{self.tried:,} weights fitted" if self.what == "weights" else f"{self.tried:,} settings tried"

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
            "what": self.what,
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
            f"learnt from {self.dataset}: {self.topics:,} judged topics, {self.effort}",
            f"judged by {how}",
            f"{self.measure}: {pair.mean_baseline:.4f} with {self.start.identity}, {pair.mean_challenger:.4f} tuned "
            f"({pair.difference:+.4f}, 95 % interval {pair.low:+.4f} to {pair.high:+.4f}, one-sided p = {self.p:.4f})",
            f"the folds chose: {self._choices()}",
            f"model {self.model}; trivet {self.made['version']}, commit {self.made['commit']}, {self.made['at']}",
            *(f"warning: {warning}" for warning in self.warnings),
        ]
        return "".join(f"# {_printable(line)}\n" for line in evidence) + "\n" + self.profile.to_toml()

    def _choices(self) -> str:
        if self.what == "weights":
            return ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in self.spreads.items())
        return "; ".join(f"{what} ({count} times)" for what, count in self.votes.items())


# --- in words --------------------------------------------------------------------------------------------------------


def reason(start: Profile, proposed: Profile, pair: Paired, better: bool, tried: int) -> str:
    """What was done and on what evidence; never more than the test shows."""
    if proposed is start:
        return f"kept {start.name}: none of {tried - 1:,} other settings gains more than its own noise"
    what, kept = differences(start, proposed), f"kept {start.name}"
    gain = (
        f"{pair.difference:+.4f} {pair.measure} out of sample "
        f"(95 % interval {pair.low:+.4f} to {pair.high:+.4f}, one-sided p = {one_sided(pair):.4f}, {pair.n:,} topics)"
    )
    if better:
        return f"changed {what}: {gain}"
    if pair.n < FEW:
        return f"{kept}: {pair.n} topics are too few to tell whether to change {what}: {gain}"
    if pair.difference <= 0:
        return f"{kept}: what is better on the topics it is chosen on ({what}) does not hold on others: {gain}"
    return f"{kept}: a gain from changing {what} is not shown: {gain}"


def too_few(topics: int, pair: Paired, held_out: bool) -> list[str]:
    """What more topics would do, where more would do something."""
    found = []
    for what, count in {"judged": topics, **({"held-out": pair.n} if held_out else {})}.items():
        if count < FEW:
            found.append(
                f"{count} {what} topics are too few: {FEW} are the least to go by, and 100 show a gain of 0.05 nDCG@10 "
                f"three times in four; judge {FEW - count} more"
            )
    unsure = pair.n >= FEW and pair.difference > 0 and one_sided(pair) >= LEVEL
    if unsure and (needed := _needed(pair)) > pair.n:
        found.append(f"were the true gain {pair.difference:+.4f}, about {needed:,} topics would be needed to show it")
    return found


def left_out(holdout: Dataset | None, judged: int) -> list[str]:
    twice = len(holdout.topics) - judged if holdout is not None else 0
    return [f"{twice:,} held-out questions are among those learnt from: left out"] if twice else []


def unanswered(run: Run) -> list[str]:
    """What should have taken part and did not."""
    reasons = Counter(reason for answer in run.answers.values() for reason in answer.degraded)
    return [f"{count:,} of {len(run.answers):,} topics: {reason}" for reason, count in reasons.most_common(3)]


def _needed(pair: Paired) -> int:
    """Topics that would show a gain of this size four times in five, told to two places."""
    exact = ceil((POWER / pair.effect) ** 2)
    step = int(10 ** max(0, len(str(exact)) - 2))
    return -(-exact // step) * step


def one_sided(pair: Paired) -> float:
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
    words, fragments, dense = (profile.weights[leg] for leg in ("lexical", "trigram", "dense"))
    asked = [leg for leg in LEGS if profile.weights[leg]]
    found: dict[str, Any] = {"alpha": dense / (words + dense)} if words + dense else {}
    found |= {"trigram_weight": fragments / (words + dense or 1.0), "weighing": profile.weighing}
    if profile.weights["graph"]:
        found |= {"graph_weight": profile.weights["graph"] / (words + dense or 1.0)}
    found |= {"fusion": profile.fusion}
    if profile.fusion == "rrf":
        found |= {"rrf_k": profile.rrf_k}
    elif profile.fusion != "isr":
        found |= {"normalize": profile.normalize}
    found |= {f"{leg}_depth": profile.depths[leg] for leg in asked}
    found |= {f"{leg}_gate": profile.gates[leg] for leg in asked if leg in profile.gates}
    steps = [
        step.name if step.name == Learned.name else f"{step.name}{dict(step.options) or ''}"
        for step in profile.rerankers
    ]
    found |= {"match": profile.match, "pool": profile.pool, "rerankers": "+".join(steps)}
    for step in profile.rerankers:
        if step.name == Learned.name:  # its weights one by one: they are what is learnt
            found |= {f"{step.name}.{name}": value for name, value in vars(build(step.name, step.options)).items()}
    return found


def _plain(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _printable(line: str) -> str:
    """A comment of TOML is one line of printable characters, whatever a folder is called."""
    return "".join(letter if letter.isprintable() else " " for letter in line)
