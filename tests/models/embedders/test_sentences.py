from __future__ import annotations

import numpy as np
import pytest

from trivet.models.embedders import granite, load_embedder
from trivet.models.embedders.sentences import SENTENCES, unrelated_cosine


def test_no_sentence_stands_twice() -> None:
    assert len(set(SENTENCES)) == len(SENTENCES) >= 36


def test_the_estimate_is_near_what_granite_scores_on_real_unrelated_pairs() -> None:
    embedder = load_embedder("granite")
    assert embedder is not None
    assert unrelated_cosine(embedder) == pytest.approx(granite.UNRELATED, abs=0.05)


def test_the_estimate_leaves_out_each_sentence_with_itself() -> None:
    class OneHot:
        """Every sentence is its own direction: only a sentence with itself scores anything."""

        def embed_queries(self, texts: list[str]) -> np.ndarray:
            return np.eye(len(texts), dtype=np.float32)

        embed_passages = embed_queries

    assert unrelated_cosine(OneHot()) == 0.0  # type: ignore[arg-type]
