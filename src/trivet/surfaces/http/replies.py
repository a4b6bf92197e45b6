"""How does an answer become bytes?

Answers are plain data already (``wire``), so they are written as they are: no second validation, and no encoder that
could fail on a lone surrogate.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

NDJSON = "application/x-ndjson"


def payload(data: Any) -> bytes:
    try:
        return to_json(data, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeEncodeError):
        return json.dumps(data).encode()  # escapes what UTF-8 cannot hold


def reply(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(payload(data), status, headers, media_type="application/json")


class Lines(Response):
    """NDJSON as it comes. Starlette's own streaming response would read the request's body to learn of a disconnect,
    which is the body an import is still reading."""

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        super().__init__(media_type=NDJSON)
        self._lines = lines
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for line in self._lines:
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
