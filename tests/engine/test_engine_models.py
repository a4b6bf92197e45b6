"""Embedding, no embedding, and changing the model while the old one is in use."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trivet.engine import Engine, background
from trivet.engine.models import EMBED_AT_ONCE
from trivet.errors import EmbedderError, InputError, ModelMismatchError, StoreError
from trivet.stores.sqlite.half_precision import ROUNDING

Open = Callable[..., Engine]

MANY = EMBED_AT_ONCE + 4  # documents that go to the backlog


def ids(found: Any) -> list[str]:
    return [hit.id for hit in found]


def reasons(results: Any) -> list[str]:
    return [item.reason for item in results.degraded]


def orphans(memory: Engine) -> int:
    """Vectors of a model that no longer exists."""
    sql = "SELECT count(*) FROM vectors WHERE mid NOT IN (SELECT mid FROM models)"
    return int(memory._store.database.read().execute(sql).fetchone()[0])


class TestEmbeddingIsSkipped:
    def test_the_same_text_in_two_calls(self, open_store: Open, taught: Any) -> None:
        model = taught("cat")
        memory = open_store(embedder=model)
        memory.add("one cat", id="a")
        memory.add("one cat", id="b")
        assert model.passages == ["one cat"]
        assert memory.stats().embedded == 2
        assert set(ids(memory.search("cat", alpha=1, rerankers=[]))) == {"a", "b"}

    def test_the_same_text_in_one_call(self, open_store: Open, taught: Any) -> None:
        model = taught("cat")
        memory = open_store(embedder=model)
        memory.add([{"id": id, "text": "one cat"} for id in "abc"] + [{"id": "d", "text": "a dog"}])
        assert model.passages == ["one cat", "a dog"]
        assert (memory.stats().embedded, memory.stats().pending) == (4, 0)

    def test_the_same_text_in_two_batches(self, open_store: Open, taught: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(background, "BATCH", 2)
        model = taught("cat")
        memory = open_store(embedder=model)
        memory.add([{"id": str(n), "text": f"cat {n % 3}"} for n in range(MANY)])
        memory.wait(timeout=30)
        assert sorted(model.passages) == ["cat 0", "cat 1", "cat 2"]
        assert memory.stats().pending == 0

    def test_metadata_alone(self, open_store: Open, taught: Any) -> None:
        model = taught("cat")
        memory = open_store(embedder=model)
        memory.add("one cat", id="a")
        memory.add("one cat", id="a", meta={"x": 1}, importance=0.9, kind="fact", created="2020-01-01")
        assert model.passages == ["one cat"]
        assert ids(memory.search("cat", alpha=1, where={"x": 1})) == ["a"]

    def test_unchanged(self, open_store: Open, taught: Any) -> None:
        model = taught("cat")
        memory = open_store(embedder=model)
        for _ in range(3):
            memory.add("one cat", id="a")
        assert model.passages == ["one cat"]

    def test_the_title_is_part_of_the_text(self, open_store: Open, taught: Any) -> None:
        model = taught("cat", "pets")
        memory = open_store(embedder=model)
        memory.add("one cat", id="a")
        memory.add("one cat", id="a", title="Pets")
        assert model.passages == ["one cat", "Pets\none cat"]

    def test_only_the_passages_that_changed(self, open_store: Open, taught: Any) -> None:
        model = taught("cat")
        memory = open_store(embedder=model, passage_size=12)
        paragraphs = [f"The cat number {n} sleeps all day long." for n in range(4)]
        memory.add("\n\n".join(paragraphs), id="a")
        before = len(model.passages)
        assert before > 2
        memory.add("\n\n".join([*paragraphs[:3], "A wholly different cat came by."]), id="a")
        assert len(model.passages) - before <= 2


class TestPending:
    def test_bulk_is_found_by_words_at_once_and_says_what_is_missing(self, open_store: Open, taught: Any) -> None:
        model = taught("cat")
        model.gate.clear()
        memory = open_store(embedder=model)
        told = memory.add([{"id": str(n), "text": f"cat {n}"} for n in range(MANY)])
        assert (told.added, told.pending) == (MANY, MANY)
        found = memory.search("cat", k=MANY, lexical_weight=1, dense_timeout=20)
        assert len(found) == MANY
        assert reasons(found)[0] == f"{MANY} of {MANY} passages are not embedded yet"
        assert memory.stats().pending == MANY
        model.gate.set()
        memory.wait(timeout=30)
        assert memory.stats().pending == 0
        found = memory.search("cat", k=MANY)
        assert found.degraded == ()
        assert {part.leg for hit in found for part in hit.contributions} == {"lexical", "dense"}

    def test_a_few_are_embedded_when_add_returns(self, open_store: Open, taught: Any) -> None:
        memory = open_store(embedder=taught("cat"))
        assert memory.add([f"cat {n}" for n in range(EMBED_AT_ONCE)]).pending == 0
        assert memory.search("cat").degraded == ()

    def test_wait_tells_its_progress_and_can_give_up(self, open_store: Open, taught: Any) -> None:
        model = taught("cat")
        model.gate.clear()
        memory = open_store(embedder=model)
        memory.add([f"cat {n}" for n in range(MANY)])
        with pytest.raises(EmbedderError, match=rf"{MANY} passages are still not embedded after 0 s"):
            memory.wait(timeout=0)
        model.gate.set()
        told: list[tuple[int, int]] = []
        memory.wait(lambda done, total: told.append((done, total)), timeout=30)
        assert told[-1] == (MANY, MANY) or memory.stats().pending == 0

    def test_wait_without_an_embedder_is_no_wait(self, words: Engine) -> None:
        words.add([f"cat {n}" for n in range(MANY)])
        words.wait()
        assert words.stats().pending == 0


class TestMismatch:
    def test_refused_with_the_command_that_mends_it(self, open_store: Open, taught: Any) -> None:
        open_store(embedder=taught("cat", name="old")).add("one cat")
        with pytest.raises(ModelMismatchError, match="holds vectors of 'old', not of 'new'") as told:
            open_store(embedder=taught("cat", name="new"))
        assert "trivet reembed" in str(told.value)
        assert "--embedder new" in str(told.value)
        assert "memory.db" in str(told.value)

    def test_the_same_model_is_welcome(self, open_store: Open, taught: Any) -> None:
        open_store(embedder=taught("cat", name="old")).add("one cat", id="a")
        assert ids(open_store(embedder=taught("cat", name="old")).search("cat", alpha=1)) == ["a"]

    def test_a_spec_loads_the_model_again(self, open_store: Open) -> None:
        open_store(embedder="hashing:32").add("one cat", id="a")
        again = open_store(embedder=None)
        assert again.search("one cat").degraded == ()
        assert again.stats().model == "hashing/32/1"

    def test_an_object_that_cannot_be_loaded_again_leaves_the_words(self, open_store: Open, taught: Any) -> None:
        open_store(embedder=taught("cat", name="mine")).add("one cat", id="a")
        again = open_store(embedder=None)
        found = again.search("cat")
        assert ids(found) == ["a"]
        assert found.degraded[0].part == "dense"
        assert "mine" in found.degraded[0].reason

    def test_none_looks_at_words_only_and_changes_nothing(self, open_store: Open, taught: Any) -> None:
        open_store(embedder=taught("cat", name="mine")).add("one cat", id="a")
        without = open_store()
        assert reasons(without.search("cat")) == ["found by words alone: opened without an embedder"]
        without.add("two cats", id="b")
        assert without.stats().pending == 1
        model = taught("cat", name="mine")
        again = open_store(embedder=model)
        again.wait(timeout=30)
        assert model.passages == ["two cats"]

    def test_a_words_only_collection_stays_one(self, open_store: Open) -> None:
        open_store().add("one cat", id="a")
        again = open_store(embedder=None)
        assert again.stats().model is None
        assert reasons(again.search("cat")) == ["found by words alone: the collection was created without an embedder"]

    def test_a_words_only_collection_can_be_given_a_model(self, open_store: Open, taught: Any) -> None:
        open_store().add("one cat", id="a")
        given = open_store(embedder=taught("cat"))
        given.wait(timeout=30)
        assert ids(given.search("cat", alpha=1)) == ["a"]

    @pytest.mark.parametrize("lacking", ["dim", "embed_queries", "unrelated"])
    def test_what_is_not_an_embedder_is_refused(self, open_store: Open, lacking: str) -> None:
        from types import SimpleNamespace

        members = {"spec": "x", "id": "x", "dim": 2, "unrelated": 0.0, "embed_queries": len, "embed_passages": len}
        del members[lacking]
        with pytest.raises(InputError, match=f"lacks {lacking}"):
            open_store(embedder=SimpleNamespace(**members))


class TestReembed:
    @pytest.fixture
    def fruit(self, open_store: Open, taught: Any) -> Engine:
        memory = open_store(embedder=taught("apple", name="old"))
        memory.add([{"id": "a", "text": "an apple"}, {"id": "k", "text": "a kettle"}])
        return memory

    def test_it_switches(self, fruit: Engine, taught: Any) -> None:
        assert ids(fruit.search("apple kettle", alpha=1)) == ["a"]
        assert fruit.reembed(taught("kettle", "spoon", name="new")) == 2
        assert ids(fruit.search("apple kettle", alpha=1)) == ["k"]
        assert (fruit.stats().model, fruit.stats().embedded, fruit.stats().pending) == ("new", 2, 0)
        assert orphans(fruit) == 0
        assert fruit.verify().ok

    def test_the_old_model_answers_until_the_last_passage(self, fruit: Engine, taught: Any) -> None:
        new = taught("kettle", "spoon", name="new")
        new.gate.clear()
        work = threading.Thread(target=fruit.reembed, args=(new,))
        work.start()
        while not new.passages:
            pass
        for _ in range(3):
            found = fruit.search("apple kettle", alpha=1)
            assert (ids(found), found.degraded) == (["a"], ())
        fruit.add("another apple", id="b")  # written meanwhile: by both models
        assert set(ids(fruit.search("apple", alpha=1))) == {"a", "b"}
        new.gate.set()
        work.join()
        found = fruit.search("apple kettle", alpha=1)
        assert (ids(found), found.degraded) == (["k"], ())
        assert fruit.stats().pending == 0

    def test_searching_all_the_while_never_mixes_the_models(self, open_store: Open, taught: Any) -> None:
        """Both models have two dimensions: a question of one compared with vectors of the other would not even fail."""
        old, new = taught("apple", "pear", name="old"), taught("pear", "apple", name="new")
        memory = open_store(embedder=old)
        memory.add([{"id": "a", "text": "apple"}, {"id": "p", "text": "pear"}])
        stop, wrong = threading.Event(), []

        def ask() -> None:
            while not stop.is_set():
                found = memory.search("apple", alpha=1)
                if ids(found)[:1] != ["a"] or found.degraded:
                    wrong.append((ids(found), found.degraded))

        asking = [threading.Thread(target=ask) for _ in range(3)]
        for thread in asking:
            thread.start()
        for model in (new, old, new, old, new):
            memory.reembed(model)
        stop.set()
        for thread in asking:
            thread.join()
        assert wrong == []

    def test_a_search_overtaken_by_it_begins_again(self, open_store: Open, taught: Any) -> None:
        """The old vectors go between a search's first look at the store and its first look at the vectors."""
        old, new = taught("apple", "pear", name="old"), taught("pear", "apple", name="new")
        memory = open_store(embedder=old)
        memory.add([{"id": "a", "text": "apple"}, {"id": "p", "text": "pear"}])
        embed_queries = old.embed_queries

        def overtaken(texts: Any) -> Any:
            memory.reembed(new)
            return embed_queries(texts)

        old.embed_queries = overtaken
        found = memory.search("apple", alpha=1)
        assert (ids(found)[:1], found.degraded) == (["a"], ())

    def test_a_failure_leaves_the_old_model(self, fruit: Engine, taught: Any) -> None:
        new = taught("kettle", name="new")
        new.fail = EmbedderError("out of memory")
        with pytest.raises(EmbedderError, match="out of memory"):
            fruit.reembed(new)
        found = fruit.search("apple", alpha=1)
        assert (ids(found), found.degraded) == (["a"], ())
        assert fruit.stats().model == "old"
        new.fail = None
        assert fruit.reembed(new) == 2

    def test_to_the_same_model_embeds_nothing(self, fruit: Engine, taught: Any) -> None:
        again = taught("apple", name="old")
        assert fruit.reembed(again) == 0
        assert again.passages == []
        assert ids(fruit.search("apple", alpha=1)) == ["a"]

    def test_to_none_is_refused(self, fruit: Engine) -> None:
        with pytest.raises(InputError, match="'none' embeds nothing"):
            fruit.reembed("none")

    def test_afterwards_the_old_one_is_a_mismatch(self, fruit: Engine, open_store: Open, taught: Any) -> None:
        fruit.reembed(taught("kettle", name="new"))
        with pytest.raises(ModelMismatchError):
            open_store(embedder=taught("apple", name="old"))


