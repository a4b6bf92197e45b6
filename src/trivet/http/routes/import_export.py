"""Import and export of a collection as NDJSON, one line per document.

An import is written in parts while its body arrives; each part is durable when its progress line is sent. A line that
cannot be read is reported with its number, and the others are kept. Neither body is ever in memory as a whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError, Future
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from trivet.errors import InputError, TrivetError
from trivet.files.encoding import decode
from trivet.files.formats import UnreadableError
from trivet.files.importer import Importer, Tally
from trivet.files.jsonl import parse_lines
from trivet.files.reader import JSONL
from trivet.http import logs, metrics, problem_details
from trivet.http.json_response import NDJSON, NDJSONResponse, to_bytes
from trivet.http.response_models import NOT_FOUND, responses
from trivet.http.routes.parameters import COLLECTION, Access, Name, Redact

if TYPE_CHECKING:
    from trivet.engine import Engine

router = APIRouter(tags=["import and export"])
EXPORT_LINES = 200  # read from the store at a time
MAX_PROBLEMS = 100  # in the last line of a response
MARKDOWN = "text/markdown"
FILE = "application/octet-stream"  # what curl and browsers send; the name of the file counts, not this
CUT_OFF = "the body ended too early; the lines before that are kept"

_IMPORT = responses(None, *NOT_FOUND, 413)
_IMPORT[200] = {
    "description": "A progress line for every 200 documents; the last one has `done`.",
    "content": {NDJSON: {"schema": {"type": "string"}, "example": '{"read": 200, "added": 200}\n'}},
}
_EXPORT = responses(None, *NOT_FOUND)
_EXPORT[200] = {
    "description": "A header, one line per document, then one line per feedback.",
    "content": {
        NDJSON: {"schema": {"type": "string"}, "example": '{"id": "door-7", "text": "The side door sticks."}\n'}
    },
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            NDJSON: {
                "schema": {"type": "string"},
                "example": '{"id": "door-7", "text": "The side door sticks."}\n{"text": "The roof hatch is new."}\n',
            },
            MARKDOWN: {
                "schema": {"type": "string"},
                "example": "---\ntitle: Side door\ntags: [north]\n---\nIt sticks; see [[door-7]].\n",
            },
            FILE: {"schema": {"type": "string", "format": "binary"}, "example": "%PDF-1.7 …"},
        },
    }
}


@router.get(f"{COLLECTION}/export", responses=_EXPORT, summary="Export a collection as NDJSON")
async def export_collection(
    name: Name,
    access: Access,
    vectors: Annotated[
        bool, Query(description="Include the vectors, so that they need not be computed again with the same model.")
    ] = False,
) -> Response:
    lines = await access.run("read", name, lambda engine: engine.lines(vectors))

    def some() -> bytes:
        return b"".join(line.encode("utf-8", "replace") + b"\n" for line in islice(lines, EXPORT_LINES))

    first = await access.resume("read", name, some)

    async def chunks() -> AsyncIterator[bytes]:
        chunk = first
        while chunk:
            yield chunk
            chunk = await access.resume("read", name, some)

    return NDJSONResponse(chunks())


@router.post(f"{COLLECTION}/import", responses=_IMPORT, openapi_extra=_BODY, summary="Import NDJSON or a file")
async def import_documents(
    name: Name,
    request: Request,
    access: Access,
    redact: Redact = False,
    id: Annotated[
        str | None, Query(description="The id of a file or a Markdown text, if its front matter has none.")
    ] = None,
    filename: Annotated[
        str | None, Query(min_length=1, max_length=512, description="The body is this file, as `report.pdf`.")
    ] = None,
    modified: Annotated[datetime | None, Query(description="When the file was last changed.")] = None,
) -> Response:
    """One line per document, or an export. Progress lines are sent while the body is still arriving. With `filename`
    the body is a file of any kind that `trivet import` reads; what cannot be read is in `problems`. `text/markdown` is
    one document; its front matter becomes its fields, and its `[[links]]` name existing documents."""
    engine = await access.run("write", name, lambda engine: engine)
    access.dispatcher.begin_import()
    body, lines = _Body(request), _ProgressLines()
    longest = access.config.max_body_bytes
    is_text = request.headers.get("content-type", "").startswith(MARKDOWN)

    def take(importer: Importer) -> None:
        if filename and not filename.lower().endswith(JSONL):
            importer.add_content(_whole(body.parts(), longest), filename, id or filename, modified)
        elif is_text and not filename:
            importer.add_markdown(_text(_whole(body.parts(), longest)), id, "body")
        else:
            importer.add_lines(parse_lines(_lines(body.parts(), longest), "body"))

    def work() -> None:
        try:
            _import(engine, take, redact, lines.report, lambda: access.check_key("write", name))
        finally:
            lines.end()

    task = asyncio.get_running_loop().run_in_executor(access.dispatcher.import_pool, work)
    task.add_done_callback(access.dispatcher.end_import)

    async def sent() -> AsyncIterator[bytes]:
        try:
            async for line in lines:
                yield line
        finally:
            body.cancel()  # at shutdown the thread must not wait for the rest of the body
        await asyncio.wait([task])

    return NDJSONResponse(sent())


class _Body:
    """The body of a request, for a thread that reads it part by part while it arrives."""

    def __init__(self, request: Request) -> None:
        self._stream, self._loop = request.stream(), asyncio.get_running_loop()
        self._waiting: Future[bytes | None] | None = None

    def parts(self) -> Iterator[bytes]:
        return iter(self._pull, None)

    def cancel(self) -> None:
        """End the wait of the thread for the next part."""
        if self._waiting is not None:
            self._waiting.cancel()

    def _pull(self) -> bytes | None:
        self._waiting = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
        return self._waiting.result()

    async def _next(self) -> bytes | None:
        return await anext(self._stream, None)


class _ProgressLines:
    """Lines that a thread reports, for the response that sends them."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def report(self, line: dict[str, Any]) -> None:
        self._loop.call_soon_threadsafe(self._lines.put_nowait, to_bytes(line) + b"\n")

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._lines.put_nowait, None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (line := await self._lines.get()) is not None:
            yield line


