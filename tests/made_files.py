"""Files of every format that an import reads, made here: small, and with one statement to find in each."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

CONTAINER = (
    '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
)


def pdf(*pages: str, title: str = "", password: str | None = None) -> bytes:
    """Return a PDF with the lines of each page; a page without text has no content, as a scan has."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    font = {"Type": "Font", "Subtype": "Type1", "BaseFont": "Helvetica", "Encoding": "WinAnsiEncoding"}
    fonts = DictionaryObject({NameObject(f"/{key}"): NameObject(f"/{value}") for key, value in font.items()})
    for text in pages:
        page = writer.add_blank_page(595, 842)
        shown = "".join(f"({line}) Tj T* " for line in text.split("\n") if line)
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 14 TL 50 780 Td {shown}ET".encode("cp1252"))
        page[NameObject("/Contents")] = writer._add_object(stream)
        resources = DictionaryObject({NameObject("/Font"): DictionaryObject({NameObject("/F1"): fonts})})
        page[NameObject("/Resources")] = resources
    if title:
        writer.add_metadata({"/Title": title})
    if password is not None:
        writer.encrypt(password, "owner", algorithm="AES-256")
    return _saved(writer.write)


def docx(*blocks: tuple[str, Any], title: str = "") -> bytes:
    """Return a Word document of (style, text) and ("table", rows)."""
    import docx

    document = docx.Document()
    document.core_properties.title = title
    for style, content in blocks:
        if style == "table":
            table = document.add_table(len(content), len(content[0]))
            for row, texts in zip(table.rows, content, strict=True):
                for cell, text in zip(row.cells, texts, strict=True):
                    cell.text = text
        else:
            document.add_paragraph(content, style=style or None)
    return _saved(document.save)


def pptx(*slides: tuple[str, str, str]) -> bytes:
    """Return a presentation of slides with (title, body, notes)."""
    import pptx

    file = pptx.Presentation()
    for title, body, notes in slides:
        slide = file.slides.add_slide(file.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, body
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    return _saved(file.save)


def epub(chapters: Sequence[str], title: str = "The garden", **more: str) -> bytes:
    """Return a book of chapters in XHTML; ``more`` are further members of the container."""
    items = "".join(f'<item id="c{at}" href="text/c%20{at}.xhtml"/>' for at in range(len(chapters)))
    order = "".join(f'<itemref idref="c{at}"/>' for at in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title><dc:creator>Ada Example</dc:creator></metadata>"
        f"<manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    members = {"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": package, **more}
    members |= {
        f"OEBPS/text/c {at}.xhtml": f"<html><head><title>{at}</title></head><body>{chapter}</body></html>"
        for at, chapter in enumerate(chapters)
    }
    return zipped(members)


def notebook(*cells: tuple[str, str], language: str = "python") -> bytes:
    """Return a notebook of (type, source)."""
    made = [{"cell_type": kind, "source": source.splitlines(keepends=True)} for kind, source in cells]
    return json.dumps({"nbformat": 4, "metadata": {"language_info": {"name": language}}, "cells": made}).encode()


def parquet(columns: Mapping[str, Sequence[Any]]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    return _saved(lambda out: parquet.write_table(pyarrow.table(dict(columns)), out))


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    def write(out: io.BytesIO) -> None:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as container:
            for name, content in members.items():
                container.writestr(name, content)

    return _saved(write)


def _saved(write: Any) -> bytes:
    out = io.BytesIO()
    write(out)
    return out.getvalue()
