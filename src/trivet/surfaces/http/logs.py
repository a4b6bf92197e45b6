"""What does the service write down?

A JSON object a line on stderr, each with the id of the request it belongs to. Questions, texts and keys are not
written: a log is read by more people than a store.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

request_id: ContextVar[str] = ContextVar("request_id", default="")
LOGGER = logging.getLogger("trivet.http")


def event(name: str, level: int = logging.INFO, error: BaseException | None = None, **told: Any) -> None:
    LOGGER.log(level, name, exc_info=error, extra={"told": told})


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        if request := request_id.get():
            line["request_id"] = request
        line |= getattr(record, "told", {})
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = "".join(traceback.format_exception(record.exc_info[1]))
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = " ".join(f"{name}={value}" for name, value in getattr(record, "told", {}).items())
        line = f"{record.levelname.lower()} {record.getMessage()} {told}".rstrip()
        if record.exc_info and record.exc_info[1] is not None:
            line += "\n" + "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        return line


FORMATS: dict[str, type[logging.Formatter]] = {"json": JsonLines, "text": TextLines}


def set_up(level: str, format: str) -> None:
    """Ours and uvicorn's lines alike; uvicorn's own access log is off, ours has more in it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FORMATS[format]())
    for name in ("trivet.http", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.setLevel(level.upper())
        logger.propagate = name == "uvicorn.error"
    logging.getLogger("uvicorn.access").handlers = []
    logging.getLogger("uvicorn.access").propagate = False
