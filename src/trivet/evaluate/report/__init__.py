"""An evaluation as one HTML file that needs no network: charts, tests, tables and the origin of every number.

>>> from trivet.evaluate.report import Material, write
>>> write(Material("Fusions", evaluations, comparisons=[compare(evaluations)]), "report.html")
"""

from __future__ import annotations

from pathlib import Path

from trivet.errors import StoreError
from trivet.evaluate.report.material import Material
from trivet.evaluate.report.page import render

__all__ = ["Material", "render", "write"]


def write(material: Material, path: str | Path) -> Path:
    """Write the page to a file, making its folders, and return its path."""
    file, text = Path(path), render(material)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"report: cannot write {str(path)!r} ({error.strerror or error})") from None
    return file
