"""SQLite finds exactly the documents for which ``matches`` is true."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import trivet
from trivet.errors import InputError
from trivet.filters import (
    MAX_CONDITIONS,
    MAX_DEPTH,
    And,
    Contains,
    Eq,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Prefix,
    Range,
    matches,
    parse_filter,
)
from trivet.stores.sqlite.filter_sql import compile_filter

KEYS = ("a", "b", "a.b", "c.d.e", "日本", "kind", "it's", 'quo"te', "per%cent", "meta.x")
FIELDS = (
    *KEYS,
    "id",
    "title",
    "importance",
    "created",
    "updated",
    "accessed",
    "valid_from",
    "meta.kind",
    "meta.id",
    "nowhere",
)

# Values that are easily taken for one another.
lookalikes = st.sampled_from(
    [0, 1, -1, 2, True, False, 0.0, 1.0, -0.0, 0.5, 1.5, "0", "1", "1.0", "true", "True", "", " ", "a", "A", "ä",
     "a\u0308", "é", "z", "ß", "日", "日本", "😀", "\uffff", "a\0b", "NULL", "'; DROP TABLE documents; --", "%", "_",
     2**53, 2**53 + 1, float(2**53), 2**63 - 1, -(2**63), 9.007199254740993e15, 1e308, 5e-324, 0.1 + 0.2, 0.3]
)  # fmt: skip
scalars = (
    lookalikes
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
json_values = st.recursive(
    st.none() | scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["b", "d", "e", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
times = st.sampled_from([None, 0, 1.5, -1e9, "2026-03-01", 1772323200, 1e11])
documents = st.fixed_dictionaries(
    {
        "text": st.just("x"),
        "kind": st.sampled_from(["note", "episode", "1"]),
        "title": st.sampled_from(["", "A title", "1", "日本"]),
        "importance": st.sampled_from([0, 0.25, 0.5, 1]),
        "meta": st.dictionaries(
            st.sampled_from(("a", "b", "a.b", "c", "日本", "kind", "it's", 'quo"te', "id")), json_values, max_size=4
        ),
        "created": times,
        "accessed": times,
        "valid_from": times,
    }
)
bounds = st.fixed_dictionaries({}, optional=dict.fromkeys(("gt", "gte", "lt", "lte"), st.none()))


@st.composite
def ranges(draw: st.DrawFn) -> Range:
    same_type = draw(
        st.sampled_from(
            [lookalikes.filter(lambda v: isinstance(v, str)), lookalikes.filter(lambda v: not isinstance(v, str))]
        )
    )
    ops = draw(st.lists(st.sampled_from(("gt", "gte", "lt", "lte")), min_size=1, max_size=2, unique=True))
    return Range(draw(st.sampled_from(FIELDS)), **{op: draw(same_type) for op in ops})


texts = lookalikes.filter(lambda value: isinstance(value, str)) | st.text(max_size=2)
leaves = st.one_of(
    st.builds(Eq, st.sampled_from(FIELDS), scalars),
    st.builds(In, st.sampled_from(FIELDS), st.lists(scalars, max_size=4).map(tuple)),
    ranges(),
    st.builds(Prefix, st.sampled_from(FIELDS), texts),
    st.builds(Contains, st.sampled_from(FIELDS), texts),
    st.builds(Exists, st.sampled_from(FIELDS)),
)
filters = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def store() -> Iterator[trivet.Engine]:
    with trivet.open(":memory:", embedder="none") as engine:
        yield engine


def checked(where: Filter) -> Filter | None:
    """As the engine hands it on; None where the value is refused (a time field wants times)."""
    try:
        return parse_filter(where)
    except InputError:
        return None


@settings(max_examples=400, deadline=None)
@given(st.lists(documents, max_size=6), st.lists(filters, min_size=1, max_size=6))
@example([{"text": "x", "meta": {"a": "a\0b"}}], [In("a", ("a\0b", "other"))])
@example([{"text": "x", "meta": {"a": "a"}}], [In("a", ("a\0b", "other"))])
@example([{"text": "x", "meta": {"a": 0.1 + 0.2}}], [In("a", (0.1 + 0.2, 0.3)), Eq("a", 0.3)])
@example(
    [{"text": "x", "meta": {"a": 2**53 + 1}}],
    [Eq("a", float(2**53)), In("a", (2**53 + 1, "b")), Range("a", gt=float(2**53))],
)
def test_sql_finds_what_matches(store: trivet.Engine, given_: list[dict[str, Any]], wheres: list[Filter]) -> None:
    collection = store._collection
    store.delete([document.id for document in store.documents()])
    store.add([{**document, "id": f"{number}"} for number, document in enumerate(given_)])
    stored = list(store.documents())
    by_did = {did: id for id, did in collection.documents.numbers([document.id for document in stored]).items()}
    for asked in wheres:
        where = checked(asked)
        if where is None:
            continue
        expected = {document.id for document in stored if matches(where, document)}
        dids = collection.filters.matching(where)
        assert len(dids) == len(set(dids)), "a row number twice"
        assert {by_did[did] for did in dids} == expected, where
        assert {document.id for document in collection.documents.scan(where)} == expected, where


@given(filters)
def test_user_text_travels_as_parameters_only(where: Filter) -> None:
    usable = checked(where)
    if usable is not None:
        sql, values = compile_filter(usable, 1)
        assert "DROP" not in sql
        assert "日" not in sql
        assert sql.count("?") == len(values)


@pytest.fixture(scope="module")
def year(store: trivet.Engine) -> Iterator[trivet.Engine]:
    with trivet.open(":memory:", embedder="none") as engine:
        engine.add(
            [
                {"id": str(year), "text": "x", "meta": {"year": year, "tags": ["t", str(year)]}}
                for year in range(1990, 2030)
            ]
        )
        yield engine


def ids(engine: trivet.Engine, where: Any) -> set[str]:
    return {document.id for document in engine.documents(where)}


def test_as_many_conditions_as_are_allowed_can_be_asked(year: trivet.Engine) -> None:
    many = [{"year": number} for number in range(1990, 1990 + MAX_CONDITIONS)]
    assert ids(year, {"$or": many}) == {str(number) for number in range(1990, 2030)}
    assert ids(year, {"$and": [{"year": {"ne": number}} for number in range(2000, 2000 + MAX_CONDITIONS)]}) == {
        str(number) for number in range(1990, 2000)
    }
    with pytest.raises(InputError, match=f"{MAX_CONDITIONS + 1} conditions; at most {MAX_CONDITIONS}"):
        ids(year, {"$or": [*many, {"year": 1}]})


@pytest.mark.parametrize("shape", ["$not", "$and", "$or", "mixed"])
def test_a_filter_as_deep_as_is_allowed_can_be_asked(year: trivet.Engine, shape: str) -> None:
    where: dict[str, Any] = {"year": 2001}
    for level in range(MAX_DEPTH):
        kind = ("$not", "$and", "$or")[level % 3] if shape == "mixed" else shape
        where = {kind: where} if kind == "$not" else {kind: [where, {"year": 2001}]}
    parsed = parse_filter(where)
    assert parsed is not None
    assert ids(year, where) == {document.id for document in year.documents() if matches(parsed, document)}
    with pytest.raises(InputError, match=f"more than {MAX_DEPTH} levels"):
        ids(year, {"$not": {"$not": where}})


def test_a_list_of_thousands_is_one_condition(year: trivet.Engine) -> None:
    wanted = [*range(2000, 2005), *(f"no{number}" for number in range(50_000))]
    assert ids(year, {"year": wanted}) == {str(number) for number in range(2000, 2005)}
    assert ids(year, {"id": [str(number) for number in range(100_000)]}) == {
        str(number) for number in range(1990, 2030)
    }


def test_a_time_bound_is_inclusive_or_not(store: trivet.Engine) -> None:
    with trivet.open(":memory:", embedder="none") as engine:
        moment = datetime(2026, 3, 1, 9, 30, 0, 123457, tzinfo=UTC)
        engine.add("x", id="a", created=moment)
        assert ids(engine, {"created": moment}) == {"a"}
        assert ids(engine, {"created": {"gte": moment}}) == {"a"}
        assert ids(engine, {"created": {"gt": moment}}) == set()
        assert ids(engine, {"created": {"lte": "2026-03-01T09:30:00.123457Z"}}) == {"a"}
        assert ids(engine, {"created": {"lt": "2026-03-01T09:30:00.123457+00:00"}}) == set()
        assert ids(engine, {"created": {"gt": "2026-03-01T10:29:00+01:00"}}) == {"a"}
