"""Web pages: the text of the page itself, without menus, banners and footers."""

from __future__ import annotations

import logging
import re

from trivet.files import markup
from trivet.files.formats import Part, UnreadableError, missing

_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)

logging.getLogger("trafilatura").addHandler(logging.NullHandler())  # or its remarks on a page go to stderr


def read(content: bytes) -> list[Part]:
    try:
        import trafilatura
    except ImportError as error:
        raise missing("files") from error

    decoded = markup.decode(content)
    page = decoded.text
    text = trafilatura.extract(
        page,
        output_format="markdown",
        include_formatting=True,
        include_tables=True,
        prune_xpath="//nav",  # it keeps the menu of a short page
    )
    text = text or markup.of_html(page)
    if not text.strip() and page.strip():
        raise UnreadableError("no text in the page")
    return [Part(text, _title(page), notes=decoded.notes)]


def _title(page: str) -> str:
    found = _TITLE.search(page)
    return markup.of_html(f"<p>{found[1]}</p>").replace("\n", " ").strip() if found else ""
