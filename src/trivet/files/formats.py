"""The file formats that an import reads besides plain text, by the suffix of a file's name.

A format is one function that takes the bytes of a file and returns its documents. A package adds one in its
``pyproject.toml``, under the suffix without the dot::

    [project.entry-points."trivet.files"]
    xlsx = "my_package.xlsx:read"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePath
from typing import Any

from trivet.errors import InputError, MissingExtraError, TrivetError
from trivet.plugins import Registry

PAGE_BREAK = "\n\f\n\n"  # the form feed counts the pages of a text: ``Hit.location``


class UnreadableError(InputError):
    """A file that cannot be read; the message says why and what to do, without the name of the file."""


@dataclass(frozen=True, slots=True)
class Part:
    """A document in a file. ``key`` is its name where the file has several, and stays the same in the next import.

    ``links`` are (key of another part, type). ``notes`` say what could not be read well, for the report.
    """

    text: str
    title: str = ""
    key: str = ""
    kind: str = "document"
    created: datetime | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    links: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


Read = Callable[[bytes], Sequence[Part]]


def _check(name: str, value: object) -> None:
    if not callable(value):
        raise InputError(f"file format: {name!r} is {type(value).__name__}, not a function that reads bytes")


FORMATS: Registry[Read] = Registry(
    "file format",
    "trivet.files",
    {
        "pdf": "trivet.files.pdf:read",
        "docx": "trivet.files.docx:read",
        "pptx": "trivet.files.pptx:read",
        "epub": "trivet.files.epub:read",
        "html": "trivet.files.html:read",
        "htm": "trivet.files.html:read",
        "xhtml": "trivet.files.html:read",
        "eml": "trivet.files.mail:read",
        "mbox": "trivet.files.mail:read_mailbox",
        "ipynb": "trivet.files.notebook:read",
        "csv": "trivet.files.table:read",
        "tsv": "trivet.files.table:read_tsv",
        "parquet": "trivet.files.parquet:read",
    },
    _check,
)


def format_of(name: str) -> str:
    """Return the format of a file by the suffix of its name; an empty text where it is read as text."""
    suffix = PurePath(name).suffix.lower().removeprefix(".")
    return suffix if suffix in FORMATS else ""


def parts(content: bytes, format: str) -> Sequence[Part]:
    """Return the documents of a file; raise ``UnreadableError`` or ``MissingExtraError``."""
    read = FORMATS[format]
    if not content.strip():
        raise UnreadableError("empty")
    try:
        found = read(content)
    except TrivetError:
        raise
    except Exception as error:  # a library may raise anything at bytes that a stranger made
        said = " ".join(str(error).split())[:120]
        raise UnreadableError(f"broken {format.upper()} ({type(error).__name__}: {said})") from error
    if not any(part.text.strip() or part.title for part in found):
        raise UnreadableError("empty")
    return found


def missing(extra: str) -> MissingExtraError:
    """Return the error for a format whose library is not installed."""
    return MissingExtraError(f"needs the extra {extra!r}: pip install 'trivet[{extra}]'")
