"""Scores on public datasets agree with the literature.

The datasets are outside the checkout: ``TRIVET_DATA`` names their folder (default ``../shared/data``), ``TRIVET_CACHE``
that of their vectors (default ``benchmarks/cache``). A missing dataset is skipped: embedding SciFact takes minutes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from trivet.errors import EmbedderError
from trivet.evaluate import Dataset, Lab, load, score
from trivet.evaluate.measures import mean
from trivet.models.embedders import load_embedder
from trivet.profile import PROFILES, Profile

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("TRIVET_DATA") or ROOT.parent / "shared" / "data")
CACHE = Path(os.environ.get("TRIVET_CACHE") or ROOT / "benchmarks" / "cache")
WITHOUT = {"locomo": ("adversarial",)}  # they ask for what never happened
BM25 = Profile(name="bm25", weights={"lexical": 1.0})


class OnlyKept:
    """The built-in model, for vectors that are in the cache: it is not asked for others."""

    def __init__(self) -> None:
        model: Any = load_embedder("builtin")
        self.id, self.spec, self.dim, self.unrelated = model.id, model.spec, model.dim, model.unrelated
        self.scripts = model.scripts

    def embed_passages(self, texts: list[str]) -> Any:
        raise EmbedderError(f"{len(texts)} texts are not in the cache")

    embed_queries = embed_passages


def dataset(name: str) -> Dataset:
    if not (DATA / name).is_dir():
        pytest.skip(f"there is no {DATA / name}: set TRIVET_DATA")
    return load(DATA / name, without=WITHOUT.get(name, ()))


def ndcg(lab: Lab, profile: Profile) -> float:
    """Through the re-fusion path, which ``test_lab.py`` proves equal to the shipped one: each leg answers once."""
    return mean(score(lab.rerun(profile), lab.dataset.qrels, ["nDCG@10"])["nDCG@10"])


@pytest.mark.parametrize(("name", "low", "high"), [("scifact", 0.66, 0.70), ("locomo", 0.42, 1.0)])
def test_bm25(name: str, low: float, high: float) -> None:
    with Lab.fill(dataset(name), embedder="none") as lab:
        assert low <= ndcg(lab, BM25) <= high


@pytest.mark.parametrize(("name", "low"), [("scifact", 0.74), ("locomo", 0.455)])
def test_the_default(name: str, low: float) -> None:
    chosen = dataset(name)
    if not (CACHE / "vectors.db").exists():
        pytest.skip(f"there is no {CACHE / 'vectors.db'}: set TRIVET_CACHE, or run trivet eval on the set once")
    embedder: Any = OnlyKept()
    try:
        lab = Lab.fill(chosen, embedder=embedder, cache=CACHE)
    except EmbedderError as error:
        pytest.skip(f"{name}: {error} ({CACHE}): run trivet eval on the set once")
    with lab:
        try:
            found = ndcg(lab, PROFILES["default"])
        except EmbedderError as error:
            pytest.skip(f"{name}: {error} ({CACHE}): run trivet eval on the set once")
        assert found >= low
        for other in (BM25, Profile(name="dense", weights={"dense": 1.0})):
            assert found > ndcg(lab, other)
