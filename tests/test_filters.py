"""What a filter matches, and how filters are read from mappings and text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trivet
from trivet.engine import Engine
from trivet.errors import InputError
from trivet.filters import (
    MAX_CONDITIONS,
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
    as_range,
    epoch,
    fields_of,
    flatten,
    matches,
    parse_filter,
    plain_value,
    to_json,
    values_of,
)
from trivet.types import Document

DOCUMENT = Document(
    "d1",
    "text",
    title="A title",
    kind="fact",
    meta={
        "n": 3,
        "f": 2.5,
        "yes": True,
        "tag": "x",
        "tags": ["a", "b", 7],
        "deep": {"er": {"est": "z"}},
        "null": None,
        "kind": "m",
    },
    importance=0.75,
    created=datetime(2026, 3, 1, 12, tzinfo=UTC),
)


class TestMeaning:
    @pytest.mark.parametrize(
        "where",
        [
            Eq("n", 3),
            Eq("n", 3.0),
            Eq("yes", True),
            Eq("yes", 1),  # booleans compare as numbers
            Eq("tags", "a"),  # any element
            Eq("tags", 7),
            Eq("deep.er.est", "z"),
            Eq("id", "d1"),
            Eq("kind", "fact"),
            Eq("meta.kind", "m"),  # the metadata key behind the built-in
            Eq("importance", 0.75),
            Eq("created", datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()),
            In("tag", ("q", "x")),
            Range("n", gt=2, lte=3),
            Range("tags", gte=7),  # the one number among the texts
            Range("tag", gt="w"),
            Range("created", gte=0),
            Prefix("title", "A t"),
            Prefix("tag", ""),
            Prefix("meta.kind", "m"),
            Contains("title", "tit"),
            Contains("deep.er.est", "z"),
            Contains("tags", "b"),
            Exists("tags"),
            Exists("deep.er.est"),
            Not(Exists("null")),  # null is absent
            Not(Exists("deep")),  # a mapping has no value of its own
            Not(Exists("valid_to")),
            Not(Eq("tags", "c")),
            And(()),
            Or((Eq("n", 1), Eq("n", 3))),
        ],
        ids=repr,
    )
    def test_holds(self, where: Filter) -> None:
        assert matches(where, DOCUMENT)
        assert not matches(Not(where), DOCUMENT)

    @pytest.mark.parametrize(
        "where",
        [
            Eq("n", "3"),  # text and numbers never mix
            Eq("tag", 3),
            Eq("tag", "X"),
            Eq("id", 1),
            Eq("deep", "z"),
            Eq("nowhere", 0),
            In("n", ()),
            Range("n", gt=3),
            Range("n", gt=""),
            Range("tag", gt=0),
            Range("nowhere", lt=5),
            Prefix("title", "a t"),  # another case is another text
            Prefix("n", ""),
            Contains("n", "3"),
            Contains("title", "A%title"),
            Contains("nowhere", ""),
            Or(()),
            And((Eq("n", 3), Eq("n", 4))),
        ],
        ids=repr,
    )
    def test_does_not_hold(self, where: Filter) -> None:
        assert not matches(where, DOCUMENT)

    def test_flatten(self) -> None:
        meta = {"a": [1, [2, None], {"b": 3}], "c": {"d": [True]}, "e": None, "f.g": "x", "h": [], "i": {}}
        assert list(flatten(meta)) == [("a", 1), ("a", 2), ("a.b", 3), ("c.d", True), ("f.g", "x")]

    def test_values_of(self) -> None:
        assert values_of(DOCUMENT, "created") == [DOCUMENT.created.timestamp()]  # type: ignore[union-attr]
        assert values_of(DOCUMENT, "accessed") == []
        assert values_of(DOCUMENT, "tags") == ["a", "b", 7]

    def test_fields_of(self) -> None:
        where = And((Eq("a", 1), Not(Or((Exists("b"), Range("c", lt=1)))), In("d", (1,))))
        assert list(fields_of(where)) == [("a", True), ("b", False), ("c", True), ("d", True)]


class TestReading:
    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            (None, None),
            ({}, None),
            ([], None),
            ({"kind": "note"}, Eq("kind", "note")),
            ({"kind": "note", "n": 3}, And((Eq("kind", "note"), Eq("n", 3)))),
            ({"kind": ["a", "b"]}, In("kind", ("a", "b"))),
            ({"n": {1}}, In("n", (1,))),
            ({"kind": []}, In("kind", ())),
            ({"n": None}, Not(Exists("n"))),
            ({"n": {"gte": 1, "lt": 5}}, Range("n", gte=1, lt=5)),
            ({"n": {"$gte": 1, "$lt": 5}}, Range("n", gte=1, lt=5)),
            ({"n": {"ne": 4}}, Not(Eq("n", 4))),
            ({"n": {"in": [1, 2], "ne": 2}}, And((In("n", (1, 2)), Not(Eq("n", 2))))),
            ({"n": {"nin": (1, 2)}}, Not(In("n", (1, 2)))),
            ({"n": {"exists": True}}, Exists("n")),
            ({"n": {"exists": False}}, Not(Exists("n"))),
            ({"$or": [{"a": 1}, {"b": 2}]}, Or((Eq("a", 1), Eq("b", 2)))),
            ({"$and": [{"a": 1}, {}]}, And((Eq("a", 1),))),
            ({"$and": [{}]}, None),
            ({"$not": {"a": 1}}, Not(Eq("a", 1))),
            ([{"a": 1}, "b=x"], And((Eq("a", 1), Eq("b", "x")))),
            (["a=x", None], Eq("a", "x")),
            (Eq("a", 1), Eq("a", 1)),
            (In("a", [1, 2]), In("a", (1, 2))),  # type: ignore[arg-type]
            ("kind=note", Eq("kind", "note")),
            (" kind = note ", Eq("kind", "note")),
            ("kind!=note", Not(Eq("kind", "note"))),
            ("n=3", In("n", (3, "3"))),  # on a command line 3 may be the number or the text
            ("n='3'", Eq("n", "3")),
            ('n="a,b"', In("n", ('"a', 'b"'))),
            ("n=3,4", In("n", (3, "3", 4, "4"))),
            ("f=2.5", In("f", (2.5, "2.5"))),
            ("f=inf", Eq("f", "inf")),
            ("yes=True", In("yes", (True, "True"))),
            ("n>=3", Range("n", gte=3)),
            ("n<2.5", Range("n", lt=2.5)),
            ("path^=docs/", Prefix("path", "docs/")),
            ("path ^= 'docs/ '", Prefix("path", "docs/ ")),
            ("path!^=docs/", Not(Prefix("path", "docs/"))),
            ("title*=50%,*", Contains("title", "50%,*")),
            ("title!*=pump", Not(Contains("title", "pump"))),
            ("n^=20", Prefix("n", "20")),
            ("a=^=b", Eq("a", "^=b")),
            ({"path": {"prefix": "docs/"}}, Prefix("path", "docs/")),
            ({"title": {"$contains": "pump", "ne": "x"}}, And((Contains("title", "pump"), Not(Eq("title", "x"))))),
            (Contains("s", "a\ud800"), Contains("s", "a\ufffd")),
            ("due=*", Exists("due")),
            ("due!=*", Not(Exists("due"))),
            ("text=a=b", Eq("text", "a=b")),
            ("a.b=c", Eq("a.b", "c")),
            ("x=", Eq("x", "")),
            ('{"n": {"gt": 1}}', Range("n", gt=1)),
            ("created>=2026-03-01", Range("created", gte=datetime(2026, 3, 1, tzinfo=UTC).timestamp())),
            (
                {"created": {"lt": datetime(2026, 3, 1)}},
                Range("created", lt=datetime(2026, 3, 1, tzinfo=UTC).timestamp()),
            ),
            ({"created": {"gt": 5}}, Range("created", gt=5.0)),
            ({"when": datetime(2026, 3, 1, tzinfo=UTC)}, Eq("when", "2026-03-01T00:00:00+00:00")),
            ({"s": "a\ud800"}, Eq("s", "a\ufffd")),  # as documents are stored
            ("n=" + "9" * 400, Eq("n", "9" * 400)),  # no number holds it: it can only be text
        ],
        ids=lambda value: repr(value)[:50],
    )
    def test_read_as_meant(self, written: Any, meant: Filter | None) -> None:
        assert parse_filter(written) == meant

    @pytest.mark.parametrize(
        ("written", "told"),
        [
            (5, "5 is not a filter"),
            ("kind", "'kind' is not understood; write field=value"),
            ("", "is not understood"),
            ("=x", "is not understood"),
            ("{not json", "is not JSON"),
            ('{"n": ' + "9" * 5_000 + "}", "where: cannot be read"),
            ('{"$not":' * 5_000 + '{"n": 1}' + "}" * 5_000, "nested more than"),
            ("{" * 5_000, r"^where: '\{{60}…' is not JSON"),
            ("a" * 5_000, r"^where: 'a{60}…' is not understood"),
            ({"n": {}}, "'n' has an empty condition"),
            ({"n": {"like": 1}}, "unknown operator 'like' on 'n'; known: eq, ne"),
            ({"n": {"in": "abc"}}, "in on 'n' takes a list"),
            ({"n": {"nin": 3}}, "nin on 'n' takes a list"),
            ({"n": {"gt": 1, "lt": "z"}}, "mixes text and number bounds"),
            ({"n": object}, "cannot be compared with"),
            ({"n": [[1]]}, "cannot be compared with"),
            ({"n": b"x"}, "cannot be compared with"),
            ({"n": {"eq": None}}, "cannot be compared with None"),
            ({"n": math.nan}, "use a finite number"),
            ({"n": {"gt": math.inf}}, "use a finite number"),
            ({"n": 2**63}, "integers are 64-bit"),
            ({"$or": []}, r"\$or takes a non-empty list"),
            ({"$or": {"a": 1}}, r"\$or takes a non-empty list"),
            ({"$or": [{}, {"a": 1}]}, r"\$or contains an empty filter"),
            ({"$not": {}}, r"\$not takes a filter, got nothing"),
            ({"": 1}, "is not a field name"),
            ({3: 1}, "3 is not a field name"),
            ({"\ud800": 1}, "is not a field name"),
            (Eq("", 1), "is not a field name"),
            (Exists(None), "is not a field name"),  # type: ignore[arg-type]
            (Range("n"), "has no bound"),
            ({"n": {"prefix": 3}}, "prefix and contains on 'n' take text, got 3"),
            ({"created": {"prefix": "2026"}}, "'created' is not text; prefix and contains are for id, kind, title"),
            ("importance*=5", "'importance' is not text"),
            ({"created": "soon"}, "created: 'soon' is not a time"),
            ({"created": {"eq": None}}, "created: None is not a time"),
            ({"created": {"gte": [1]}}, r"created: \[1\] is not a time"),
            ({"created": True}, "created: True is not a time"),
            ({"created": math.nan}, "created: nan is not a time"),
            ({"created": 1e12}, "must lie in the years 1 to 9999"),
            ("created>=2026", "a year alone is not a time; write a date such as 2026-01-01"),
        ],
        ids=lambda value: repr(value)[:50],
    )
    def test_refused_with_the_reason(self, written: Any, told: str) -> None:
        with pytest.raises(InputError, match=told):
            parse_filter(written)

    @pytest.mark.parametrize("levels", [30, 5_000])
    def test_too_deep_in_every_form(self, levels: int) -> None:
        as_object: Filter = Eq("a", 1)
        as_mapping: Any = {"a": 1}
        for _ in range(min(levels, 900)):
            as_object, as_mapping = Not(as_object), {"$not": as_mapping}
        as_text = '{"$not":' * levels + '{"a": 1}' + "}" * levels
        for where in (as_object, as_mapping, as_text):
            with pytest.raises(InputError, match="nested more than 20 levels deep"):
                parse_filter(where)

    def test_too_many_conditions(self) -> None:
        assert parse_filter([{"a": n} for n in range(MAX_CONDITIONS)]) is not None
        with pytest.raises(InputError, match=f"{MAX_CONDITIONS + 1} conditions; at most {MAX_CONDITIONS}"):
            parse_filter([{"a": n} for n in range(MAX_CONDITIONS + 1)])
        assert parse_filter({"a": list(range(100_000))}) is not None  # a list counts as one

    @given(st.text())
    def test_text_is_read_or_refused_never_more(self, text: str) -> None:
        try:
            found = parse_filter(text)
        except InputError:
            return
        assert found is None or list(fields_of(found))


class TestEpoch:
    @pytest.mark.parametrize(
        "moment",
        [
            datetime(2026, 3, 1, 10, tzinfo=UTC),
            datetime(2026, 3, 1, 10),
            datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2))),
            "2026-03-01T10:00:00Z",
            " 2026-03-01 10:00 ",
            "2026-03-01T12:00:00+02:00",
            1772359200,
            1772359200.0,
        ],
    )
    def test_one_moment(self, moment: Any) -> None:
        assert epoch(moment) == 1772359200.0

    def test_a_date_is_its_beginning(self) -> None:
        assert epoch(date(2026, 3, 1)) == epoch("2026-03-01") == 1772323200.0

    @pytest.mark.parametrize(
        "moment",
        [
            datetime.min,
            datetime.max,
            datetime.max.replace(tzinfo=UTC),
            datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
        ],
    )
    def test_the_ends_of_time_can_be_read_back(self, moment: datetime) -> None:
        assert datetime.fromtimestamp(epoch(moment), UTC).year == moment.year

    @pytest.mark.parametrize("value", [None, [], {}, b"2026-03-01", True, math.nan, -math.inf, 10**400, -(10**12)])
    def test_what_is_no_time(self, value: Any) -> None:
        with pytest.raises(InputError, match=r"x: .* is not a time"):
            epoch(value, "x")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.datetime64("2026-03-01T10:00", "ns"), datetime(2026, 3, 1, 10)),
        (np.datetime64("NaT"), None),
        (pd.NaT, None),
        (pd.NA, None),
        (pd.Timestamp("2026-03-01"), datetime(2026, 3, 1)),
        ("text", "text"),
        (None, None),
    ],
)
def test_a_value_as_plain_data(value: Any, plain: Any) -> None:
    found = plain_value(value)
    assert found == plain
    assert type(found).__module__ != "numpy"


# --- the embedded store understands a filter as ``matches`` does ------------------------------------------------------

odd_texts = st.one_of(
    st.sampled_from(["", "x", "X", "é", "e\u0301", "10", "9", "true", "\U0001f600", "a'b", 'a"b', "%", "東京"]),
    st.text(max_size=3),
)
odd_numbers = st.one_of(
    st.sampled_from(
        [0, -1, 1, True, False, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0.1, 1e300, 5e-324, -0.0, 9007199254740993.0]
    ),
    st.integers(-3, 12),
    st.floats(allow_nan=False, allow_infinity=False),
)
odd_scalars = st.one_of(odd_texts, odd_numbers)
names = st.sampled_from(["a", "b", "a.x", "b.x", "kind", "meta.kind", "title", "importance", "id"])


def readable(where: Filter) -> bool:
    """A value that a built-in field cannot have is refused, and has a test of its own."""
    try:
        parse_filter(where)
    except InputError:
        return False
    return True


leaves: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Eq, names, odd_scalars),
    st.builds(In, names, st.lists(odd_scalars, max_size=4).map(tuple)),
    st.builds(Exists, names),
    st.builds(lambda name, low, high: Range(name, gt=low, lte=high), names, odd_numbers, odd_numbers),
    st.builds(lambda name, low: Range(name, gte=low), names, odd_texts),
    st.builds(Prefix, names, odd_texts),
    st.builds(Contains, names, odd_texts),
).filter(readable)
wheres: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
metas = st.recursive(
    st.one_of(odd_scalars, st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xy"), inner, max_size=2)),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def store() -> Iterator[Engine]:
    with trivet.open(":memory:", embedder="none") as memory:
        yield memory


@settings(max_examples=120, deadline=None)
@given(
    given_metas=st.lists(
        st.dictionaries(st.sampled_from(["a", "b", "kind"]), metas, max_size=3), min_size=1, max_size=6
    ),
    where=st.lists(wheres, min_size=1, max_size=4),
)
def test_the_store_agrees_with_the_meaning(
    store: Engine, given_metas: list[dict[str, Any]], where: list[Filter]
) -> None:
    store.add([{"id": str(n), "text": "t", "title": "x", "meta": meta} for n, meta in enumerate(given_metas)])
    every = {"a": {"x": 1}, "b": {"x": 1}, "kind": 1}  # so that no filter names an unknown field
    store.add({"id": "all", "text": "t", "meta": every})
    store.add({"id": "flat", "text": "t", "meta": {"a": 1, "b": 1}})
    kept = list(store.documents())
    for one in where:
        parsed = parse_filter(one)
        assert parsed is not None
        assert [d.id for d in store.documents(one)] == [d.id for d in kept if matches(parsed, d)], one


def test_an_unknown_field_is_refused_with_a_hint(words: Engine) -> None:
    words.add({"id": "a", "text": "x", "meta": {"session": "s1"}})
    with pytest.raises(InputError, match=r"no document has a field 'sesion'; did you mean 'session'\?"):
        words.search("x", where={"sesion": "s1"})
    assert list(words.documents({"sesion": None})) == [words.get("a")]  # asking whether it is there may be asked
    assert list(words.documents({"session": "nobody"})) == []


def test_ten_thousand_ids_in_a_list(words: Engine) -> None:
    words.add([{"id": f"e{n}", "text": "apple", "meta": {"session": n}} for n in range(20)])
    found = words.search("apple", where={"session": list(range(5, 10_005))}, rerankers=[], k=50)
    assert len(found) == 15


def test_values_that_look_like_sql(words: Engine) -> None:
    evil = "x'; DROP TABLE documents; --"
    words.add({"id": "a", "text": "x", "meta": {evil: evil, "k": [evil, '"', "\\"]}})
    for where in ({evil: evil}, {"k": [evil, "q"]}, {"k": '"'}, {"k": ["\\", "?"]}):
        assert [d.id for d in words.documents(where)] == ["a"]


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({"created": {"nin": ["not a date"]}}, "'not a date' is not a time"),
        ({"created": {"in": ["2026-01-01", "soon"]}}, "'soon' is not a time"),
        ({"$not": {"created": ["soon"]}}, "'soon' is not a time"),
        (Not(In("valid_to", ("never",))), "'never' is not a time"),
        ("created!=soon", "'soon' is not a time"),
        ({"importance": {"nin": ["high"]}}, "'importance' cannot be compared with 'high'; give a number"),
        ({"importance": {"ne": "high"}}, "'importance' cannot be compared with 'high'; give a number"),
        ({"kind": {"ne": 3}}, "'kind' cannot be compared with 3; give text"),
        ({"id": {"nin": [1]}}, "'id' cannot be compared with 1; give text"),
    ],
)
def test_a_value_that_the_field_cannot_have_is_an_error_and_not_everything(where: Any, told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        parse_filter(where)


def test_on_a_command_line_a_value_is_read_as_the_field_wants_it() -> None:
    assert parse_filter("kind!=3") == Not(Eq("kind", "3"))
    assert parse_filter("importance=1") == Eq("importance", 1)
    assert parse_filter("created!=2020") == Not(Eq("created", 2020.0))


_names = st.sampled_from(["tenant", "kind", "created", "meta.kind", "a.b", "it's", "$x", "日本"])
_values = st.text(max_size=5) | st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.floats(-1e9, 1e9)
_numbers = st.integers(-(2**40), 2**40)
_kept = st.recursive(
    st.one_of(
        st.builds(Eq, _names, _values),
        st.builds(In, _names, st.lists(_values, max_size=3).map(tuple)),
        st.builds(Exists, _names),
        st.builds(lambda name, low: Range(name, gte=low), _names, _numbers),
        st.builds(lambda name, low, high: Range(name, gt=low, lte=high), _names, _numbers, _numbers),
        st.builds(Prefix, _names, st.text(max_size=5)),
        st.builds(Contains, _names, st.text(max_size=5)),
    ),
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(_kept)
def test_a_filter_comes_back_from_json(where: Filter) -> None:
    try:
        checked = parse_filter(where)
    except InputError:  # a value that the field cannot have, or nested too deeply
        return
    assert checked is not None
    text = to_json(checked)
    assert parse_filter(text) == parse_filter(json.loads(text)) == checked
    assert to_json(checked) == text


_edges = st.text(st.sampled_from("a\0\ud7ff\ue000\U0010ffff"), max_size=3)


@given(_edges, _edges | st.text(max_size=3))
def test_a_prefix_is_a_range(prefix: str, text: str) -> None:
    document = Document("d", "t", meta={"s": text})
    where = Prefix("s", prefix)
    assert matches(where, document) == matches(as_range(where), document) == text.startswith(prefix)


@given(st.sampled_from(["^=", "*=", "!^=", "!*="]), st.text(max_size=6))
def test_a_text_is_read_literally(symbol: str, text: str) -> None:
    part = Prefix("path", text) if "^" in symbol else Contains("path", text)
    quoted = f"path{symbol}'{text}'"
    assert parse_filter(quoted) == (Not(part) if symbol[0] == "!" else part)


@pytest.mark.parametrize("where", [And(()), Or(()), Not(And(())), Eq("$and", 1), Eq("$not", "x")])
def test_what_json_cannot_say_is_refused(where: Filter) -> None:
    with pytest.raises(InputError, match="where"):
        to_json(where)
