"""Wrong calls, wrong data, a broken disk and a broken model give clear errors, and nothing is lost.

Two answers are right: it works, or one kind of error says which field, which value and what to do. Nothing else ever
comes out.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import trivet
from trivet.errors import EmbedderError, InputError, ModelMismatchError, NotFoundError, StoreError, TrivetError
from trivet.filters import And, Eq, Exists, In, Not, Range
from trivet.types import Document

LONE = "\ud800"  # half of a surrogate pair: no file can hold it
WORDS_ALONE = {"lexical": 1.0, "dense": 0.0}


@pytest.fixture(scope="module")
def engine() -> Iterator[trivet.Engine]:
    """One store for all that is refused: nothing may change it."""
    with trivet.open(":memory:", embedder="hashing:64") as opened:
        opened.add(
            [
                {"id": "a", "text": "a red fox and a grey heron", "meta": {"year": 2020, "tags": ["x", "y"]}},
                {"id": "b", "text": "AND OR NOT NEAR are words too", "meta": {"year": 2021}},
            ]
        )
        before = opened.stats()
        yield opened
        assert opened.stats().documents == before.documents, "something that was refused changed the store"


@pytest.fixture
def fresh() -> Iterator[trivet.Engine]:
    with trivet.open(":memory:", embedder="hashing:64") as opened:
        yield opened


def well_formed(results: trivet.Results) -> bool:
    return all(math.isfinite(hit.score) and 0.0 <= hit.relevance <= 1.0 for hit in results)


# --- questions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", " ", "\n\t \u3000"])
def test_an_empty_question_is_refused(engine: trivet.Engine, query: str) -> None:
    with pytest.raises(InputError, match="query: it is empty"):
        engine.search(query)


@pytest.mark.parametrize("query", [None, 3, b"fox", ["fox"], {"text": "fox"}])
def test_a_question_that_is_no_text_is_refused(engine: trivet.Engine, query: Any) -> None:
    with pytest.raises(InputError, match=f"query: {type(query).__name__} is not text"):
        engine.search(query)


def test_a_question_of_a_megabyte_is_cut_and_says_so(engine: trivet.Engine) -> None:
    results = engine.search("fox " * 262_144, weights={"lexical": 1, "trigram": 1, "dense": 1})
    assert results[0].id == "a"
    assert [(item.part, "only the first" in item.reason) for item in results.degraded] == [("query", True)]


def test_a_single_word_of_a_megabyte(engine: trivet.Engine) -> None:
    assert well_formed(engine.search("x" * 1_000_000, weights={"lexical": 1, "trigram": 1, "dense": 1}))


SYNTAX = r"""
- ' / ( ) " * : ^ ~ AND OR NOT NEAR NEAR/3 + \ { } [ ] && || ! ? fox title: body:fox $ % _ ; -- /* ` < > = @ # IN
"""


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(SYNTAX.split()), min_size=1, max_size=8), st.sampled_from(["", " "]))
@example(["AND"], "")
@example(["OR", "OR"], " ")
@example(["fox", "AND"], " ")
@example(['"'], "")
@example(['"', "fox"], "")
@example(["fox", "*"], "")
@example(["NEAR", "(", "fox"], " ")
def test_no_part_of_a_question_is_syntax(engine: trivet.Engine, parts: list[str], joint: str) -> None:
    query = joint.join(parts)
    if not query.strip():
        return
    for match in ("auto", "all", "any"):
        assert well_formed(engine.search(query, match=match, weights={"lexical": 1, "trigram": 1, "dense": 1}))


def test_words_that_are_syntax_elsewhere_are_found_as_words(engine: trivet.Engine) -> None:
    assert [hit.id for hit in engine.search("NEAR", weights=WORDS_ALONE)] == ["b"]
    assert [hit.id for hit in engine.search("heron -fox", weights=WORDS_ALONE)] == ["a"], "a minus is no exclusion"
    assert engine.search("fox* OR (", weights=WORDS_ALONE)[0].id == "a"


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec=None), min_size=1, max_size=60))  # codec None: lone surrogates too
@example(LONE)
@example(f"fox {LONE} heron")
@example("\0")
@example("fox\0heron")
@example("\u202e\ufeff\u200d")
@example("'; DROP TABLE documents; --")
def test_any_text_is_a_question(engine: trivet.Engine, query: str) -> None:
    if not query.strip():
        return
    assert well_formed(engine.search(query, weights={"lexical": 1, "trigram": 1, "dense": 1}))


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3", math.nan, 10**9, 10**400])
def test_a_k_that_is_no_number_of_hits_is_refused(engine: trivet.Engine, k: Any) -> None:
    with pytest.raises(InputError, match=r"^k: .*1.*10000") as caught:
        engine.search("fox", k=k)
    assert str(k) in str(caught.value)


@pytest.mark.parametrize("offset", [-1, 1.5, True, "0", None])
def test_an_offset_that_is_none_is_refused(engine: trivet.Engine, offset: Any) -> None:
    with pytest.raises(InputError, match=f"offset: {offset!r} is not"):
        engine.search("fox", offset=offset)


def test_an_offset_behind_the_last_hit_finds_nothing(engine: trivet.Engine) -> None:
    assert len(engine.search("fox", offset=10**30)) == 0


@pytest.mark.parametrize("at", ["yesterday", math.nan, math.inf, 1e300, -1e12, 10**400, True, [1]])
def test_a_moment_that_is_none_is_refused(engine: trivet.Engine, at: Any) -> None:
    with pytest.raises(InputError, match=r"^at: .*not a time"):
        engine.search("fox", at=at)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"profile": "nonsense"}, "profile: 'nonsense' is unknown; known: default"),
        ({"profile": 3}, "profile: 3"),
        ({"alhpa": 0.3}, "alhpa: unknown setting; did you mean 'alpha'?"),
        ({"weights": {"dens": 1}}, "weights.dens: unknown leg; known: lexical, trigram, dense"),
        ({"weights": {"dense": math.nan}}, "weights.dense: nan"),
        ({"weights": {"dense": -1}}, "weights.dense: -1 is out of range"),
        ({"weights": {"dense": 10**400}}, "weights.dense"),
        ({"weights": {"dense": "1"}}, "weights.dense: '1'"),
        ({"weights": {"lexical": 0, "dense": 0, "graph": 0}}, "weights: every leg has weight 0"),
        ({"weights": 3}, "weights: 3 is not a mapping"),
        ({"alpha": 2}, "alpha: 2"),
        ({"alpha": math.nan}, "alpha: nan"),
        ({"fusion": "magic"}, "fusion: 'magic' is unknown; known:"),
        ({"normalize": "magic"}, "normalize: 'magic' is unknown; known:"),
        ({"rrf_k": -1}, "rrf_k: -1 is out of range"),
        ({"depths": {"dense": 0}}, "depths.dense: 0 is out of range"),
        ({"depths": {"dense": "k3"}}, "depths.dense: 'k3'"),
        ({"min_relevance": 1.5}, "min_relevance: 1.5 is out of range"),
        ({"match": "some"}, "match: 'some' is unknown; known: auto, all, any"),
        ({"rerankers": ["magic"]}, "magic"),
        ({"rerankers": [{"name": "dedup", "magic": 1}]}, "magic"),
        ({"rerankers": "dedup"}, "rerankers: 'dedup' is not a list"),
        ({"rerankers": [3]}, "rerankers"),
        ({"timeouts": {"dense": 0}}, "timeouts.dense: 0 is out of range"),
        ({"gates": {"dense": "high"}}, "gates.dense: 'high'"),
        ({"exclude": [3]}, "exclude: 3"),
        ({"exclude": 7}, "exclude: 7 is not an id or a list of ids"),
        ({"weights": [], "alpha": 0.3}, "weights: [] is not a mapping"),
        ({"gates": 3}, "gates: 3 is not a mapping"),
        ({"vector": [1.0]}, "vector"),
        ({"vector": [math.nan] * 64}, "vector: it holds NaN"),
        ({"vector": "words"}, "vector: not a list of numbers; give 64"),
        ({"vector": [[1.0] * 64]}, "vector: the shape is (1, 64)"),
        ({"vector": [10**400] * 64}, "vector"),
    ],
)
def test_a_wrong_option_names_itself_and_its_value(engine: trivet.Engine, options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        engine.search("fox", **options)
    assert told in str(caught.value)


def test_a_vector_of_huge_numbers_keeps_its_direction(engine: trivet.Engine) -> None:
    direction = [1.0, 2.0] * 32
    small, *others = (
        engine.search("fox", vector=[x * scale for x in direction]) for scale in (1.0, 1e30, 1e300, 1e-300)
    )
    assert any(item.leg == "dense" for hit in small for item in hit.contributions)
    for results in others:
        assert [hit.score for hit in results] == pytest.approx([hit.score for hit in small])


# --- filters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({"yaer": 2020}, "no document has a field 'yaer'; did you mean 'year'?"),
        ("yaer=2020", "no document has a field 'yaer'; did you mean 'year'?"),
        ({"knid": "note"}, "no document has a field 'knid'; did you mean 'kind'?"),
        ({"zzz": {"gt": 1}}, "no document has a field 'zzz'"),
        (Eq("meta.kind", "x"), "no document has a field 'meta.kind'"),
        ({"year": {"about": 2020}}, "unknown operator 'about' on 'year'; known: eq"),
        ({"year": {}}, "'year' has an empty condition"),
        ({"year": {"gt": None}}, "year"),
        ({"year": {"gt": 1, "lt": "z"}}, "'year' mixes text and number"),
        ({"year": math.nan}, "'year' cannot be compared with nan"),
        ({"year": math.inf}, "'year' cannot be compared with inf"),
        ({"year": 2**63}, "'year' cannot be compared with 9223372036854775808"),
        ({"year": 10**400}, "'year' cannot be compared with"),
        ({"year": {"in": 2020}}, "in on 'year' takes a list, got 2020"),
        ({"year": b"2020"}, "'year' cannot be compared with b'2020'"),
        ({"year": [[1]]}, "'year' cannot be compared with [1]"),
        ({"created": "someday"}, "created: 'someday' is not a time"),
        ({"created": True}, "created: True is not a time"),
        ({"": 1}, "'' is not a field name"),
        ({3: 1}, "3 is not a field name"),
        ({"$or": []}, "$or takes a non-empty list"),
        ({"$and": {"year": 1}}, "$and takes a non-empty list"),
        ({"$not": {}}, "$not takes a filter"),
        ("year", "'year' is not understood"),
        ("{broken", "is not JSON"),
        (3, "3 is not a filter"),
        (Range("year"), "'year' has no bound"),
        (Eq("year", None), "'year' cannot be compared with None"),  # type: ignore[arg-type]
        (Eq(3, 1), "3 is not a field name"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_a_wrong_filter_names_the_field_and_the_value(engine: trivet.Engine, where: Any, told: str) -> None:
    for call in (lambda: engine.search("fox", where=where), lambda: list(engine.documents(where))):
        with pytest.raises(InputError) as caught:
            call()
        assert "where" in str(caught.value)
        assert told in str(caught.value)
    with pytest.raises(InputError):
        engine.delete(where=where)


@pytest.mark.parametrize("where", [Exists("nowhere"), {"nowhere": {"exists": True}}, "nowhere=*"])
def test_whether_an_unknown_field_exists_may_be_asked(engine: trivet.Engine, where: Any) -> None:
    assert len(engine.search("fox", where=where)) == 0
    assert len(engine.search("fox", where=Not(Exists("nowhere")))) > 0


@pytest.mark.parametrize("text", [LONE, f"x{LONE}", "a\0b", "'; DROP TABLE fields; --", "%", "x" * 100_000])
def test_any_text_can_be_filtered_by(engine: trivet.Engine, text: str) -> None:
    assert len(engine.search("fox", where=Eq("tags", text))) == 0
    assert len(engine.search("fox", where=In("tags", (text, "x")))) == 1
    assert len(engine.search("fox", where={"tags": {"gte": text}})) in (0, 1)
    for where in (Exists(text), Eq(text, 1)):
        with contextlib.suppress(InputError):
            assert len(engine.search("fox", where=where)) == 0


def test_a_filter_nested_without_end_is_refused(engine: trivet.Engine) -> None:
    where: Any = Eq("year", 2020)
    for _ in range(5_000):
        where = And((where,))
    with pytest.raises(InputError, match="levels deep"):
        engine.search("fox", where=where)
    with pytest.raises(InputError, match="levels deep"):
        engine.search("fox", where='{"$not":' * 5_000 + '{"year":1}' + "}" * 5_000)


# --- documents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"text": "x", "titel": "y"}, "unknown field 'titel'; did you mean 'title'?"),
        ({"text": "x", "author": "y"}, "unknown field 'author'"),
        ({"text": ""}, "text is empty"),
        ({"text": " \n"}, "text is empty"),
        ({}, "text"),
        ({"text": None}, "text: NoneType is not text"),
        ({"text": b"bytes"}, "text: bytes is not text"),
        ({"text": 3}, "text: int is not text"),
        ({"text": "x", "title": 3}, "title: int is not text"),
        ({"text": "x", "id": ""}, "id: '' is not an id"),
        ({"text": "x", "id": " "}, "id: ' ' is not an id"),
        ({"text": "x", "id": True}, "id: True is not an id"),
        ({"text": "x", "id": 1.5}, "id: 1.5 is not an id"),
        ({"text": "x", "id": "n\0l"}, "id: 'n\\x00l' holds a NUL"),
        ({"text": "x", "id": LONE}, "id: '\\ud800' holds a NUL or a lone surrogate"),
        ({"text": "x", "id": "y" * 513}, "id: 513 characters; at most 512"),
        ({"text": "x", "importance": math.nan}, "importance nan is not a number from 0 to 1"),
        ({"text": "x", "importance": math.inf}, "importance inf"),
        ({"text": "x", "importance": -0.1}, "importance -0.1"),
        ({"text": "x", "importance": 1.1}, "importance 1.1"),
        ({"text": "x", "importance": True}, "importance True"),
        ({"text": "x", "importance": "high"}, "importance 'high'"),
        ({"text": "x", "importance": 10**400}, "importance 1000"),
        ({"text": "x", "kind": ""}, "kind ''"),
        ({"text": "x", "kind": 3}, "kind 3"),
        ({"text": "x", "kind": "k" * 65}, "kind 'kkk"),
        ({"text": "x", "kind": LONE}, "kind '\\ud800'"),
        ({"text": "x", "created": "someday"}, "created: 'someday' is not a time"),
        ({"text": "x", "created": math.nan}, "created: nan is not a time"),
        ({"text": "x", "created": -1e12}, "created: -1000000000000.0 is not a time"),
        ({"text": "x", "created": 10**400}, "created: 1000"),
        ({"text": "x", "created": [2020]}, "created: [2020] is not a time"),
        ({"text": "x", "valid_from": "2021-01-01", "valid_to": "2020-01-01"}, "valid_from 2021-01-01 is after"),
        ({"text": "x", "meta": "x"}, "meta 'x' is not a mapping"),
        ({"text": "x", "meta": {"a": {1}}}, "meta.a: set is not JSON"),
        ({"text": "x", "meta": {"a": math.nan}}, "meta.a: nan is not a finite number"),
        ({"text": "x", "meta": {"a": [1, math.inf]}}, "meta.a.1: inf is not a finite number"),
        ({"text": "x", "meta": {"a": 2**63}}, "meta.a: 9223372036854775808 does not fit 64 bits"),
        ({"text": "x", "meta": {3: 1}}, "meta.3: 3 is not a metadata key; give a non-empty text"),
        ({"text": "x", "meta": {"": 1}}, "is not a metadata key; give a non-empty text"),
        ({"text": "x", "meta": {"a\0": 1}}, "is not a metadata key"),
        ({"text": "x", "meta": {LONE: 1}}, "is not a metadata key"),
        ({"text": "x", "meta": {"a": object()}}, "meta.a: object is not JSON"),
        ({"text": "x", "meta": {"big": "m" * 1_000_001}}, "meta is 1,000,"),
        ({"text": "x", "links": "b"}, "links 'b' is not a list"),
        ({"text": "x", "links": 3}, "links 3 is not a list"),
        ({"text": "x", "links": [3]}, "link 3 is not a target"),
        ({"text": "x", "links": [{"target": "b", "kind": "x"}]}, "link {'target': 'b', 'kind': 'x'}"),
        ({"text": "x", "links": [{"target": "", "type": "x"}]}, "link target: '' is not an id"),
        ({"text": "x", "links": [{"target": "b", "type": 3}]}, "link type 3"),
        ({"text": "x", "links": [{"target": "b", "type": LONE}]}, "link type '\\ud800'"),
        ({"text": "x", "links": [{"target": "b", "weight": -1}]}, "link weight -1"),
        ({"text": "x", "links": [{"target": "b", "weight": math.nan}]}, "link weight nan"),
        ({"text": "x", "links": [{"target": "b", "weight": 10**400}]}, "link weight 1000"),
        ({"text": "x", "vector": [1.0, 2.0]}, "vector: the shape is (2,), the collection's model has 64 dimensions"),
        ({"text": "x", "vector": [math.nan] * 64}, "vector: it holds NaN or infinity; give finite numbers"),
        ({"text": "x", "vector": [math.inf] * 64}, "vector: it holds NaN or infinity; give finite numbers"),
        ({"text": "x", "vector": [10**400] * 64}, "vector"),
        ({"text": "x", "vector": ["a"] * 64}, "vector: not a list of numbers"),
        ({"text": "x", "vector": 3}, "vector: the shape is ()"),
        (3, "int is not text, a mapping"),
        (None, "NoneType is not text, a mapping"),
    ],
)  # fmt: skip
def test_a_wrong_document_names_the_field_and_the_value(engine: trivet.Engine, document: Any, told: str) -> None:
    with pytest.raises(InputError) as caught:
        engine.add(document)
    assert told in str(caught.value)
    with pytest.raises(InputError) as caught:  # the good ones before it are not stored either
        engine.add([{"id": "good", "text": "good"}, document])
    assert told in str(caught.value)
    assert engine.get("good") is None


def test_keywords_belong_to_one_document(engine: trivet.Engine) -> None:
    with pytest.raises(InputError, match="title: only with one document"):
        engine.add(["a", "b"], title="both")


def test_nesting_as_deep_as_is_allowed_comes_back_and_deeper_is_refused(fresh: trivet.Engine) -> None:
    meta: Any = "leaf"
    for _ in range(32):
        meta = {"x": meta}
    fresh.add("deep", id="deep", meta=meta)
    document = fresh.get("deep")
    assert document is not None
    assert document.meta == meta
    assert len(fresh.search("deep", where={".".join(["x"] * 32): "leaf"})) == 1
    for _ in range(10_000):
        meta = {"x": meta}
    with pytest.raises(InputError, match="nested more than 32 levels"):
        fresh.add("deeper", meta=meta)
    wide: Any = []
    for _ in range(10_000):
        wide = [wide]
    with pytest.raises(InputError, match="nested more than 32 levels"):
        fresh.add("deeper", meta={"x": wide})


def test_a_meta_that_holds_itself_is_refused(fresh: trivet.Engine) -> None:
    meta: dict[str, Any] = {}
    meta["self"] = meta
    with pytest.raises(InputError, match="nested more than"):
        fresh.add("round and round", meta=meta)


def test_lone_surrogates_and_nul_bytes_are_kept_or_replaced_and_never_raise(fresh: trivet.Engine) -> None:
    fresh.add(
        f"fox{LONE} jumps\0over", id="a", title=f"t{LONE}\0t", meta={"m": f"v{LONE}", "n": "a\0b", "l": [LONE, "\0"]}
    )
    document = fresh.get("a")
    assert document is not None
    assert document.text == "fox\ufffd jumps\0over"
    assert document.title == "t\ufffd\0t"
    assert document.meta == {"m": "v\ufffd", "n": "a\0b", "l": ["\ufffd", "\0"]}
    for query in ("jumps", "over", f"{LONE} fox", "\0jumps"):
        assert [hit.id for hit in fresh.search(query, weights=WORDS_ALONE)] == ["a"], query
    assert len(fresh.search("jumps", where={"n": "a\0b"})) == 1
    assert len(fresh.search("jumps", where={"n": ["a\0b", "zzz"]})) == 1
    assert len(fresh.search("jumps", where={"n": "a"})) == 0
    assert fresh.verify().ok


def test_the_longest_id_works(fresh: trivet.Engine) -> None:
    id = "ü" * 512
    fresh.add("longest", id=id)
    assert [hit.id for hit in fresh.search("longest")] == [id]
    assert fresh.delete(id) == 1


BAD_IDS = ["", None, 3, "x" * 513, "a\0", LONE]


@pytest.mark.parametrize("id", BAD_IDS)
def test_an_id_that_is_none_is_refused(engine: trivet.Engine, id: Any) -> None:
    for call in (
        lambda: engine.get(id),
        lambda: engine.delete([id]),
        lambda: engine.explain("fox", id),
        lambda: engine.link(id, "a"),
        lambda: engine.link("a", id),
        lambda: engine.search("fox", exclude=[id]),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.parametrize("id", BAD_IDS)
def test_an_id_that_is_none_has_no_links(engine: trivet.Engine, id: Any) -> None:
    for call in (lambda: engine.unlink(id, "a"), lambda: engine.unlink("a", id)):
        with pytest.raises(InputError):
            call()
    if id is not None:  # all links are asked for by that
        with pytest.raises(InputError):
            engine.links(id)


def test_a_link_to_nowhere_is_refused(engine: trivet.Engine) -> None:
    with pytest.raises(NotFoundError, match="link target: document 'nowhere' not found"):
        engine.link("a", "nowhere")
    with pytest.raises(NotFoundError, match="link source: document 'nowhere' not found"):
        engine.link("nowhere", "a")
    with pytest.raises(NotFoundError, match="id: document 'nowhere' not found"):
        engine.explain("fox", "nowhere")


@pytest.mark.parametrize("type", ["", " ", 3, None, "x" * 65, LONE])
def test_a_link_type_that_is_none_is_refused(engine: trivet.Engine, type: Any) -> None:
    with pytest.raises(InputError, match="link type"):
        engine.link("a", "b", type)


def test_delete_wants_to_know_what(engine: trivet.Engine) -> None:
    for call in (
        lambda: engine.delete(),
        lambda: engine.delete("a", where={"year": 2020}),
        lambda: engine.delete(where={}),
    ):
        with pytest.raises(InputError):
            call()
    assert engine.delete([]) == 0
    assert engine.delete("nowhere") == 0


def test_an_iterator_that_fails_keeps_the_batches_before(fresh: trivet.Engine) -> None:
    def documents() -> Iterator[dict[str, Any]]:
        for number in range(1_500):
            yield {"id": str(number), "text": f"number {number}"}
        raise ValueError("the caller's own generator broke")

    with pytest.raises(ValueError, match="the caller's own"):
        fresh.add(documents())
    assert fresh.stats().documents == 1_000
    assert [hit.id for hit in fresh.search("999", k=1, weights=WORDS_ALONE)] == ["999"]
    assert fresh.verify().ok


def test_the_same_id_in_several_batches_is_the_last(fresh: trivet.Engine) -> None:
    told = fresh.add({"id": str(number % 700), "text": f"version {number}"} for number in range(2_100))
    assert fresh.stats().documents == 700
    assert told.added == 700
    document = fresh.get("0")
    assert document is not None
    assert document.text == "version 1400"


def test_nothing_at_all_is_no_error(fresh: trivet.Engine) -> None:
    assert fresh.add([]).added == 0
    assert len(fresh.search("anything")) == 0
    assert list(fresh.documents()) == []
    assert fresh.verify().ok


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec=None), max_size=8),
    st.binary(max_size=3),
    st.lists(st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.datetimes(),
    st.just(datetime.max),
    st.just(datetime.min.replace(tzinfo=UTC)),
)
field_names = st.sampled_from([*Document.__dataclass_fields__, "links", "vector", "other"])


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(field_names, anything))
def test_any_document_is_stored_or_refused(store: trivet.Engine, document: dict[str, Any]) -> None:
    try:
        told = store.add(document)
    except InputError:
        return
    kept = store.get(told.ids[0])
    assert kept is not None
    again = {**{name: getattr(kept, name) for name in Document.__dataclass_fields__}}
    assert store.add(again).unchanged == 1, "what came back is not what was stored"
    store.delete(list(told.ids))


@pytest.fixture(scope="module")
def store() -> Iterator[trivet.Engine]:
    with trivet.open(":memory:", embedder="none") as opened:
        yield opened


BIG = """
import random, resource, sys
import trivet

