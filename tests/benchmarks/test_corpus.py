"""The shared corpus is deterministic and its expected results are exact, on made-up texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TEXTS = [
    "The kettle boils water for tea in the morning and the cat waits.",
    "A bridge over the river was closed for repairs all summer long.",
    "Violins and cellos are tuned before the concert begins at eight.",
    "The baker leaves the dough to rise overnight in a cold room.",
]
TITLES = ["Kitchen > Kettle", "Town > Bridge", "Music > Strings", "Kitchen > Bread"]


@pytest.fixture
def mixing(script: Any) -> Any:
    return script("mixing")


@pytest.fixture
def corpus(script: Any) -> Any:
    return script("corpus")


def rows(count: int, seed: int = 1) -> Any:
    made = np.random.default_rng(seed).standard_normal((count, 8)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_the_same_seed_makes_the_same_texts(mixing: Any) -> None:
    first, second = (list(mixing.Mixer(TEXTS, TITLES, 7).snippets(30)) for _ in range(2))
    assert first == second
    assert first != list(mixing.Mixer(TEXTS, TITLES, 8).snippets(30))


def test_a_longer_run_begins_with_the_shorter_one(mixing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixing, "BATCH", 10)
    mixer = mixing.Mixer(TEXTS, TITLES, 7)
    assert list(mixer.snippets(25))[:15] == list(mixer.snippets(15))


def test_a_made_text_has_a_real_ones_length_and_known_words(mixing: Any) -> None:
    known = {word for text in TEXTS for word in text.split(" ")}
    coined = 0
    for item in mixing.Mixer(TEXTS, TITLES, 3).snippets(200):
        words = item.text.split(" ")
        assert len(words) == len(TEXTS[item.origin].split(" "))
        coined += len(set(words) - known)
    assert 0 < coined < 200 * 12 * 0.02  # a few names nobody has used yet


def test_moved_vectors_are_unit_near_their_origin_and_repeatable(mixing: Any) -> None:
    real = np.random.default_rng(0).standard_normal((50, 384)).astype(np.float32)
    real = mixing.unit(real)
    origins = np.arange(50)
    made = mixing.moved(real, origins, [1, 2])
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
    near = (made * real).sum(axis=1)
    assert 0.85 < near.mean() < 0.97  # 1 / sqrt(1 + .45²) = .91
    assert np.array_equal(made, mixing.moved(real, origins, [1, 2]))
    assert not np.array_equal(made, mixing.moved(real, origins, [1, 3]))


def test_generated_vectors_lie_in_clusters_of_their_group(mixing: Any) -> None:
    groups = np.repeat([0, 1], 3_000)
    made = mixing.clustered(groups, [1, 2])
    assert made.shape == (6_000, 384) and np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
    assert np.array_equal(made, mixing.clustered(groups, [1, 2]))
    near = made[:200] @ made.T
    best = np.argsort(-near, axis=1)[:, 1:3]  # after itself
    assert (groups[best] == 0).mean() > 0.8
    assert np.take_along_axis(near, best, 1).mean() > 0.5 > abs(near.mean())


def test_a_generated_corpus_needs_no_model(corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(f"word{chr(97 + n)}" for n in range(20))
    real = [{"id": f"d{n}", "title": "t", "text": text, "meta": {"site": "ab"[n % 2]}} for n in range(20)]
    monkeypatch.setattr("snippets.documents", lambda data: iter(real))
    monkeypatch.setattr(corpus, "CACHE", tmp_path)
    monkeypatch.setattr(corpus, "ASKED", 3)
    monkeypatch.setattr(corpus, "OTHERS", 2)
    monkeypatch.setitem(corpus.GENERATED, "generated-200k", 50)
    shared = corpus.corpus("generated-200k", tmp_path)
    assert len(shared) == 50 == len(list(shared.documents())) and len(shared.questions) == 5
    assert shared.vectors.shape == (50, 384)
    assert (np.sort(shared.asked @ shared.vectors.T.astype(np.float32), axis=1)[:, -1] > 0.8).all()


def made(corpus: Any, folder: Path, count: int) -> Any:
    """A corpus on disk, as ``_write`` leaves it."""
    documents = [
        {"id": f"d{at}", "title": f"t{at}", "text": f"text {at}", "meta": {"site": "x", "kind": "y"}}
        for at in range(count)
    ]
    corpus._write(folder, count, zip(map(corpus._placed, documents), rows(count), strict=True))
    return corpus.Corpus(folder)


def test_exact_answers_are_the_best_of_all_under_each_filter(
    corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "DIM", 8)
    monkeypatch.setattr(corpus, "BLOCK", 64)  # several blocks
    shared = made(corpus, tmp_path, 500)
    asked = rows(5, seed=2)
    found = corpus.exact(shared, asked, depth=10)
    scores = asked @ shared.vectors.astype(np.float32).T
    documents = list(shared.documents())
    for name, where in corpus.FILTERS.items():
        for question, row in enumerate(scores):
            able = [at for at in np.argsort(-row) if corpus.allowed(documents[at]["meta"], where)]
            assert found[name][question] == [documents[at]["id"] for at in able[:10]]
    assert any(len(ids) < 10 for ids in found["one_percent"])  # about five documents: no more is made up


def test_the_first_documents_have_exact_answers_of_their_own(
    corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "DIM", 8)
    shared = made(corpus, tmp_path, 500)
    asked = rows(5, seed=2)
    corpus._ask(tmp_path, [{"id": str(at), "text": "x"} for at in range(5)], asked)
    first = shared.first(300)
    assert len(first) == 300 == len(list(first.documents()))
    best = np.argsort(-(asked @ shared.vectors[:300].astype(np.float32).T), axis=1)[:, :50]
    assert first.answers["none"] == [[f"d{at}" for at in row] for row in best]
    assert shared.first(300).answers == first.answers  # read again
    assert shared.first(500) is shared


def test_filters_allow_one_in_a_hundred_and_one_in_two(corpus: Any) -> None:
    ids = [f"doc:{at}" for at in range(20_000)]
    share = {
        name: sum(corpus.allowed(corpus.shelved(id), where) for id in ids) / len(ids)
        for name, where in corpus.FILTERS.items()
    }
    assert share["none"] == 1
    assert abs(share["one_percent"] - 0.01) < 0.003
    assert abs(share["half"] - 0.5) < 0.02


def test_batches_give_every_document_with_its_own_vector(
    corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "DIM", 8)
    shared = made(corpus, tmp_path, 25)
    seen = [(item["id"], vector) for items, vectors in shared.batches(10) for item, vector in zip(items, vectors)]  # noqa: B905
    assert [id for id, _ in seen] == [f"d{at}" for at in range(25)]
    assert np.allclose(np.stack([vector for _, vector in seen]), rows(25), atol=1e-3)


def test_a_corpus_that_was_not_finished_is_not_there(
    corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "CACHE", tmp_path)
    monkeypatch.setattr(corpus, "_snippets", lambda *_: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(OSError, match="no room"):
        corpus.corpus("10k", tmp_path)
    with pytest.raises(SystemExit, match="10k is not made yet"):
        corpus.corpus("10k")


def test_an_engine_without_titles_gets_the_title_in_the_text(corpus: Any) -> None:
    assert corpus.whole({"title": "Tea", "text": "Boil."}) == "Tea\nBoil."
    assert corpus.whole({"title": "", "text": "Boil."}) == "Boil."


def test_questions_are_eight_words_of_a_document(corpus: Any) -> None:
    texts = [" ".join(f"word{chr(97 + n)}" for n in range(20)), "too short"]
    found = corpus._questions(texts, 5)
    assert len(found) == 5
    assert found == corpus._questions(texts, 5)
    assert all(question in texts[origin] and len(question.split()) == 8 for origin, question in found)
    json.dumps(found)
