"""The documents of a file; folders are covered by ``tests/cli/test_cli_import.py``."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from made_files import pdf
from trivet.files import reader

MAIL = b"Message-ID: <%s@x>\nSubject: %s\n%s\n\n%s\n"


def read(content: bytes, name: str) -> reader.Documents | reader.Skipped:
    return reader.documents(content, reader.File(name, name, name), datetime(2026, 6, 1, tzinfo=UTC))


def test_one_document_has_the_time_and_the_facts_of_its_file() -> None:
    found = read(pdf("words", ""), "ünï/a.PDF")
    assert isinstance(found, reader.Documents)
    [one] = found.documents
    assert (one["id"], one["title"], one["created"].year) == ("ünï/a.PDF", "a.PDF", 2026)
    assert one["meta"] == {"pages": 2, "path": "ünï/a.PDF", "extension": "pdf", "bytes": len(pdf("words", ""))}
    assert found.notes == ["no text in 1 of 2 pages"]


def test_rows_do_not_change_when_another_is_added() -> None:
    found, more = read(b"a\n1\n2\n", "t.csv"), read(b"a\n1\n2\n3\n", "t.csv")
    assert isinstance(found, reader.Documents)
    assert isinstance(more, reader.Documents)
    assert found.documents == more.documents[:2]
    assert found.documents[0]["id"] == "t.csv#1"
    assert found.documents[0]["meta"] == {"a": 1, "row": 1, "path": "t.csv", "extension": "csv"}


def test_messages_are_linked_by_the_ids_of_their_documents_and_empty_ones_noted() -> None:
    one = MAIL % (b"a", b"Pump", b"X: y", b"leaks")
    two = MAIL % (b"b", b"Re", b"In-Reply-To: <a@x>\nReferences: <lost@x>", b"sealed")
    empty = b"X-Only: header\n\n\n"
    found = read(b"From x\n" + one + b"\nFrom x\n" + two + b"\nFrom x\n" + empty, "box.mbox")
    assert isinstance(found, reader.Documents)
    assert [item["id"] for item in found.documents] == ["box.mbox#a@x", "box.mbox#b@x"]
    assert found.documents[1]["links"] == [{"target": "box.mbox#a@x", "type": "reply-to"}]
    assert "links" not in found.documents[0]
    assert found.notes == ["1 of 3 parts are empty"]


def test_a_text_in_an_old_encoding_says_so() -> None:
    found = read("Die Tür klemmt.".encode("cp1252"), "a.txt")
    assert isinstance(found, reader.Documents)
    assert found.documents[0]["meta"]["encoding"] == "cp1252"
    assert found.notes == ["read as cp1252"]


def test_what_cannot_be_read_is_skipped_with_the_reason(tmp_path: Path) -> None:
    assert read(b"\x7fELF\2\1", "tool") == reader.Skipped("tool", "binary (ELF)")
    assert read(pdf("x"), "a.txt") == reader.Skipped("a.txt", "binary (PDF)")
    assert read(b"", "a.pdf") == reader.Skipped("a.pdf", "empty")
    gone = reader.File(str(tmp_path / "gone.pdf"), "gone.pdf", "gone.pdf")
    assert reader.read(gone) == reader.Skipped("gone.pdf", os.strerror(2))


def test_a_format_may_be_larger_than_a_text(tmp_path: Path) -> None:
    for name in ("a.pdf", "a.txt"):
        (tmp_path / name).write_bytes(b"%PDF-1.4\n" + b"x" * (reader.MAX_BYTES + 1))
    found = {name: reader.read(reader.File(str(tmp_path / name), name, name)) for name in ("a.pdf", "a.txt")}
    assert found["a.txt"] == reader.Skipped("a.txt", "larger than 10 MB (10.0 MB)")
    assert isinstance(found["a.pdf"], reader.Skipped)
    assert found["a.pdf"].reason.startswith("broken PDF")
