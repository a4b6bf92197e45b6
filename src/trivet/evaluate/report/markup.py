"""How does text get onto a page without becoming a part of it?

``tag`` escapes every child that is not ``Html`` already, so text is only ever taken for markup where this package made
it. An f-string of markup is plain text again and is shown as such: the mistake is ugly, not dangerous.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

#: What no HTML file may hold: control characters but tab and line ends, and halves of a surrogate pair.
_UNSPEAKABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_VOID = {"meta", "br", "input", "col"}
_SHAPES = {"line", "circle", "rect", "path"}

Attribute = str | int | float | None


class Html(str):
    """Markup this package made; everything else is text."""

    __slots__ = ()


def text(said: object) -> Html:
    """Said, not done: safe between tags and inside a quoted attribute."""
    return Html(escape(_UNSPEAKABLE.sub("\ufffd", str(said)), quote=True))


def joined(parts: Iterable[str], between: str = "") -> Html:
    return Html(between.join(part if isinstance(part, Html) else text(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: Attribute) -> Html:
    """``tag("a", "here", href="#x", class_="far")``; an attribute of None is left out, ``_`` is written ``-``."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _SHAPES and not children:
        return Html(f"<{name}{said}/>")
    if name in _VOID:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{joined(children)}</{name}>")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: an anchor, the word for it in the contents, the question it answers and the answer."""

    id: str
    word: str
    question: str
    lead: str
    body: Html


# --- tables -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """What is shown, and what it is sorted by."""

    shown: str
    value: float | str | None = None
    kind: str = ""
    heat: float | None = None  # from 0 to 1: how deep its colour is
    tip: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    cells: Sequence[Cell]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    head: Sequence[str]
    rows: Sequence[Row]
    caption: str = ""
    sortable: bool = True
    tips: Mapping[str, str] = field(default_factory=dict)  # what a column's name means

    def html(self) -> Html:
        """The first column names the row. Wider than the screen, it scrolls by itself, by keyboard too."""
        head = tag("tr", *(self._heading(name) for name in self.head))
        body = (tag("tr", *_cells(row), class_=row.kind or None) for row in self.rows)
        table = tag("table", tag("thead", head), tag("tbody", *body))
        label = self.caption or self.head[0]
        scroll = tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=label)
        # not a <caption>: that is as wide as the table, and would be scrolled away with it
        return tag("div", tag("p", self.caption, class_="caption") if self.caption else "", scroll, class_="table")

    def _heading(self, name: str) -> Html:
        shown: str = tag("button", name, type="button") if self.sortable and name else name
        return tag("th", shown, scope="col", title=self.tips.get(name))


def _cells(row: Row) -> Iterable[Html]:
    for place, cell in enumerate(row.cells):
        yield tag(
            "td" if place else "th",
            cell.shown,
            scope=None if place else "row",
            class_=" ".join(filter(None, (cell.kind, "heat" if cell.heat is not None else ""))) or None,
            data_v=cell.value,
            style=None if cell.heat is None else f"--v:{min(1.0, max(0.0, cell.heat)):.3f}",
            title=cell.tip,
        )


# --- parts of a page --------------------------------------------------------------------------------------------------


def panel(name: str, detail: str, picture: str, below: str = "") -> Html:
    """One picture of several that stand side by side."""
    told = tag("figcaption", tag("b", name), " ", tag("span", detail, class_="soft"))
    return tag("figure", told, picture, tag("p", below, class_="soft below") if below else "", class_="panel")


def panels(pictures: Iterable[Html]) -> Html:
    return tag("div", *pictures, class_="panels")


def pane(switch: str, value: str, *children: str) -> Html:
    """Shown while the switch of that name stands at ``value``; without script every pane is shown."""
    return tag("div", *children, data_pane=switch, data_value=value)


def switch(name: str, label: str, values: Sequence[str]) -> Html:
    """A choice of panes. The first value is chosen."""
    if len(values) < 2:
        return Html("")
    options = (tag("option", value, value=value) for value in values)
    return tag("label", tag("span", label), tag("select", *options, data_switch=name), class_="switch")


def legend(items: Iterable[tuple[str, str]]) -> Html:
    """(class, words): a swatch in the class's colour and what it stands for."""
    return tag("p", *(tag("span", tag("i", class_=f"swatch {kind}"), words) for kind, words in items), class_="legend")


def folded(summary: str, *children: str, opened: bool = False) -> Html:
    return tag("details", tag("summary", summary), *children, open="" if opened else None)


def said(*words: str) -> Html:
    """A remark of the report itself, such as why something is missing."""
    return tag("p", *words, class_="remark")
