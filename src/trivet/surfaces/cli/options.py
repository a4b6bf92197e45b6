"""Which options do all commands have in common, and how is one written?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

DEFAULT_STORE = Path("memory.db")
DEFAULT_COLLECTION = "default"

_PLACE = "Where"


def option(
    names: str, metavar: str, help: str, panel: str | None = None, default: bool = False, env: str | None = None
) -> Any:
    """An option with a value; its default is shown only where it tells something."""
    return typer.Option(
        *names.split(), metavar=metavar, help=help, rich_help_panel=panel, show_default=default, envvar=env
    )


def flag(names: str, help: str) -> Any:
    return typer.Option(*names.split(), metavar="", help=help)  # else typer writes <bool> behind it


def argument(metavar: str, help: str) -> Any:
    return typer.Argument(metavar=metavar, help=help, show_default=False)


Store = Annotated[Path, option("--store -s", "PATH", "The store's file.", _PLACE, default=True, env="TRIVET_STORE")]
Collection = Annotated[
    str, option("--collection -c", "NAME", "The collection in it.", _PLACE, default=True, env="TRIVET_COLLECTION")
]
Embedder = Annotated[
    str | None,
    option(
        "--embedder",
        "SPEC",
        "The model of a new collection: builtin, none, folder:PATH, http://HOST/v1#MODEL… "
        "Else TRIVET_EMBEDDER says, or builtin.",
        _PLACE,
    ),
]
Json = Annotated[bool, flag("--json", "One JSON value on stdout, for programs.")]
Where = Annotated[
    list[str] | None,
    option(
        "--where -w",
        "FILTER",
        "kind=note, year>=2020, tags=a,b (any of), author!=sam, due=* (has one), or JSON. Repeat: all must hold.",
    ),
]
