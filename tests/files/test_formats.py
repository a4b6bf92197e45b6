"""The registry of file formats: suffixes, missing extras, and readers that break."""

from __future__ import annotations

import sys

import pytest

from trivet.errors import InputError, MissingExtraError
from trivet.files import formats
from trivet.files.formats import FORMATS, Part, UnreadableError


@pytest.mark.parametrize(
    ("name", "format"), [("a/B.PDF", "pdf"), ("x.tar.csv", "csv"), ("notes.md", ""), ("pdf", ""), (".pdf", "")]
)
def test_the_suffix_of_a_name_tells_the_format(name: str, format: str) -> None:
    assert formats.format_of(name) == format


@pytest.mark.parametrize("format", FORMATS.built_in)
def test_every_format_refuses_junk_without_a_trace(format: str) -> None:
    """Whatever the bytes are, what is raised says why; nothing else comes out of a library."""
    for content in (b"", b"\0", b"junk", b"PK\x03\x04" + b"\xff" * 64, b"%PDF-1.4\n" + b"\xff" * 64, b"\xff\xfe" * 40):
        try:
            assert formats.parts(content, format)
        except UnreadableError as error:
            assert str(error)


@pytest.mark.parametrize(
    ("format", "library", "extra"),
    [
        ("pdf", "pypdf", "files"),
        ("docx", "docx", "files"),
        ("pptx", "pptx", "files"),
        ("html", "trafilatura", "files"),
        ("parquet", "pyarrow", "parquet"),
    ],
)
def test_a_missing_extra_prints_its_pip_line(
    monkeypatch: pytest.MonkeyPatch, format: str, library: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'trivet\[{extra}\]'"):
        formats.parts(b"anything", format)


def test_without_the_extra_a_text_in_an_old_encoding_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from trivet.files import encoding

    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    with pytest.raises(UnreadableError, match=r"not UTF-8; convert it.*pip install 'trivet\[files\]'"):
        encoding.decode(b"caf\xe9")


def test_a_reader_that_breaks_is_a_broken_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(content: bytes) -> list[Part]:
        raise KeyError("word/document.xml")

    monkeypatch.setitem(FORMATS._loaded, "pdf", explode)
    with pytest.raises(UnreadableError, match=r"broken PDF \(KeyError: 'word/document.xml'\)"):
        formats.parts(b"x", "pdf")


def test_a_format_that_is_no_function_is_refused() -> None:
    with pytest.raises(InputError, match="not a function"):
        FORMATS.add("odd", 3)  # type: ignore[arg-type]
