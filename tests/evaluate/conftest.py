"""Shared fixtures: small datasets written by hand, and labs that are filled once."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hand_sets import CORPUS, QRELS, QUERIES, MakeEvaluation, MakeRun, WriteSet, small_set

from trivet.evaluate import Answer, Dataset, Evaluation, Lab, Run, Topic, judge, load


def _lines(records: str | bytes | Sequence[Mapping[str, Any]]) -> bytes:
    if isinstance(records, bytes):
        return records
    if isinstance(records, str):
        return records.encode()
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


@pytest.fixture
def write_set(tmp_path: Path) -> WriteSet:
    """A folder in BEIR's layout: ``write_set(qrels=…)``. None leaves a file out, ``zipped`` gzips them all."""

    def write(
        name: str = "kitchen",
        *,
        corpus: Any = CORPUS,
        queries: Any = QUERIES,
        qrels: Any = QRELS,
        more: Mapping[str, Any] | None = None,
        zipped: bool = False,
    ) -> Path:
        folder = tmp_path / name
        files = {"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels/test.tsv": qrels, **(more or {})}
        for path, content in files.items():
            if content is None:
                continue
            target = folder / (f"{path}.gz" if zipped else path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(gzip.compress(_lines(content)) if zipped else _lines(content))
        return folder

    return write


@pytest.fixture(scope="session")
def small() -> Dataset:
    return small_set()


@pytest.fixture(scope="session")
def small_lab(tmp_path_factory: pytest.TempPathFactory, small: Dataset) -> Iterator[Lab]:
    """The small set under the hashing embedder."""
    with Lab.fill(small, embedder="hashing:64", cache=tmp_path_factory.mktemp("small")) as lab:
        yield lab


@pytest.fixture(scope="session")
def demo_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The set that ships under the model that ships."""
    with Lab.fill(load("demo"), cache=tmp_path_factory.mktemp("demo")) as lab:
        yield lab


@pytest.fixture(scope="session")
def make_run() -> MakeRun:
    """``make_run("a", q1="d1 d2", q2="")``: a run that lists these documents, best first."""

    def make(name: str = "run", /, **listed: str) -> Run:
        answers = {}
        for topic, ids in listed.items():
            found = tuple(ids.split())
            answers[topic] = Answer(topic, found, tuple(1.0 / rank for rank in range(1, len(found) + 1)))
        return Run(name, answers)

    return make


@pytest.fixture(scope="session")
def make_evaluation() -> MakeEvaluation:
    """``make_evaluation("a", [1, 0, 1])``: one whose topic q000, q001, … has Success@1 of just that.

    ``strata`` gives each topic its stratum.
    """

    def make(
        name: str, hits: Sequence[int], strata: Sequence[str] | None = None, dataset: str = "000000000000"
    ) -> Evaluation:
        ids = [f"q{number:03}" for number in range(len(hits))]
        of = strata or ["all"] * len(ids)
        topics = tuple(Topic(id, f"question {id}", stratum) for id, stratum in zip(ids, of, strict=True))
        documents = [{"id": "right", "text": "right"}, {"id": "wrong", "text": "wrong"}]
        made = Dataset("hand", "test", documents, topics, {id: {"right": 1, "wrong": 0} for id in ids}, dataset)
        run = Run(
            name,
            {
                id: Answer(id, ("right", "wrong", "other") if hit else ("wrong", "right"), (3.0, 2.0, 1.0)[: 2 + hit])
                for id, hit in zip(ids, hits, strict=True)
            },
        )
        return judge(made, run)

    return make
