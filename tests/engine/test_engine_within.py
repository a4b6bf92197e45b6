"""An engine that is bound to a filter: every public method of ``Engine``, held to one table."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet
from tenants import MARKS, OWN, SECRET, check_hidden, filled, told
from trivet.engine import Engine
from trivet.engine.request import SearchRequest
from trivet.errors import InputError, NotAllowedError, NotFoundError, TakenError, TrivetError
from trivet.filters import Eq
from trivet.types import Results

ALICE = MARKS["alice"]
EVERY = {"lexical": 1.0, "dense": 1.0, "trigram": 1.0, "graph": 1.0}
Call = Callable[[Engine, Path], Any]

SAME, IDS, REFUSED, UNTOLD = "same", "ids", "refused", "untold"


def deprecated(method: Callable[[], Any]) -> Any:
    with pytest.warns(DeprecationWarning, match="redundant"):
        return method()


def found(results: Results) -> Any:
    """What of a search does not depend on how common a word is in the whole collection."""
    return {
        "hits": sorted((hit.id, hit.text, hit.stands_for, hit.resolved_by) for hit in results),
        "stages": [stage.name for stage in results.trace],
        "degraded": results.degraded,
    }


def each(*calls: Callable[[], Any]) -> list[Any]:
    """What every call gives, or why it is refused."""
    answers: list[Any] = []
    for call in calls:
        try:
            answers.append(call())
        except TrivetError as error:
            answers.append(f"{type(error).__name__}: {error}")
    return answers


def both_ids(call: Callable[[str], Any]) -> list[Any]:
    """For an id that is hidden, and for one that does not exist: the answers must be the same up to the id."""
    hidden, absent = each(lambda: call(f"{SECRET}-1"), lambda: call("nowhere-1"))
    assert told(hidden).replace(f"{SECRET}-1", "ID") == told(absent).replace("nowhere-1", "ID")
    return [absent]


#: Method → how a bound engine fares, and a call. SAME: as on a store with the caller's own documents alone; IDS: the
#: same documents, while scores may differ; REFUSED: of all documents; UNTOLD: nothing of documents is told.
METHODS: dict[str, tuple[str, Call]] = {
    "add": (
        SAME,
        lambda engine, _: each(
            lambda: engine.add("A new one.", id="new-1"),
            lambda: engine.add({"id": f"{ALICE}-1", "text": "Changed."}),
            lambda: engine.add("Hers.", id="new-2", meta={"tenant": "bobby"}),
            lambda: engine.add("Both.", id="new-3", meta={"tenant": ["alice", "bobby"]}),
            lambda: engine.add("Linked.", id="new-4", links=["nowhere-1"]),
            lambda: [document.meta for document in engine.documents(Eq("id", "new-1"))],
        ),
    ),
    "bound": (SAME, lambda engine, _: engine.bound),
    "careful": (SAME, lambda engine, _: engine.careful),
    "embed": (SAME, lambda engine, _: each(lambda: engine.embed(["pale door"]).tolist())),
    "backup": (REFUSED, lambda engine, folder: engine.backup(folder / "copy.db")),
    "close": (UNTOLD, lambda engine, _: engine.close()),
    "collection": (REFUSED, lambda engine, _: engine.collection("other")),
    "collections": (REFUSED, lambda engine, _: engine.collections()),
    "compact": (REFUSED, lambda engine, _: engine.compact()),
    "space": (REFUSED, lambda engine, _: engine.space()),
    "sweep": (REFUSED, lambda engine, _: engine.sweep()),
    "forget": (
        SAME,
        lambda engine, _: each(
            lambda: both_ids(engine.forget),
            lambda: engine.forget([f"{SECRET}-2", f"{ALICE}-2"]),
            lambda: engine.forget(where="ticket=T-1"),
            lambda: engine.forget(f"{ALICE}-3", compact=True),
        ),
    ),
    "delete": (
        SAME,
        lambda engine, _: each(
            lambda: both_ids(engine.delete),
            lambda: engine.delete([f"{SECRET}-2", f"{ALICE}-2"]),
            lambda: engine.delete(where="ticket=T-1"),
            lambda: engine.delete(where="kind!=nothing"),
        ),
    ),
    "documents": (SAME, lambda engine, _: [list(engine.documents()), list(engine.documents("ticket=T-1"))]),
    "drop": (REFUSED, lambda engine, _: engine.drop()),
    "explain": (
        IDS,
        lambda engine, _: each(
            lambda: both_ids(lambda id: engine.explain("pump", id)),
            lambda: both_ids(lambda id: engine.explain("pump", id, "ticket=T-1")),
            lambda: bool(engine.explain("pump", f"{ALICE}-1").rank),
            lambda: engine.explain("pump", f"{ALICE}-1", f"{SECRET}key=1"),
        ),
    ),
    "export": (
        SAME,
        lambda engine, folder: [engine.export(folder / "out.jsonl"), (folder / "out.jsonl").read_text()],
    ),
    "facets": (SAME, lambda engine, _: [engine.facets(), engine.facets("ticket=T-1")]),
    "feedback": (
        SAME,
        lambda engine, _: each(
            lambda: both_ids(lambda id: engine.feedback("why", id)),
            lambda: engine.feedback("why", f"{ALICE}-1").query,
        ),
    ),
    "feedbacks": (SAME, lambda engine, _: engine.feedbacks()),
    "forget_feedback": (
        SAME,
        lambda engine, _: each(
            lambda: both_ids(lambda id: engine.forget_feedback(id=id)),
            lambda: engine.forget_feedback(f"{SECRET} question"),
            engine.forget_feedback,
        ),
    ),
    "get": (SAME, lambda engine, _: [both_ids(engine.get), engine.get(f"{ALICE}-1"), engine.get(f"{ALICE}-1", "id=x")]),
    "import_": (SAME, lambda engine, folder: imported(engine, folder)),
    "language": (SAME, lambda engine, _: engine.language),
    "lines": (SAME, lambda engine, _: [list(engine.lines()), list(engine.lines(vectors=True))]),
    "link": (
        SAME,
        lambda engine, _: each(
            lambda: both_ids(lambda id: engine.link(f"{ALICE}-1", id)),
            lambda: both_ids(lambda id: engine.link(id, f"{ALICE}-1")),
            lambda: engine.link(f"{ALICE}-1", f"{ALICE}-5"),
        ),
    ),
    "links": (SAME, lambda engine, _: [both_ids(engine.links), engine.links(), engine.links(f"{ALICE}-1")]),
    "loading": (SAME, lambda engine, _: loaded(engine)),
    "name": (SAME, lambda engine, _: engine.name),
    "page": (SAME, lambda engine, _: [engine.page(), paged(engine)]),
    "patch": (
        SAME,
        lambda engine, _: each(
            lambda: both_ids(lambda id: engine.patch(id, title="x")),
            lambda: engine.patch(f"{ALICE}-1", title="x"),
            lambda: engine.patch(f"{ALICE}-1", meta={"tenant": "bobby"}),
            lambda: engine.patch(f"{ALICE}-1", meta={"tenant": None}),
            lambda: engine.patch(f"{ALICE}-1", links=["nowhere-1"]),
        ),
    ),
    "path": (UNTOLD, lambda engine, _: engine.path),
    "prepare": (REFUSED, lambda engine, _: engine.prepare()),
    "rebuild": (REFUSED, lambda engine, _: engine.rebuild()),
    "reembed": (REFUSED, lambda engine, _: engine.reembed("none")),
    "remember": (
        IDS,
        lambda engine, _: each(
            lambda: remembered(
                engine, f"The pump in the greenhouse is loud, {SECRET} says 1. It swells when it rains."
            ),
            lambda: remembered(engine, f"The pump in the greenhouse is loud, {ALICE} says 1. It swells when it rains."),
            lambda: engine.remember("x", where=f"{SECRET}key=1"),
        ),
    ),
    "restore_feedback": (
        SAME,
        lambda engine, _: [
            engine.restore_feedback([{"query": "why", "id": id, "good": True}])
            for id in (f"{SECRET}-1", "nowhere-1", f"{ALICE}-1")
        ],
    ),
    "revert_settings": (REFUSED, lambda engine, _: engine.revert_settings()),
    "search": (
        IDS,
        lambda engine, _: each(
            lambda: found(engine.search("loud pump greenhouse", k=50)),
            lambda: found(engine.search(f"{SECRET} {ALICE}", k=50, weights=EVERY, neighbours=2, expansion=3)),
            lambda: found(engine.search("loud pump", k=50, understanding="full", weights={"lexical": 1.0})),
            lambda: found(engine.search("loud pump", k=50, where="ticket=T-1", exclude=[f"{SECRET}-1"])),
            lambda: engine.search("pump", where=f"{SECRET}key=1"),
            lambda: engine.search("pump", where="nokey=1"),
        ),
    ),
    "pipeline_over": (
        UNTOLD,
        lambda engine, _: found(
            engine.pipeline_over(lambda whole: whole, engine._shared.legs).search(SearchRequest("pump"))
        ),
    ),
    "settings": (SAME, lambda engine, _: engine.settings.to_dict()),
    "settings_history": (REFUSED, lambda engine, _: engine.settings_history()),
    "standing": (SAME, lambda engine, _: deprecated(engine.standing)),
    "redundant": (
        SAME,
        lambda engine, _: [
            both_ids(lambda id: engine.redundant([id])),
            engine.redundant(),
            engine.redundant([f"{ALICE}-4"]),
        ],
    ),
    "stats": (SAME, lambda engine, _: {**told_stats(engine)}),
    "timeline": (
        SAME,
        lambda engine, _: [engine.timeline(), engine.timeline(step="day"), engine.timeline("ticket=T-1")],
    ),
    "touch": (SAME, lambda engine, _: [both_ids(engine.touch), engine.touch([f"{SECRET}-1", f"{ALICE}-1"])]),
    "unlink": (
        SAME,
        lambda engine, _: [
            both_ids(lambda id: engine.unlink(id, f"{ALICE}-1")),
            engine.unlink(f"{SECRET}-1", f"{SECRET}-2"),
            engine.unlink(f"{ALICE}-1", f"{ALICE}-2"),
        ],
    ),
    "update_settings": (REFUSED, lambda engine, _: engine.update_settings(k=3)),
    "url": (UNTOLD, lambda engine, _: engine.url),
    "verify": (REFUSED, lambda engine, _: engine.verify()),
    "wait": (SAME, lambda engine, _: each(engine.wait, lambda: engine.wait(lambda done, total: None))),
    "within": (
        SAME,
        lambda engine, _: [
            [document.id for document in engine.within("kind=note").documents()],
            [document.id for document in engine.within({"tenant": "bob"}).documents()],
        ],
    ),
}


def imported(engine: Engine, folder: Path) -> list[Any]:
    engine.export(folder / "own.jsonl")
    engine.delete(where="kind!=nothing")
    added = engine.import_(folder / "own.jsonl")
    return [len(added.ids), sorted(document.id for document in engine.documents())]


def loaded(engine: Engine) -> list[Any]:
    with engine.loading() as load:
        return [load.add([{"text": "One.", "id": "one"}, {"text": "Two.", "id": "two"}]), load.finish()]


def paged(engine: Engine) -> list[str]:
    ids: list[str] = []
    after = None
    while True:
        page = engine.page(after=after, limit=3)
        ids += [document.id for document in page]
        after = page.next
        if after is None:
            return ids
        assert not after.isdigit()
        with pytest.raises(InputError, match="not the `next` of a page"):
            engine.page(after="12")


def remembered(engine: Engine, text: str) -> Any:
    fields = {"title": f"{ALICE} title 1", "kind": f"{ALICE}kind"}
    meta = {f"{ALICE}key": f"{ALICE}value", "ticket": "T-1", "number": 1}
    done = engine.remember(text, **fields, meta=meta)  # type: ignore[arg-type]
    return [done.stored, done.reinforced, sorted(item.id for item in done.similar)]


def told_stats(engine: Engine) -> dict[str, Any]:
    stats = engine.stats()
    return {name: getattr(stats, name) for name in type(stats).__dataclass_fields__ if name != "path"}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with a store of both tenants, and one with a store of alice alone."""
    folders = tmp_path_factory.mktemp("both"), tmp_path_factory.mktemp("alone")
    filled(folders[0] / "memory.db", "bob", "alice")
    filled(folders[1] / "memory.db", "alice")
    return folders


