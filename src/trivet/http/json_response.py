"""JSON and NDJSON responses.

The data is JSON-ready already (``serialize``), so it is written as it is, without a second validation.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trivet import serialize
from trivet.errors import without_paths
from trivet.types import Degraded

NDJSON = "application/x-ndjson"


def to_bytes(data: Any) -> bytes:
    """Return ``data`` as JSON in UTF-8; a lone surrogate, which UTF-8 cannot hold, is escaped."""
    try:
        return to_json(data, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeEncodeError):
        return json.dumps(data).encode()


def json_response(data: Any, status: int = 200) -> Response:
    return Response(to_bytes(data), status, media_type="application/json")


class NDJSONResponse(Response):
    """Lines of JSON, sent as they are produced.

    Starlette's streaming response reads the request's body to notice a disconnect; an import still reads that body.
    """

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        super().__init__(media_type=NDJSON)
        self._lines = lines
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for line in self._lines:
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def degraded(items: Iterable[Degraded]) -> list[dict[str, Any]]:
    """Return degraded parts for a response, without the paths that a reason may contain."""
    return [{**serialize.plain(item), "reason": without_paths(item.reason)} for item in items]


def with_degraded(result: Any) -> dict[str, Any]:
    """Return a result as JSON-ready data, its degraded parts without paths."""
    return {**serialize.plain(result), "degraded": degraded(result.degraded)}
