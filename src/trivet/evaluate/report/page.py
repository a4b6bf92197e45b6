"""How does one file hold a whole page?

Style and script stand in the file itself and nothing else is loaded: the page's own policy forbids it, and lets no
script run but ours, told by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from trivet.evaluate.report.markup import Html, Section, switch, tag
from trivet.evaluate.report.material import View
from trivet.evaluate.report.provenance import summary


def page(view: View, sections: Sequence[Section]) -> str:
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hashed}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", view.material.title),
        Html(f"<style>{style}</style>"),
    )
    links = (tag("a", section.word, href=f"#{section.id}") for section in sections)
    nav = tag(
        "nav", tag("div", *links, class_="links"), switch("measure", "Measure", view.pictured), aria_label="Contents"
    )
    header = tag("header", tag("h1", view.material.title), summary(view))
    main = tag("main", *(_section(section) for section in sections))
    tip = tag("div", id="tip", role="status", hidden="")
    body = tag("body", header, nav, main, tip, Html(f"<script>{script}</script>"))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _section(section: Section) -> Html:
    return tag(
        "section",
        tag("h2", section.question),
        tag("p", section.lead, class_="lead"),
        section.body,
        id=section.id,
        aria_label=section.word,
    )


def _asset(name: str) -> str:
    return files("trivet.evaluate.report").joinpath(name).read_text(encoding="utf-8").strip()
