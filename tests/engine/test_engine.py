"""Open a store, add documents, read them and delete them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.engine import Engine, collections_in, ingest
from trivet.errors import InputError, NotFoundError, StoreError
from trivet.types import Document, Link

Open = Callable[..., Engine]


def ids(found: Any) -> list[str]:
    return [item.id for item in found]


# --- adding -----------------------------------------------------------------------------------------------------------


class TestAdd:
    def test_one_text(self, words: Engine) -> None:
        told = words.add("the kettle is in the kitchen")
        assert (told.added, told.updated, told.unchanged, told.duplicates, len(told)) == (1, 0, 0, 0, 1)
        kept = words.get(told.ids[0])
        assert kept is not None
        assert (kept.text, kept.title, kept.kind, kept.meta, kept.importance) == (
            "the kettle is in the kitchen", "", "note", {}, 0.5,
        )  # fmt: skip
        assert kept.created == kept.updated
        assert kept.accessed is None

    def test_a_text_without_an_id_is_given_one_each_time(self, words: Engine) -> None:
        first, second = words.add("same words").ids[0], words.add("same words").ids[0]
        assert first != second
        assert words.stats().documents == 2

    def test_everything_a_document_can_have_comes_back(self, words: Engine) -> None:
        moments = {
            "created": datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
            "updated": datetime(2024, 2, 3, tzinfo=UTC),
            "accessed": datetime(2025, 5, 6, 7, 8, 9, tzinfo=UTC),
            "valid_from": datetime(2020, 1, 1, tzinfo=UTC),
            "valid_to": datetime(2030, 1, 1, tzinfo=UTC),
        }
        given = Document(
            "d1",
            "a text",
            "a title",
            "episode",
            {"session": "s1", "tags": ["x", "y"], "n": {"deep": 1.5}},
            0.9,
            **moments,
        )
        words.add(given)
        assert words.get("d1") == given

    @pytest.mark.parametrize(
        "given",
        [
            {"id": "a", "text": "one", "kind": "memory"},
            Document("a", "one", kind="memory"),
            [{"id": "a", "text": "one", "kind": "memory"}],
            (Document("a", "one", kind="memory"),),
            iter([Document("a", "one", kind="memory")]),
            ({"id": id, "text": "one", "kind": "memory"} for id in "a"),
        ],
        ids=["mapping", "Document", "list", "tuple", "iterator", "generator"],
    )
    def test_the_same_document_in_every_form(self, words: Engine, given: Any) -> None:
        assert words.add(given).ids == ("a",)
        assert words.get("a").kind == "memory"  # type: ignore[union-attr]

    def test_many_of_mixed_forms(self, words: Engine) -> None:
        told = words.add(["plain text", {"id": "m", "text": "mapping"}, Document("d", "document")])
        assert told.added == 3
        assert told.ids[1:] == ("m", "d")

    def test_keywords_go_with_one_document_only(self, words: Engine) -> None:
        words.add({"id": "m", "text": "mapping"}, kind="episode", importance=1)
        assert words.get("m").kind == "episode"  # type: ignore[union-attr]
        with pytest.raises(InputError, match="kind: only with one document"):
            words.add(["one", "two"], kind="episode")

    def test_nothing_is_nothing(self, words: Engine) -> None:
        assert words.add([]).ids == ()
        assert words.add(iter(())).added == 0

    def test_an_integer_id_is_text(self, words: Engine) -> None:
        assert words.add("x", id=7).ids == ("7",)

    def test_times_in_every_form_are_utc(self, words: Engine) -> None:
        summer = timezone(timedelta(hours=2))
        words.add("a", id="dt", created=datetime(2026, 3, 1, 12, tzinfo=summer))
        words.add("a", id="iso", created="2026-03-01T12:00:00+02:00")
        words.add("a", id="bare", created="2026-03-01T10:00:00")
        words.add("a", id="epoch", created=datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp())
        assert {d.created for d in words.documents()} == {datetime(2026, 3, 1, 10, tzinfo=UTC)}

    @pytest.mark.parametrize("moment", [datetime.max, datetime.min, datetime.max.replace(tzinfo=UTC)])
    def test_the_ends_of_time_are_times(self, words: Engine, moment: datetime) -> None:
        """`datetime.max` is how people write "for ever"; as a float it rounds into the year 10000."""
        words.add(
            "for ever",
            id="f",
            valid_to=moment if moment.year > 1 else None,
            valid_from=moment if moment.year == 1 else None,
        )
        kept = words.get("f")
        assert kept is not None
        assert (kept.valid_to or kept.valid_from).year == moment.year  # type: ignore[union-attr]

    def test_progress_is_told(self, words: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ingest, "BATCH_DOCUMENTS", 2)
        told: list[tuple[int, int]] = []
        words.add([f"text {n}" for n in range(5)], progress=lambda done, total: told.append((done, total)))
        assert told == [(2, 5), (4, 5), (5, 5)]


class TestUpsert:
    def test_the_later_text_replaces_the_earlier(self, words: Engine) -> None:
        words.add("the old words about walnuts", id="a")
        told = words.add("the new words about pecans", id="a")
        assert (told.added, told.updated, told.unchanged) == (0, 1, 0)
        assert ids(words.search("walnuts")) == []
        assert ids(words.search("pecans")) == ["a"]
        assert words.stats().documents == 1

    def test_the_same_again_is_unchanged(self, words: Engine) -> None:
        words.add({"id": "a", "text": "same", "meta": {"x": [1, 2]}})
        before = words.get("a")
        told = words.add({"id": "a", "text": "same", "meta": {"x": [1, 2]}})
        assert (told.added, told.updated, told.unchanged) == (0, 0, 1)
        assert words.get("a") == before

    @pytest.mark.parametrize(
        "change",
        [{"meta": {"x": 2}}, {"importance": 0.9}, {"kind": "fact"}, {"title": "t"}, {"valid_to": "2030-01-01"}],
        ids=lambda change: next(iter(change)),
    )
    def test_any_field_that_differs_is_an_update(self, words: Engine, change: dict[str, Any]) -> None:
        words.add("same", id="a")
        told = words.add("same", id="a", **change)
        assert (told.updated, told.unchanged) == (1, 0)

    def test_created_stays_and_updated_moves(self, words: Engine) -> None:
        words.add("one", id="a", created="2020-01-01", updated="2020-01-02")
        words.add("two", id="a")
        kept = words.get("a")
        assert kept is not None
        assert kept.created == datetime(2020, 1, 1, tzinfo=UTC)
        assert kept.updated is not None
        assert kept.updated > datetime(2020, 1, 2, tzinfo=UTC)

    def test_twice_in_one_call_the_later_wins(self, words: Engine) -> None:
        told = words.add([{"id": "a", "text": "first"}, {"id": "b", "text": "other"}, {"id": "a", "text": "second"}])
        assert (told.added, told.duplicates) == (2, 1)
        assert words.get("a").text == "second"  # type: ignore[union-attr]

    def test_old_metadata_no_longer_matches(self, words: Engine) -> None:
        words.add(
            [{"id": "a", "text": "x", "meta": {"team": "red"}}, {"id": "b", "text": "x", "meta": {"team": "red"}}]
        )
        words.add({"id": "a", "text": "x", "meta": {"team": "blue"}})
        assert ids(words.documents({"team": "red"})) == ["b"]
        assert ids(words.documents({"team": "blue"})) == ["a"]


class TestAllOrNothing:
    """A list is known as a whole, so a bad document in it stores none of it."""

    @pytest.mark.parametrize(
        "bad", [{"text": 5}, {"text": ""}, {"text": "x", "importance": 2}, {"text": "x", "vector": [1]}]
    )
    def test_a_list(self, words: Engine, monkeypatch: pytest.MonkeyPatch, bad: dict[str, Any]) -> None:
        monkeypatch.setattr(ingest, "BATCH_DOCUMENTS", 2)  # the bad one stands in the third transaction
        with pytest.raises(InputError):
            words.add([*({"text": f"good {n}"} for n in range(4)), bad])
        assert words.stats().documents == 0

    def test_an_iterator_keeps_what_came_before(self, words: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ingest, "BATCH_DOCUMENTS", 2)
        with pytest.raises(InputError, match="document 3: text: int is not text"):
            words.add(iter(["a", "b", "c", {"text": 5}]))
        assert words.stats().documents == 2

    def test_the_message_names_the_place_not_a_made_up_id(self, words: Engine) -> None:
        with pytest.raises(InputError, match=r"^document 1: text: int"):
            words.add([{"text": "fine"}, {"text": 5}])
        with pytest.raises(InputError, match=r"^document 'x': text: int"):
            words.add([{"text": "fine"}, {"id": "x", "text": 5}])


# --- reading and deleting ---------------------------------------------------------------------------------------------


class TestReadAndDelete:
    @pytest.fixture
    def five(self, words: Engine) -> Engine:
        words.add(
            [{"id": id, "text": f"letter {id}", "meta": {"odd": n % 2 == 0, "n": n}} for n, id in enumerate("abcde")]
        )
        return words

    def test_get_of_nothing_is_none(self, five: Engine) -> None:
        assert five.get("z") is None

    def test_documents_in_the_order_they_were_added(self, five: Engine) -> None:
        five.add({"id": "b", "text": "rewritten", "meta": {"odd": False, "n": 1}})
        assert ids(five.documents()) == list("abcde")
        assert ids(five.documents({"odd": True})) == ["a", "c", "e"]

    def test_delete_by_id_ids_iterator_and_filter(self, five: Engine) -> None:
        assert five.delete("a") == 1
        assert five.delete("a") == 0
        assert five.delete(iter(["b", "zz", "b"])) == 1
        assert five.delete(where={"n": {"gte": 4}}) == 1
        assert ids(five.documents()) == ["c", "d"]
        assert ids(five.search("letter")) == ["c", "d"]
        assert five.stats().documents == five.stats().passages == 2

    def test_delete_needs_exactly_one_way(self, five: Engine) -> None:
        for call in ({}, {"ids": "a", "where": {"n": 1}}):
            with pytest.raises(InputError, match="either ids or a filter"):
                five.delete(**call)
        assert five.stats().documents == 5

    @pytest.mark.parametrize("where", [{}, [], {"$and": [{}]}, {"$and": [{"$and": [{}, {}]}]}])
    def test_an_empty_filter_never_deletes_everything(self, five: Engine, where: Any) -> None:
        with pytest.raises(InputError, match="would delete everything"):
            five.delete(where=where)
        assert five.stats().documents == 5

    def test_a_deleted_document_can_come_back(self, five: Engine) -> None:
        five.delete("c")
        assert five.add("letter c again", id="c").added == 1
        assert ids(five.search("again")) == ["c"]


class TestLinks:
    @pytest.fixture
    def three(self, words: Engine) -> Engine:
        words.add([{"id": id, "text": id * 3} for id in "abc"])
        return words

    def test_link_and_unlink(self, three: Engine) -> None:
        assert three.link("a", "b", "supersedes", 2) == Link("a", "b", "supersedes", 2.0)
        three.link("c", "a")
        assert three.links("a") == [Link("a", "b", "supersedes", 2.0), Link("c", "a", "see-also", 1.0)]
        assert three.links("b") == [Link("a", "b", "supersedes", 2.0)]
        assert three.stats().links == 2
        assert three.unlink("a", "b", "see-also") == 0
        assert three.unlink("a", "b") == 1
        assert three.links() == [Link("c", "a")]

    def test_the_same_link_again_has_the_new_weight(self, three: Engine) -> None:
        three.link("a", "b", weight=1)
        three.link("a", "b", weight=3)
        assert three.links() == [Link("a", "b", weight=3.0)]

    def test_links_come_with_a_document(self, three: Engine) -> None:
        three.add(
            {"id": "d", "text": "d", "links": ["a", {"target": "b", "type": "part-of", "weight": 0.5}, Link("?", "c")]}
        )
        assert three.links("d") == [Link("d", "a"), Link("d", "b", "part-of", 0.5), Link("d", "c")]

    def test_a_link_needs_both_ends(self, three: Engine) -> None:
        with pytest.raises(NotFoundError, match="link target: document 'nobody' not found"):
            three.link("a", "nobody")
        with pytest.raises(NotFoundError, match="link source"):
            three.link("nobody", "a")

    def test_deleting_an_end_deletes_the_link(self, three: Engine) -> None:
        three.link("a", "b")
        three.link("b", "c")
        three.delete("a")
        assert three.links() == [Link("b", "c")]


# --- the file ---------------------------------------------------------------------------------------------------------


class TestOpenAndClose:
    def test_context_manager(self, tmp_path: Path) -> None:
        with trivet.open(tmp_path / "m.db", embedder="none") as memory:
            memory.add("durable", id="a")
        with pytest.raises(StoreError, match="closed; open it again"):
            memory.search("durable")
        with trivet.open(tmp_path / "m.db") as again:
            assert ids(again.search("durable")) == ["a"]

    def test_close_twice_is_harmless(self, words: Engine) -> None:
        words.close()
        words.close()
        with pytest.raises(StoreError, match="closed"):
            words.search("something")

    def test_closed_by_another_thread_as_a_search_begins(self, words: Engine) -> None:
        words.add("something")
        words._shared.legs.close()
        with pytest.raises(StoreError, match="it was closed while a search began"):
            words.search("something")

    def test_in_memory_stores_are_apart_and_leave_nothing(self, open_store: Open) -> None:
        one, other = open_store(":memory:"), open_store(":memory:")
        one.add("only here")
        assert other.stats().documents == 0
        assert len(one.search("here")) == 1
        place = Path(one.path)
        assert place.exists()
        one.close()
        assert not place.parent.exists()

    def test_without_create_nothing_is_made(self, tmp_path: Path) -> None:
        path = tmp_path / "m.db"
        with pytest.raises(NotFoundError, match=r"m\.db' has no 'default'; the store does not exist"):
            trivet.open(path, create=False)
        assert list(tmp_path.iterdir()) == []
        with trivet.open(path, "notes", embedder="none") as memory:
            memory.add("kept", id="a")
        with pytest.raises(NotFoundError, match="has no 'default'; there are: notes"):
            trivet.open(path, create=False)
        assert collections_in(path) == ["notes"]
        with trivet.open(path, "notes", create=False) as memory:
            assert ids(memory.documents()) == ["a"]

    def test_repr_names_the_file_and_the_collection(self, words: Engine) -> None:
        assert repr(words) == f"<trivet {words.path} collection='default'>"

    def test_a_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="is a folder; name a file such as"):
            trivet.open(tmp_path, embedder="none")

    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            ({"language": "klingon"}, "language 'klingon' is unknown"),
            ({"passage_size": -1}, "passage_size: -1"),
            ({"passage_size": "many"}, "passage_size: 'many'"),
            ({"passage_size": True}, "passage_size: True"),
            ({"embedder": "no-such"}, "embedder 'no-such'"),
        ],
    )
    def test_a_wrong_argument_does_not_spoil_the_file(self, open_store: Open, wrong: dict[str, Any], told: str) -> None:
        """The collection is made with its language for good: it must not be made with one that does not exist."""
        with pytest.raises(InputError, match=told):
            open_store(**wrong)
        assert open_store(language="de").add("gut").added == 1

    def test_what_a_collection_was_made_with_is_kept(self, open_store: Open) -> None:
        assert open_store(language="DE-at").stats().language == "de"
        assert open_store().stats().language == "de"
        assert open_store(language="de").stats().language == "de"
        with pytest.raises(InputError, match="collection 'default' was made with 'de', not 'fr'"):
            open_store(language="fr")

    @pytest.mark.parametrize("name", ["", "  ", "a\0b", "x" * 600, None])
    def test_a_collection_needs_a_name(self, open_store: Open, name: Any) -> None:
        with pytest.raises(InputError, match="collection:"):
            open_store(collection=name)


class TestCollections:
    def test_each_has_its_own_documents_settings_and_language(self, open_store: Open) -> None:
        english = open_store()
        german = english.collection("notizen", embedder="none", language="de")
        english.add("the houses", id="h", meta={"only": "here"})
        german.add("die Häuser", id="h", meta={"nur": "hier"})
        german.update_settings("episodes", lexical_weight=1)
        assert english.collections() == ["default", "notizen"]
        assert english.get("h").text == "the houses"  # type: ignore[union-attr]
        assert ids(german.search("Haus")) == ["h"]
        assert ids(english.search("Haus")) == []
        assert (english.settings.name, german.settings.name) == ("default", "episodes")
        assert (english.stats().fields, german.stats().fields) == (("only",), ("nur",))
        with pytest.raises(InputError, match="no document has a field 'nur'"):
            english.search("houses", where={"nur": "hier"})

    def test_deleting_in_one_leaves_the_other(self, open_store: Open) -> None:
        one = open_store()
        two = one.collection("two", embedder="none")
        for collection in (one, two):
            collection.add([{"id": "a", "text": "apple"}, {"id": "b", "text": "banana"}])
        one.delete(["a", "b"])
        assert ids(two.documents()) == ["a", "b"]
        assert ids(two.search("apple")) == ["a"]

    def test_drop(self, open_store: Open) -> None:
        one = open_store()
        two = one.collection("two", embedder="none")
        two.add("gone soon")
        two.drop()
        assert one.collections() == ["default"]
        with pytest.raises(NotFoundError, match="'two' was dropped"):
            two.search("gone")
        assert one.collection("two", embedder="none").stats().documents == 0

    def test_each_has_its_own_model(self, open_store: Open, taught: Any) -> None:
        one = open_store(embedder=taught("cat", "dog", name="small"))
        two = one.collection("two", embedder=taught("cat", "dog", "fox", name="large"))
        for collection in (one, two):
            collection.add([{"id": "c", "text": "cat"}, {"id": "d", "text": "dog"}])
        assert (one.stats().model, two.stats().model) == ("small", "large")
        assert ids(one.search("dog", alpha=1)) == ids(two.search("dog", alpha=1)) == ["d", "c"]


class TestStatsVerifyRebuild:
    def test_stats(self, open_store: Open, taught: Any) -> None:
        memory = open_store(embedder=taught("cat", "dog"))
        memory.add([{"id": "a", "text": "cat", "meta": {"x": {"y": 1}}, "links": ["b"]}, {"id": "b", "text": "dog"}])
        told = memory.stats()
        assert (told.documents, told.passages, told.embedded, told.pending, told.links) == (2, 2, 2, 0, 1)
        assert (told.collection, told.model, told.language, told.fields) == ("default", "taught", "en", ("x.y",))
        assert told.path == memory.path
        assert told.profile == str(memory.settings)
        assert told.bytes_store > 0
        assert told.embed_error == ""

    def test_a_long_document_is_cut(self, open_store: Open) -> None:
        memory = open_store(passage_size=20)
        memory.add(" ".join(f"Sentence number {n} is here." for n in range(40)), id="long")
        assert memory.stats().passages > 5
        (hit,) = memory.search('"number 33"')
        assert "number 33" in hit.text
        assert len(hit.text) < 250
        assert hit.document.text[hit.passage.start : hit.passage.end] == hit.text

    @pytest.fixture
    def eighteen(self, open_store: Open, taught: Any) -> Engine:
        memory = open_store(embedder=taught("cat", "dog"))
        memory.add([{"id": str(n), "text": f"cat {n}"} for n in range(20)])
        memory.wait()
        memory.search("cat")
        memory.delete(["3", "4"])
        return memory

    def test_verify(self, eighteen: Engine) -> None:
        report = eighteen.verify()
        assert report.ok
        expected = {"documents": 18, "passages": 18, "words": 18, "vectors": 18}
        assert {name: report.checked[name] for name in expected} == expected

    def test_rebuild(self, eighteen: Engine) -> None:
        before = [(hit.id, hit.score) for hit in eighteen.search("cat 7", k=20)]
        eighteen.rebuild()
        assert [(hit.id, hit.score) for hit in eighteen.search("cat 7", k=20)] == before
        assert {id for id, _ in before} == {str(n) for n in range(20)} - {"3", "4"}

    def test_after_rebuild_there_is_nothing_to_verify_away(self, eighteen: Engine) -> None:
        eighteen.rebuild()
        assert eighteen.verify().problems == ()

    def test_verify_finds_a_lie(self, words: Engine) -> None:
        words.add("a document", id="a")
        with words._store.database.write() as connection:
            connection.execute("UPDATE collections SET documents = 7")
        report = words.verify()
        assert not report.ok
        assert "documents: the count says 7, there are 1" in report.problems


# --- one store, several hands -----------------------------------------------------------------------------------------


class TestSettings:
    def test_a_change_is_seen_by_another_engine_at_its_next_search(self, open_store: Open) -> None:
        one, other = open_store(), open_store()
        one.add([{"id": str(n), "text": f"apple {n}"} for n in range(8)])
        assert len(other.search("apple", k=None)) == 8
        one.update_settings(k=3)
        assert len(other.search("apple")) == 3
        assert other.settings.k == 3
        assert other.search("apple").profile == str(one.settings)

    def test_changes_add_up_and_a_profile_starts_afresh(self, words: Engine) -> None:
        words.update_settings(k=3)
        told = words.update_settings(rrf_k=7, fusion="rrf", dense_weight=2)
        assert (told.k, told.rrf_k, told.weights["dense"], told.weights["lexical"]) == (3, 7.0, 2.0, 0.5)
        assert words.update_settings("snippets").k == 20
        assert words.settings == trivet.PROFILES["snippets"]

    def test_a_wrong_change_changes_nothing(self, words: Engine) -> None:
        before = words.settings
        nothing = {"lexical": 0, "dense": 0, "graph": 0}
        for wrong in ({"k": 5, "rrf_k": -1}, {"k": 5, "no_such": 1}, {"k": 5, "weights": nothing}):
            with pytest.raises(InputError):
                words.update_settings(**wrong)
        assert words.settings == before

    def test_settings_survive_reopening(self, open_store: Open) -> None:
        open_store("s.db").update_settings("memories", k=4, trigram_gate=0.5)
        again = open_store("s.db").settings
        assert again == trivet.PROFILES["memories"].with_changes({"k": 4, "trigram_gate": 0.5})


def test_links_are_replaced_when_they_are_said_and_kept_when_they_are_not(tmp_path: Path) -> None:
    with trivet.open(tmp_path / "m.db", embedder="none") as engine:
        engine.add(
            [{"id": "a", "text": "one", "links": ["b"]}, {"id": "b", "text": "two"}, {"id": "c", "text": "three"}]
        )
        assert engine.add({"id": "a", "text": "one"}).unchanged == 1
        assert [link.target for link in engine.links("a")] == ["b"]
        assert engine.add({"id": "a", "text": "one", "links": ["c"]}).updated == 1
        assert [link.target for link in engine.links("a")] == ["c"]
        engine.add({"id": "a", "text": "one", "links": []})
        assert engine.links("a") == []
