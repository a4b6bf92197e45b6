"""Word documents: headings, lists, tables, and files that are not one."""

from __future__ import annotations

import io
from pathlib import Path
from zipfile import ZipFile

import pytest

from made_files import docx, zipped
from trivet.files import formats
from trivet.files.formats import UnreadableError


def test_headings_lists_and_tables_become_markdown() -> None:
    content = docx(
        ("Title", "Pump manual"),
        ("Heading 1", "Setup"),
        ("", "Place it level."),
        ("List Bullet", "the hose"),
        ("Heading 2", "Limits"),
        ("table", [["model", "height"], ["P1", "4 m"]]),
        ("", " "),
    )
    [part] = formats.parts(content, "docx")
    assert part.title == "Pump manual"
    assert part.text.split("\n\n") == [
        "# Pump manual",
        "# Setup",
        "Place it level.",
        "- the hose",
        "## Limits",
        "| model | height |\n| P1 | 4 m |",
    ]


def test_a_merged_cell_is_read_once() -> None:
    import docx as library

    file = library.Document()
    table = file.add_table(1, 3)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(0, 2).text = "end"
    out = io.BytesIO()
    file.save(out)
    assert formats.parts(out.getvalue(), "docx")[0].text == "| wide | end |"


def test_the_title_of_the_properties_comes_first_and_no_heading_is_needed() -> None:
    [part] = formats.parts(docx(("", "Grüße, 世界"), title="A letter"), "docx")
    assert (part.title, part.text) == ("A letter", "Grüße, 世界")


def test_entities_are_neither_expanded_nor_read_from_the_disk(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the key of the house")
    with ZipFile(io.BytesIO(docx(("", "hello")))) as file:
        members = {name: file.read(name) for name in file.namelist()}
    entities = f'<!DOCTYPE x [<!ENTITY a "{"lol" * 1000}"><!ENTITY b "&a;&a;"><!ENTITY c SYSTEM "{secret.as_uri()}">]>'
    head, body = members["word/document.xml"].decode().split("?>", 1)
    members["word/document.xml"] = f"{head}?>{entities}{body.replace('hello', 'hello &b; &c;')}".encode()
    assert formats.parts(zipped(members), "docx")[0].text == "hello"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (docx(), "empty"),
        (docx(("", "words"))[:500], "broken: file is not a zip file"),
        (zipped({"word/other.xml": "<a/>"}), "broken DOCX"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "an old or encrypted Office file"),
        (b"plain words", "broken"),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        formats.parts(content, "docx")
