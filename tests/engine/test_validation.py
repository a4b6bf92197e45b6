"""Everything that a caller gives is kept as it is or refused by name, with the way out."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.engine import validation
from trivet.errors import InputError
from trivet.text.passages import cut
from trivet.types import Document, Link, Passage


def read(**fields: Any) -> Document:
    ((document, _, _),) = validation.documents({"id": "d", "text": "t", **fields}, {})
    return document


def links(value: Any) -> list[Link] | None:
    ((_, found, _),) = validation.documents({"id": "d", "text": "t", "links": value}, {})
    return None if found is None else list(found)


class TestForms:
    def test_text_mapping_and_document_are_one(self) -> None:
        (one,) = validation.documents("words", {"id": "a"})
        (two,) = validation.documents({"id": "a", "text": "words"}, {})
        (three,) = validation.documents(Document("a", "words"), {})
        assert one == two == three == (Document("a", "words"), None, None)

    def test_keywords_win_over_the_mapping(self) -> None:
        ((document, _, _),) = validation.documents({"id": "a", "text": "words", "kind": "x"}, {"kind": "y"})
        assert document.kind == "y"

    def test_an_id_is_made_where_there_is_none(self) -> None:
        made = {document.id for document, _, _ in validation.documents(["t"] * 50, {})}
        assert len(made) == 50
        assert all(len(id) == 16 for id in made)

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            (5, "document: int is not text, a mapping, a Document or an iterable"),
            (None, "document: NoneType is not text"),
            ([5], "document 0: int is not text, a mapping or a Document"),
            (["fine", b"bytes"], "document 1: bytes is not text"),
            (b"bytes", "bytes are not text; decode them first"),
        ],
    )
    def test_what_is_no_document(self, given: Any, told: str) -> None:
        with pytest.raises(InputError, match=told):
            list(validation.documents(given, {}))

    def test_a_generator_is_read_one_by_one(self) -> None:
        seen: list[int] = []

        def source() -> Any:
            for n in range(3):
                seen.append(n)
                yield f"text {n}"

        found = validation.documents(source(), {})
        next(found)
        assert seen == [0]


class TestFields:
    @pytest.mark.parametrize(
        ("field", "meant"),
        [("txt", "text"), ("Title", "title"), ("metadata", "meta"), ("importanse", "importance"), ("link", "links")],
    )
    def test_an_unknown_field_is_named_with_a_hint(self, field: str, meant: str) -> None:
        with pytest.raises(InputError, match=rf"unknown field '{field}'; did you mean '{meant}'\?"):
            read(**{field: "x"})

    def test_a_field_of_ones_own_goes_under_meta(self) -> None:
        with pytest.raises(InputError, match="unknown field 'session_id'; put fields of your own under 'meta'"):
            read(session_id=3)

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"text": None}, "text: NoneType is not text; decode bytes and join lists first"),
            ({"text": b"x"}, "text: bytes is not text"),
            ({"text": ["a"]}, "text: list is not text"),
            ({"text": "  \n"}, "text is empty; give it some text or a title"),
            ({"title": 5}, "title: int is not text"),
            ({"id": ""}, "'' is not an id"),
            ({"id": " "}, "' ' is not an id"),
            ({"id": 1.5}, "1.5 is not an id"),
            ({"id": True}, "True is not an id"),
            ({"id": "a\0b"}, "holds a NUL or a lone surrogate"),
            ({"id": "\ud800"}, "holds a NUL or a lone surrogate"),
            ({"id": "x" * 513}, "513 characters; at most 512"),
            ({"kind": ""}, "kind '' is not a text of at most 64 characters"),
            ({"kind": 5}, "kind 5 is not a text of at most 64 characters"),
            ({"kind": "x" * 65}, "is not a text of at most 64 characters"),
            ({"kind": "\ud800"}, "is not a text of at most 64 characters"),
            ({"importance": 1.01}, "importance 1.01 is not a number from 0 to 1"),
            ({"importance": -0.1}, "importance -0.1"),
            ({"importance": "high"}, "importance 'high'"),
            ({"importance": True}, "importance True"),
            ({"importance": math.nan}, "importance nan"),
            ({"created": "yesterday"}, "created: 'yesterday' is not a time; write ISO 8601"),
            ({"updated": [1]}, r"updated: \[1\] is not a time"),
            ({"accessed": True}, "accessed: True is not a time"),
            ({"accessed": 1e20}, "accessed: 1e\\+20 is not a time"),
            ({"accessed": -1e11}, "accessed: -100000000000.0 is not a time"),
            ({"accessed": 10**400}, "is not a time"),
            (
                {"valid_from": "2026-02-01", "valid_to": "2026-01-01"},
                "valid_from 2026-02-01 is after valid_to 2026-01-01",
            ),
            ({"meta": [1]}, r"meta \[1\] is not a mapping"),
            ({"meta": {1: 2}}, "is not a metadata key"),
            ({"meta": {"": 2}}, "is not a metadata key"),
            ({"meta": {"a": {"\0": 1}}}, r"meta\.a\.\x00: '\\x00' is not a metadata key"),
            ({"meta": {"a": {"b": object}}}, r"meta\.a\.b: type is not JSON"),
            ({"meta": {"a": [1, {2}]}}, r"meta\.a\.1: set is not JSON"),
            ({"meta": {"a": math.inf}}, r"meta\.a: inf is not a finite number"),
            ({"meta": {"a": 2**63}}, r"meta\.a: 9223372036854775808 does not fit 64 bits; store it as text"),
            ({"meta": {"a": np.complex128(3)}}, r"meta\.a: complex is not JSON"),
        ],
        ids=lambda value: repr(value)[:40],
    )
    def test_refused_by_name(self, fields: dict[str, Any], told: str) -> None:
        with pytest.raises(InputError, match=told):
            read(**fields)

    def test_too_deep_metadata(self) -> None:
        deep: Any = 1
        for _ in range(40):
            deep = {"x": deep}
        with pytest.raises(InputError, match="nested more than 32 levels deep"):
            read(meta={"a": deep})

    def test_too_much_metadata(self) -> None:
        document = read(meta={"a": "x" * validation.MAX_META})
        with pytest.raises(InputError, match="characters of JSON; at most"):
            validation.prepare(document, (), None, cut, None)

    def test_a_title_is_enough(self) -> None:
        assert read(text="", title="only a title").title == "only a title"

    def test_lone_surrogates_become_the_replacement_character(self) -> None:
        document = read(text="a\ud800b", title="\udfff", meta={"k": ["x\ud800"]})
        assert (document.text, document.title, document.meta) == ("a\ufffdb", "\ufffd", {"k": ["x\ufffd"]})

    def test_metadata_comes_back_as_given(self) -> None:
        meta = {"s": "x", "i": 1, "f": 1.5, "b": True, "n": None, "l": [1, "a", [2]], "m": {"x": {"y": -0.0}}}
        assert read(meta=meta).meta == meta
        assert read(meta={"t": (1, 2)}).meta == {"t": [1, 2]}
        assert read(meta={"d": datetime(2026, 1, 1, tzinfo=UTC)}).meta == {"d": "2026-01-01T00:00:00+00:00"}


class TestLinks:
    def test_in_every_form(self) -> None:
        given = ["a", {"target": "b"}, {"target": "c", "type": "part-of", "weight": 2}, Link("anyone", "e", weight=0)]
        assert links(given) == [
            Link("d", "a"),
            Link("d", "b"),
            Link("d", "c", "part-of", 2.0),
            Link("d", "e", weight=0.0),
        ]
        assert links([]) == []
        assert links(None) is None, "not said: those that are there stay"

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ("a", "links 'a' is not a list"),
            ({"target": "a"}, "is not a list of targets"),
            (5, "links 5 is not a list"),
            ([5], "link 5 is not a target id"),
            ([{"type": "x"}], "is not a target id"),
            ([{"target": "a", "wieght": 1}], "is not a target id"),
            ([{"target": ""}], "link target: '' is not an id"),
            ([{"target": 5}], "link target: 5 is not an id"),
            ([{"target": "a", "type": ""}], "link type '' is not a text of at most 64 characters"),
            ([{"target": "a", "type": 5}], "link type 5"),
            ([{"target": "a", "weight": -1}], "link weight -1 is not a number from 0 up"),
            ([{"target": "a", "weight": math.nan}], "link weight nan"),
            ([{"target": "a", "weight": True}], "link weight True"),
            ([{"target": "a", "weight": "1"}], "link weight '1'"),
            ([{"target": "a", "weight": 10**400}], "link weight"),
        ],
        ids=lambda value: repr(value)[:40],
    )
    def test_refused_by_name(self, given: Any, told: str) -> None:
        with pytest.raises(InputError, match=told):
            links(given)


class TestPrepare:
    def test_it_is_cut_and_hashed(self) -> None:
        document = read(text="One sentence here. " * 200)
        ready = validation.prepare(document, (), None, cut, None)
        assert len(ready.passages) > 1
        assert ready.passages[0][:2] == (0, 0)
        assert len({digest for *_, digest in ready.passages}) > 1

    def test_the_hash_is_of_title_and_text_alone(self) -> None:
        one = validation.prepare(read(title="a", text="b"), (), None, cut, None)
        same = validation.prepare(read(title="a", text="b", meta={"x": 1}, importance=1), (), None, cut, None)
        other = validation.prepare(read(title="ab", text=""), (), None, cut, None)
        assert one.hash == same.hash
        assert one.hash != other.hash

    def test_with_a_vector_it_stays_whole(self) -> None:
        ready = validation.prepare(read(text="One sentence here. " * 200), (), [3, 4], cut, 2)
        assert len(ready.passages) == 1
        assert np.frombuffer(ready.vector or b"", dtype="<f4").tolist() == pytest.approx([0.6, 0.8])

    def test_a_vector_needs_a_model(self) -> None:
        with pytest.raises(
            InputError, match="vector given, but the collection has no model; create it with the embedder vectors:DIM"
        ):
            validation.prepare(read(), (), [1, 2], cut, None)

    def test_cutting_is_handed_in(self) -> None:
        halves = [Passage(0, 0, 1, "a"), Passage(1, 1, 2, "b")]
        assert [p[:3] for p in validation.prepare(read(text="ab"), (), None, lambda _: halves, None).passages] == [
            (0, 0, 1),
            (1, 1, 2),
        ]

    @given(st.lists(st.floats(-1e308, 1e308), min_size=3, max_size=3))
    def test_a_vector_is_of_unit_length_or_zero(self, values: list[float]) -> None:
        vector = validation.unit_vector(values, 3, "v")
        assert vector.dtype == np.float32
        length = float(np.linalg.norm(vector.astype(np.float64)))
        assert length == pytest.approx(1.0, abs=1e-5) if any(values) else length == 0.0
