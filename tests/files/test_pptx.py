"""Presentations: slides, notes, tables and groups."""

from __future__ import annotations

import io

import pytest

from made_files import pptx, zipped
from trivet.files import formats
from trivet.files.formats import UnreadableError


def test_each_slide_is_a_page_with_its_title_body_and_notes() -> None:
    [part] = formats.parts(pptx(("Plan", "Buy a pump", "ask Ada"), ("Limits", "Four metres", "")), "pptx")
    assert part.text.split("\n\f\n\n") == ["# Plan\n\nBuy a pump\n\nask Ada", "# Limits\n\nFour metres"]
    assert part.meta == {"slides": 2}


def test_tables_and_groups_are_read() -> None:
    import pptx as library
    from pptx.util import Cm

    file = library.Presentation()
    slide = file.slides.add_slide(file.slide_layouts[6])
    table = slide.shapes.add_table(1, 2, Cm(1), Cm(1), Cm(5), Cm(2)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "model", "P1"
    box = slide.shapes.add_group_shape().shapes.add_textbox(Cm(1), Cm(4), Cm(5), Cm(2))
    box.text_frame.text = "in a group"
    out = io.BytesIO()
    file.save(out)
    assert formats.parts(out.getvalue(), "pptx")[0].text == "| model | P1 |\n\nin a group"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (pptx(("", "", "")), "no text in its 1 slides, only pictures"),
        (pptx(), "empty"),
        (zipped({"a": "b"}), "broken PPTX"),
        (pptx(("a", "b", ""))[:-200], "broken"),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        formats.parts(content, "pptx")
