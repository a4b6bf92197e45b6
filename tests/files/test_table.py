"""CSV and TSV: rows, columns, delimiters and messy lines."""

from __future__ import annotations

import pytest

from trivet.files import formats, table
from trivet.files.formats import UnreadableError


def test_a_row_is_a_document_with_its_cells_as_text_and_metadata() -> None:
    one, two = formats.parts("name,height,code,note\nP1,4,007,\nP2,5.5,8,größer\n".encode(), "csv")
    assert (one.title, one.key, one.kind) == ("P1", "1", "row")
    assert one.text == "name: P1\nheight: 4\ncode: 007"
    assert one.meta == {"name": "P1", "height": 4, "code": "007", "row": 1}
    assert two.meta["height"] == 5.5


def test_columns_that_name_the_document() -> None:
    [part] = formats.parts(b"ID;Title;Text;year\n k-7 ;A door;It sticks.;2026\n", "csv")
    assert (part.key, part.title, part.text) == ("k-7", "A door", "It sticks.")
    assert part.meta == {"ID": "k-7", "Title": "A door", "Text": "It sticks.", "year": 2026, "row": 1}


@pytest.mark.parametrize(
    ("content", "format", "meta"),
    [
        (b"a\tb, c\n1\t2, 3\n", "tsv", {"a": 1, "b, c": "2, 3"}),
        (b"one\nword\n", "csv", {"one": "word"}),
        (b'a,b\n"x\ny","say ""hi"""\n', "csv", {"a": "x\ny", "b": 'say "hi"'}),
        (b"a,,a\n1,2,3,4\n", "csv", {"a": 1, "column 2": 2, "a 3": 3, "column 4": 4}),
        (b"a,b\n1\n", "csv", {"a": 1}),
        (b"a\n1e999\n", "csv", {"a": "1e999"}),
        (b"a\n99999999999999999999\n", "csv", {"a": "99999999999999999999"}),
    ],
)
def test_messy_tables(content: bytes, format: str, meta: dict[str, object]) -> None:
    assert formats.parts(content, format)[0].meta == {**meta, "row": 1}


def test_empty_lines_are_no_rows_and_a_long_cell_is_no_metadata() -> None:
    [part] = formats.parts(b"a,b\n,\n\n" + b"x" * 200_000 + b",1\n", "csv")
    assert part.meta == {"b": 1, "row": 1}
    assert len(part.text) > 200_000


def test_a_detected_encoding_is_noted_once() -> None:
    first, second = formats.parts("wort\nfür\nmöglich\n".encode("cp1252"), "csv")
    assert (first.notes, second.notes, first.text) == (("read as cp1252",), (), "wort: für")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"a,b\n", "empty"),
        (b'a\n"never closed\n', "broken table: line 2"),
        (b"PK\x03\x04", "binary"),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        formats.parts(content, "csv")


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_ROWS", 2)
    with pytest.raises(UnreadableError, match="more than 2 rows"):
        formats.parts(b"a\n1\n2\n3\n", "csv")
