"""The log on stderr: lines for people on a terminal, one JSON object a line elsewhere, with the id of its request.

Queries, texts and keys are never logged, because more people read a log than a store.
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


def event(name: str, level: int = logging.INFO, error: BaseException | None = None, **details: Any) -> None:
    LOGGER.log(level, name, exc_info=error, extra={"details": details})


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        if request := request_id.get():
            line["request_id"] = request
        line |= getattr(record, "details", {})
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = "".join(traceback.format_exception(record.exc_info[1]))
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        parts = dict(getattr(record, "details", {}))
        if request := request_id.get():
            parts["request_id"] = request
        details = " ".join(f"{name}={value}" for name, value in parts.items())
        clock = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        line = f"{clock} {record.levelname.lower()} {record.getMessage()} {details}".rstrip()
        if record.exc_info and record.exc_info[1] is not None:
            line += "\n" + "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        return line


FORMATS: dict[str, type[logging.Formatter]] = {"json": JsonLines, "text": TextLines}
AUTO = "auto"  # text on a terminal, JSON elsewhere


def formatter(format: str) -> logging.Formatter:
    if format == AUTO:
        format = "text" if sys.stderr.isatty() else "json"
    return FORMATS[format]()


def set_up(level: str, format: str) -> None:
    """Format our lines and uvicorn's alike; uvicorn's access log is off, because ours has more details."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(format))
    for name in ("trivet.http", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.setLevel(level.upper())
        logger.propagate = name == "uvicorn.error"
    logging.getLogger("uvicorn.access").handlers = []
    logging.getLogger("uvicorn.access").propagate = False
