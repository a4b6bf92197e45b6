"""Write the first 50 hits of the default profile for every evaluation set, with what the reader is shown of each."""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from turns import named, shown_turn

from trivet.evaluate import Lab, load
from trivet.evaluate.dataset import Dataset
from trivet.profile import PROFILES

WORK = Path(__file__).parent / "work"
DEPTH = 50


@dataclass(frozen=True, slots=True)
class Pool:
    """An evaluation set: its folder and split, the strata left out, and how many topics are taken (0: all)."""

    name: str
    split: str = "test"
    without: tuple[str, ...] = ()
    topics: int = 0


#: Small sets first. The train and dev splits serve for choosing the weight only.
POOLS = (
    Pool("adi"),
    Pool("lihua_world"),
    Pool("locomo", without=("adversarial",)),
    Pool("cranfield"),
    Pool("hotpotqa_200"),
    Pool("cosqa"),
    Pool("cosqa", "dev", topics=200),
    Pool("scifact"),
    Pool("scifact", "train", topics=150),
    Pool("negconstraint"),
    Pool("twowiki_101"),
    Pool("entailmentbank", topics=300),
    Pool("beam_100k"),
    Pool("longmemeval_oracle_turn"),
)


def sampled(dataset: Dataset, count: int) -> Dataset:
    """Return the dataset with at most ``count`` topics, chosen by the hash of their ids."""
    if not count:
        return dataset
    placed = sorted(dataset.topics, key=lambda topic: blake2b(topic.id.encode(), digest_size=8).digest())
    return dataset.sample(topic.id for topic in placed[:count])


def turns_before(documents: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Map the id of each turn to the turn before it in the same session."""
    found: dict[str, Mapping[str, Any]] = {}
    last: dict[tuple[str, str], Mapping[str, Any]] = {}
    for document in documents:
        meta = document["meta"]
        if not {"session", "speaker"} <= meta.keys():
            continue
        session = (str(meta.get("scope", "")), str(meta["session"]))
        if session in last:
            found[document["id"]] = last[session]
        last[session] = document
    return found


def in_context(document: Mapping[str, Any], passage: str, before: Mapping[str, Any] | None) -> str:
    """Return the passage of a turn with its date and the turn before it."""
    meta = document["meta"]
    previous = named(str(before["meta"]["speaker"]), before["text"]) if before else ""
    return shown_turn(named(str(meta["speaker"]), passage), previous, str(meta.get("timestamp", "")))


def rows(pool: Pool, dataset: Dataset, cache: Path) -> Iterator[dict[str, Any]]:
    """Search every topic and yield its pool: ids, scores, passages as the product shows them and in context."""
    documents = [{"meta": {}, **dict(document)} for document in dataset.documents]
    by_id = {document["id"]: document for document in documents}
    before = turns_before(documents)
    profile = PROFILES["default"].with_changes({"k": DEPTH})
    with Lab.fill(dataset, cache=cache) as lab:
        for topic in dataset.topics:
            found = lab.engine.search(topic.text, where=topic.where, profile=profile, at=topic.at or lab._now)
            hits = []
            for hit in found.hits:
                document = by_id[hit.id]
                text = f"{hit.document.title}\n{hit.passage.text}" if hit.document.title else hit.passage.text
                row = {"id": hit.id, "score": hit.score, "text": text}
                if "speaker" in document["meta"] and "session" in document["meta"]:
                    row["context"] = in_context(document, hit.passage.text, before.get(hit.id))
                hits.append(row)
            yield {
                "topic": topic.id,
                "query": topic.text,
                "stratum": topic.stratum,
                "qrels": dict(dataset.qrels[topic.id]),
                "hits": hits,
            }


def main() -> None:
    """Write ``work/pools/SET-SPLIT.jsonl.gz`` for every set that is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the evaluation sets")
    data: Path = parser.parse_args().data
    folder = WORK / "pools"
    folder.mkdir(parents=True, exist_ok=True)
    for pool in POOLS:
        target = folder / f"{pool.name}-{pool.split}.jsonl.gz"
        if target.exists():
            continue
        begun = time.perf_counter()
        dataset = sampled(load(data / pool.name, pool.split, without=pool.without), pool.topics)
        making = target.with_suffix(".making")
        with gzip.open(making, "wt", encoding="utf-8") as out:
            for row in rows(pool, dataset, WORK / "cache"):
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
        making.rename(target)
        print(f"{target.name}: {len(dataset.topics)} topics, {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
