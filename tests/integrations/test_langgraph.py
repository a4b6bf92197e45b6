"""LangGraph: the same operations on its own store in memory and on ours, and what is special to the adapter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet

base = pytest.importorskip("langgraph.store.base", reason="needs the extra langgraph: `make test-integrations`")

from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from programs import run_example, run_section

from trivet.errors import InputError
from trivet.integrations.langgraph import TrivetStore

USER, NOTES, SHARED = ("users", "ana"), ("users", "ana", "notes"), ("shared",)
ITEMS: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (USER, "food", {"text": "likes pizza with mushrooms", "stars": 5, "tags": ["food", "warm"]}),
    (USER, "city", {"text": "lives near the harbour", "stars": 3, "tags": "food", "place": {"zip": 20457, "by": None}}),
    (NOTES, "door", {"text": "the greenhouse door sticks", "stars": 4, "done": False}),
    (NOTES, "pump", {"text": "a quieter irrigation pump", "stars": 4.5, "done": True, "place": {"zip": 1, "at": {}}}),
    (SHARED, "a/b", {"text": "the office opens at nine", "stars": None, "tags": []}),
    (("shared/a",), "b", {"text": "", "list": [1, {"two": 2}]}),
]
FILTERS: list[dict[str, Any]] = [
    {"stars": 4},
    {"stars": {"$gt": 3, "$lte": 4.5}},
    {"stars": {"$gte": 4}, "done": False},
    {"stars": {"$ne": 4}},
    {"stars": {"$eq": 5}},
    {"stars": None},
    {"tags": "food"},
    {"tags": ["food", "warm"]},
    {"tags": ["warm", "food"]},
    {"tags": []},
    {"tags": {"$ne": "food"}},
    {"place": {"zip": 20457}},
    {"place": {"zip": 20457, "by": None}},
    {"place": {}},
    {"place": {"at": {}}},
    {"place": None},
    {"list": [1, {"two": 2}]},
    {"nothing": 1},
    {"nothing": None},
    {"nothing": {"$ne": 1}},
    {"text": ""},
]
MATCHES: list[tuple[tuple[str, tuple[str, ...]], ...]] = [
    (),
    (("prefix", ("users",)),),
    (("prefix", ("users", "*", "notes")),),
    (("suffix", ("notes",)),),
    (("suffix", ("ana", "*")),),
    (("prefix", ("users",)), ("suffix", ("ana",))),
    (("prefix", ("shared", "a", "b", "c")),),
    (("suffix", ()),),
]


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[TrivetStore]:
    with trivet.open(tmp_path / "memory.db", embedder="hashing:64") as engine:
        yield TrivetStore(engine, index={"fields": ["text"]})


@pytest.fixture
def theirs() -> InMemoryStore:
    return InMemoryStore(index={"dims": 8, "embed": DeterministicFakeEmbedding(size=8), "fields": ["text"]})


def filled(*stores: Any) -> None:
    for store in stores:
        for namespace, key, value in ITEMS:
            store.put(namespace, key, value)


def shown(result: Any) -> Any:
    """Return the result of an operation without times and scores, which no two stores have in common."""
    if isinstance(result, list):
        return [shown(each) for each in result]
    return (result.namespace, result.key, result.value) if hasattr(result, "key") else result


def assert_same(ours: TrivetStore, theirs: InMemoryStore, ops: list[Op], ordered: bool = True) -> list[Any]:
    """Run the operations on both stores; compare the results and return them."""
    one, other = shown(ours.batch(ops)), shown(theirs.batch(ops))
    if not ordered:
        one, other = ([sorted(each, key=repr) for each in results] for results in (one, other))
    assert one == other
    return list(one)


class TestTheSameAsTheirs:
    def test_get(self, ours: TrivetStore, theirs: InMemoryStore) -> None:
        filled(ours, theirs)
        ops: list[Op] = [GetOp(namespace, key) for namespace, key, _ in ITEMS]
        found = assert_same(ours, theirs, [*ops, GetOp(USER, "nothing"), GetOp(("nowhere",), "food")])
        assert found[-2:] == [None, None]

    @pytest.mark.parametrize("filter", FILTERS, ids=repr)
    def test_filters(self, ours: TrivetStore, theirs: InMemoryStore, filter: dict[str, Any]) -> None:
        items = [(namespace, key, value) for namespace, key, value in ITEMS if _comparable(filter, value)]
        for namespace, key, value in items:
            ours.put(namespace, key, value)
            theirs.put(namespace, key, value)
        assert_same(ours, theirs, [SearchOp((), filter), SearchOp(("users",), filter), SearchOp(NOTES, filter)])

    @pytest.mark.parametrize("filter", [None, {"stars": {"$ne": 4}}, {"nothing": 1}], ids=repr)
    def test_a_query_finds_the_same_items(
        self, ours: TrivetStore, theirs: InMemoryStore, filter: dict[str, Any] | None
    ) -> None:
        filled(ours, theirs)
        ops: list[Op] = [SearchOp(prefix, filter, query="harbour") for prefix in ((), USER, NOTES, ("none",))]
        assert_same(ours, theirs, ops, ordered=False)

    def test_pages(self, ours: TrivetStore, theirs: InMemoryStore) -> None:
        filled(ours, theirs)
        assert_same(ours, theirs, [SearchOp((), limit=2, offset=offset) for offset in range(8)])
        assert_same(ours, theirs, [SearchOp((), limit=0), SearchOp(USER, limit=1, offset=1)])

    @pytest.mark.parametrize("matches", MATCHES, ids=repr)
    @pytest.mark.parametrize("depth", [None, 1, 2])
    def test_namespaces(
        self, ours: TrivetStore, theirs: InMemoryStore, matches: tuple[Any, ...], depth: int | None
    ) -> None:
        filled(ours, theirs)
        conditions = tuple(MatchCondition(kind, path) for kind, path in matches)
        ops: list[Op] = [ListNamespacesOp(conditions, depth, limit, offset) for limit, offset in ((9, 0), (1, 1))]
        assert_same(ours, theirs, ops)

    def test_a_batch_reads_the_state_before_its_writes(self, ours: TrivetStore, theirs: InMemoryStore) -> None:
        filled(ours, theirs)
        written = assert_same(
            ours,
            theirs,
            [
                PutOp(USER, "food", {"text": "likes soup"}),
                GetOp(USER, "food"),
                PutOp(USER, "city", None),
                PutOp(USER, "new", {"text": "first"}),
                PutOp(USER, "new", {"text": "last"}),
                PutOp(USER, "never there", None),
                SearchOp(USER, limit=2),
            ],
        )
        assert written[1][2]["stars"] == 5
        assert_same(ours, theirs, [GetOp(USER, key) for key in ("food", "city", "new")])

    def test_an_item_that_is_not_indexed_comes_last(self, ours: TrivetStore, theirs: InMemoryStore) -> None:
        for store in (ours, theirs):
            store.put(USER, "hidden", {"text": "the harbour"}, index=False)
            store.put(USER, "shown", {"text": "the harbour"})
            store.put(USER, "other", {"text": "x", "more": {"deep": ["the harbour"]}}, index=["more.deep[*]"])
        found = assert_same(ours, theirs, [SearchOp(USER, query="harbour", limit=limit) for limit in (3,)], False)
        assert len(found[0]) == 3
        for store in (ours, theirs):
            last = store.search(USER, query="the harbour")[-1]
            assert (last.key, last.score) == ("hidden", None)

    def test_wrong_names_are_refused(self, ours: TrivetStore, theirs: InMemoryStore) -> None:
        for store in (ours, theirs):
            with pytest.raises(ValueError, match="periods"):
                store.put(("a.b",), "key", {})
            with pytest.raises(ValueError, match="perator"):
                store.put(USER, "food", {"stars": 1})
                store.search(USER, filter={"stars": {"$near": 5}})


def _comparable(filter: dict[str, Any], value: dict[str, Any]) -> bool:
    """Tell whether their store can compare these: it raises where a number is compared with nothing."""
    ranged = isinstance(filter.get("stars"), dict) and any(name[:3] in ("$gt", "$lt") for name in filter["stars"])
    return not ranged or isinstance(value.get("stars"), int | float)


class TestSearch:
    def test_words_and_meaning_order_the_items_and_give_them_scores(self, ours: TrivetStore) -> None:
        filled(ours)
        found = ours.search(("users",), query="does the greenhouse door stick", limit=2)
        assert found[0].key == "door"
        scores = [item.score for item in found]
        assert all(score is not None and 0 <= score <= 1 for score in scores)

    def test_the_same_text_under_two_keys_is_two_items(self, ours: TrivetStore) -> None:
        for key in ("one", "two"):
            ours.put(USER, key, {"text": "the greenhouse door sticks"})
        assert {item.key for item in ours.search(USER, query="greenhouse door")} == {"one", "two"}

    def test_without_an_index_the_whole_value_is_searched(self, tmp_path: Path) -> None:
        with trivet.open(tmp_path / "m.db", embedder="none") as engine:
            store = TrivetStore(engine)
            store.put(USER, "deep", {"a": {"b": "harbour"}})
            assert store.search(USER, query="harbour")[0].key == "deep"

    def test_a_value_that_is_not_json_is_named(self, ours: TrivetStore) -> None:
        with pytest.raises(InputError, match=r"ttl of 'food' in .*-1 is not a number of minutes above 0"):
            ours.put(USER, "food", {"text": "pizza"}, ttl=-1)
        with pytest.raises(InputError, match=r"value of 'food' in .*str is not a mapping"):
            ours.put(USER, "food", "tea")  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"value of 'food' in .*object is not JSON"):
            ours.put(USER, "food", {"text": "pizza", "when": [object()]})
        with pytest.raises(InputError, match=r"value\.size: .* does not fit 64 bits"):
            ours.put(USER, "food", {"text": "pizza", "size": 2**70})

    def test_other_documents_of_the_collection_are_left_alone(self, ours: TrivetStore) -> None:
        ours.engine.add("a note about the harbour", id="shared/note")
        filled(ours)
        assert ours.get(SHARED, "note") is None
        assert "a note about the harbour" not in [item.value.get("text") for item in ours.search((), query="harbour")]
        assert all(isinstance(namespace, tuple) for namespace in ours.list_namespaces())

    def test_an_embedding_of_the_user(self, tmp_path: Path) -> None:
        model = DeterministicFakeEmbedding(size=8)
        with pytest.raises(InputError, match="dims is 9"):
            TrivetStore(tmp_path / "m.db", index={"dims": 9, "embed": model})
        store = TrivetStore(tmp_path / "m.db", index={"dims": 8, "embed": model})
        assert str(store.engine.stats().model).startswith("langchain/DeterministicFakeEmbedding")
        store.engine.close()


class TestTimeToLive:
    def test_an_item_expires_and_reading_prolongs_it(self, ours: TrivetStore) -> None:
        ours.put(USER, "kept", {"text": "one"}, ttl=1)
        ours.put(USER, "gone", {"text": "two"}, ttl=0.002)  # 0.12 seconds
        before = ours.engine.get("users/ana/kept")
        time.sleep(0.3)
        assert [item.key for item in ours.search(USER, refresh_ttl=False)] == ["kept"]
        assert ours.get(USER, "gone") is None
        same = ours.engine.get("users/ana/kept")
        item = ours.get(USER, "kept")
        after = ours.engine.get("users/ana/kept")
        assert before and same and after and item and before.expires and after.expires
        assert same.expires == before.expires
        assert after.expires > before.expires
        again = ours.get(USER, "kept", refresh_ttl=False)
        assert again is not None
        assert again.updated_at == item.updated_at, "reading is not a write"

    def test_the_configuration_gives_the_default(self, ours: TrivetStore) -> None:
        store = TrivetStore(ours.engine, ttl={"default_ttl": 5, "refresh_on_read": False})
        store.put(USER, "short", {"text": "one"})
        store.put(USER, "forever", {"text": "two"}, ttl=None)
        first = store.engine.get("users/ana/short")
        store.get(USER, "short")
        assert first is not None
        assert first.expires is not None
        assert store.engine.get("users/ana/short") == first
        assert getattr(store.engine.get("users/ana/forever"), "expires", "missing") is None


class TestAsynchronous:
    def test_all_methods(self, ours: TrivetStore) -> None:
        async def work() -> tuple[Any, ...]:
            await asyncio.gather(*(ours.aput(namespace, key, value) for namespace, key, value in ITEMS))
            await ours.adelete(USER, "city")
            found = await ours.asearch(USER, query="pizza", limit=1)
            item, gone = await ours.aget(USER, "food"), await ours.aget(USER, "city")
            return found[0].key, item and item.value, gone, await ours.alist_namespaces(prefix=("users",))

        assert asyncio.run(work()) == ("food", ITEMS[0][2], None, [USER, NOTES])

    def test_it_outlives_the_process_that_wrote(self, tmp_path: Path) -> None:
        store = TrivetStore(tmp_path / "m.db")
        store.put(USER, "food", {"text": "likes pizza"})
        store.engine.close()
        again = TrivetStore(tmp_path / "m.db")
        assert again.search(USER, query="pizza")[0].value == {"text": "likes pizza"}
        again.engine.close()


def test_the_example_prints_what_it_finds(capsys: pytest.CaptureFixture[str]) -> None:
    run_example("langgraph")
    assert capsys.readouterr().out.splitlines() == [
        "('users', 'ana') food Ana is allergic to peanuts.",
        "['food', 'food', 'login']",
        "[('users', 'ana'), ('users', 'ben')]",
    ]


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_section("LangGraph")
    names["store"].engine.close()
    assert [item.key for item in names["items"]] == ["food"]
