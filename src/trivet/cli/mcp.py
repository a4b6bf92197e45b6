"""``trivet mcp`` and ``trivet mcp install``: serve a collection to agents."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trivet.cli import options
from trivet.cli.options import flag, option
from trivet.cli.output import clean, message
from trivet.cli.store import open_existing, open_or_create, scorer_or_default
from trivet.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from trivet.mcp.clients import Plan

PIP_LINE = "pip install 'trivet[mcp]'"
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8788
CLIENT_PANEL = "Client"

ReadOnly = Annotated[
    bool,
    flag(
        "--read-only",
        "Offer only the tools that read (recall, context, get, list); nothing is written.",
        env="TRIVET_READ_ONLY",
    ),
]
Redact = Annotated[
    bool, flag("--redact", "Remove secrets from what is remembered, before it is stored.", env="TRIVET_REDACT")
]


def mcp(
    context: typer.Context,
    http: Annotated[bool, flag("--http", "Use streamable HTTP instead of stdin and stdout.")] = False,
    host: Annotated[
        str, option("--host", "ADDRESS", "With --http: the address to listen on.", default=True)
    ] = DEFAULT_HOST,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65_535, help="With --http: the port; 0 picks a free one.")
    ] = DEFAULT_PORT,
    read_only: ReadOnly = False,
    redact: Redact = False,
    where: options.BoundTo = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    embedder: options.Embedder = None,
    scorer: options.Scorer = None,
) -> None:
    """Serve a collection to agents over the Model Context Protocol: remember, recall, context and more."""
    if context.invoked_subcommand is not None:
        options.check_order(context)
        return
    _check_extra()
    if not http and (host, port) != (DEFAULT_HOST, DEFAULT_PORT):
        raise InputError("mcp: --host and --port need --http")
    from trivet.mcp import transports
    from trivet.mcp.tools import Memory

    transports.log_to_stderr()
    scorer = scorer_or_default(scorer)
    if read_only:
        opened = open_existing(store, collection, model=True, scorer=scorer, background=True)
    else:
        opened = open_or_create(store, collection, embedder, scorer)
    with opened as engine:
        memory = Memory(engine.within(where) if where else engine, read_only, redact)
        if http:
            transports.http(memory, host, port, lambda address: message(f"trivet mcp: listening on {address}"))
        else:
            if sys.stdin.isatty():
                message("trivet mcp: waiting for a client on stdin; `trivet mcp install` adds one, Ctrl-D stops", "dim")
            transports.stdio(memory)


def install(
    client: Annotated[str, option("--client", "NAME", "claude-desktop, claude-code, cursor or vscode.", CLIENT_PANEL)],
    project: Annotated[
        bool, flag("--project", "Set it up for the current folder instead of the user.", CLIENT_PANEL)
    ] = False,
    name: Annotated[
        str, option("--name", "NAME", "The server's name in the client.", CLIENT_PANEL, default=True)
    ] = "trivet",
    file: Annotated[
        Path | None,
        option("--file", "PATH", "The configuration file. Default: the usual place.", CLIENT_PANEL),
    ] = None,
    yes: options.Yes = False,
    read_only: ReadOnly = False,
    redact: Redact = False,
    where: options.BoundTo = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    embedder: options.Embedder = None,
    scorer: options.Scorer = None,
) -> None:
    """Add the server to a client's configuration: shows what it would write and where, then asks."""
    _check_extra()
    check_where(where)
    from trivet.engine import on_server
    from trivet.mcp import clients

    arguments = ["--store", store if on_server(store) else str(Path(store).absolute()), "--collection", collection]
    arguments += ["--embedder", embedder] if embedder else []
    arguments += ["--scorer", scorer] if scorer else []
    arguments += ["--read-only"] * read_only + ["--redact"] * redact
    arguments += [part for given in where or () for part in ("--where", given)]
    plan = clients.plan(client, arguments, server=name, project=project, file=file)
    if not plan.changes:
        print(clean(f"{plan.path} is up to date; nothing to do"))
        return
    _show(plan)
    confirm_and_write(plan.path, plan.content, yes)
    message(f"restart {plan.client.title} to use it", "dim")


def confirm_and_write(path: Path, content: dict[str, Any], yes: bool) -> None:
    """Ask, unless ``yes``, then write a configuration file, and say where the old one is."""
    from trivet.mcp import clients

    if not yes:
        if not sys.stdin.isatty():
            raise InputError("install: nothing was written; add --yes to confirm")
        typer.confirm("Write it?", abort=True, err=True)
    kept = clients.write(path, content)
    print(clean(f"wrote {path}" + (f"; the old file is {kept}" if kept else "")))


def check_where(where: list[str] | None) -> None:
    """Refuse a filter that the server would refuse when the client starts it."""
    from trivet.filters import check_binding, parse_filter

    if where and (parsed := parse_filter(where)) is not None:
        check_binding(parsed)


def _show(plan: Plan) -> None:
    action = "replace" if plan.before is not None else "add"
    print(clean(f"would {action} {plan.name!r} in {plan.path} ({plan.client.title}):\n{plan.shown}"))
    if plan.before is not None:
        print(clean(f"instead of:\n{json.dumps(plan.before, indent=2, ensure_ascii=False)}"))


def _check_extra() -> None:
    if find_spec("mcp_types") is None:  # part of the library mcp from its version 2 on
        raise MissingExtraError(f"mcp: the package mcp is not installed; {PIP_LINE}")