def asked(folder: Path, to: Path, call: Call) -> str:
    shutil.copytree(folder, to)
    with trivet.open(to / "memory.db") as whole:
        answer = told(call(whole.within(OWN), to))
    return answer.replace(str(to), "")


def test_every_public_method_is_in_the_table() -> None:
    assert set(METHODS) == {name for name in dir(Engine) if not name.startswith("_")}


@pytest.mark.parametrize("name", METHODS)
def test_a_bound_engine_tells_nothing_of_others(name: str, stores: tuple[Path, Path], tmp_path: Path) -> None:
    fares, call = METHODS[name]
    if fares == REFUSED:
        with pytest.raises(NotAllowedError, match="bound to a filter"):
            asked(stores[0], tmp_path / "refused", call)
        return
    here, alone = asked(stores[0], tmp_path / "here", call), asked(stores[1], tmp_path / "alone", call)
    bare = here.replace(f"{SECRET}-1", "").replace(f"{SECRET}key", "").replace(f"{SECRET} question", "")
    check_hidden(bare)  # what the caller itself named may come back in a message
    if fares != UNTOLD:
        assert here == alone


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("drop", "close", "within")])
def test_a_bound_engine_changes_nothing_of_others(name: str, stores: tuple[Path, Path], tmp_path: Path) -> None:
    def others(engine: Engine) -> str:
        return told([list(engine.within({"tenant": "bob"}).lines())])

    shutil.copytree(stores[0], tmp_path / "here")
    with trivet.open(tmp_path / "here" / "memory.db") as whole:
        before = others(whole)
        each(lambda: METHODS[name][1](whole.within(OWN), tmp_path / "here"))
        assert others(whole) == before
        assert whole.settings_history()[0].number == 2


