"""NUL characters in texts, which PostgreSQL cannot store.

A NUL is written as two characters, of which the first is the last code point of Unicode (not a character, in hardly any
text); that code point is written as two as well. The adapters of the connection do this in both directions.
"""

from __future__ import annotations

from typing import Any

from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format

_ESCAPE = "\U0010ffff"
_BYTES = _ESCAPE.encode()


def is_plain(text: str) -> bool:
    """Tell whether the text is stored as it is."""
    return "\0" not in text and _ESCAPE not in text


def stored(text: str) -> bytes:
    """Return the text as the server has it."""
    if is_plain(text):
        return text.encode()
    return text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0").encode()


def without_digits(sql: str) -> str:
    """Return the SQL of a text in which the two characters of a NUL are one."""
    return f"regexp_replace({sql}, chr(1114111) || '[01]', chr(1114111), 'g')"


class _Text(Dumper):
    format = Format.TEXT

    def dump(self, obj: str) -> Buffer | None:
        return stored(obj)


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        raw = bytes(data)
        text = raw.decode()
        return text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE) if _BYTES in raw else text


class _BinaryTextLoader(_TextLoader):
    format = Format.BINARY


def adapt(connection: Connection[Any]) -> None:
    """Register the adapters on a connection."""
    connection.adapters.register_dumper(str, _Text)
    connection.adapters.register_loader("text", _TextLoader)
    connection.adapters.register_loader("text", _BinaryTextLoader)
