"""Markdown from headings, tables and HTML, for passages that are cut at headings and hits that name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from trivet.files import encoding
from trivet.files.formats import missing

_CHARSET = re.compile(rb"""<(?:meta|\?xml)[^>]{0,200}(?:charset|encoding)=["']?([\w-]{1,40})""", re.IGNORECASE)
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")  # names an encoding that the decoded text no longer has
_LEFT_OUT = {"script", "style", "head", "template", "noscript", "svg", "nav"}
_BLOCKS = {"article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "figure", "footer", "header"}
_BLOCKS |= {"hr", "main", "ol", "p", "section", "ul"}
_HEADING = re.compile(r"h([1-6])")
_BLANKS = re.compile(r"[ \t\r\n\f]+")
_LINES = re.compile(r"\s*\n\s*\n\s*")


def heading(level: int, text: str) -> str:
    """Return the text as a heading on one line; an empty text for none."""
    line = " ".join(text.split())
    return f"{'#' * min(level, 6)} {line}" if line else ""


def table(rows: Iterable[Iterable[str]]) -> str:
    """Return one line for each row that has a text."""
    lines = [[" ".join(cell.split()) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines if any(cells))


def decode(content: bytes) -> encoding.Decoded:
    """Return the source of a page, in the encoding that it declares."""
    declared = _CHARSET.search(content[:4096])
    decoded = encoding.decode(content, declared[1].decode() if declared else "")
    return encoding.Decoded(_DECLARATION.sub("", decoded.text), decoded.detected)


def of_html(content: str) -> str:
    """Return the whole text of HTML, with headings, lists, tables and code."""
    try:
        import lxml.etree
        import lxml.html
    except ImportError as error:
        raise missing("files") from error
    try:
        tree = lxml.html.document_fromstring(content, parser=lxml.html.HTMLParser(no_network=True, huge_tree=True))
    except lxml.etree.ParserError:  # nothing in it
        return ""
    return _LINES.sub("\n\n", "".join(_texts(tree))).strip()


def _texts(tree: Any) -> Iterator[str]:
    """Yield the text of an element and what stands after it. Not recursive: HTML may be nested without end."""
    waiting: list[Any] = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        name = item.tag if isinstance(item.tag, str) else ""  # a comment has a function there
        whole = _whole(name, item)
        tail = _BLANKS.sub(" ", item.tail or "")
        if whole is not None:
            waiting += [tail, whole]
            continue
        before, after = _around(name)
        text = _BLANKS.sub(" ", item.text or "")
        waiting += [tail, after, *reversed(list(item)), f"{before}{text}"]


def _around(name: str) -> tuple[str, str]:
    """Return what stands before and after the content of an element."""
    if name == "li":
        return "\n- ", "\n"
    return ("\n\n", "\n\n") if name in _BLOCKS else ("", "")


def _whole(name: str, item: Any) -> str | None:
    """Return the text of an element that is read as one; None for one whose children are read."""
    if not name or name in _LEFT_OUT:
        return ""
    if found := _HEADING.fullmatch(name):
        return f"\n\n{heading(int(found[1]), item.text_content())}\n\n"
    if name == "pre":
        return f"\n\n```\n{item.text_content().strip()}\n```\n\n"
    if name == "table" and not item.xpath(".//table"):  # a table in a table is a layout
        rows = ([cell.text_content() for cell in row.xpath("./td|./th")] for row in item.xpath(".//tr"))
        return f"\n\n{table(rows)}\n\n"
    return None
