"""Word documents: paragraphs, lists and tables, with the headings as Markdown."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

from trivet.files.formats import Part, missing
from trivet.files.markup import heading, table
from trivet.files.zipped import open_zip

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)  # Word writes the built-in names in English in every language


def read(content: bytes) -> list[Part]:
    try:
        import docx
    except ImportError as error:
        raise missing("files") from error

    open_zip(content).close()
    file = docx.Document(io.BytesIO(content))
    blocks: list[tuple[int, Any]] = [(_level(block), block) for block in file.iter_inner_content()]
    text = "\n\n".join(filter(None, (_block(level, block) for level, block in blocks)))
    first = next((block.text for level, block in blocks if level == 1 and block.text.strip()), "")
    return [Part(text, (file.core_properties.title or first).strip())]


def _level(block: Any) -> int:
    """Return the level of a heading; 0 for any other block."""
    name = getattr(getattr(block, "style", None), "name", None) or ""
    if not hasattr(block, "text"):  # a table
        return 0
    found = _HEADING.fullmatch(name)
    return int(found[1]) if found else 1 if name == "Title" else 0


def _block(level: int, block: Any) -> str:
    if not hasattr(block, "text"):
        return table(_rows(block))
    text = block.text.strip()
    if level:
        return heading(level, text)
    return f"- {text}" if text and block.style is not None and (block.style.name or "").startswith("List") else text


def _rows(block: Any) -> Iterator[list[str]]:
    for row in block.rows:
        cells = {id(cell._tc): cell.text for cell in row.cells}  # a merged cell comes once for each column
        yield list(cells.values())
