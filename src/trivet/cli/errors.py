"""Errors as the user sees them: one line on stderr and an exit code.

Exit codes: 1 the command failed, 2 the call was wrong, 130 Ctrl-C. TRIVET_DEBUG=1 adds the traceback.
"""

from __future__ import annotations

import os
import traceback

import typer

from trivet.cli.output import message
from trivet.errors import TrivetError, exit_code

INTERRUPTED = 130


class Interrupted(Exception):  # noqa: N818 - not an error: the user pressed Ctrl-C
    """Ctrl-C, with a note on what was kept."""


# typer bundles its own copy of click from 0.20 on; the base of its errors is found through a class that both have
_UsageError: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def report(error: BaseException) -> int:
    """Print the error on one line and return the exit code."""
    if os.environ.get("TRIVET_DEBUG"):
        traceback.print_exception(error)
    text, code = _line(error)
    message(f"trivet: {' '.join(text.split())}", "red" if code != INTERRUPTED else "yellow")
    return code


def _line(error: BaseException) -> tuple[str, int]:
    if isinstance(error, TrivetError):
        return str(error), exit_code(error)
    if isinstance(error, KeyboardInterrupt | Interrupted):
        return f"interrupted{error}", INTERRUPTED
    if isinstance(error, typer.Abort):
        return "cancelled; nothing was changed", 1
    if isinstance(error, _UsageError):
        return _usage(error), getattr(error, "exit_code", 2)
    if isinstance(error, OSError) and getattr(error, "filename", None) is None and error.strerror:
        return f"cannot write the output: {error.strerror}", 1
    name = type(error).__name__
    return f"unexpected {name}: {error} (please report it; TRIVET_DEBUG=1 shows the traceback)", 1


def _usage(error: Exception) -> str:
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    return f"{text}{'' if text.endswith(('.', '?')) else '.'} See `{context.command_path} --help`."
