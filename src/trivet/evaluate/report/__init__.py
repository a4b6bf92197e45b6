"""What does an evaluation look like?

One HTML file, to be opened from a disk, mailed or kept beside the results: pictures first, then the tests, the numbers
and where they come from.

>>> from trivet.evaluate.report import Material, write
>>> write(Material("Which fusion?", evaluations, comparisons=[compare(evaluations)]), "report.html")
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trivet.errors import StoreError
from trivet.evaluate.report import (
    glance,
    headrooms,
    moved,
    provenance,
    quality,
    reliability,
    scatter,
    settings,
    shares,
    speed,
    strata,
    tables,
    thresholds,
    verdicts,
)
from trivet.evaluate.report.markup import Section
from trivet.evaluate.report.material import Material, View
from trivet.evaluate.report.page import page

__all__ = ["Material", "render", "write"]

#: In the order of the page; each says None where there is nothing to show.
SECTIONS: tuple[Callable[[View], Section | None], ...] = (
    glance.section,
    quality.section,
    verdicts.section,
    scatter.section,
    moved.section,
    strata.section,
    settings.section,
    headrooms.section,
    reliability.section,
    thresholds.section,
    shares.section,
    speed.section,
    tables.section,
    provenance.section,
)


def render(material: Material) -> str:
    """The page. The same material makes the same page, to the letter."""
    view = View(material)
    return page(view, [section for make in SECTIONS if (section := make(view)) is not None])


def write(material: Material, path: str | Path) -> Path:
    """The page in a file; folders on the way are made."""
    file, text = Path(path), render(material)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"report: cannot write {str(path)!r} ({error.strerror or error})") from None
    return file
