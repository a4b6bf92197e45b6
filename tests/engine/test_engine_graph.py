"""The graph leg reaches connected documents, explains the path, respects filters, and is off at weight 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trivet
from trivet.errors import InputError
from trivet.evaluate import Lab
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.findings import summarize
from trivet.profile import PROFILES, Profile

QUESTION = "Where was the composer of the film Lantern Street born?"
NOTES: list[dict[str, Any]] = [
    {"id": "film", "title": "Lantern Street", "text": "Lantern Street is a film. Its music is by Odo Varga."},
    {"id": "man", "title": "Odo Varga", "text": "He grew up by the harbour of Pellworm Point."},
    {"id": "town", "title": "Pellworm Point", "text": "A town at the end of a causeway."},
    *[
        {"id": f"n{n}", "title": f"Film {n}", "text": f"The composer of film {n} was born in a street, {n}."}
        for n in range(30)
    ],
]
PROPOSED = 0.4  # the weight that docs/explanation/graph.md proposes
WALKED = PROFILES["default"].with_changes({"weights": {**PROFILES["default"].weights, "graph": PROPOSED}})


@pytest.fixture
def engine(open_store: Callable[..., trivet.Engine]) -> trivet.Engine:
    return open_store()


@pytest.fixture
def notes(engine: trivet.Engine) -> trivet.Engine:
    engine.add(NOTES)
    return engine


def test_a_hit_that_only_the_graph_finds_enters_the_top_at_the_proposed_weight(notes: trivet.Engine) -> None:
    """Nothing in "man" is in the question; thirty documents share three of its words."""
    without = notes.search(QUESTION, k=5, profile="default", graph_weight=0)
    assert "man" not in [hit.id for hit in without]
    found = notes.search(QUESTION, k=5, profile=WALKED)
    man = next(hit for hit in found if hit.id == "man")
    assert (man.rank, man.only_leg) == (2, "graph")
    assert man.path == ("Lantern Street", "Odo Varga")
    assert man.relevance > 0


def test_the_trace_names_the_leg_and_explain_tells_the_path(notes: trivet.Engine) -> None:
    found = notes.search(QUESTION, profile=WALKED)
    assert [stage.name for stage in found.trace][:2] == ["lexical", "graph"]
    told = notes.explain(QUESTION, "town", profile=WALKED)
    (verdict,) = [one for one in told.verdicts if one.leg == "graph"]
    assert verdict.rank is not None
    assert verdict.note == "Lantern Street → Odo Varga → Pellworm Point"
    (nothing,) = [one for one in notes.explain(QUESTION, "n7", profile=WALKED).verdicts if one.leg == "graph"]
    assert (nothing.score, nothing.note) == (None, "not reached")
    (below,) = [
        one for one in notes.explain(QUESTION, "town", profile=WALKED, graph_gate=0.9).verdicts if one.leg == "graph"
    ]
    assert below.note == "below the gate 0.9"


def test_at_weight_0_it_is_not_asked(notes: trivet.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*arguments: Any) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(notes._collection.graph, "mentions", asked)
    monkeypatch.setattr(notes._collection.graph, "edges", asked)
    found = notes.search(QUESTION, graph_weight=0)
    assert found.hits and "graph" not in [item.part for item in found.degraded]
    failed = notes.search(QUESTION, profile=WALKED)  # and failing, it is only left out
    assert failed.hits and "graph" in [item.part for item in failed.degraded]


def test_a_filter_and_an_exclusion_hold_on_the_way(notes: trivet.Engine) -> None:
    for id in ("film", "town"):
        notes.patch(id, meta={"open": True})
    for options in ({"where": {"open": True}}, {"exclude": ["man"]}):
        found = notes.search(QUESTION, profile=WALKED, **options)  # type: ignore[arg-type]
        assert "man" not in [hit.id for hit in found]
        assert not any("Odo Varga" in hit.path for hit in found)
        (verdict,) = [
            one for one in notes.explain(QUESTION, "town", profile=WALKED, **options).verdicts if one.leg == "graph"
        ]
        assert "Odo Varga" not in verdict.note


documents = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("abcd"), st.booleans(), st.sampled_from(["", "s1"])),
    min_size=2,
    max_size=10,
)


@settings(max_examples=25, deadline=None)
@given(documents)
def test_no_hidden_document_is_ever_shown_or_named(listed: list[tuple[str, str, bool, str]]) -> None:
    with trivet.open(":memory:", embedder="none") as engine:
        for number, (title, mention, shown, session) in enumerate(listed):
            meta = {"shown": shown, "secret": f"code {title}"} | ({"session": session} if session else {})
            name = f"Person{title} {'Shown' if shown else 'Hidden'}"
            engine.add(
                f"about Person{mention} Shown and Person{mention} Hidden", id=f"d{number}", title=name, meta=meta
            )
        if not any(shown for _, _, shown, _ in listed):
            return
        weights = {"lexical": 1.0, "dense": 0.0, "graph": 1.0}
        visible = {f"d{number}" for number, item in enumerate(listed) if item[2]}
        for hit in engine.search("persona", where={"shown": True}, weights=weights, k=20):
            assert hit.id in visible
            passed = hit.path[::2] if len(hit.path) % 2 else hit.path
            assert set(passed) <= {engine.get(id).title for id in visible} | set(hit.path[1::2])  # type: ignore[union-attr]


def test_sessions_links_and_triples_lead_on(engine: trivet.Engine) -> None:
    engine.add([{"id": f"t{n}", "text": f"turn {n}", "meta": {"session": "s"}} for n in range(5)])
    engine.add("the zebra crossing", id="asked", meta={"session": "s"})
    engine.add("elsewhere", id="linked")
    engine.link("asked", "linked", "part-of")
    how = {"weights": {"lexical": 1.0, "dense": 0.0, "graph": 1.0}, "context": 0.0}
    found = {hit.id: hit.path for hit in engine.search("zebra", **how)}  # type: ignore[arg-type]
    assert found["t4"] == ("asked", "before it in session", "t4")
    assert found["linked"] == ("asked", "part-of", "linked")
    engine.add("It was raining.", id="fact", triples=[["zebra crossing", "is in", "Harrow Lane"]])
    engine.add("A quiet place.", id="lane", title="Harrow Lane")
    found = {hit.id: hit.path for hit in engine.search("raining", **how)}  # type: ignore[arg-type]
    assert found["lane"] == ("fact", "Harrow Lane")


def test_triples_survive_export_and_import(engine: trivet.Engine, tmp_path: Any) -> None:
    engine.add("It was raining.", id="fact", triples=[("zebra", "is in", "Harrow Lane")])
    engine.export(tmp_path / "out.jsonl")
    with trivet.open(tmp_path / "other.db", embedder="none") as other:
        other.import_(tmp_path / "out.jsonl")
        document = other.get("fact")
        assert document is not None
        assert document.meta["triples"] == [["zebra", "is in", "Harrow Lane"]]


@pytest.mark.parametrize("triples", ["zebra", [("a", "b")], [("a", "b", 3)], [("a", " ", "c")], {"a": 1}, 7])
def test_triples_of_another_shape_are_refused(engine: trivet.Engine, triples: Any) -> None:
    with pytest.raises(InputError, match=r"document.*: triple"):
        engine.add("text", triples=triples)
    assert engine.stats().documents == 0


def test_silence_of_the_graph_does_not_lower_relevance(notes: trivet.Engine) -> None:
    without = {hit.id: hit.relevance for hit in notes.search(QUESTION, k=30, profile="default", weighing="fixed")}
    found = notes.search(QUESTION, k=30, profile=WALKED)
    for hit in found:
        if hit.id in without:
            assert hit.relevance >= without[hit.id] - 1e-9
    assert all(0.0 <= hit.relevance <= 1.0 for hit in found)


def test_the_graph_alone_walks_from_titles_the_question_names(notes: trivet.Engine) -> None:
    found = notes.search("tell me of Lantern Street", weights={"lexical": 0, "dense": 0, "graph": 1})
    assert [hit.id for hit in found][:1] == ["man"]


def test_a_profile_without_the_graph_keeps_its_identity_and_one_with_it_has_another() -> None:
    assert PROFILES["episodes"].identity == "episodes#" + _digest("episodes")
    plain = Profile()
    assert plain.with_changes({"graph_depth": 7}).identity == plain.identity
    assert plain.with_changes({"graph_weight": 0.3}).identity != plain.identity
    assert Profile.from_toml(WALKED.to_toml()) == WALKED


def _digest(name: str) -> str:
    import hashlib
    import json

    from trivet.profile import _ADDED_LATER

    plain = PROFILES[name].to_dict()
    for gone in ("name", *(field for field, usual in _ADDED_LATER.items() if plain[field] == usual)):
        del plain[gone]
    for mapping in ("weights", "depths", "timeouts", "gates"):
        plain[mapping].pop("graph", None)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]


def test_the_lab_remembers_by_seeds_and_counts_what_the_graph_alone_found() -> None:
    topics = (Topic("q1", QUESTION), Topic("q2", "a town at the end of a causeway"))
    qrels = {"q1": {"town": 1, "man": 1}, "q2": {"town": 1}}
    dataset = Dataset("films", "test", NOTES, topics, qrels, "0" * 12)
    with Lab.fill(dataset, embedder="hashing:64") as lab:
        for changes in ({}, {"depths": {"lexical": 3, "dense": 3}}, {"weights": {**WALKED.weights, "dense": 0.0}}):
            profile = WALKED.with_changes({**changes, "name": "walked", "k": 8})
            run, again = lab.run(profile), lab.rerun(profile)
            for topic in ("q1", "q2"):
                assert again.answers[topic].ids == run.answers[topic].ids
                assert again.answers[topic].scores == run.answers[topic].scores
        shallow = WALKED.with_changes({"k": 5, "graph_weight": 1.0, "weighing": "fixed"})
        assert summarize(lab.run(shallow), qrels, None, None).only.get("graph", 0) > 0