def _import(
    engine: Engine,
    take: Callable[[Importer], None],
    redact: bool,
    report: Callable[[dict[str, Any]], None],
    check_key: Callable[[], object],
) -> None:
    """Import what ``take`` reads and report each part. A key that was revoked meanwhile ends the import."""
    read = 0

    def done(count: int) -> None:
        nonlocal read
        read += count
        report({"read": read, **_counts(importer.tally)})
        check_key()

    importer = Importer(engine, done, redact=redact)
    error = ""
    try:
        take(importer)
        importer.finish()
    except TrivetError as trouble:
        found = problem_details.of(trouble)
        logs.event("import ended", error=trouble if found.status >= 500 else None, reason=found.kind)
        error = found.detail
    except (ClientDisconnect, CancelledError):
        logs.event("import ended", reason="the client disconnected")
        error = CUT_OFF
    except Exception as trouble:
        logs.event("import ended", logging.ERROR, trouble)
        error = CUT_OFF
    finally:
        importer.close()
    tally = importer.tally
    metrics.WRITTEN.inc(tally.added + tally.updated)
    last: dict[str, Any] = {"read": read, **_counts(tally), "done": not error, "pending": engine.stats().pending}
    if redact:
        last["redacted"] = dict(tally.redacted)
    if tally.notes:
        last["notes"] = [{"file": item.path, "note": item.reason} for item in tally.notes[:MAX_PROBLEMS]]
    last["problems"] = [{"line": item.place, "reason": item.reason} for item in tally.broken[:MAX_PROBLEMS]]
    report({**last, "error": error} if error else last)


def _counts(tally: Tally) -> dict[str, int]:
    counted = {name: getattr(tally, name) for name in ("added", "updated", "unchanged", "repeated", "feedback")}
    return {**counted, "broken": len(tally.broken)}


def _whole(pieces: Iterator[bytes], longest: int) -> bytes:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > longest:
            raise InputError(f"body: more than {longest:,} bytes; a file is read as a whole and must be smaller")
    return bytes(body)


def _text(body: bytes) -> str:
    try:
        decoded = decode(body)
    except UnreadableError as error:
        raise InputError(f"body: {error}") from error
    if decoded.detected:  # its media type says what it is; only a file may be in any encoding
        raise InputError("body: not UTF-8; encode it as UTF-8")
    return decoded.text


def _lines(pieces: Iterator[bytes], longest: int) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
        if len(rest) > longest:
            raise InputError(f"body: a line has more than {longest:,} bytes; send it as several documents")
    if rest:
        yield rest
