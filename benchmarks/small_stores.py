"""Measure small stores: 5 to 500 documents, of public sets and of our own notes with identifiers.

A store is made of the right documents of a few topics and of random others of the same set. Memories start small, and
what holds among thousands of documents, such as the spread of the scores, may not hold among five.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from recorded import DEFAULT, PLAIN, careful
from trivet.evaluate import Lab, load, score
from trivet.evaluate.dataset import Dataset, Topic

SETS = ("scifact", "cosqa", "cranfield", "hotpotqa_200", "locomo")
SIZES = {5: (30, 1), 20: (8, 4), 100: (2, 20), 500: (1, 60)}  # documents: (stores, topics in each)
RIGHT = 2  # right documents of a topic that are in the store, at most
SEED = 20261116
MEASURES = ("nDCG@10", "Success@1")

#: Notes of our own, each with an identifier, and queries that name one.
NOTES = {
    "n1": "GatewaySession.reconnect waits two seconds, then doubles the pause up to a minute.",
    "n2": "The session of the gateway was lost twice on Monday; reconnecting by hand helped.",
    "n3": "retry_budget in settings.toml limits how often a request is sent again.",
    "n4": "Requests that fail are sent again after a pause. Three times is usually enough.",
    "n5": "ERR_QUOTA_27 means that the project has used up its storage.",
    "n6": "When storage runs out, ask the platform team for a larger quota.",
    "n7": "parse_manifest() reads the list of files and refuses paths with two dots.",
    "n8": "The manifest lists every file of a release with its checksum.",
    "n9": "Ticket OPS-4412 asks for a second replica in Lisbon.",
    "n10": "A second replica would survive the loss of one data centre.",
    "n11": "FeedWriter.flush must be called before the process ends, or the last lines are lost.",
    "n12": "Lines were missing from the feed after the restart on Thursday.",
}
ASKED = {
    "GatewaySession.reconnect": "n1",
    "retry_budget": "n3",
    "what does ERR_QUOTA_27 mean": "n5",
    "parse_manifest": "n7",
    "status of OPS-4412": "n9",
    "FeedWriter.flush": "n11",
}
SMALLEST = 6  # notes of the smallest store of our own


def measured(data: Path, cache: str | None) -> dict[str, Any]:
    """Return each measure of the plain fusion, of `default` and of `careful`, by size and for the notes."""
    found: dict[str, Any] = {}
    for size in SIZES:
        values: dict[str, dict[str, list[float]]] = {}
        for name in SETS:
            for dataset in _samples(load(data / name), size):
                _run(dataset, cache, values)
        found[f"{size} documents"] = _means(values)
    for size in (SMALLEST, len(NOTES)):
        values = {}
        _run(_notes(size), cache, values)
        found[f"{size} notes with identifiers"] = _means(values)
    return found


def _run(dataset: Dataset, cache: str | None, values: dict[str, dict[str, list[float]]]) -> None:
    with Lab.fill(dataset, cache=cache) as lab:
        for profile in (PLAIN, DEFAULT, careful()):
            for measure, scores in score(lab.rerun(profile), dataset.qrels, MEASURES).items():
                values.setdefault(profile.name, {}).setdefault(measure, []).extend(scores.values())


def _means(values: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    more = np.array(values["default"]["nDCG@10"]) - np.array(values["plain"]["nDCG@10"])
    return {
        "topics": len(more),
        **{name: {key: round(float(np.mean(each)), 4) for key, each in own.items()} for name, own in values.items()},
        "difference": round(float(more.mean()), 4),
        "error": round(float(more.std(ddof=1) / np.sqrt(len(more))), 4),
    }


def _samples(dataset: Dataset, size: int) -> Iterator[Dataset]:
    """Yield small datasets: a few topics with their right documents, and random others."""
    chance = random.Random(f"{SEED} {dataset.name} {size}")
    ids = sorted(document["id"] for document in dataset.documents)
    stores, count = SIZES[size]
    for _ in range(stores):
        chosen = chance.sample(dataset.topics, count)
        judged = {topic.id: [id for id, grade in dataset.qrels[topic.id].items() if grade > 0] for topic in chosen}
        qrels = {topic: dict.fromkeys(right[:RIGHT], 1) for topic, right in judged.items()}
        kept = {id for right in qrels.values() for id in right}
        # a right document that is left out must not come in as a wrong one
        others = [id for id in ids if id not in {id for right in judged.values() for id in right}]
        kept |= set(chance.sample(others, max(0, size - len(kept))))
        documents = [document for document in dataset.documents if document["id"] in kept]
        unscoped = tuple(replace(topic, where=None) for topic in chosen)
        yield replace(dataset, documents=documents, topics=unscoped, qrels=qrels, digest=str(size))


def _notes(size: int) -> Dataset:
    """Return the first notes, and the queries whose note is among them."""
    kept = list(NOTES)[:size]
    asked = {query: id for query, id in ASKED.items() if id in kept}
    return Dataset(
        name="notes",
        split="test",
        documents=[{"id": id, "text": NOTES[id]} for id in kept],
        topics=tuple(Topic(query, query) for query in asked),
        qrels={query: {id: 1} for query, id in asked.items()},
        digest=str(size),
    )
