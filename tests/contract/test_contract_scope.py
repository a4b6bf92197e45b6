"""What a filter hides is hidden alike by every store: read, counted, named, explained or written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trivet.engine import Engine
from trivet.errors import InputError, NotAllowedError, NotFoundError, TakenError
from trivet.stores import contract

Open = Callable[..., Engine]
ALICE, BOB = {"tenant": "alice"}, {"tenant": "bob"}


def ids(found: Any) -> set[str]:
    return {item.id for item in found}


@pytest.fixture
def memory(open_at: Open) -> Engine:
    """Two tenants, two documents each; one link and one verdict of each, and one link between them."""
    engine = open_at(embedder="hashing:64")
    engine.add(
        [
            {"id": "a1", "text": "the heron stands in the marsh", "meta": {**ALICE, "colour": "grey"}},
            {"id": "a2", "text": "the heron flies over the marsh", "meta": ALICE},
            {"id": "b1", "text": "the heron sleeps at Xylophantasia", "meta": {**BOB, "diagnosis": "secret"}},
            {"id": "b2", "text": "the heron wakes at Xylophantasia", "meta": BOB},
        ]
    )
    engine.link("a1", "a2")
    engine.link("b2", "b1", "supersedes")
    engine.link("a1", "b1")
    engine.feedback("heron", "a1")
    engine.feedback("heron", "b1", good=False)
    engine.wait()
    return engine


PARTS = {
    "documents": contract.Documents,
    "links": contract.Links,
    "feedback": contract.FeedbackLog,
    "settings": contract.SettingsLog,
    "filters": contract.Filters,
    "lexical": contract.LexicalIndex,
    "trigrams": contract.TrigramIndex,
    "vectors": contract.VectorIndex,
    "graph": contract.GraphIndex,
    "maintenance": contract.Maintenance,
    "imports": contract.ImportLog,
}


@pytest.mark.parametrize("part", PARTS)
def test_the_collection_has_every_method_of_the_contract(memory: Engine, part: str) -> None:
    found: Any = getattr(memory._collection, part)
    if found is None:
        pytest.skip(f"this store has no {part}")
    assert [name for name in vars(PARTS[part]) if name[0] != "_" and not hasattr(found, name)] == []


# --- an engine that is bound to a filter ------------------------------------------------------------------------------


@pytest.mark.parametrize("leg", ["lexical", "dense", "graph", "trigram"])
def test_a_bound_engine_finds_its_own_by_every_leg(memory: Engine, leg: str) -> None:
    weights = {"lexical": 0.01, "dense": 0.0, "graph": 0.0, "trigram": 0.0, leg: 1.0}
    found = memory.within(ALICE).search("heron marsh", weights=weights, rerankers=[])
    assert ids(found) == {"a1", "a2"}


def test_a_bound_engine_reads_and_counts_its_own(memory: Engine) -> None:
    alice = memory.within(ALICE)
    assert ids(alice.documents()) == ids(alice.page().documents) == {"a1", "a2"}
    assert alice.get("a1") is not None and alice.get("b1") is None
    assert [(link.source, link.target) for link in alice.links()] == [("a1", "a2")]
    assert alice.links("b1") == []
    assert [given.id for given in alice.feedbacks()] == ["a1"]
    assert alice.redundant().superseded == () and alice.redundant().looked_at == 2
    stats = alice.stats()
    assert (stats.documents, stats.passages, stats.embedded, stats.links) == (2, 2, 2, 1)
    assert set(stats.fields) == {"tenant", "colour"}
    assert sum(period.documents for period in alice.timeline().periods) == 2
    assert ids(alice.within({"colour": "grey"}).documents()) == {"a1"}


def test_a_bound_engine_writes_inside_of_its_filter_only(memory: Engine) -> None:
    alice = memory.within(ALICE)
    alice.add("the heron dives", id="a3")
    added = memory.get("a3")
    assert added is not None and added.meta == ALICE
    assert alice.search("heron dives", k=1)[0].id == "a3"
    with pytest.raises(InputError, match="outside of what this caller may write"):
        alice.add("a heron", id="x", meta=BOB)
    with pytest.raises(InputError, match="the change would put it"):
        alice.patch("a3", meta=BOB)
    with pytest.raises(TakenError, match="'b1' cannot be used here"):
        alice.add("mine", id="b1")
    with pytest.raises(NotFoundError):
        alice.patch("b1", text="mine")
    with pytest.raises(NotFoundError):
        alice.link("a1", "b1")
    with pytest.raises(NotFoundError):
        alice.feedback("heron", "b1")
    assert alice.delete(["b1", "a3"]) == 1 and alice.delete(where={"id": "b2"}) == 0
    assert alice.touch(["a1", "b1"]) == 1 and alice.unlink("b2", "b1") == 0
    assert alice.forget_feedback() == 1
    assert ids(memory.documents()) == {"a1", "a2", "b1", "b2"} and ids(memory.feedbacks()) == {"b1"}
    told = alice.remember("the heron sleeps at Xylophantasia")
    assert told.stored and told.similar == (), "what another tenant said is neither reinforced nor told"


def test_a_bound_engine_is_refused_what_concerns_the_whole(memory: Engine) -> None:
    alice = memory.within(ALICE)
    for call in (alice.verify, alice.rebuild, alice.drop, lambda: alice.update_settings(k=5), alice.revert_settings):
        with pytest.raises(NotAllowedError):
            call()
    with pytest.raises(NotAllowedError):
        alice.reembed("hashing:8")


# --- a filter with the call -------------------------------------------------------------------------------------------


def test_a_filter_holds_for_everything_that_is_read(memory: Engine) -> None:
    assert memory.get("a1", where=ALICE) is not None and memory.get("b1", where=ALICE) is None
    assert [(link.source, link.target) for link in memory.links(where=ALICE)] == [("a1", "a2")]
    assert len(memory.links("a1")) == 2 and len(memory.links("a1", where=ALICE)) == 1
    assert ids(memory.feedbacks(where=BOB)) == {"b1"} and len(memory.feedbacks()) == 2
    assert memory.redundant(where=ALICE).superseded == ()
    assert memory.redundant(where=BOB).superseded == (("b1", "b2"),)


def test_facets_and_errors_name_no_field_of_hidden_documents(memory: Engine) -> None:
    assert {facet.field for facet in memory.facets(where=ALICE)} == {"kind", "tenant", "colour"}
    with pytest.raises(InputError) as told:
        memory.search("heron", where={**ALICE, "diagnoses": "x"})
    assert "'colour'" in str(told.value) and "diagnosis" not in str(told.value)
    with pytest.raises(InputError) as told:
        memory.within(ALICE).search("heron", where={"diagnosis": "secret"})
    assert "no document has a field 'diagnosis'" in str(told.value) and "'colour'" in str(told.value)
    assert memory.within({"tenant": "carol"}).search("heron", where={"colour": "grey"}).hits == (), "she has none yet"


def test_a_word_of_hidden_documents_is_not_suggested(memory: Engine) -> None:
    def details(engine: Engine, where: Any = None) -> str:
        found = engine.search("xylophantasja", where=where)
        return " ".join(stage.detail.lower() for stage in found.trace)

    assert "xylophantasia" in details(memory) and "xylophantasia" in details(memory, BOB)
    assert "xylophantasia" not in details(memory, ALICE) + details(memory.within(ALICE))


def test_a_hidden_document_is_explained_like_one_that_does_not_exist(memory: Engine) -> None:
    alice = memory.within(ALICE)
    hidden, missing = memory.explain("heron", "b1", where=ALICE), memory.explain("heron", "zz", where=ALICE)
    assert (
        (hidden.rank, hidden.verdicts, hidden.hit) == (missing.rank, missing.verdicts, missing.hit) == (None, (), None)
    )
    assert hidden.reason.replace("b1", "zz") == missing.reason
    told = []
    for id in ("b1", "zz"):
        with pytest.raises(NotFoundError) as error:
            alice.explain("heron", id)
        told.append(str(error.value).replace(id, "?"))
    assert told[0] == told[1]


def test_neighbours_are_those_that_the_search_may_show(open_at: Open) -> None:
    memory = open_at()
    memory.add(
        [
            {"id": "a1", "text": "the greenhouse", "meta": {**ALICE, "session": 1}},
            {"id": "b1", "text": "of another tenant", "meta": {**BOB, "session": 1}},
            {"id": "x1", "text": "left out", "meta": {**ALICE, "session": 1}},
            {"id": "v1", "text": "no longer valid", "meta": {**ALICE, "session": 1}, "valid_to": "2020-01-01"},
            {"id": "a2", "text": "next to it", "meta": {**ALICE, "session": 1}},
        ]
    )
    options: dict[str, Any] = {"neighbours": 3, "exclude": ["x1"], "as_of": "2026-01-01", "k": 1, "graph_weight": 0.0}
    (hit,) = memory.search("greenhouse", where=ALICE, **options)
    assert [passage.text for passage in hit.context] == ["next to it"]
    (hit,) = memory.within(ALICE).search("greenhouse", **options)
    assert [passage.text for passage in hit.context] == ["next to it"]


def test_deleting_by_filter_deletes_what_it_allows_and_no_more(memory: Engine) -> None:
    assert memory.delete(where={**ALICE, "colour": "grey"}) == 1
    assert ids(memory.documents()) == {"a2", "b1", "b2"}
    assert memory.search("heron marsh", where={"id": "a1"}).hits == ()
    with pytest.raises(InputError, match="no document has a field 'colour'"):
        memory.delete(where={"colour": "grey"})
    assert memory.delete(where=BOB) == 2 and memory.stats().links == 0
