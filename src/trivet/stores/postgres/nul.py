"""How is a NUL character kept in a server whose texts cannot hold one?

A text comes back as it was given, whatever it holds. What is written in place of NUL begins with the last code point
there is, which is no character and stands in hardly any text; where it does stand, it is written as two as well. The
connection's adapters do it, so nobody else has to think of it.
"""

from __future__ import annotations

from typing import Any

from psycopg import Connection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format

_MARK = "\U0010ffff"
_BYTES = _MARK.encode()


def is_plain(text: str) -> bool:
    """Is it kept as it is?"""
    return "\0" not in text and _MARK not in text


class _Text(Dumper):
    format = Format.TEXT

    def dump(self, obj: str) -> Buffer | None:
        if is_plain(obj):
            return obj.encode()
        return obj.replace(_MARK, f"{_MARK}1").replace("\0", f"{_MARK}0").encode()


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        raw = bytes(data)
        text = raw.decode()
        return text.replace(f"{_MARK}0", "\0").replace(f"{_MARK}1", _MARK) if _BYTES in raw else text


class _BinaryTextLoader(_TextLoader):
    format = Format.BINARY


def adapt(connection: Connection[Any]) -> None:
    connection.adapters.register_dumper(str, _Text)
    connection.adapters.register_loader("text", _TextLoader)
    connection.adapters.register_loader("text", _BinaryTextLoader)
