"""What does a failure look like?

One line on stderr and an exit code: 1 the thing asked for failed, 2 the call was wrong, 130 Ctrl-C. Never a
traceback, unless TRIVET_DEBUG asks for it.
"""

from __future__ import annotations

import os
import traceback

import typer

from trivet.errors import TrivetError, exit_code
from trivet.surfaces.cli.screen import say

INTERRUPTED = 130


class Interrupted(Exception):  # noqa: N818 - not an error: the user wanted it
    """Ctrl-C, with what it leaves behind."""


# typer has its own copy of click from 0.20 on; the base of its errors is found from one that both have
_UsageError: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def told(error: BaseException) -> int:
    """Tell the user, and give the exit code."""
    if os.environ.get("TRIVET_DEBUG"):
        traceback.print_exception(error)
    if isinstance(error, TrivetError):
        return _line(str(error), exit_code(error))
    if isinstance(error, KeyboardInterrupt | Interrupted):
        return _line(f"interrupted{error}", INTERRUPTED)
    if isinstance(error, typer.Abort):
        return _line("stopped, nothing was changed", 1)
    if isinstance(error, _UsageError):
        return _line(_usage(error), getattr(error, "exit_code", 2))
    if isinstance(error, OSError) and getattr(error, "filename", None) is None and error.strerror:
        return _line(f"cannot write the output: {error.strerror}", 1)
    told = " ".join(f"{type(error).__name__}: {error}".split())
    return _line(f"unexpected {told} (please report it; TRIVET_DEBUG=1 shows the traceback)", 1)


def _usage(error: Exception) -> str:
    said = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    if context is None:
        return said
    return f"{said}{'' if said.endswith(('.', '?')) else '.'} See `{context.command_path} --help`."


def _line(text: str, code: int) -> int:
    say(f"trivet: {' '.join(text.split())}", "red" if code != INTERRUPTED else "yellow")
    return code
