"""The page: which sections it has, and their rendering by the templates."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from trivet.errors import MissingExtraError
from trivet.evaluate.report import answers, differences, formatting, provenance, quality, settings
from trivet.evaluate.report.chart import Mark, Plot, px
from trivet.evaluate.report.material import Material, View

#: Characters that an HTML file may not hold: control characters other than tab and line ends, and lone surrogates.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")

#: Id → (word in the contents, data of the section), in the order of the page. A section without data is left out.
SECTIONS: dict[str, tuple[str, Callable[[View], dict[str, Any] | None]]] = {
    "overview": ("Overview", quality.overview),
    "quality": ("Quality", quality.quality),
    "significance": ("Significance", differences.significance),
    "topics": ("Topics", differences.topics),
    "changes": ("Changes", differences.changes),
    "strata": ("Strata", quality.strata),
    "sweeps": ("Sweeps", settings.sweeps),
    "headroom": ("Headroom", settings.headroom),
    "calibration": ("Calibration", answers.calibration),
    "thresholds": ("Thresholds", answers.thresholds),
    "legs": ("Legs", answers.legs),
    "latency": ("Latency", answers.latency),
    "tables": ("Tables", quality.tables),
    "provenance": ("Provenance", provenance.provenance),
}


def render(material: Material) -> str:
    """Return the page; the same material makes the same page, byte for byte."""
    view = View(material)
    sections = {id: make(view) for id, (_, make) in SECTIONS.items()}
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page: str = (
        _environment()
        .get_template("page.html")
        .render(
            title=material.title,
            facts=provenance.facts(view),
            measures=view.pictured,
            words={id: word for id, (word, _) in SECTIONS.items() if sections[id] is not None},
            sections=sections,
            style=style,
            script=script,
            # nothing is loaded, and no script runs but this one
            policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        )
    )
    return FORBIDDEN.sub("\ufffd", page)


def svg_file(plot: Plot, style: str, more: Sequence[Mark] = ()) -> str:
    """Return a chart, with more marks on top, as an SVG file that holds its own style sheet."""
    whole = replace(plot, marks=[*plot.marks, *more])
    return str(_environment().get_template("parts.html").module.svg(whole, style)).strip() + "\n"


@cache
def _environment() -> Any:
    """Return the templates' environment; every value is escaped unless the template says otherwise."""
    try:
        jinja2 = import_module("jinja2")
    except ImportError:
        raise MissingExtraError("a report needs jinja2: pip install 'trivet[eval]'") from None
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("trivet.evaluate.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    made.filters.update(px=px, short=formatting.short)
    return made


def _asset(name: str) -> str:
    return files("trivet.evaluate.report").joinpath("templates", name).read_text(encoding="utf-8").strip()