@pytest.fixture
def whole(tmp_path: Path) -> Iterator[Engine]:
    with trivet.open(tmp_path / "memory.db", embedder="none") as engine:
        engine.add("Hers.", id="hers", meta={"tenant": "bob", "secretkey": 1})
        yield engine


def test_a_tenant_without_documents_asks_as_in_an_empty_store(whole: Engine, tmp_path: Path) -> None:
    with trivet.open(tmp_path / "empty.db", embedder="none") as empty:
        for where in (OWN, {"nobody_has_it": "alice"}):
            one, other = whole.within(where), empty.within(where)
            for call in (
                lambda engine: found(engine.search("hers")),
                lambda engine: found(engine.search("hers", where="secretkey=1")),
                lambda engine: found(engine.search("hers", where="nokey=1")),
                lambda engine: list(engine.documents("secretkey=1")),
                lambda engine: engine.facets(),
            ):
                assert told(call(one)) == told(call(other))
        whole.within({"nobody_has_it": "alice"}).add("Mine.", id="mine")
        assert whole.get("mine").meta == {"nobody_has_it": "alice"}  # type: ignore[union-attr]


def test_an_id_that_is_taken_outside_is_refused_without_a_word_of_it(whole: Engine) -> None:
    mine = whole.within(OWN)
    for call in (
        lambda: mine.add("Mine.", id="hers"),
        lambda: mine.remember("Mine.", id="hers"),
        lambda: mine.add([{"text": "ok", "id": "ok"}, {"text": "Mine.", "id": "hers"}]),
    ):
        with pytest.raises(TakenError, match="cannot be used here"):
            call()
    assert list(mine.documents()) == []


