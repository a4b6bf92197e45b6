"""Which options do all commands have in common?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_STORE = Path("memory.db")
DEFAULT_COLLECTION = "default"

_PLACE = "Where"

Store = Annotated[
    Path,
    typer.Option("--store", "-s", envvar="TRIVET_STORE", metavar="PATH", help="The store's file.", rich_help_panel=_PLACE),
]
Collection = Annotated[
    str,
    typer.Option(
        "--collection",
        "-c",
        envvar="TRIVET_COLLECTION",
        metavar="NAME",
        help="The collection in it.",
        rich_help_panel=_PLACE,
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        envvar="TRIVET_EMBEDDER",
        metavar="SPEC",
        help="The model of a new collection: builtin, none, folder:PATH, http://HOST/v1#MODEL… [default: builtin]",
        rich_help_panel=_PLACE,
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON value on stdout, for programs.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        "-w",
        metavar="FILTER",
        help="kind=note, year>=2020, tags=a,b (any of), author!=sam, due=* (has one), or JSON. Repeat: all must hold.",
        show_default=False,
    ),
]
