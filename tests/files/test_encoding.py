"""Encodings of texts, and binaries that are never read as text."""

from __future__ import annotations

import random

import pytest

from trivet.files import encoding
from trivet.files.formats import UnreadableError

GERMAN = "Die Tür klemmt bei Regen, schöne Grüße aus Köln."


@pytest.mark.parametrize("name", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_needs_no_detection(name: str) -> None:
    assert encoding.decode("héllo".encode(name)) == encoding.Decoded("héllo")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (GERMAN, "cp1252"),
        ("L'été dernier, le café était fermé à Noël.", "cp1252"),
        ("Dveře skleníku se při dešti zasekávají. Čerpadlo je tiché a běží každý den.", "cp1250"),
        ("Дверь оранжереи заедает, когда идет дождь. Насос работает тихо.", "cp1251"),
        ("Дверь оранжереи заедает, когда идет дождь. Насос работает тихо.", "koi8_r"),
        ("温室のドアは雨が降ると動きにくくなります。ポンプは静かです。", "cp932"),
    ],
)
def test_an_old_encoding_is_detected_and_noted(text: str, name: str) -> None:
    found = encoding.decode(text.encode(name))
    assert found == encoding.Decoded(text, name)
    assert found.notes == (f"read as {name}",)


def test_an_encoding_that_the_file_declares_is_used() -> None:
    assert encoding.decode(GERMAN.encode("cp1252"), "windows-1252") == encoding.Decoded(GERMAN)
    assert encoding.decode(GERMAN.encode(), "no-such-charset") == encoding.Decoded(GERMAN)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n and more", r"binary \(PNG\)"),
        (b"%PDF-1.7\n plain so far", r"binary \(PDF\)"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 a sheet", r"binary \(an old or encrypted Office file\)"),
        (b"words \0 words", "binary"),
        (rb"{\rtf1\ansi The pump. \par}", "RTF; save it as DOCX"),
        (b"a" * 50_000 + b"\0", "binary"),
        (b"\x01\x02\x03 short words \x04\x05", "binary"),
        ("\ufeffodd".encode("utf-16-le") + b"\x00", "not UTF-16, though"),
        (random.Random(1).randbytes(4_000).replace(b"\0", b"\1"), "binary"),
    ],
)
def test_a_binary_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        encoding.decode(content)


def test_colours_of_a_log_are_text() -> None:
    assert encoding.decode(b"\x1b[31mred\x1b[0m\r\n\tend").detected == ""


def test_a_text_that_changes_its_encoding_on_the_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "DETECTED_BYTES", 40)
    with pytest.raises(UnreadableError, match="nor cp1252 as its beginning is; convert it to UTF-8"):
        encoding.decode(GERMAN.encode("cp1252") + b"\x81")  # a byte that cp1252 does not have
