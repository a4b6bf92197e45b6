"""The commands ``mcp`` and ``mcp install``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trivet.errors import InputError, MissingExtraError
from trivet.surfaces.cli import opening, options
from trivet.surfaces.cli.options import flag, option
from trivet.surfaces.cli.screen import clean, say

if TYPE_CHECKING:
    from trivet.surfaces.mcp.clients import Plan

PIP_LINE = "pip install 'trivet[mcp]'"
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8788

ReadOnly = Annotated[
    bool,
    typer.Option(
        "--read-only", metavar="", help="Offer recall and context only; nothing is written.", envvar="TRIVET_READ_ONLY"
    ),
]
Redact = Annotated[
    bool,
    typer.Option(
        "--redact", metavar="", help="Take secrets out of what is remembered, before it is stored.",
        envvar="TRIVET_REDACT",
    ),
]  # fmt: skip

Where = Annotated[
    list[str] | None,
    option("--where", "EXPR", "Bind the server to these documents, such as tenant=alice. Repeat: all must hold."),
]


def mcp(
    context: typer.Context,
    http: Annotated[bool, flag("--http", "Streamable HTTP instead of stdin and stdout.")] = False,
    host: Annotated[str, option("--host", "ADDRESS", "With --http: where to listen.", default=True)] = DEFAULT_HOST,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65_535, help="With --http: the port; 0 takes a free one.")
    ] = DEFAULT_PORT,
    read_only: ReadOnly = False,
    redact: Redact = False,
    where: Where = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    embedder: options.Embedder = None,
    scorer: options.Scorer = None,
) -> None:
    """Serve a collection to agents over the Model Context Protocol: remember, recall, context and more."""
    if context.invoked_subcommand is not None:
        _check_order(context)
        return
    _check_extra()
    if not http and (host, port) != (DEFAULT_HOST, DEFAULT_PORT):
        raise InputError("mcp: --host and --port go with --http")
    from trivet.surfaces.mcp import transports
    from trivet.surfaces.mcp.tools import Memory

    transports.log_to_stderr()
    asked = opening.scorer_of(scorer)
    if read_only:
        opened = opening.existing(store, collection, model=True, scorer=asked)
    else:
        opened = opening.made(store, collection, embedder, asked)
    with opened as engine:
        memory = Memory(engine.within(where) if where else engine, read_only, redact)
        if http:
            transports.http(memory, host, port, lambda address: say(f"trivet mcp: listening on {address}"))
        else:
            if sys.stdin.isatty():
                say("trivet mcp: waiting for a client on stdin; `trivet mcp install` sets one up, Ctrl-D ends", "dim")
            transports.stdio(memory)


def install(
    client: Annotated[
        str, option("--client", "NAME", "claude-desktop, claude-code, cursor or vscode.", "What to set up")
    ],
    project: Annotated[
        bool, flag("--project", "In the current folder's list instead of the user's.", "What to set up")
    ] = False,
    name: Annotated[
        str, option("--name", "NAME", "What the client calls the server.", "What to set up", default=True)
    ] = "trivet",
    file: Annotated[
        Path | None, option("--file", "PATH", "The client's file, if it is somewhere else.", "What to set up")
    ] = None,
    yes: Annotated[bool, flag("--yes -y", "Write without being asked.")] = False,
    read_only: ReadOnly = False,
    redact: Redact = False,
    where: Where = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    embedder: options.Embedder = None,
    scorer: options.Scorer = None,
) -> None:
    """Put the server into a client's configuration: shows what it would write and where, then asks."""
    _check_extra()
    _check_where(where)
    from trivet.surfaces.mcp import clients

    arguments = ["--store", str(store.absolute()), "--collection", collection]
    arguments += ["--embedder", embedder] if embedder else []
    arguments += ["--scorer", scorer] if scorer else []
    arguments += ["--read-only"] * read_only + ["--redact"] * redact
    arguments += [part for given in where or () for part in ("--where", given)]
    planned = clients.plan(client, arguments, server=name, project=project, file=file)
    if not planned.changes:
        print(clean(f"{planned.path} has it already; nothing to do"))
        return
    _show(planned)
    if not yes:
        if not sys.stdin.isatty():
            raise InputError("install: nothing was written; add --yes to write it without being asked")
        typer.confirm("Write it?", abort=True, err=True)
    kept = clients.write(planned)
    print(clean(f"wrote {planned.path}" + (f"; the old file is {kept}" if kept else "")))
    say(f"restart {planned.client.title} to use it", "dim")


def _check_where(where: list[str] | None) -> None:
    """Refuse a filter that the server would refuse when the client starts it."""
    from trivet.filters import check_binding, parse_filter

    if where and (parsed := parse_filter(where)) is not None:
        check_binding(parsed)


def _show(planned: Plan) -> None:
    what = "replace" if planned.before is not None else "add"
    print(clean(f"would {what} {planned.name!r} in {planned.path} ({planned.client.title}):\n{planned.shown}"))
    if planned.before is not None:
        import json

        print(clean(f"instead of:\n{json.dumps(planned.before, indent=2, ensure_ascii=False)}"))


def _check_order(context: typer.Context) -> None:
    """`trivet mcp --store a.db install` would set up another store than the one named."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            part = context.invoked_subcommand
            raise InputError(f"mcp: write --{name.replace('_', '-')} behind {part}, as in `trivet mcp {part} …`")


def _check_extra() -> None:
    if find_spec("mcp_types") is None:  # which mcp has had from its version 2 on
        raise MissingExtraError(f"mcp: the protocol's library is not installed; {PIP_LINE}")
