"""Electronic books: the chapters in reading order. A book with copy protection is refused."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

from trivet.files import markup
from trivet.files.formats import Part, UnreadableError, missing
from trivet.files.zipped import open_zip

_ROOT, _PROTECTION = "META-INF/container.xml", "META-INF/encryption.xml"


def read(content: bytes) -> list[Part]:
    with open_zip(content) as book:
        if _ROOT not in book.namelist():
            raise UnreadableError(f"not an EPUB: it has no {_ROOT}")
        root = _xml(book, _ROOT).xpath("string(//*[local-name()='rootfile']/@full-path)")
        package = _xml(book, root)
        names = _chapters(package, posixpath.dirname(root))
        if protected := _protected(book) & set(names):
            raise UnreadableError(f"encrypted: {len(protected)} chapters have copy protection")
        lost = [name for name in names if name not in book.namelist()]
        texts = [markup.of_html(markup.decode(book.read(name)).text) for name in names if name not in lost]
    if not any(texts):
        raise UnreadableError("no text in its chapters")
    notes = (f"no file for {len(lost)} of {len(names)} chapters",) if lost else ()
    author = _entry(package, "creator")
    meta = {"author": author} if author else {}
    return [Part("\n\n".join(filter(None, texts)), _entry(package, "title"), meta=meta, notes=notes)]


def _xml(book: ZipFile, name: str) -> Any:
    try:
        from lxml import etree
    except ImportError as error:
        raise missing("files") from error
    try:
        return etree.fromstring(book.read(name), etree.XMLParser(resolve_entities=False, no_network=True))
    except (KeyError, etree.XMLSyntaxError) as error:
        raise UnreadableError(f"broken EPUB: {name or 'the package'} is missing or not XML") from error


def _chapters(package: Any, folder: str) -> list[str]:
    """Return the names of the chapters in reading order."""
    items = {item.get("id"): item.get("href", "") for item in package.xpath("//*[local-name()='item']")}
    order = [item.get("idref") for item in package.xpath("//*[local-name()='itemref']")]
    return [posixpath.normpath(posixpath.join(folder, unquote(items[id]))) for id in order if id in items]


def _protected(book: ZipFile) -> set[str]:
    """Return the encrypted members; fonts often are, without protecting the text."""
    if _PROTECTION not in book.namelist():
        return set()
    return {unquote(uri) for uri in _xml(book, _PROTECTION).xpath("//*[local-name()='CipherReference']/@URI")}


def _entry(package: Any, name: str) -> str:
    return " ".join(package.xpath(f"string(//*[local-name()='metadata']/*[local-name()='{name}'])").split())
