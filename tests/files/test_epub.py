"""Electronic books: reading order, lost chapters, copy protection."""

from __future__ import annotations

import pytest

from made_files import CONTAINER, epub, zipped
from trivet.files import formats
from trivet.files.formats import UnreadableError

PROTECTED = (
    '<encryption><EncryptedData><CipherData><CipherReference URI="{}"/></CipherData></EncryptedData></encryption>'
)


def test_chapters_come_in_reading_order_with_their_headings() -> None:
    [part] = formats.parts(epub(["<h1>Spring</h1><p>Sow.</p>", "<h1>Summer</h1><h2>Water</h2><p>Daily.</p>"]), "epub")
    assert part.text == "# Spring\n\nSow.\n\n# Summer\n\n## Water\n\nDaily."
    assert (part.title, part.meta) == ("The garden", {"author": "Ada Example"})


def test_a_book_without_headings_and_with_encrypted_fonts_is_read() -> None:
    fonts = {"META-INF/encryption.xml": PROTECTED.format("OEBPS/font.otf")}
    assert formats.parts(epub(["<p>Grüße</p>"], **fonts), "epub")[0].text == "Grüße"


def test_a_chapter_without_a_file_is_noted() -> None:
    package = (
        '<package><metadata/><manifest><item id="a" href="a.xhtml"/><item id="b" href="b.xhtml"/></manifest>'
        '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
    )
    members = {"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": package, "OEBPS/a.xhtml": "<p>here</p>"}
    [part] = formats.parts(zipped(members), "epub")
    assert (part.text, part.notes) == ("here", ("no file for 1 of 2 chapters",))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (epub(["<p>x</p>"], **{"META-INF/encryption.xml": PROTECTED.format("OEBPS/text/c%200.xhtml")}), "encrypted"),
        (zipped({"a": "b"}), "not an EPUB"),
        (zipped({"META-INF/container.xml": CONTAINER}), "broken EPUB: OEBPS/book.opf is missing"),
        (zipped({"META-INF/container.xml": "<a"}), "broken EPUB"),
        (epub(["<p> </p>"]), "no text in its chapters"),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        formats.parts(content, "epub")
