"""PDF files: pages, scans, passwords and damage."""

from __future__ import annotations

import pytest

from made_files import pdf
from trivet.files import formats
from trivet.files.formats import UnreadableError


def test_each_page_is_a_page_of_the_text() -> None:
    [part] = formats.parts(pdf("The pump.", "At most\nfour metres.", title="Pump manual"), "pdf")
    assert part.text.split("\f") == ["The pump.\n", "\n\nAt most\nfour metres."]
    assert (part.title, part.meta, part.notes) == ("Pump manual", {"pages": 2}, ())


def test_a_page_without_text_is_noted_and_keeps_its_number() -> None:
    [part] = formats.parts(pdf("one", "", "three"), "pdf")
    assert part.text.split("\f")[2].strip() == "three"
    assert part.notes == ("no text in 1 of 3 pages",)


def test_an_empty_password_opens_it() -> None:
    [part] = formats.parts(pdf("Grüße", password=""), "pdf")
    assert part.text == "Grüße"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (pdf("secret", password="door"), "encrypted; save it without a password"),
        (pdf("", ""), "a scan: no text in 2 pages"),
        (pdf("one page")[:200], "broken PDF"),
        (b"not a pdf at all", "not a PDF, though its suffix says so"),
        (b"%PDF-1.4 nothing", "broken PDF"),
        (b"", "empty"),
        (pdf(), "empty"),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        formats.parts(content, "pdf")


def test_a_pdf_of_too_many_pages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trivet.files.pdf.MAX_PAGES", 2)
    with pytest.raises(UnreadableError, match=r"more than 2 pages \(3\)"):
        formats.parts(pdf("a", "b", "c"), "pdf")
