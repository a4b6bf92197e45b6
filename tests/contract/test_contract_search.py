"""Every store gives the same results to a search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trivet
from trivet.engine import Engine
from trivet.errors import InputError
from trivet.filters import And, Contains, Eq, Exists, Filter, In, Not, Or, Prefix, Range, matches, parse_filter
from trivet.stores.sqlite.half_precision import ROUNDING  # a file keeps vectors with 16 bits a number

Open = Callable[..., Engine]
WORDS = {"weights": {"lexical": 1.0, "dense": 0.0, "graph": 0.0}, "rerankers": []}
MEANING = {"weights": {"lexical": 0.0, "dense": 1.0, "graph": 0.0}, "rerankers": []}
SPELLING = {"weights": {"lexical": 0.0, "dense": 0.0, "trigram": 1.0, "graph": 0.0}, "rerankers": []}
BOTH = {"graph_weight": 0.0}  # connections have a suite of their own
LEGS = {"lexical": WORDS, "dense": MEANING, "trigram": SPELLING}

NOTES = [
    {
        "id": "lamp",
        "text": "The lamp in the harbour is out of oil.",
        "meta": {"place": "harbour", "n": 1, "tags": ["a"]},
    },
    {
        "id": "lamp2",
        "text": "A lamp on the hill burns all night.",
        "meta": {"place": "hill", "n": 2, "tags": ["a", "b"]},
    },
    {"id": "boat", "text": "The boat needs paint before winter.", "kind": "task", "meta": {"place": "harbour", "n": 3}},
    {"id": "code", "title": "C++ notes", "text": "parse_args in src/types.py v1.2.3", "meta": {"n": 4.5, "on": True}},
    {"id": "zh", "text": "北京的咖啡馆在河边", "meta": {"place": "北京", "n": -1}},
]


@pytest.fixture
def notes(open_at: Open, taught: Callable[..., Any]) -> Engine:
    memory = open_at(embedder=taught("lamp", "boat", "harbour", "hill", "c"))
    memory.add(NOTES)
    memory.wait()
    return memory


def ids(results: Any) -> list[str]:
    return [hit.id for hit in results]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("lamps", {"lamp", "lamp2"}),
        ("c++", {"code"}),
        ("types.py", {"code"}),
        ("1.2.3", {"code"}),
        ("parse", {"code"}),
        ("咖啡馆", {"zh"}),
        ('"needs paint"', {"boat"}),
        ('"paint needs"', set()),
        ("nothing of the sort", set()),
    ],
)
def test_words_find_what_the_analyser_says(notes: Engine, query: str, found: set[str]) -> None:
    assert set(ids(notes.search(query, **WORDS))) == found


def test_a_write_is_found_by_the_next_search(notes: Engine) -> None:
    notes.add("the lighthouse keeper", id="new")
    assert ids(notes.search("lighthouse", **WORDS)) == ["new"]
    notes.add("nobody at all", id="new")
    assert ids(notes.search("lighthouse", **WORDS)) == []


def test_a_word_that_no_document_has_gives_place_to_the_nearest(open_at: Open) -> None:
    memory = open_at()
    memory.add([{"id": "a", "text": "the telescope on the hill"}, {"id": "b", "text": "the ladder in the barn"}])
    found = memory.search("telescpoe", **WORDS, understanding="full")
    (told,) = (stage.detail for stage in found.trace if stage.name == "lexical")
    assert ids(found) == ["a"] and "did you mean 'telescop' for 'telescpo'?" in told
    assert ids(memory.search("telescpoe", **WORDS, understanding="plain")) == []


def test_a_name_that_means_exactly_itself_weighs_as_much_everywhere(open_at: Open, tmp_path: Any) -> None:
    memory = open_at()
    with trivet.open(tmp_path / "reference.db", embedder="none") as reference:
        for each in (memory, reference):
            each.add([{"id": f"d{n}", "text": f"the error E-40{n} came from src/part{n}.py again"} for n in range(9)])
        asked = {**WORDS, "understanding": "full", "match": "any"}
        one, two = (each.search("what is E-407 in src/part7.py", **asked) for each in (memory, reference))
        assert one[0].id == two[0].id == "d7"
        raw = [[hit.contributions[0].raw for hit in found] for found in (one, two)]
        assert raw[0] == pytest.approx(raw[1], rel=0.02)  # pg_textsearch rounds lengths


def test_rarer_words_weigh_more_and_bm25_is_the_same_everywhere(open_at: Open, tmp_path: Any) -> None:
    """The scores are those of a SQLite store."""
    words = ["heron", "river", "stone", "lamp", "fox", "hill", "moss"]
    texts = {f"d{n}": " ".join(words[(n * k) % 7] for k in range(1, 3 + n % 11)) for n in range(60)}
    memory = open_at()
    with trivet.open(tmp_path / "reference.db", embedder="none") as reference:
        for engine in (memory, reference):
            engine.add([{"id": id, "text": text} for id, text in texts.items()])
        for query in ("heron", "heron river", "moss fox lamp stone hill river", "heron nobody"):
            one, two = (engine.search(query, k=60, **WORDS) for engine in (memory, reference))
            scores = [{hit.id: hit.contributions[0].raw for hit in found} for found in (one, two)]
            assert scores[0] == pytest.approx(scores[1], rel=0.02), query
            assert {hit.id: hit.relevance for hit in one} == pytest.approx(
                {hit.id: hit.relevance for hit in two}, rel=0.03
            )


def test_meaning_is_cosine(notes: Engine) -> None:
    found = notes.search("boat harbour", **MEANING)
    cosines = {hit.id: hit.contributions[0].raw for hit in found if hit.contributions[0].raw > 0}
    assert cosines == pytest.approx({"lamp": 0.5, "boat": 0.5**0.5}, abs=ROUNDING)
    assert "zh" not in ids(found), "a text without meaning is near to nothing"


def test_a_german_word_that_no_document_has_is_found_by_its_forms_and_parts(open_at: Open) -> None:
    memory = open_at(language="de", embedder="none")
    memory.add(
        [
            {"id": "form", "text": "Das Tor klemmt bei Regen."},
            {"id": "parts", "text": "Der Schlüssel der Wohnung hängt am Haken."},
        ]
    )
    for query, id in (("klemmende", "form"), ("Wohnungsschlüssel", "parts")):
        found = memory.search(query, understanding="full", **WORDS)
        assert ids(found) == [id]
        assert "did you mean" in next(stage.detail for stage in found.trace if stage.name == "lexical")
    hidden = memory.search("Wohnungsschlüssel", where={"id": "form"}, understanding="full", **WORDS)
    assert "did you mean" not in next(stage.detail for stage in hidden.trace if stage.name == "lexical")


def test_spelling_forgives_and_has_its_threshold(notes: Engine) -> None:
    found = notes.search("harbuor lamp", **SPELLING)
    assert ids(found)[0] == "lamp"
    assert all(0.3 <= hit.contributions[0].raw <= 1.0 for hit in found)
    assert ids(notes.search("harbuor lamp", trigram_gate=0.95, **SPELLING)) == []
    assert ids(notes.search("qqqq", **SPELLING)) == []


@pytest.mark.parametrize("leg", list(LEGS))
def test_a_filter_holds_on_every_leg_before_the_cut(notes: Engine, leg: str) -> None:
    options = LEGS[leg]
    assert set(ids(notes.search("lamp boat harbour hill", where={"place": "harbour"}, **options))) <= {"lamp", "boat"}
    assert "lamp" in ids(notes.search("lamp boat harbour hill", k=1, where={"n": 1}, **options))
    assert "lamp" not in ids(notes.search("lamp boat harbour hill", exclude=["lamp"], **options))
    assert ids(notes.search("lamp harbour", where={"n": {"gt": 100}}, **options)) == []


def test_a_field_nobody_has_is_refused_by_name(notes: Engine) -> None:
    with pytest.raises(InputError, match="did you mean 'place'"):
        notes.search("lamp", where={"plaec": "harbour"})


def test_every_hit_is_explained_and_shares_add_up(notes: Engine) -> None:
    results = notes.search("harbour lamp", **BOTH)
    assert results.degraded == () and {stage.name for stage in results.trace} >= {"lexical", "dense", "fusion", "total"}
    for hit in results:
        assert sum(part.share for part in hit.contributions) == pytest.approx(hit.fused)
        assert 0.0 <= hit.relevance <= 1.0
    told = notes.explain("harbour lamp", "boat", **BOTH)
    assert {verdict.leg for verdict in told.verdicts} == {"lexical", "dense"}
    left_out = notes.explain("harbour lamp", "lamp", where={"place": "hill"}, **BOTH)
    assert left_out.rank is None and "filter" in left_out.reason


def test_pages_of_a_search(notes: Engine) -> None:
    everything = ids(notes.search("lamp harbour hill boat", k=10))
    pages = [ids(notes.search("lamp harbour hill boat", k=2, offset=offset)) for offset in (0, 2, 4)]
    assert [id for page in pages for id in page] == everything[:6]


def test_a_leg_with_weight_0_is_not_called(notes: Engine) -> None:
    assert {stage.name for stage in notes.search("lamp", **WORDS).trace}.isdisjoint({"dense", "trigram"})


def test_an_embedder_that_fails_degrades_and_words_answer(open_at: Open, taught: Callable[..., Any]) -> None:
    model = taught("lamp")
    memory = open_at(embedder=model)
    memory.add("a lamp", id="a")
    model.fail = RuntimeError("the model server is down")
    results = memory.search("lamp", **BOTH)
    assert ids(results) == ["a"]
    assert [(item.part, item.reason) for item in results.degraded] == [("dense", "the model server is down")]


def test_a_new_model_takes_over_and_only_then(open_at: Open, taught: Callable[..., Any]) -> None:
    memory = open_at(embedder=taught("lamp", "boat", name="old"))
    memory.add([{"id": "l", "text": "lamp"}, {"id": "b", "text": "boat"}])
    assert memory.reembed(taught("boat", "lamp", "hill", name="new")) == 2
    stats = memory.stats()
    assert (stats.model, stats.embedded, stats.pending) == ("new", 2, 0)
    assert ids(memory.search("boat", **MEANING))[0] == "b"
    assert memory.verify().ok


def test_vectors_of_the_callers_own(open_at: Open) -> None:
    memory = open_at(embedder="vectors:3")
    memory.add([{"id": "x", "text": "one", "vector": [1, 0, 0]}, {"id": "y", "text": "two", "vector": [0.6, 0.8, 0]}])
    found = memory.search("", vector=[0, 1, 0], **MEANING)
    assert ids(found) == ["y", "x"]
    assert [hit.contributions[0].raw for hit in found] == pytest.approx([0.8, 0.0], abs=ROUNDING)
    with pytest.raises(InputError, match="vector"):
        memory.search("", vector=[0, 1])


def test_a_long_document_counts_once(open_at: Open) -> None:
    memory = open_at(passage_size=12, embedder="hashing:64")
    memory.add("\n\n".join(f"The heron number {n} stands in the river." for n in range(30)), id="long")
    memory.add([{"id": f"s{n}", "text": f"heron {n}"} for n in range(5)])
    memory.wait()
    for options in LEGS.values():
        found = ids(memory.search("heron", k=10, **options))
        assert len(found) == len(set(found)) == 6, options


VALUES = st.sampled_from(["harbour", "hill", "北京", 1, 2, 3, 4.5, -1, True, False, "a", "b", 0, "", "1"])
FIELDS = st.sampled_from(["place", "n", "tags", "on", "kind", "id", "title", "importance", "created"])


def leaves() -> st.SearchStrategy[Filter]:
    numbers = st.one_of(st.integers(-3, 6), st.floats(-3, 6, allow_nan=False))
    texts = st.sampled_from(["a", "hill", "北", "", "z"])
    bounds = st.one_of(st.fixed_dictionaries({"gte": numbers}), st.fixed_dictionaries({"gt": numbers, "lte": numbers}))
    text_bounds = st.one_of(st.fixed_dictionaries({"gte": texts}), st.fixed_dictionaries({"gt": texts, "lt": texts}))
    fields = st.sampled_from(["place", "n", "tags", "on", "kind", "id", "title", "importance"])
    return st.one_of(
        st.builds(Eq, fields, VALUES),
        st.builds(In, fields, st.lists(VALUES, max_size=4).map(tuple)),
        st.builds(lambda field, bound: Range(field, **bound), fields, st.one_of(bounds, text_bounds)),
        st.builds(Prefix, fields, texts),
        st.builds(Contains, fields, texts),
        st.builds(Exists, FIELDS),
    ).filter(readable)


def readable(where: Filter) -> bool:
    """Tell whether the filter is accepted; values that a built-in field cannot have are tested elsewhere."""
    try:
        parse_filter(where)
    except InputError:
        return False
    return True


FILTERS = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=FILTERS)
def test_filters_mean_what_they_mean_in_python(open_at: Open, where: Filter) -> None:
    memory = open_at()
    if not memory.stats().documents:
        memory.add(NOTES)
    expected = {document.id for document in memory.documents() if matches(where, document)}
    assert {document.id for document in memory.documents(where=where)} == expected
    found = memory.search("lamp boat parse 咖啡", k=10, where=where, **WORDS)
    assert set(ids(found)) == expected


PATHS = (
    "docs/a",
    "docs/50%",
    "Docs/b",
    "docs",
    "a\0b",
    "a\U0010ffff1",
    "a_b",
    "a%b",
    "a\\b",
    "x" * 3_000 + "end",
    "",
    "7",
)


@pytest.mark.parametrize("field", ["path", "title"])
@pytest.mark.parametrize(
    "part",
    ["docs/", "docs/5", "a", "a_", "%", "_", "\\", "0", "1", "0b", "\0", "a\0", "a\0b", "\U0010ffff", "1\0",
     "x" * 2_999, "end", "7", "", "*"],
)  # fmt: skip
def test_a_prefix_and_a_part_are_taken_literally(open_at: Open, field: str, part: str) -> None:
    memory = open_at()
    memory.add([{"id": f"p{n}", "text": "x", "title": path, "meta": {"path": path}} for n, path in enumerate(PATHS)])
    memory.add({"id": "number", "text": "x", "title": "none", "meta": {"path": 7, "tags": ["docs/a"]}})
    for where in (Prefix(field, part), Contains(field, part), Not(Contains(field, part))):
        expected = {document.id for document in memory.documents() if matches(where, document)}
        assert {document.id for document in memory.documents(where)} == expected, where
    assert ids(memory.search("x", where={"tags": {"prefix": "docs/"}}, **WORDS)) == ["number"]


def test_facets_and_a_timeline(notes: Engine) -> None:
    facets = {facet.field: facet for facet in notes.facets()}
    assert facets["place"].documents == 4 and facets["place"].values[0] == ("harbour", 2)
    assert facets["tags"].values == (("a", 2), ("b", 1))
    assert {type(value) for value, _ in facets["n"].values} == {int, float}
    inside = {facet.field: facet for facet in notes.facets(where={"place": "harbour"})}
    assert inside["place"].values == (("harbour", 2),)
    line = notes.timeline()
    assert line.step == "day" and sum(period.documents for period in line.periods) == 5


QUESTION = "Where did the composer of the film Lantern Street grow up?"
FILMS = [
    {"id": "film", "title": "Lantern Street", "text": "Lantern Street is a film. Its music is by Odo Varga."},
    {"id": "man", "title": "Odo Varga", "text": "He spent his youth by the harbour."},
    *(
        {"id": f"n{n}", "title": f"Film {n}", "text": f"The composer of film {n} was born in a street."}
        for n in range(9)
    ),
]
WALKING = {
    "weights": {"lexical": 1.0, "dense": 0.0, "graph": 1.0},
    "fusion": "rrf",
    "rerankers": [],
    "weighing": "fixed",
}


def walked(memory: Engine, **options: Any) -> dict[str, str]:
    """Return the documents that the graph leg alone found, with the path to each."""
    results = memory.search(QUESTION, k=20, context=0.0, **WALKING, **options)
    assert not results.degraded
    return {hit.id: " ".join(map(str, hit.path)) for hit in results if hit.only_leg == "graph"}


@pytest.mark.needs("graph")
def test_what_is_connected_with_an_answer_is_found_by_its_name_a_link_and_a_session(open_at: Open) -> None:
    memory = open_at()
    memory.add(FILMS)
    assert "man" in walked(memory), "the film's text names him, and his title is his name"
    memory.add([{"id": "linked", "text": "quite another matter"}, {"id": "shut", "text": "and one more"}])
    memory.link("film", "linked", "part-of")
    memory.link("film", "shut", "part-of")
    assert {"linked", "shut"} <= set(walked(memory)) and "shut" not in walked(memory, exclude=["shut"])
    memory.patch("film", meta={"session": 7})
    memory.add({"id": "turn", "text": "no word in common", "meta": {"session": 7}})
    assert "turn" in walked(memory)
    assert "turn" not in walked(memory, where={"session": {"exists": False}})
    memory.delete(["man", "turn"])
    assert {"man", "turn"}.isdisjoint(walked(memory))
