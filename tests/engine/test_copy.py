"""A copied collection arrives in another store whole, once and unchanged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet
from servers import Postgres, postgres
from trivet.engine import Engine
from trivet.engine.copy import copy
from trivet.errors import InputError, NotFoundError, StoreError
from trivet.stores.postgres.collection import PostgresCollection

__all__ = ["postgres"]


@pytest.fixture
def filled(tmp_path: Path, taught: Callable[..., Any]) -> Iterator[tuple[Engine, Any]]:
    model = taught("heron", "fox", "lamp")
    with trivet.open(tmp_path / "one.db", embedder=model, passage_size=12, language="de") as engine:
        engine.add(
            [
                {
                    "id": f"d{n}",
                    "text": f"heron {n} and the fox",
                    "meta": {"n": n, "odd": "nul \0 ü"},
                    "title": "T" * (n % 3),
                }
                for n in range(25)
            ]
        )
        engine.add("\n\n".join(f"The lamp number {n} burns all night long." for n in range(4)), id="long")
        engine.add("told before", id="b", links=["d1", {"target": "gone", "type": "supersedes", "weight": 0.5}])
        engine.wait()
        engine.touch(["d1", "d1"])
        engine.feedback("which bird", "d1", good=False)
        engine.update_settings("memories", k=6)
        engine.collection("words", embedder="none").add("nur Wörter", id="w")
        yield engine, model


@pytest.fixture(params=["sqlite", "postgres", "qdrant"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        yield server.fresh()
        server.sweep()
    elif request.param == "qdrant":
        pytest.importorskip("qdrant_client")
        yield f"qdrant+local:{tmp_path / 'two'}"
    else:
        yield str(tmp_path / "two.db")


def test_there_and_back_again(filled: tuple[Engine, Any], target: str, tmp_path: Path) -> None:
    engine, model = filled
    embedded = list(model.passages)
    steps: list[tuple[str, int, int]] = []
    found = copy(engine.url, target, progress=lambda *step: steps.append(step))
    assert [(item.collection, item.documents, item.vectors, item.pending) for item in found] == [
        ("default", 27, 30, 0),
        ("words", 1, 0, 0),
    ]
    assert found[0].feedback == 1 and found[0].links == 2 and found[0].written == 27
    assert {step[0] for step in steps} == {"copy default", "verify default", "copy words", "verify words"}
    with trivet.open(target, embedder=model) as there:
        assert list(there.lines(vectors=True)) == list(engine.lines(vectors=True))
        assert there.settings == engine.settings and there.stats().pending == 0
        one, two = (each.search("fox lamp", k=5, rerankers=[]) for each in (engine, there))
        assert {hit.id: round(hit.score, 4) for hit in one} == {hit.id: round(hit.score, 4) for hit in two}
    assert model.passages == embedded, "nothing was embedded again"
    copy(target, tmp_path / "back.db")
    with trivet.open(tmp_path / "back.db", embedder=model) as back:
        assert list(back.lines(vectors=True)) == list(engine.lines(vectors=True))


def test_again_it_writes_only_what_changed(filled: tuple[Engine, Any], target: str) -> None:
    engine, _ = filled
    copy(engine.url, target)
    assert [item.written for item in copy(engine.url, target)] == [0, 0]
    engine.patch("d3", text="heron three, rewritten")
    engine.add("new", id="new")
    engine.wait()
    found = copy(engine.url, target, ["default"])
    assert [(item.written, item.pending) for item in found] == [(2, 0)]


def test_a_copy_that_was_broken_off_goes_on(
    filled: tuple[Engine, Any], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = filled
    monkeypatch.setattr("trivet.engine.copy.BATCH", 5)

    class EnoughError(Exception): ...

    def stop(step: str, done: int, total: int) -> None:
        if done >= 15:
            raise EnoughError

    with pytest.raises(EnoughError):
        copy(engine.url, target, progress=stop)
    (first, _) = copy(engine.url, target)
    assert (first.documents, first.written) == (27, 12)


def test_a_difference_is_told(filled: tuple[Engine, Any], target: str) -> None:
    engine, model = filled
    with trivet.open(target, embedder=model, passage_size=12, language="de") as there:
        there.add("was here before", id="own")
    with pytest.raises(StoreError, match=r"does not agree: documents: the source has 27, the target 28"):
        copy(engine.url, target, ["default"])


def test_what_cannot_be_copied_is_refused_before_anything_is_written(
    filled: tuple[Engine, Any], tmp_path: Path, taught: Callable[..., Any]
) -> None:
    engine, _ = filled
    with pytest.raises(InputError, match="both the source and the target"):
        copy(engine.url, engine.url)
    with pytest.raises(NotFoundError, match="not a store"):
        copy(tmp_path / "nothing.db", tmp_path / "x.db")
    assert not (tmp_path / "nothing.db").exists()
    with pytest.raises(NotFoundError, match="'tickets'"):
        copy(engine.url, tmp_path / "x.db", ["tickets"])
    with trivet.open(tmp_path / "other.db", embedder="none") as other:
        other.add("x")
    with pytest.raises(InputError, match="language"):
        copy(engine.url, tmp_path / "other.db", ["default"])
    with trivet.open(
        tmp_path / "third.db", embedder=taught("x", name="another"), language="de", passage_size=12
    ) as third:
        third.add("x")
    with pytest.raises(InputError, match="vectors of 'another'"):
        copy(engine.url, tmp_path / "third.db", ["default"])


def test_into_a_distributed_collection_and_out_of_it(
    filled: tuple[Engine, Any], postgres: Postgres, tmp_path: Path
) -> None:
    """How a collection is distributed is the target's own choice."""
    engine, model = filled
    distributed, whole = postgres.fresh(distribute="documents"), postgres.fresh()
    copy(engine.url, distributed), copy(distributed, whole), copy(distributed, tmp_path / "back.db")
    for url, by_document in ((distributed, True), (whole, False), (str(tmp_path / "back.db"), False)):
        with trivet.open(url, embedder=model) as there:
            assert list(there.lines(vectors=True)) == list(engine.lines(vectors=True))
            if isinstance(there._collection, PostgresCollection):
                assert there._collection.rows.tables.distributed == by_document
    postgres.sweep()


def test_vectors_of_the_callers_own_go_along_and_long_texts_stay_whole(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {n} goes on for a while about nothing." for n in range(20))
    with trivet.open(tmp_path / "one.db", embedder="vectors:2", passage_size=12) as one:
        one.add([{"id": "a", "text": text, "vector": [3, 4]}])
    (found,) = copy(tmp_path / "one.db", tmp_path / "two.db")
    assert (found.passages, found.vectors) == (1, 1)


def test_the_command(filled: tuple[Engine, Any], tmp_path: Path) -> None:
    engine, _ = filled
    command = [sys.executable, "-m", "trivet", "copy", engine.path, str(tmp_path / "two.db"), "--only", "words"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("words: 1 document, 0 vectors, 0 links, 1 written; both stores hold the same")


def test_no_error_shows_the_password_of_a_server(postgres: Postgres) -> None:
    url = postgres.fresh().replace("@", ":hunter2@", 1)
    assert "hunter2" in url
    with pytest.raises(InputError, match="is both the source and the target") as same:
        copy(url, url)
    with pytest.raises(NotFoundError, match="has no 'notes'") as missing:
        trivet.open(url, "notes", create=False)
    assert "hunter2" not in f"{same.value} {missing.value}"
    postgres.sweep()
