"""How does a whole collection go in and out, a line at a time?

An import is read as it comes and written piece by piece, each durable when its progress line is sent; a broken line is
told with its number and the lines around it are kept. Neither body is ever held in memory as a whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError, Future
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from trivet.errors import InputError, TrivetError
from trivet.surfaces.cli.files import decoded
from trivet.surfaces.cli.intake import Intake, Tally
from trivet.surfaces.cli.lines import parsed
from trivet.surfaces.http import answers, logs, metrics, problems
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.replies import NDJSON, Lines, payload
from trivet.surfaces.http.routes.shared import COLLECTION, NAMED, Asked, Name, Redact, responses

if TYPE_CHECKING:
    from trivet.engine import Engine

router = APIRouter(tags=["moving"])
EXPORT_LINES = 200  # fetched at a time
SHOWN_PROBLEMS = 100
MARKDOWN = "text/markdown"
CUT_OFF = "the body ended too early; what was read before is kept"

_IMPORT = responses(answers.ImportLine, *NAMED, 413)
_IMPORT[200] = {
    "description": "A line every 200 documents, the last with `done`.",
    "content": {NDJSON: {"schema": {"type": "string"}, "example": '{"read": 200, "added": 200}\n'}},
}
_EXPORT = responses(None, *NAMED)
_EXPORT[200] = {
    "description": "A header, a line a document, then a line a feedback.",
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
        },
    }
}


@router.get(f"{COLLECTION}/export", responses=_EXPORT, summary="Everything, as NDJSON")
async def export(
    name: Name,
    bridge: Asked,
    caller: Asking,
    vectors: Annotated[
        bool, Query(description="With the vectors, so that the same model need not embed again.")
    ] = False,
) -> Response:
    lines = await bridge.run(caller, "read", name, lambda engine: engine.lines(vectors))

    def some() -> bytes:
        return b"".join(line.encode("utf-8", "replace") + b"\n" for line in islice(lines, EXPORT_LINES))

    first = await bridge.resume(caller, "read", name, some)

    async def chunks() -> AsyncIterator[bytes]:
        chunk = first
        while chunk:
            yield chunk
            chunk = await bridge.resume(caller, "read", name, some)

    return Lines(chunks())


@router.post(
    f"{COLLECTION}/import", responses=_IMPORT, openapi_extra=_BODY, summary="Take in NDJSON or a Markdown text"
)
async def import_(
    name: Name,
    request: Request,
    bridge: Asked,
    caller: Asking,
    redact: Redact = False,
    id: Annotated[str | None, Query(description="Of a Markdown text, unless its front matter names one.")] = None,
) -> Response:
    """A line a document, or what `export` wrote. Progress comes back while the body is still going in. `text/markdown`
    is one document, whose front matter becomes its fields and whose `[[links]]` name documents that are there."""
    engine = await bridge.run(caller, "write", name, lambda engine: engine)
    bridge.begin_import()
    loop = asyncio.get_running_loop()
    told: asyncio.Queue[bytes | None] = asyncio.Queue()
    body = request.stream()

    pulling: list[Future[bytes | None]] = []

    async def next_piece() -> bytes | None:
        return await anext(body, None)

    def pull() -> bytes | None:
        """The body's next piece, asked for from the thread that writes."""
        pulling[:] = [asyncio.run_coroutine_threadsafe(next_piece(), loop)]
        return pulling[0].result()

    longest = bridge.config.max_body_bytes
    is_text = request.headers.get("content-type", "").startswith(MARKDOWN)

    def take(intake: Intake) -> None:
        if is_text:
            intake.take_markdown(_whole(iter(pull, None), longest), id, "body")
        else:
            intake.take_lines(parsed(_lines(iter(pull, None), longest), "body"))

    def work() -> None:
        def tell(line: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(told.put_nowait, payload(line) + b"\n")

        try:
            _take_in(engine, take, redact, tell, lambda: bridge.allow(caller, "write", name))
        finally:
            loop.call_soon_threadsafe(told.put_nowait, None)

    task = loop.run_in_executor(bridge.import_pool, work)
    task.add_done_callback(bridge.end_import)

    async def lines() -> AsyncIterator[bytes]:
        try:
            while (line := await told.get()) is not None:
                yield line
        finally:
            for waiting in pulling:  # the server ends before the body does: the thread must not wait for the rest
                waiting.cancel()
        await asyncio.wait([task])

    return Lines(lines())


def _take_in(
    engine: Engine,
    take: Callable[[Intake], None],
    redact: bool,
    tell: Callable[[dict[str, Any]], None],
    check: Callable[[], object],
) -> None:
    """``check`` refuses who may no longer: an import can last longer than its key."""
    read = 0

    def done(count: int) -> None:
        nonlocal read
        read += count
        tell({"read": read, **_counts(intake.tally)})
        check()

    intake = Intake(engine, done, redact=redact)
    error = ""
    try:
        take(intake)
        intake.finish()
    except TrivetError as trouble:
        found = problems.of(trouble)
        logs.event("import ended", error=trouble if found.status >= 500 else None, reason=found.kind)
        error = found.detail
    except (ClientDisconnect, CancelledError):  # what was told of is kept
        logs.event("import ended", reason="the client went away")
        error = CUT_OFF
    except Exception as trouble:
        logs.event("import ended", logging.ERROR, trouble)
        error = CUT_OFF
    finally:
        intake.close()
    tally = intake.tally
    metrics.WRITTEN.inc(tally.added + tally.updated)
    last: dict[str, Any] = {"read": read, **_counts(tally), "done": not error, "pending": engine.stats().pending}
    if redact:
        last["redacted"] = dict(tally.redacted)
    last["problems"] = [{"line": item.place, "reason": item.reason} for item in tally.broken[:SHOWN_PROBLEMS]]
    tell({**last, "error": error} if error else last)


def _counts(tally: Tally) -> dict[str, int]:
    counted = {name: getattr(tally, name) for name in ("added", "updated", "unchanged", "repeated", "feedback")}
    return {**counted, "broken": len(tally.broken)}


def _whole(pieces: Iterator[bytes], longest: int) -> str:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > longest:
            raise InputError(f"body: more than {longest:,} bytes; a Markdown text is one document")
    text = decoded(bytes(body))
    if text is None:
        raise InputError("body: it is not UTF-8 text; convert it first")
    return text


def _lines(pieces: Iterator[bytes], longest: int) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
        if len(rest) > longest:
            raise InputError(f"body: a line has more than {longest:,} bytes; send it as several documents")
    if rest:
        yield rest
