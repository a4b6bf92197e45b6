"""Measure the gain and the cost of each stage of the default profile.

Each row is the default with one change: a stage removed, or one added, with all the others in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from trivet.evaluate import Lab, score
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.significance import Paired, holm, paired
from trivet.profile import PROFILES, Profile, Step

TIMED = "locomo"  # the set on which a stage's time is taken: turns, asked in scope, most of them a dozen words
ROUNDS, TOPICS = 3, 40  # each topic is asked so often, the quickest counts
#: Weights for legs the default may not have: what benchmarks/graph.py proposes, and a light hand of trigrams.
LEGS = {"graph": 0.4, "trigram": 0.2}
RERANKERS = ("learned", "temporal", "avoid", "dedup", "exact", "recency", "mmr", "cap")
EXPANSION = 10  # words


@dataclass(frozen=True, slots=True)
class Stage:
    profile: Profile
    off: bool  # the default has it, and this is the default without it

    @property
    def sampled(self) -> bool:
        """The trigram leg takes up to 0.4 s a topic on abstracts."""
        return self.profile.weights["trigram"] > 0


def stages(default: Profile = PROFILES["default"]) -> dict[str, Stage]:
    """Return the default with one change each, by name, in the order of the table."""
    found = {}

    def changed(name: str, off: bool, **changes: Any) -> None:
        found[f"{name} {'off' if off else 'on'}"] = Stage(default.with_changes(changes), off)

    for leg, weight in LEGS.items():
        off = default.weights[leg] > 0
        changed(leg, off, weights={leg: 0.0 if off else weight})
    off = default.weighing == "query"
    changed("weighing", off, weighing="fixed" if off else "query")
    off = default.understanding == "full"
    changed("understanding", off, understanding="plain" if off else "full")
    changed("expansion", default.expansion > 0, expansion=0 if default.expansion else EXPANSION)
    for name in RERANKERS:
        kept = [step for step in default.rerankers if step.name != name]
        off = len(kept) < len(default.rerankers)
        changed(name, off, rerankers=kept if off else [*kept, Step(name)])
    return found


def measured(
    lab: Lab, dataset: Dataset, few: Dataset, default: Mapping[str, Mapping[str, float]], main: str
) -> dict[str, Any]:
    """Return each stage's score and its significance test; one family for each set."""
    values = {}
    for name, stage in stages().items():
        asked = few if stage.sampled else dataset
        values[name] = score(lab.rerun(stage.profile, asked.topics), asked.qrels, tuple(default))
    pairs = against(default[main], {name: each[main] for name, each in values.items()})
    return {
        pair.challenger: {
            **{measure: round(_mean(each), 4) for measure, each in values[pair.challenger].items()},
            **told(pair),
        }
        for pair in pairs
    }


def against(default: Mapping[str, float], others: Mapping[str, Mapping[str, float]]) -> list[Paired]:
    """Compare each of the others with the default on the same topics, as one family."""
    pairs = [
        paired({topic: default[topic] for topic in values}, values, names=("default", name))
        for name, values in others.items()
    ]
    corrected = holm([pair.p for pair in pairs])
    return [replace(pair, p_holm=p) for pair, p in zip(pairs, corrected, strict=True)]


def told(pair: Paired) -> dict[str, Any]:
    """Return a comparison as plain data."""
    return {
        "topics": pair.n,
        "difference": round(pair.difference, 4),
        "low": round(pair.low, 4),
        "high": round(pair.high, 4),
        "p": round(pair.p, 5),
        "p_holm": round(pair.p_holm, 5),
        "wins": pair.wins,
        "losses": pair.losses,
        "ties": pair.ties,
    }


def costs(lab: Lab, topics: Sequence[Topic], default: Profile = PROFILES["default"]) -> dict[str, float]:
    """Return the milliseconds that each stage adds to a search: the median difference with and without it.

    Measured by the ``total`` of the trace, with the query's vector given.
    """
    profiles = {"default": default, **{name: stage.profile for name, stage in stages(default).items()}}
    spent: dict[str, dict[str, float]] = {name: {} for name in profiles}
    for topic in topics[:TOPICS]:  # one after the other, so that what else the machine does meets all of them alike
        for _ in range(ROUNDS):
            for name, profile in profiles.items():
                ms = lab.run(profile, [topic]).answers[topic.id].ms
                spent[name][topic.id] = min(ms, spent[name].get(topic.id, ms))
    found = {}
    for name, stage in stages(default).items():
        more = [(own - spent[name][topic]) * (1 if stage.off else -1) for topic, own in spent["default"].items()]
        found[name] = round(median(more), 2)
    return found


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)