class TestAnotherEngineChangedTheModel:
    """One MCP server per client is normal: the file's model may change under an open engine."""

    def test_it_follows_where_the_spec_can_be_loaded(self, open_store: Open, taught: Any) -> None:
        one = open_store(embedder="hashing:32")
        other = open_store(embedder="hashing:32")
        one.add([{"id": "a", "text": "copper kettle"}, {"id": "b", "text": "river stone"}])
        other.reembed("hashing:64")
        found = one.search("copper kettle", alpha=1)
        assert found.degraded == ()
        assert found[0].id == "a"
        assert found[0].contributions[0].raw == pytest.approx(1.0, abs=ROUNDING)
        one.add("copper lantern", id="c")
        assert (one.stats().model, one.stats().pending) == ("hashing/64/1", 0)
        assert one.search("copper lantern", alpha=1)[0].contributions[0].raw == pytest.approx(1.0, abs=ROUNDING)

    def test_it_never_compares_vectors_of_two_models(self, open_store: Open, taught: Any) -> None:
        old, new = taught("apple", "pear", name="old"), taught("pear", "apple", name="new")
        one, other = open_store(embedder=old), open_store(embedder=taught("apple", "pear", name="old"))
        one.add([{"id": "a", "text": "apple"}, {"id": "p", "text": "pear"}])
        other.reembed(new)
        found = one.search("apple")
        assert ids(found) == ["a"]  # by words
        assert "re-embedded with 'new'" in found.degraded[0].reason
        old.passages.clear()
        one.add("apple pear", id="both")
        assert old.passages == []  # stored, and left to those who have the model
        assert one.stats().pending == 1
        other.wait(timeout=30)
        assert ids(other.search("apple", alpha=1)) == ["a", "both", "p"]

    def test_the_backlog_follows_too(self, open_store: Open) -> None:
        one, other = open_store(embedder="hashing:32"), open_store(embedder="hashing:32")
        one.add([f"copper {n}" for n in range(MANY)])
        one.wait(timeout=30)
        other.reembed("hashing:64")
        one.add([f"river {n}" for n in range(MANY)])
        one.wait(timeout=30)
        assert (one.stats().embedded, one.stats().pending) == (2 * MANY, 0)
        assert orphans(one) == 0
        assert one.verify().ok


