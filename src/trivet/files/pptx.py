"""Presentations: the texts, tables and notes of each slide, its title as a heading."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

from trivet.files.formats import PAGE_BREAK, Part, UnreadableError, missing
from trivet.files.markup import heading, table
from trivet.files.zipped import open_zip


def read(content: bytes) -> list[Part]:
    try:
        import pptx
    except ImportError as error:
        raise missing("files") from error

    open_zip(content).close()
    file = pptx.Presentation(io.BytesIO(content))
    slides = ["\n\n".join(filter(None, map(str.strip, _texts(slide)))) for slide in file.slides]
    if slides and not any(slides):
        raise UnreadableError(f"no text in its {len(slides)} slides, only pictures")
    return [Part(PAGE_BREAK.join(slides), (file.core_properties.title or "").strip(), meta={"slides": len(slides)})]


def _texts(slide: Any) -> Iterator[str]:
    title = slide.shapes.title
    if title is not None and title.text.strip():
        yield heading(1, title.text)
    yield from _of_shapes(slide.shapes, None if title is None else title.shape_id)
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        yield slide.notes_slide.notes_text_frame.text


def _of_shapes(shapes: Iterable[Any], title: int | None) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):  # a group
            yield from _of_shapes(shape.shapes, title)
        elif shape.has_text_frame and shape.shape_id != title:
            yield shape.text_frame.text
        elif shape.has_table:
            yield table([cell.text for cell in row.cells] for row in shape.table.rows)
