"""The result of a tuning: the profile to use, the evidence for it, and both in words."""

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
from trivet.fusion import settings_of
from trivet.profile import Profile
from trivet.rerank import build
from trivet.rerank.learned import Learned

#: Cross-validations with different folds, averaged. Against a single one, from 100 topics of LongMemEval: 82 instead of
#: 72 of 100 true gains of 0.04 were found, and 3 instead of 8 of 100 false ones. Ten folds were no better.
REPEATS = 5
#: Accepted chance of a change without a gain. One-sided: only a better profile is of interest.
LEVEL = 0.05
#: Standard errors at which a true gain is found four times in five: the normal quantiles of 1 - LEVEL and 0.8.
POWER = 1.645 + 0.842


@dataclass(frozen=True, slots=True)
class Tuned:
    """The profile to use, and the evidence for it."""

    profile: Profile  # the tuned profile, or the start where it was kept
    changed: bool
    start: Profile
    proposed: Profile  # chosen by all topics together, used or not
    measure: str
    dataset: str  # Dataset.identity of the training topics
    holdout: str | None  # and of the hold-out topics, where there are some
    model: str | None
    topics: int
    folds: int  # 1 for a hold-out
    pair: Paired  # out of sample: the start against the profile chosen without the topic
    reason: str
    chosen: tuple[Mapping[str, Any], ...] = field(repr=False)  # by each fold of each repeat; {} is the start
    tried: int  # settings, or the weights that were fitted
    what: str = "settings"  # that were tried, or "weights" that were fitted
    warnings: tuple[str, ...] = ()
    made: Mapping[str, Any] = field(default_factory=made, repr=False)

    @property
    def p(self) -> float:
        """One-sided p-value of the gain: half the pair's, because the sign-flip test is symmetric."""
        return one_sided(self.pair)

    @property
    def votes(self) -> dict[str, int]:
        """How often the folds chose each setting, most first."""
        choices = (", ".join(f"{name} {_plain(value)}" for name, value in item.items()) for item in self.chosen)
        return dict(Counter(item or self.start.name for item in choices).most_common())

    @property
    def spreads(self) -> dict[str, tuple[float, float]]:
        """The lowest and the highest value of each fitted weight over the folds; a wide range means little evidence."""
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
        """Return the profile as TOML with its evidence as comments; ``Profile.from_toml`` reads it back."""
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
    """Return what was done and the evidence for it."""
    if proposed is start:
        return f"kept {start.name}: no other setting (of {tried - 1:,}) gains more than its own noise"
    what, kept = differences(start, proposed), f"kept {start.name}"
    gain = (
        f"{pair.difference:+.4f} {pair.measure} out of sample "
        f"(95 % interval {pair.low:+.4f} to {pair.high:+.4f}, one-sided p = {one_sided(pair):.4f}, {pair.n:,} topics)"
    )
    if better:
        return f"changed {what}: {gain}"
    if pair.n < FEW:
        return f"{kept}: too few topics ({pair.n}) to decide whether to change {what}: {gain}"
    if pair.difference <= 0:
        return f"{kept}: what is better on the training topics ({what}) is not better on others: {gain}"
    return f"{kept}: a gain from changing {what} is not shown: {gain}"


def too_few(topics: int, pair: Paired, held_out: bool) -> list[str]:
    """Return warnings that more topics are needed."""
    found = []
    for what, count in {"judged": topics, **({"held-out": pair.n} if held_out else {})}.items():
        if count < FEW:
            found.append(
                f"too few {what} topics: {count}; at least {FEW} are needed, and 100 show a gain of 0.05 nDCG@10 "
                f"three times in four; judge {FEW - count} more"
            )
    unsure = pair.n >= FEW and pair.difference > 0 and one_sided(pair) >= LEVEL
    if unsure and (needed := _needed(pair)) > pair.n:
        found.append(f"to show a true gain of {pair.difference:+.4f}, about {needed:,} topics would be needed")
    return found


def left_out(holdout: Dataset | None, judged: int) -> list[str]:
    twice = len(holdout.topics) - judged if holdout is not None else 0
    return [f"hold-out queries that are training queries too, left out: {twice:,}"] if twice else []


def unanswered(run: Run) -> list[str]:
    """Return the most frequent reasons why a part of the search did not take part."""
    reasons = Counter(reason for answer in run.answers.values() for reason in answer.degraded)
    return [f"{reason} ({count:,} of {len(run.answers):,} topics)" for reason, count in reasons.most_common(3)]


def _needed(pair: Paired) -> int:
    """Return how many topics would show such a gain four times in five, rounded up to two digits."""
    exact = ceil((POWER / pair.effect) ** 2)
    step = int(10 ** max(0, len(str(exact)) - 2))
    return -(-exact // step) * step


def one_sided(pair: Paired) -> float:
    return pair.p / 2 if pair.difference > 0 else 1 - pair.p / 2


def differences(start: Profile, other: Profile) -> str:
    """Return the settings in which another profile ranks differently, with old and new values."""
    before, after = _settings(start), _settings(other)
    changed = [(name, before.get(name), value) for name, value in after.items() if before.get(name) != value]
    return ", ".join(
        f"{name} {_plain(value)}" if old is None else f"{name} {_plain(old)} -> {_plain(value)}"
        for name, old, value in changed
    )


def _settings(profile: Profile) -> dict[str, Any]:
    """Return the settings that a profile ranks by, under the names that users set."""
    words, fragments, dense = (profile.weights[leg] for leg in ("lexical", "trigram", "dense"))
    legs = [leg for leg, weight in profile.weights.items() if weight]
    found: dict[str, Any] = {"alpha": dense / (words + dense)} if words + dense else {}
    found |= {"trigram_weight": fragments / (words + dense or 1.0), "weighing": profile.weighing}
    if profile.weights["graph"]:
        found |= {"graph_weight": profile.weights["graph"] / (words + dense or 1.0)}
    found |= {name: getattr(profile, name) for name in ("fusion", *settings_of(profile.fusion))}
    found |= {f"{leg}_depth": profile.depths[leg] for leg in legs}
    found |= {f"{leg}_gate": profile.gates[leg] for leg in legs if leg in profile.gates}
    steps = [
        step.name if step.name == Learned.name else f"{step.name}{dict(step.options) or ''}"
        for step in profile.rerankers
    ]
    found |= {"match": profile.match, "pool": profile.pool, "rerankers": "+".join(steps)}
    for step in profile.rerankers:
        if step.name == Learned.name:  # one by one: they are what was learnt
            found |= {f"{step.name}.{name}": value for name, value in vars(build(step.name, step.options)).items()}
    return found


def _plain(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _printable(line: str) -> str:
    """Return the line without control characters, which a TOML comment may not hold."""
    return "".join(letter if letter.isprintable() else " " for letter in line)
