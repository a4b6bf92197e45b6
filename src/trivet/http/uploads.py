"""Files that were uploaded through the OpenAI-compatible routes, and the documents that a vector store has of them.

An upload is read at once, as an import reads it. Its documents wait in a collection without vectors until they are
attached to a vector store, which copies them. The first document of a file has the file's id, each other one a
number after it; ``part`` in its metadata is that number.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import dropwhile, islice
from typing import Any

from trivet.engine import Engine
from trivet.errors import InputError, NotFoundError
from trivet.files import reader
from trivet.filters import Eq, Exists, Not, Or
from trivet.integrations.engine import lenient
from trivet.types import Document

COLLECTION = "uploads"
#: Metadata of ours; ``attributes`` lists the names that were given when the file was attached.
OURS = ("file_id", "filename", "bytes", "purpose", "part", "attributes")


def store(engine: Engine, content: bytes, name: str, purpose: str) -> Document:
    """Read a file and store its documents; return the first."""
    if name.lower().endswith(reader.JSONL):
        raise InputError("file: JSONL has a document in each line; send it to the import route of the collection")
    id = secrets.token_hex(8)
    found = reader.documents(content, reader.File(name, name, id, named=True), None)
    if isinstance(found, reader.Skipped):
        raise InputError(f"file: {name}: {found.reason}")
    if not found.documents:
        raise InputError(f"file: {name}: there is no text in it")
    ours = {"file_id": id, "filename": name, "bytes": len(content), "purpose": purpose}
    engine.add([_document(given, id, part, ours) for part, given in enumerate(found.documents)])
    return first(engine, id)


def _document(given: Mapping[str, Any], id: str, part: int, ours: Mapping[str, Any]) -> dict[str, Any]:
    meta = {**(given.get("meta") or {}), **ours, **({"part": part} if part else {})}
    rest = {name: value for name, value in given.items() if name != "links"}  # to ids of the import
    return {**rest, "id": f"{id}/{part}" if part else id, "meta": meta}


def attach(documents: list[Document], engine: Engine, attributes: Mapping[str, Any]) -> Document:
    """Add the documents of an upload to a vector store, with attributes as metadata; return the first."""
    if taken := [name for name in attributes if name in OURS]:
        raise InputError(f"attributes: {taken[0]!r} is a name of the service; choose another one")
    meta = {**attributes, "attributes": list(attributes)}
    engine.add([replace(document, meta={**document.meta, **meta}) for document in documents])
    return first(engine, documents[0].id)


def first(engine: Engine, id: str) -> Document:
    """Return the first document of a file."""
    document = engine.get(id)
    if document is None or "part" in document.meta:
        raise NotFoundError(f"file: {id!r} not found in {engine.name!r}")
    return document


def documents(engine: Engine, id: str) -> list[Document]:
    """Return all documents of a file."""
    found = [first(engine, id)]
    others = lenient(engine, Eq("file_id", id), engine.documents)
    return found + [document for document in others if document.id != id]


def page(engine: Engine, after: str | None, limit: int) -> tuple[list[Document], bool]:
    """Return up to ``limit`` files after the one with the id ``after``, and whether there are more."""
    files: Iterator[Document] = lenient(engine, Not(Exists("part")), engine.documents)
    if after is not None:
        first(engine, after)
        files = islice(dropwhile(lambda document: document.id != after, files), 1, None)
    found = list(islice(files, limit + 1))
    return found[:limit], len(found) > limit


def remove(engine: Engine, id: str) -> None:
    """Delete all documents of a file."""
    first(engine, id)
    lenient(engine, Or((Eq("id", id), Eq("file_id", id))), lambda where: engine.delete(where=where))


def attributes(document: Document) -> dict[str, Any]:
    """Return the attributes of a file: those it was attached with, else all metadata that is text or a number."""
    given = document.meta.get("attributes")
    names = given if given is not None else [name for name in document.meta if name not in OURS]
    values = {name: document.meta.get(name) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, str | int | float)}


def filename(document: Document) -> str:
    return str(document.meta.get("filename") or document.title or document.id)


def file_id(document: Document) -> str:
    return str(document.meta.get("file_id") or document.id)


def size(document: Document) -> int:
    """Return the bytes of the file, or of the text of a document that was not uploaded."""
    known = document.meta.get("bytes")
    return known if isinstance(known, int) else len(document.text.encode("utf-8", "replace"))


def seconds(document: Document) -> int:
    """Return when it was last written."""
    return int(document.updated.timestamp()) if document.updated else 0