rng = random.Random(5)
words = ["".join(rng.choices("bcdfghjklmnprstv", k=6)) for _ in range(5000)]
parts, size = [], 0
while size < 20_000_000:
    line = " ".join(rng.choices(words, k=12)) + (". " if rng.random() < 0.9 else ".\\n\\n")
    parts.append(line)
    size += len(line)
parts[0] = "zzfirstzz " + parts[0]
parts[len(parts) // 2] = "zzmiddlezz " + parts[len(parts) // 2]
text = "".join(parts) + " zzlastzz"
del parts
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with trivet.open(sys.argv[1], embedder=sys.argv[2]) as engine:
    engine.add(text, id="big")
    engine.add("a small one zzsmallzz", id="small")
    engine.wait()
    for word in ("zzfirstzz", "zzmiddlezz", "zzlastzz"):
        hit = engine.search(word, k=1, weights={"lexical": 1, "dense": 0})[0]
        assert hit.id == "big" and word in hit.text and len(hit.text) < 20_000, word
    assert engine.search("zzsmallzz", k=1)[0].id == "small"
    assert engine.verify().ok
    assert engine.delete("big") == 1
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("embedder", ["none", "hashing:64"])
def test_a_document_of_twenty_megabytes_is_found_by_any_of_its_words(tmp_path: Path, embedder: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", BIG, str(tmp_path / "memory.db"), embedder],
        capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert int(ran.stdout) < 1_200, f"{ran.stdout.strip()} MB for a text of 20 MB"


def test_a_text_beyond_the_limit_is_refused(fresh: trivet.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from trivet.engine import validation

    monkeypatch.setattr(validation, "MAX_TEXT", 1_000)
    with pytest.raises(InputError, match=r"text: 1,001 characters; at most 1,000"):
        fresh.add("x" * 1_001)


# --- places -----------------------------------------------------------------------------------------------------------


def test_a_path_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"path: .* is a folder; name a file"):
        trivet.open(tmp_path)


def test_a_path_in_a_missing_folder_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"path: the folder .*missing.* does not exist"):
        trivet.open(tmp_path / "missing" / "memory.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["", "\0", "a\0b", LONE])
def test_a_path_that_is_none_is_refused(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TrivetError):
        trivet.open(path, embedder="none")


@pytest.mark.parametrize("name", ["", " ", "x" * 513, "a\0", LONE, 3, None])
def test_a_collection_name_that_is_none_is_refused(engine: trivet.Engine, name: Any) -> None:
    with pytest.raises(InputError, match=r"^collection: "):
        engine.collection(name, embedder="none")


def test_the_place_cannot_be_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "memory.db")
    for name in ("loop", "dangling"):
        with pytest.raises(TrivetError):
            trivet.open(tmp_path / name, embedder="none")


def test_another_user_may_read_and_not_write(tmp_path: Path) -> None:
    """Permission bits do not bind root, so a process of another user looks."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    folder = tmp_path / "data"
    folder.mkdir()
    with trivet.open(folder / "memory.db", embedder="hashing:64") as engine:
        engine.add("a heron", id="a")
    for place in (folder, *folder.parents):
        place.chmod(place.stat().st_mode | 0o005)
    code = (
        "import os, sys, trivet\n"
        "from trivet.errors import StoreError\n"
        "with trivet.open(':memory:', embedder='hashing:64') as engine:\n"
        "    engine.add('loads all there is to load')\n"
        "    engine.search('while it may still be read')\n"
        "os.setgroups([])\n"
        "os.setgid(65534)\n"
        "os.setuid(65534)\n"
        "with trivet.open(sys.argv[1]) as engine:\n"
        "    assert [hit.id for hit in engine.search('heron')] == ['a']\n"
        "    try:\n"
        "        engine.add('more')\n"
        "    except StoreError as error:\n"
        "        print(error)\n"
        "try:\n"
        "    trivet.open(sys.argv[1] + '.new', embedder='hashing:64')\n"
        "except StoreError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", code, str(folder / "memory.db")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr[-2000:]
    changed, made = ran.stdout.splitlines()
    assert "read-only; nothing was written" in changed
    assert "cannot create" in made
    assert "read-only" in made


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of three megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root on Linux")
    ran = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        pytest.skip(f"cannot mount here: {ran.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize("embedder", ["none", "hashing:64"])
def test_a_full_disk_is_told_and_loses_nothing(small_disk: Path, embedder: str) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1_200_000))
    rng = random.Random(1)
    acknowledged: dict[str, str] = {}
    with trivet.open(small_disk / "memory.db", embedder=embedder) as engine:
        with pytest.raises(StoreError, match=r"memory\.db.*full.*free some space"):
            for number in range(2_000):
                id, text = f"d{number}", f"q{number}x " + " ".join(f"{rng.randrange(10**9):x}" for _ in range(200))
                engine.add(text, id=id)
                acknowledged[id] = text
        assert len(acknowledged) > 20
        held = {document.id: document.text for document in engine.documents()}
        assert held.items() >= acknowledged.items()
        assert len(held) <= len(acknowledged) + 1  # the last may be stored with its meaning still to come
        for id in rng.sample(sorted(acknowledged), 10):
            assert [hit.id for hit in engine.search(f"q{id[1:]}x", k=1, weights=WORDS_ALONE)] == [id]
        with pytest.raises(StoreError):
            engine.add("x" * 900_000, id="too big")
        ballast.unlink()
        assert engine.add("room again zzz", id="after").added == 1
        acknowledged["after"] = "room again zzz"
        assert [hit.id for hit in engine.search("zzz", k=1, weights=WORDS_ALONE)] == ["after"]
        assert engine.verify().ok, engine.verify()
    with trivet.open(small_disk / "memory.db") as engine:
        assert {document.id: document.text for document in engine.documents()}.items() >= acknowledged.items()
        engine.wait(timeout=30)
        assert engine.verify().ok, engine.verify()


def test_a_disk_too_full_for_the_projections_still_answers(small_disk: Path) -> None:
    with trivet.open(small_disk / "memory.db", embedder="hashing:64") as engine:
        engine.add([{"id": f"d{number}", "text": f"heron q{number}x"} for number in range(900)])
        engine.wait(timeout=30)
    shutil.rmtree(f"{small_disk / 'memory.db'}.index")
    free = shutil.disk_usage(small_disk).free
    (small_disk / "ballast").write_bytes(bytes(free - 60_000))  # SQLite's own -wal and -shm need some
    with trivet.open(small_disk / "memory.db") as engine:
        for number in (0, 450, 899):
            assert [hit.id for hit in engine.search(f"q{number}x", k=1, weights=WORDS_ALONE)] == [f"d{number}"]
            assert [hit.id for hit in engine.search(f"heron q{number}x", k=1, alpha=1.0)] == [f"d{number}"]
        assert engine.verify().ok


def test_a_disk_too_full_for_a_new_store(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(shutil.disk_usage(small_disk).free - 8_192))
    with pytest.raises(StoreError):
        trivet.open(small_disk / "memory.db", embedder="none")
    (small_disk / "ballast").unlink()
    with trivet.open(small_disk / "memory.db", embedder="none") as engine:
        engine.add("now it fits", id="a")
        assert engine.verify().ok


# --- damaged files ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "memory.db"
    with trivet.open(path, embedder="hashing:64") as engine:
        engine.add(
            [{"id": f"d{number}", "text": f"heron q{number}x " * 20, "meta": {"n": number}} for number in range(300)]
        )
        engine.wait()
        engine.restore_feedback({"query": f"heron {number}", "id": "d7", "good": True} for number in range(100))
    assert path.stat().st_size > 30 * 4096
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def use(path: Path) -> list[TrivetError]:
    """Read all there is to read; the errors that came. Anything but a TrivetError goes through."""
    errors: list[TrivetError] = []
    try:
        engine = trivet.open(path)
    except TrivetError as error:
        return [error]
    with engine:
        for call in (
            lambda: engine.search("heron", k=20),
            lambda: engine.search("heron", where={"n": {"gt": 5}}),
            lambda: engine.get("d7"),
            lambda: list(engine.documents()),
            lambda: engine.stats(),
            lambda: engine.links(),
            lambda: engine.feedbacks(),
            lambda: list(engine.lines()),
        ):
            try:
                call()
            except TrivetError as error:
                errors.append(error)
        try:
            report = engine.verify()
            errors += [StoreError(problem) for problem in report.problems]
        except TrivetError as error:
            errors.append(error)
    return errors


@pytest.mark.parametrize(
    "content",
    [
        b"This is my shopping list: soup, bread",
        random.Random(1).randbytes(40_000),
        b"SQLite format 3\0" + b"\xff" * 5_000,
        b"\0" * 8_192,
    ],
    ids=["text", "noise", "only the first bytes", "zeros"],
)
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"list\.txt"):
        trivet.open(path, embedder="none")
    assert path.read_bytes() == content
    assert [item.name for item in tmp_path.iterdir()] == ["list.txt"], "it left something beside the file"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_store_is_told(sound: Path, tmp_path: Path, share: float) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(sound.read_bytes()[: int(sound.stat().st_size * share)])
    before = digest(path)
    errors = use(path)
    assert errors
    assert all(isinstance(error, StoreError) for error in errors), errors
    assert digest(path) == before


def test_a_wrong_byte_in_the_header_is_told_or_harmless(sound: Path, tmp_path: Path) -> None:
    refused = 0
    for at in range(100):
        path = tmp_path / f"{at}.db"
        data = bytearray(sound.read_bytes())
        data[at] ^= 0xFF
        path.write_bytes(data)
        before = digest(path)
        errors = use(path)
        assert all(isinstance(error, StoreError) for error in errors), (at, errors)
        assert digest(path) == before, f"byte {at}"
        refused += bool(errors)
        path.unlink()
    assert refused > 16


def test_a_page_of_garbage_is_told_by_verify_and_never_raises_anything_else(sound: Path, tmp_path: Path) -> None:
    rng = random.Random(2)
    pages = sound.stat().st_size // 4096
    told = 0
    for page in sorted(rng.sample(range(1, pages), 40)):
        path = tmp_path / f"{page}.db"
        data = bytearray(sound.read_bytes())
        data[page * 4096 : (page + 1) * 4096] = rng.randbytes(4096)
        path.write_bytes(data)
        before = digest(path)
        errors = use(path)
        assert all(isinstance(error, StoreError) for error in errors), (page, errors)
        told += bool(errors)
        assert digest(path) == before
        path.unlink()
    assert told == 40, f"{told} of 40 damaged pages were told"


def test_wrong_bytes_in_a_page_never_raise_anything_but_our_errors(sound: Path, tmp_path: Path) -> None:
    rng = random.Random(3)
    for attempt in range(60):
        path = tmp_path / f"{attempt}.db"
        data = bytearray(sound.read_bytes())
        for _ in range(50):
            data[rng.randrange(4096, len(data))] = rng.randrange(256)
        path.write_bytes(data)
        before = digest(path)
        use(path)
        assert digest(path) == before
        path.unlink()


# --- the engine and the model -----------------------------------------------------------------------------------------


def test_a_closed_engine_says_so(tmp_path: Path) -> None:
    engine = trivet.open(tmp_path / "memory.db", embedder="hashing:64")
    engine.add("x", id="a")
    other = engine.collection("other", embedder="none")
    engine.close()
    engine.close()
    calls: list[Callable[[], Any]] = [
        lambda: engine.search("x"),
        lambda: engine.add("y"),
        lambda: engine.get("a"),
        lambda: engine.delete("a"),
        lambda: list(engine.documents()),
        lambda: engine.link("a", "a"),
        lambda: engine.links(),
        lambda: engine.feedback("x", "a"),
        lambda: engine.feedbacks(),
        lambda: engine.forget_feedback(),
        lambda: engine.restore_feedback([{"query": "x", "id": "a", "good": True}]),
        lambda: engine.stats(),
        lambda: engine.settings,
        lambda: engine.update_settings(k=1),
        lambda: engine.verify(),
        lambda: engine.rebuild(),
        lambda: engine.explain("x", "a"),
        lambda: engine.wait(),
        lambda: engine.collections(),
        lambda: engine.collection("third", embedder="none"),
        lambda: engine.export(tmp_path / "out.jsonl"),
        lambda: engine.reembed("hashing:32"),
        lambda: engine.drop(),
        lambda: other.search("x"),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(StoreError, match="closed"):
            call()
            pytest.fail(f"call {number} did not notice")


@pytest.mark.parametrize("embedder", ["nonsense", "nonsense:3", "", "hashing:0", "vectors:-1", 3, object()])
def test_an_embedder_that_is_none_is_refused_before_anything_is_made(tmp_path: Path, embedder: Any) -> None:
    with pytest.raises(InputError, match="embedder"):
        trivet.open(tmp_path / "memory.db", embedder=embedder)
    with trivet.open(tmp_path / "memory.db", embedder="hashing:32") as engine:  # the path can still be used
        assert engine.stats().model == "hashing/32/1"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"language": "klingon"}, "klingon"),
        ({"language": 3}, "language"),
        ({"passage_size": -1}, "passage_size: -1"),
        ({"passage_size": 1.5}, r"passage_size: 1\.5"),
        ({"passage_size": True}, "passage_size: True"),
    ],
)
def test_a_wrong_option_of_open_is_refused_before_anything_is_made(
    tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        trivet.open(tmp_path / "memory.db", embedder="none", **options)
    with trivet.open(tmp_path / "memory.db", embedder="none", language="de", passage_size=100) as engine:
        assert engine.stats().language == "de"


def test_another_model_is_refused_with_the_way_out(tmp_path: Path) -> None:
    trivet.open(tmp_path / "memory.db", embedder="hashing:64").close()
    with pytest.raises(ModelMismatchError, match=r"hashing/64/1.*hashing/32/1.*reembed"):
        trivet.open(tmp_path / "memory.db", embedder="hashing:32")


def test_a_collection_of_ones_own_vectors_says_what_it_lacks(tmp_path: Path) -> None:
    with trivet.open(tmp_path / "memory.db", embedder="vectors:3") as engine:
        engine.add("with", id="a", vector=[1, 0, 0])
        engine.add("zero", id="z", vector=[0, 0, 0])
        engine.add("without", id="b")
        results = engine.search("with")
        assert [item.part for item in results.degraded] == ["dense"]
        assert [hit.id for hit in engine.search("nothing alike", vector=[1, 0.1, 0], alpha=1.0)] == ["a"]
        assert len(engine.search("nothing alike", vector=[0, 0, 0], alpha=1.0)) == 0
        assert well_formed(engine.search("with", vector=[-1, 0, 0]))


class Model:
    """A caller's own embedder, which can be told to misbehave."""

    spec = id = "own/4"
    unrelated = 0.0

    def __init__(self, passages: Any = None, queries: Any = None, dim: Any = 4) -> None:
        self.dim = dim
        self._passages, self._queries = passages, queries

    def embed_passages(self, texts: list[str]) -> Any:
        return self._give(self._passages, texts)

    def embed_queries(self, texts: list[str]) -> Any:
        return self._give(self._queries, texts)

    def _give(self, how: Any, texts: list[str]) -> Any:
        good = np.eye(4, dtype=np.float32)[[len(text) % 4 for text in texts]]
        return good if how is None else how(good)


def _raise(good: Any) -> Any:
    raise ConnectionError("the model server is down")


MISBEHAVIOURS: dict[str, Callable[[Any], Any]] = {
    "raises": _raise,
    "NaN": lambda good: good * np.nan,
    "infinite": lambda good: good + np.inf,
    "wrong dimension": lambda good: np.ones((len(good), 7), dtype=np.float32),
    "too few rows": lambda good: good[:0],
    "too many rows": lambda good: np.concatenate([good, good, good]),
    "one row flat": lambda good: good[0],
    "three axes": lambda good: good[None],
    "None": lambda good: None,
    "a word": lambda good: "vector",
    "ragged": lambda good: [[1.0], [1.0, 2.0]],
    "complex": lambda good: good * 1j,
}


@pytest.mark.parametrize("how", MISBEHAVIOURS)
@pytest.mark.parametrize("count", [1, 40])
def test_a_model_that_fails_on_documents_degrades_them_to_words(how: str, count: int) -> None:
    model = Model(passages=MISBEHAVIOURS[how])
    with trivet.open(":memory:", embedder=model) as engine:  # type: ignore[arg-type]
        told = engine.add([{"id": f"d{number}", "text": f"heron q{number}x"} for number in range(count)])
        assert told.added == count
        assert told.pending == count
        if count == 1:
            assert [item.part for item in told.degraded] == ["dense"]
        with pytest.raises(EmbedderError):
            engine.wait(timeout=5)
        results = engine.search("q0x")
        assert results[0].id == "d0"
        assert well_formed(results)
        assert "dense" in [item.part for item in results.degraded]
        assert engine.stats().embedded == 0
        assert engine.stats().embed_error
        model._passages = None  # and when it is well again, so are they
        engine.wait(timeout=30)
        assert engine.stats().pending == 0
        results = engine.search("q0x")
        assert results.degraded == ()
        assert any(item.leg == "dense" for item in results[0].contributions)
        assert engine.verify().ok


@pytest.mark.parametrize("how", MISBEHAVIOURS)
def test_a_model_that_fails_on_the_question_degrades_it_to_words(how: str) -> None:
    with trivet.open(":memory:", embedder=Model(queries=MISBEHAVIOURS[how])) as engine:  # type: ignore[arg-type]
        engine.add([{"id": f"d{number}", "text": f"heron q{number}x"} for number in range(5)])
        results = engine.search("q3x")
        assert [hit.id for hit in results] == ["d3"]
        assert well_formed(results)
        assert [item.part for item in results.degraded] == ["dense"]
        assert results.degraded[0].reason
        with pytest.raises(TrivetError):
            engine.search("q3x", alpha=1.0)


def test_vectors_of_any_length_are_brought_to_one() -> None:
    long = Model(passages=lambda good: good * 1e30, queries=lambda good: good * 1e-30)
    with trivet.open(":memory:", embedder=long) as engine:  # type: ignore[arg-type]
        engine.add([{"id": f"d{number}", "text": "x" * (number + 1)} for number in range(4)])
        results = engine.search("yyy", alpha=1.0)
        assert results[0].id == "d2"
        assert results[0].contributions[0].raw == pytest.approx(1.0)


@pytest.mark.parametrize("dim", [0, -1, "4", None, 2.5])
def test_a_model_without_a_size_is_refused(dim: Any) -> None:
    with pytest.raises(TrivetError):
        trivet.open(":memory:", embedder=Model(dim=dim))  # type: ignore[arg-type]


def test_memory_is_not_eaten_by_refusals(engine: trivet.Engine) -> None:
    """A service is asked nonsense all day."""
    for _ in range(50):
        with pytest.raises(InputError):
            engine.search("fox", where={"nowhere": 1})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(2_000):
        with pytest.raises(InputError):
            engine.search("fox", where={f"nowhere{number}": 1})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


# --- feedback ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", " ", "\n\t \u3000"])
def test_feedback_on_an_empty_question_is_refused(engine: trivet.Engine, query: str) -> None:
    for call in (lambda: engine.feedback(query, "a"), lambda: engine.forget_feedback(query)):
        with pytest.raises(InputError, match="query: it is empty; give the query that was searched for"):
            call()


@pytest.mark.parametrize("query", [None, 3, b"fox", ["fox"], {"text": "fox"}])
def test_feedback_on_a_question_that_is_no_text_is_refused(engine: trivet.Engine, query: Any) -> None:
    with pytest.raises(InputError, match=f"query: {type(query).__name__} is not text"):
        engine.feedback(query, "a")


@pytest.mark.parametrize("id", [None, 3, "", " ", "a\0", LONE, "x" * 513, ["a"]])
def test_feedback_on_an_id_that_is_none_is_refused(engine: trivet.Engine, id: Any) -> None:
    with pytest.raises(InputError, match=r"^id: "):
        engine.feedback("fox", id)


@pytest.mark.parametrize("good", [None, 1, 0, 1.0, "yes", "", np.True_, [True]])
def test_a_verdict_that_is_neither_good_nor_bad_is_refused(engine: trivet.Engine, good: Any) -> None:
    with pytest.raises(InputError, match=r"^good: .* is not True \(a good answer\) or False \(a bad one\)"):
        engine.feedback("fox", "a", good)
    assert engine.feedbacks() == []


@settings(max_examples=50, deadline=None)
@given(query=st.text(st.characters(exclude_categories=[])))
@example(query=LONE)
@example(query="\0")
def test_whatever_can_be_asked_can_be_judged_and_is_the_same_row_again(fresh_notes: trivet.Engine, query: str) -> None:
    fresh_notes.forget_feedback()
    if not query.strip():
        return
    given = fresh_notes.feedback(query, "a")
    assert fresh_notes.feedbacks() == [given]
    fresh_notes.feedback(given.query, "a", good=False)
    assert [item.good for item in fresh_notes.feedbacks()] == [False]
    assert fresh_notes.forget_feedback(query, "a") == 1


@pytest.fixture(scope="module")
def fresh_notes() -> Iterator[trivet.Engine]:
    with trivet.open(":memory:", embedder="none") as opened:
        opened.add("a red fox", id="a")
        yield opened
