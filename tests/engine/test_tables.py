"""Tables of pandas and pyarrow become documents, and values of numpy plain data."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from trivet.engine import Engine
from trivet.errors import InputError

COLUMNS = {
    "id": [1, 2],
    "text": ["The heron stands.", "The boat leaks."],
    "title": ["Heron", None],
    "place": ["marsh", None],
    "year": [2025, 2026],
    "importance": [0.25, 0.75],
    "created": [datetime(2026, 3, 1, tzinfo=UTC), None],
}
TABLES = {
    "pandas": pd.DataFrame,
    "pyarrow": pa.table,
    "pyarrow batch": lambda columns: pa.table(columns).to_batches()[0],
}


@pytest.mark.parametrize("package", TABLES)
def test_each_row_is_a_document(words: Engine, package: str) -> None:
    added = words.add(TABLES[package](COLUMNS))
    assert added.ids == ("1", "2")
    heron, boat = words.documents()
    assert (heron.text, heron.title, heron.meta) == ("The heron stands.", "Heron", {"place": "marsh", "year": 2025})
    assert (heron.importance, heron.created) == (0.25, datetime(2026, 3, 1, tzinfo=UTC))
    assert (boat.title, boat.meta, boat.created is not None) == ("", {"year": 2026}, True), "an empty cell is left out"
    assert [hit.id for hit in words.search("heron", where="year<2026")] == ["1"]


def test_a_table_without_a_column_of_text_is_refused_with_its_columns(words: Engine) -> None:
    with pytest.raises(InputError, match="document 0: text: missing among 'body', 'year'; give one, or rename"):
        words.add(pd.DataFrame({"body": ["The heron stands."], "year": [2025]}))
    with pytest.raises(InputError, match="document 'x': text: missing; give one"):
        words.add({"id": "x"})


def test_a_class_of_polars_is_read_by_its_named_rows(words: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    class DataFrame:
        """What polars promises of its own: polars is not in the development environment."""

        def iter_rows(self, named: bool) -> Any:
            assert named
            return iter([{"text": "one apple", "colour": "red"}])

    DataFrame.__module__ = "polars.dataframe.frame"
    words.add(DataFrame())  # type: ignore[arg-type]
    assert [document.meta for document in words.documents()] == [{"colour": "red"}]
    assert "polars" not in sys.modules


def test_a_column_of_metadata_goes_before_other_columns(words: Engine) -> None:
    words.add(pd.DataFrame({"text": ["x"], "meta": [{"a": 1}], "a": [2], "b": [3]}))
    assert next(words.documents()).meta == {"a": 1, "b": 3}


def test_a_row_that_cannot_be_stored_is_named_and_nothing_is(words: Engine) -> None:
    with pytest.raises(InputError, match="document 1: text"):
        words.add(pd.DataFrame({"text": ["one", None]}))
    with pytest.raises(InputError, match="title: only with one document"):
        words.add(pd.DataFrame({"text": ["one"]}), title="x")
    assert words.stats().documents == 0


def test_values_of_numpy(words: Engine) -> None:
    meta = {
        "n": np.int64(3), "f": np.float32(0.5), "yes": np.bool_(True), "s": np.str_("s"), "list": np.array([1, 2]),
        "day": np.datetime64("2026-03-01"), "inner": {"n": np.uint8(7)},
    }  # fmt: skip
    stamp = np.datetime64("2026-03-01T10:00:00", "ns")
    words.add(
        {"id": np.int64(5), "text": np.str_("one"), "importance": np.float64(0.25), "created": stamp, "meta": meta}
    )
    found = words.get("5")
    assert found is not None
    assert found.meta == {
        "n": 3, "f": 0.5, "yes": True, "s": "s", "list": [1, 2], "day": "2026-03-01T00:00:00", "inner": {"n": 7},
    }  # fmt: skip
    assert (found.importance, found.created) == (0.25, datetime(2026, 3, 1, 10, tzinfo=UTC))
    with pytest.raises(InputError, match=r"meta\.z: complex is not JSON"):
        words.add({"text": "x", "meta": {"z": np.complex128(1j)}})


def test_a_row_with_an_empty_text_is_its_title(words: Engine) -> None:
    words.add(pd.DataFrame({"id": ["a", "b"], "text": ["The heron stands.", None], "title": ["", "Boat"]}))
    assert [(item.text, item.title) for item in words.documents()] == [("The heron stands.", ""), ("", "Boat")]
    with pytest.raises(InputError, match="document 1: text is empty; give it some text or a title"):
        words.add(pd.DataFrame({"text": ["one", None]}))


def test_missing_values_of_pandas_are_absent(words: Engine) -> None:
    words.add({"id": "a", "text": "one", "created": pd.NaT, "meta": {"due": pd.NaT, "place": pd.NA}})
    document = words.get("a")
    assert document is not None
    assert document.meta == {"due": None, "place": None}


def test_a_search_takes_values_of_numpy_and_dates(words: Engine) -> None:
    day = date(2026, 3, 1)
    words.add([{"id": f"{n}", "text": "one", "created": day, "meta": {"n": n, "due": day}} for n in range(3)])
    found = words.search("one", k=np.int64(1), offset=np.int64(1), alpha=np.float32(0), lexical_depth=np.int64(9))
    assert [hit.rank for hit in found] == [2]

    def ids(where: Any, **more: Any) -> list[str]:
        return sorted(hit.id for hit in words.search("one", where=where, **more))

    assert ids({"n": np.int64(2)}) == ids({"n": {"gt": np.float64(1)}}) == ["2"]
    assert ids({"n": np.array([0, 2])}) == ids({"n": {"in": np.array([0, 2])}}) == ["0", "2"]
    assert ids({"created": {"gte": np.datetime64("2026-03-01")}}) == ids({"created": {"gte": day}}) == ["0", "1", "2"]
    assert ids({"due": day}, as_of=np.datetime64("2026-03-02"), at=day) == ["0", "1", "2"]
