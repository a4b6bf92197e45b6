"""Write what the reader of `careful` is shown for every evaluation set, and judge readers by their scores of it.

python benchmarks/reader_pools.py collect --data DATA --cache CACHE   shown/SET.jsonl.gz and pools.json.xz
python benchmarks/reader_pools.py judge SCORES                        pools.npz, written by training/refine.py

Both files are kept under training/work, from where the GPU machine gets them.

Of a set it takes at most 300 topics, 100 of them also with the right documents removed, 100 unanswerable ones and the
made-up queries. ``judge`` mixes the scores as the product does, with the weights that ship, and fits relevance as
``benchmarks/relevance.py`` does, the family of the judged set left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import relevance
from profiles import SETS
from recorded import sampled
from trivet.engine.request import SearchRequest
from trivet.evaluate import Lab, load
from trivet.evaluate.dataset import Dataset, Topic
from trivet.fusion.relevance import Match
from trivet.models.scorers.cached import CachedScorer
from trivet.profile import PROFILES, Profile
from trivet.rerank import reader
from trivet.rerank.reader import MOSTLY, Reader, _is_turn, counted
from trivet.text.conversation import by_assistant
from trivet.text.turns import is_personal
from trivet.types import Hit

HERE = Path(__file__).parent
WORK = HERE.parent / "training/work"
TOPICS, OTHERS, HITS = 300, 100, 30
KEPT_ORDER = {"weight": 1e-9, "weight_others": 1e-9, "most": HITS, "most_others": HITS, "budget_ms": 600_000.0}
Row = dict[str, Any]


# --- collecting -------------------------------------------------------------------------------------------------------


def profile() -> Profile:
    """Return `careful` with a reader that reads every hit and leaves the order as it is."""
    careful = PROFILES["careful"]
    steps = [
        {"name": step.name, **step.options, **(KEPT_ORDER if step.name == "reader" else {})}
        for step in careful.rerankers
    ]
    return careful.with_changes({"k": HITS, "rerankers": steps})


@contextmanager
def recorded() -> Iterator[dict[str, str]]:
    """Give the text that the reader is shown of each hit of the last search, by id; every passage scores the same."""
    texts: dict[str, str] = {}
    original = reader.shown

    def shown(hits: Sequence[Hit], *rest: Any) -> list[str]:
        found = original(hits, *rest)
        texts.clear()
        texts.update(zip((hit.id for hit in hits), found, strict=True))
        return found

    def known(_: CachedScorer, _query: str, passages: Sequence[str]) -> list[float]:
        return [0.0] * len(passages)

    with patch.object(CachedScorer, "known", known), patch.object(reader, "shown", shown):
        yield texts


def rows(dataset: Dataset, silent: Sequence[Topic], cache: str | None) -> Iterator[Row]:
    """Search every query and yield its hits in the order before the reader, with what the reader is shown."""
    searched = profile()
    made_up = relevance.MADE_UP.read_text(encoding="utf-8").splitlines()
    whole = replace(dataset, topics=(*dataset.topics, *silent))
    with Lab.fill(whole, cache=cache) as lab, recorded() as shown:
        documents = lab.engine._collection.documents

        def asked(kind: str, topic: Topic, text: str, right: Mapping[str, int], exclude: Sequence[str] = ()) -> Row:
            request = SearchRequest(
                text, topic.where, searched, tuple(exclude), None, 0, topic.at or lab._now, None, None, {}
            )
            run = lab.engine._pipeline._run(request)
            read = [(hit, item.before) for hit in run.results for item in hit.adjustments if item.reranker == "reader"]
            read.sort(key=lambda pair: -pair[1])
            numbers = documents.numbers([hit.id for hit, _ in read])
            hits = [
                {
                    "id": hit.id,
                    "score": score,
                    "text": shown[hit.id],
                    "match": list(run.pool.match(numbers[hit.id])),
                    "talk": _is_turn(hit.document.meta) or is_personal(hit.passage.text),
                    "assistant": by_assistant(hit.document.meta),
                }
                for hit, score in read
            ]
            return {"kind": kind, "query": text, "qrels": dict(right), "hits": hits}

        for place, topic in enumerate(dataset.topics):
            right = dataset.qrels[topic.id]
            yield asked("answerable", topic, topic.text, right)
            if place < OTHERS:
                yield asked("removed", topic, topic.text, {}, sorted(id for id, grade in right.items() if grade > 0))
        for topic in silent:
            yield asked("unanswerable", topic, topic.text, {})
        for place, text in enumerate(made_up):
            topic = replace(dataset.topics[place % len(dataset.topics)], at=None)
            yield asked("made up", topic, text, {})


def collect(data: Path, cache: str | None) -> None:
    """Write the hits of every set, and the pairs of all sets in one file for the GPU machine."""
    folder = WORK / "shown"
    folder.mkdir(parents=True, exist_ok=True)
    pairs = {}
    for name, (without, scoped) in SETS.items():
        file = folder / f"{name}.jsonl.gz"
        if not file.exists():
            whole = load(data / name, without=without, scoped=scoped)
            silent = sampled(replace(whole, topics=whole.unanswerable), OTHERS).topics if whole.unanswerable else ()
            found = list(rows(sampled(whole, TOPICS), silent, cache))
            with gzip.open(file, "wt", encoding="utf-8") as out:
                out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in found)
            print(f"{name}: {len(found)} queries", flush=True)
        stored = read(name)
        texts = {
            text: at for at, text in enumerate(dict.fromkeys(hit["text"] for row in stored for hit in row["hits"]))
        }
        pairs[name] = {
            "queries": [row["query"] for row in stored],
            "texts": list(texts),
            "pairs": [[at, texts[hit["text"]]] for at, row in enumerate(stored) for hit in row["hits"]],
        }
    with lzma.open(WORK / "pools.json.xz", "wt", encoding="utf-8", preset=3) as packed:
        json.dump(pairs, packed, ensure_ascii=False)


def read(name: str) -> list[Row]:
    """Return what was collected of a set."""
    with gzip.open(WORK / "shown" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


# --- judging ----------------------------------------------------------------------------------------------------------


def mixed(hits: list[Row], given: Sequence[float]) -> list[tuple[Row, float | None]]:
    """Return the hits in the order of the product, each with the score of the reader where it read."""
    if not hits:
        return []
    step = Reader()
    talk = float(np.mean([hit["talk"] for hit in hits[: step.most]]))
    first = hits[: step.most if talk >= MOSTLY else step.most_others]
    scores = np.array([hit["score"] for hit in first])
    unit, weight = float(scores.std()) or 1.0, talk * step.weight + (1 - talk) * step.weight_others
    parts = [
        weight * counted(float(score)) * (step.assistants if hit["assistant"] else 1.0)
        for hit, score in zip(first, given, strict=False)
    ]
    order = np.argsort(-(scores / unit + parts), kind="stable")
    return [*((first[at], float(given[at])) for at in order), *((hit, None) for hit in hits[len(first) :])]


def ndcg(ids: Sequence[str], judged: Mapping[str, int]) -> float:
    """Return nDCG@10."""

    def gain(grades: Sequence[int]) -> float:
        return sum(grade / math.log2(place + 2) for place, grade in enumerate(grades[:10]))

    ideal = gain(sorted((grade for grade in judged.values() if grade > 0), reverse=True))
    return gain([max(0, judged.get(id, 0)) for id in ids]) / ideal if ideal else 0.0


def judge(file: Path) -> None:
    """Print the gain of each reader over not reading, Success@1, 5 and 10, and what silence keeps."""
    stored = np.load(file)
    readers: dict[str, dict[str, Any]] = {}
    for key in stored.files:
        which, _, name = key.partition("/")
        readers.setdefault(which, {})[name] = stored[key].astype(np.float64)
    for name_of_reader, scores in readers.items():
        gains, asked = [], {}
        for name in (name for name in scores if name in SETS):
            values, firsts, at = [], [], 0
            asked[name] = []
            for row in read(name):
                given = scores[name][at : at + len(row["hits"])]
                at += len(row["hits"])
                order = mixed(row["hits"], given)
                right = {id for id, grade in row["qrels"].items() if grade > 0}
                hits = [relevance.Found(hit["id"] in right, Match(*hit["match"]), score) for hit, score in order]
                asked[name].append(relevance.Asked(row["kind"], hits[: relevance.HITS]))
                if row["kind"] == "answerable":
                    ids = [hit["id"] for hit, _ in order]
                    values.append(ndcg(ids, row["qrels"]) - ndcg([hit["id"] for hit in row["hits"]], row["qrels"]))
                    firsts.append([bool(right & set(ids[:depth])) for depth in (1, 5, 10)])
            gains.append(float(np.mean(values)))
            error = np.std(values, ddof=1) / math.sqrt(len(values))
            shares = " ".join(f"{share:.3f}" for share in np.mean(firsts, axis=0))
            print(
                f"{name_of_reader:10} {name:26} {gains[-1]:+.4f} ± {error:.4f}  Success@1, 5, 10: {shares}", flush=True
            )
        print(f"{name_of_reader:10} mean gain {np.mean(gains):+.4f}; {silence(asked)}", flush=True)


def silence(asked: Mapping[str, list[relevance.Asked]]) -> str:
    """Return what is kept at 10 % false answers, every family left out in turn."""
    kind, parts = relevance.LINES["READ"], []
    known = {name: queries for name, queries in asked.items() if name in relevance.FAMILIES}
    for name, queries in known.items():
        others = [rest for other, rest in known.items() if relevance.FAMILIES[other] != relevance.FAMILIES[name]]
        parts.append(relevance.judged(kind, relevance.fitted(kind, others), queries))
    kept = {each: relevance.kept_at(parts, [each], relevance.FALSE)[1] for each in relevance.KINDS}
    kept["all"] = relevance.kept_at(parts, relevance.KINDS, relevance.FALSE)[1]
    return "kept at 10 % false answers: " + ", ".join(f"{name} {share:.2f}" for name, share in kept.items())


def main() -> None:
    """Collect or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("collect", "judge"))
    parser.add_argument("scores", type=Path, nargs="?", default=WORK / "pools.npz")
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--cache", help="folder of the cached vectors")
    options = parser.parse_args()
    if options.step == "collect":
        collect(options.data, options.cache)
    else:
        judge(options.scores)


if __name__ == "__main__":
    main()
