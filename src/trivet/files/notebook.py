"""Jupyter notebooks: the Markdown and the code of the cells, without outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trivet.files import encoding, markdown
from trivet.files.formats import Part, UnreadableError


def read(content: bytes) -> list[Part]:
    decoded = encoding.decode(content)
    try:
        found = json.loads(decoded.text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"broken notebook: not JSON ({error})") from error
    cells = _cells(found)
    language = _language(found)
    text = "\n\n".join(filter(None, (_cell(cell, language) for cell in cells)))
    meta = {"cells": len(cells), **({"language": language} if language else {})}
    return [Part(text, markdown.heading(text), kind="notebook", meta=meta, notes=decoded.notes)]


def _cells(found: Any) -> list[Mapping[str, Any]]:
    sheets = found.get("worksheets", []) if isinstance(found, dict) else []  # before version 4 (2014)
    cells = found.get("cells") if isinstance(found, dict) else None
    if cells is None and isinstance(sheets, list):
        cells = [cell for sheet in sheets for cell in sheet.get("cells", [])] or None
    if not isinstance(cells, list):
        raise UnreadableError("not a notebook: it has no cells")
    return [cell for cell in cells if isinstance(cell, dict)]


def _language(found: Mapping[str, Any]) -> str:
    meta = found.get("metadata") or {}
    given = (meta.get("language_info") or {}).get("name") or (meta.get("kernelspec") or {}).get("language") or ""
    return str(given)


def _cell(cell: Mapping[str, Any], language: str) -> str:
    source = cell.get("source", cell.get("input", ""))
    text = ("".join(map(str, source)) if isinstance(source, list) else str(source)).strip()
    if cell.get("cell_type") == "code":
        return f"```{language}\n{text}\n```" if text else ""
    if cell.get("cell_type") == "heading":  # before version 4
        return f"{'#' * int(cell.get('level', 1))} {text}"
    return text