def test_feedback_does_not_come_back_with_an_id_of_another(whole: Engine) -> None:
    hers, mine = whole.within({"tenant": "bob"}), whole.within(OWN)
    hers.feedback("her question", "hers")
    hers.delete("hers")
    mine.add("Mine.", id="hers")
    assert mine.feedbacks() == []


def test_links_to_what_is_hidden_stay(whole: Engine) -> None:
    mine = whole.within(OWN)
    mine.add([{"text": "One.", "id": "one"}, {"text": "Two.", "id": "two"}])
    whole.link("one", "hers", "see-also")
    assert mine.add({"text": "One.", "id": "one", "links": []}).unchanged == 1
    assert mine.add({"text": "One.", "id": "one", "links": ["two"]}).updated == 1
    assert [link.target for link in mine.links("one")] == ["two"]
    assert [link.target for link in whole.links("one")] == ["hers", "two"]


def test_a_document_of_several_tenants_stays_theirs(whole: Engine) -> None:
    whole.add("Shared.", id="shared", meta={"tenant": ["alice", "bob"]})
    mine = whole.within(OWN)
    assert mine.patch("shared", title="Ours").title == "Ours"
    for tenants in (["alice", "carol"], "bob"):
        with pytest.raises(InputError, match="outside of what this caller may write"):
            mine.patch("shared", meta={"tenant": tenants})
    with pytest.raises(InputError, match="tenant='alice' and nothing else there"):
        mine.add("Mine.", id="new", meta={"tenant": ["alice", "bob"]})


@pytest.mark.parametrize("field", ["accessed", "updated", "importance"])
def test_a_field_that_changes_with_use_binds_nobody(whole: Engine, field: str) -> None:
    with pytest.raises(InputError, match=field):
        whole.within({field: {"gte": 0}})


@pytest.mark.parametrize("where", [None, {}, [], ""])
def test_an_empty_filter_binds_nobody(whole: Engine, where: Any) -> None:
    for engine in (whole, whole.within(OWN)):
        with pytest.raises(InputError):
            engine.within(where)


def test_cursors_of_one_store_are_none_in_another(whole: Engine, tmp_path: Path) -> None:
    mine = whole.within(OWN)
    mine.add([{"text": f"Mine {number}.", "id": f"mine-{number}"} for number in range(4)])
    after = mine.page(limit=2).next
    assert [document.id for document in mine.page(after=after, limit=2)] == ["mine-2", "mine-3"]
    assert mine.page(limit=2).next != after, "not to be told apart by comparing"
    with trivet.open(tmp_path / "other.db", embedder="none") as other, pytest.raises(InputError, match="`next`"):
        other.within(OWN).page(after=after)
    for wrong in ("", "3", "é", str(after)[:-4] + "AAAA", "A" * 32):
        with pytest.raises(InputError, match="`next`"):
            mine.page(after=wrong)


def test_a_patch_after_the_document_left_is_not_found(whole: Engine) -> None:
    mine = whole.within(OWN)
    mine.add("Mine.", id="mine")
    whole.patch("mine", meta={"tenant": "bob"})
    with pytest.raises(NotFoundError):
        mine.patch("mine", title="x")
    assert mine.delete("mine") == 0