class TestGivenVectors:
    @pytest.fixture
    def given(self, open_store: Open) -> Engine:
        memory = open_store(embedder="vectors:2")
        memory.add([{"id": "x", "text": "east", "vector": [2, 0]}, {"id": "y", "text": "north", "vector": [0, 3]}])
        return memory

    def test_cosine_of_what_was_given(self, given: Engine) -> None:
        found = given.search("anything", vector=[3, 4], alpha=1)
        assert [(hit.id, hit.contributions[0].raw) for hit in found] == [
            ("y", pytest.approx(0.8)),
            ("x", pytest.approx(0.6)),
        ]
        assert "vector given" in found.trace[0].detail

    def test_without_a_vector_the_words_answer(self, given: Engine) -> None:
        found = given.search("north")
        assert ids(found) == ["y"]
        assert reasons(found) == ["the caller brings the vectors of this collection, and gave none"]

    def test_without_words_the_vector_answers(self, given: Engine) -> None:
        assert ids(given.search("", vector=[1, 0])) == ["x", "y"]

    def test_a_document_without_one_is_found_by_words_and_reported(self, given: Engine) -> None:
        given.add("west of nowhere", id="z")
        found = given.search("west", vector=[1, 0])
        assert "z" in ids(found)
        assert reasons(found) == ["1 of 3 passages are not embedded yet"]

    def test_new_text_without_a_vector_has_no_old_vector(self, given: Engine) -> None:
        given.add("moved to the south", id="x")
        assert ids(given.search("q", vector=[1, 0], alpha=1)) == ["y"]
        given.add("moved to the south", id="x", vector=[1, 0])
        assert ids(given.search("q", vector=[1, 0], alpha=1)) == ["x", "y"]

    def test_it_stays_whole_however_long(self, given: Engine) -> None:
        given.add("long story. " * 2_000, id="long", vector=[1, 1])
        assert given.stats().passages == 3

    @pytest.mark.parametrize("size", [1e-30, 1e-3, 1e25, 1e300])
    def test_length_does_not_matter(self, given: Engine, size: float) -> None:
        given.add("diagonal", id="d", vector=[size, size])
        found = {hit.id: hit.contributions[0].raw for hit in given.search("q", vector=[size, size], alpha=1)}
        assert found == pytest.approx({"d": 1.0, "x": math.sqrt(0.5), "y": math.sqrt(0.5)}, abs=ROUNDING)

    def test_a_zero_vector_is_near_to_nothing(self, given: Engine) -> None:
        """Cosine of a zero vector is NaN in seed 004."""
        given.add("nowhere", id="o", vector=[0, 0])
        assert ids(given.search("q", vector=[1, 0], alpha=1)) == ["x", "y"]
        found = given.search("nowhere", vector=[0, 0])
        assert ids(found) == ["o"]
        assert "nothing in the query to embed" in {s.name: s.detail for s in found.trace}["dense"]

    @pytest.mark.parametrize(
        ("vector", "told"),
        [
            ([1, 2, 3], r"the shape is \(3,\), the collection's model has 2 dimensions"),
            ([[1, 2]], r"the shape is \(1, 2\)"),
            ([math.nan, 1], "NaN or infinity"),
            ([math.inf, 1], "NaN or infinity"),
            (["a", "b"], "not a list of numbers"),
            ("text", "not a list of numbers"),
            ([10**400, 1], "not a list of numbers"),
            (7, "shape"),
        ],
    )
    def test_what_is_not_a_vector_is_refused(self, given: Engine, vector: Any, told: str) -> None:
        with pytest.raises(InputError, match=told):
            given.add("text", id="bad", vector=vector)
        with pytest.raises(InputError, match=told):
            given.search("text", vector=vector)
        assert given.get("bad") is None

    def test_a_vector_with_a_text_model(self, open_store: Open, taught: Any) -> None:
        model = taught("cat", "dog")
        memory = open_store(embedder=model)
        memory.add([{"id": "c", "text": "cat"}, {"id": "v", "text": "given", "vector": np.array([0.0, 1.0])}])
        model.queries.clear()
        assert ids(memory.search("whatever", vector=[0, 1], alpha=1)) == ["v", "c"]
        assert model.queries == []

    def test_asking_for_meaning_alone_without_a_vector_is_an_error(self, given: Engine) -> None:
        with pytest.raises(StoreError, match="the caller brings the vectors"):
            given.search("north", alpha=1)


