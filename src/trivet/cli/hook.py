"""``trivet hook`` and ``trivet hook install``: recall what is known about each prompt of Claude Code."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trivet.cli import errors, options
from trivet.cli.mcp import check_where, confirm_and_write
from trivet.cli.options import flag, option
from trivet.cli.output import clean, message, print_json
from trivet.cli.store import check_exists, open_existing
from trivet.errors import InputError, TrivetError
from trivet.types import LIKELY

if TYPE_CHECKING:
    from trivet.engine import Engine

EVENT = "UserPromptSubmit"
BUDGET = 2_000  # tokens of a recall
MOST_CHARACTERS = 10_000  # Claude Code shows only the beginning of a longer context
MOST_HITS = 20
SECONDS = 30  # after which Claude Code goes on without a recall

Count = Annotated[int, typer.Option("-k", metavar="N", min=1, max=MOST_HITS, help="How many memories at most.")]
MinRelevance = Annotated[
    float, typer.Option(metavar="0–1", min=0.0, max=1.0, help="Leave out memories with a lower relevance.")
]


def hook(
    context: typer.Context,
    k: Count = 5,
    min_relevance: MinRelevance = LIKELY,
    where: options.BoundTo = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
) -> None:
    """Recall what is known about a prompt of Claude Code, which passes it as JSON on stdin.

    Prints memories as data between delimiters, none twice in a session, and nothing where nothing is known.
    """
    if context.invoked_subcommand is not None:
        options.check_order(context)
        return
    try:
        session, prompt = _event()
        with open_existing(store, collection, model=True) as engine:
            text = _recalled(engine.within(where) if where else engine, session, prompt, k, min_relevance)
    except TrivetError as error:
        errors.report(error)
        raise typer.Exit(1) from None  # 2, the code of a wrong call, makes Claude Code erase the prompt
    if text:
        print_json({"hookSpecificOutput": {"hookEventName": EVENT, "additionalContext": text}})


def _event() -> tuple[str, str]:
    """Return the session and the prompt of the event on stdin."""
    try:
        event: Any = json.loads(sys.stdin.buffer.read().decode("utf-8", "replace"))
    except ValueError:
        raise InputError("hook: stdin is not JSON; Claude Code calls this command, see `trivet hook install`") from None
    if not isinstance(event, dict) or event.get("hook_event_name") != EVENT:
        raise InputError(f"hook: stdin is not the event {EVENT!r}; install it for that event")
    for name in ("session_id", "prompt"):
        if not isinstance(event.get(name), str):
            raise InputError(f"hook: {name} is missing or not text")
    return event["session_id"], event["prompt"]


def _recalled(engine: Engine, session: str, prompt: str, k: int, min_relevance: float) -> str:
    """Return the block of memories for a prompt; empty if there is nothing new."""
    from trivet.chat.recalled_ids import RecalledIds
    from trivet.profile import without_copies

    if not prompt.strip():
        return ""
    seen = RecalledIds(_folder(engine), engine.name, session)
    profile = without_copies(engine.careful)
    least = max(min_relevance, profile.min_relevance)
    found = engine.search(prompt, k, profile=profile, exclude=seen.read(), min_relevance=least)
    for part in found.degraded:
        message(f"degraded: {part.part}: {part.reason}", "yellow")
    text, ids = _block(found.hits)
    new = seen.claim(ids) if ids else set()
    return text if len(new) == len(ids) else _block([hit for hit in found.hits if hit.id in new])[0]


def _block(hits: Any) -> tuple[str, list[str]]:
    """Return the best hits that fit, between delimiters, and their ids."""
    from trivet.chat.context import assemble

    for count in range(len(hits), 0, -1):
        block = assemble((), hits[:count], BUDGET, passages=True)
        if len(block.text) <= MOST_CHARACTERS:
            return block.text, [source.id for source in block.sources]
    return "", []


def _folder(engine: Engine) -> Path:
    """Return the folder of the sessions: beside the file of the store, or in the cache for a server."""
    from trivet.cache_folder import cache_folder
    from trivet.engine import on_server

    if not on_server(engine.url):
        return Path(f"{engine.path}.sessions")
    return cache_folder() / "sessions" / engine.path.replace("/", "_")


def install(
    project: Annotated[bool, flag("--project", "Set it up for the current folder instead of the user.")] = False,
    file: Annotated[Path | None, option("--file", "PATH", "The settings file. Default: that of Claude Code.")] = None,
    yes: options.Yes = False,
    k: Count = 5,
    min_relevance: MinRelevance = LIKELY,
    where: options.BoundTo = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
) -> None:
    """Add the hook to the settings of Claude Code: shows what it would write and where, then asks."""
    check_where(where)
    check_exists(store, collection)
    from trivet.engine import on_server
    from trivet.mcp import clients

    command = [sys.executable, "-m", "trivet", "hook"]
    command += ["--store", store if on_server(store) else str(Path(store).absolute()), "--collection", collection]
    command += ["-k", str(k), "--min-relevance", f"{min_relevance:g}"]
    command += [part for given in where or () for part in ("--where", given)]
    path = file or (Path.cwd() if project else Path.home()) / ".claude" / "settings.json"
    ours = {"hooks": [{"type": "command", "command": shlex.join(command), "timeout": SECONDS}]}
    content = clients.read(path, "hooks", {EVENT: [ours]})
    changed = _with_hook(content, ours, path)
    if changed == content:
        print(clean(f"{path} is up to date; nothing to do"))
        return
    shown = json.dumps({"hooks": {EVENT: [ours]}}, indent=2, ensure_ascii=False)
    print(clean(f"would add or replace the hook of trivet in {path} (Claude Code):\n{shown}"))
    confirm_and_write(path, changed, yes)
    message("restart Claude Code to use it", "dim")


def _with_hook(content: dict[str, Any], ours: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the settings with our hook in the place of an earlier one of ours, or after the others."""
    hooks = content.get("hooks") or {}
    groups = hooks.get(EVENT, [])
    if not isinstance(groups, list):
        raise InputError(f"{path}: hooks.{EVENT} is not a list, and the file was not changed; correct it first")
    at = next((at for at, group in enumerate(groups) if " -m trivet hook " in json.dumps(group)), len(groups))
    return {**content, "hooks": {**hooks, EVENT: [*groups[:at], ours, *groups[at + 1 :]]}}