class TestOwnEmbeddersThatMisbehave:
    """A caller's own object may give anything; what is stored stays sound."""

    @pytest.mark.parametrize(
        ("rows", "told"),
        [
            (np.zeros((1, 3), dtype=np.float32), r"gave \(1, 3\) for 1 texts; expected \(1, 2\)"),
            (np.zeros((2, 2), dtype=np.float32), r"gave \(2, 2\) for 1 texts"),
            (np.array([[math.nan, 1.0]], dtype=np.float32), "NaN or infinite"),
        ],
    )
    def test_wrong_rows_are_not_stored(
        self, open_store: Open, taught: Any, monkeypatch: pytest.MonkeyPatch, rows: Any, told: str
    ) -> None:
        model = taught("cat", "dog")
        memory = open_store(embedder=model)
        memory.add("a dog", id="d")
        with monkeypatch.context() as patch:
            patch.setattr(model, "embed_passages", lambda texts: rows)
            added = memory.add("a cat", id="c")
            assert added.added == 1
            assert added.degraded[0].part == "dense"
            import re

            assert re.search(told, added.degraded[0].reason)
            assert memory.stats().embedded == 1
            assert set(ids(memory.search("cat dog", rerankers=[]))) == {"c", "d"}
        memory.wait(timeout=30)
        assert ids(memory.search("cat", alpha=1)) == ["c", "d"]

    def test_rows_of_any_length_are_made_unit(
        self, open_store: Open, taught: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = taught("cat", "dog")
        memory = open_store(embedder=model)
        monkeypatch.setattr(model, "embed_passages", lambda texts: [[30.0, 40.0]] * len(texts))
        memory.add("long vector", id="a")
        (hit,) = memory.search("cat", alpha=1)
        assert hit.contributions[0].raw == pytest.approx(0.6, abs=ROUNDING)


def test_a_document_whose_vector_finds_no_room_is_stored_and_the_answer_says_so(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The document and its vector are two transactions: an error for the second would tell of the first as undone."""
    memory = open_store(embedder="hashing")

    def full(*_: object) -> None:
        raise StoreError("store: the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(memory._collection.vectors, "add", full)
        added = memory.add("the kettle is descaled on Mondays", id="kettle")
    assert reasons(added) == ["store: the disk is full"]
    assert memory.get("kettle") is not None
    memory.wait(timeout=60)
    assert memory.stats().pending == 0, "with room again its meaning follows"
