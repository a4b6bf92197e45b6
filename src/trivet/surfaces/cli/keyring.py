"""The command ``keys``: make, list and revoke API keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from trivet.errors import InputError
from trivet.surfaces.cli import options, screen
from trivet.surfaces.cli.options import argument, option

if TYPE_CHECKING:
    from trivet.keys import Key

ACTIONS = ("list", "create", "revoke")


def keys(
    action: Annotated[str, argument("ACTION", "list, create or revoke.")] = "list",
    name: Annotated[str | None, argument("NAME", "What the key is for; to revoke, its name or its id.")] = None,
    scope: Annotated[
        str, option("--scope", "NAME", "read, write (and read) or admin (and all else).", default=True)
    ] = "read",
    bound: Annotated[
        list[str] | None, option("--for", "COLLECTION", "Only this collection. Repeat for more; else all of them.")
    ] = None,
    where: Annotated[
        list[str] | None,
        option("--where", "EXPR", "Bind the key to these documents, such as tenant=alice. Repeat: all must hold."),
    ] = None,
    store: options.Store = options.DEFAULT_STORE,
    json: options.Json = False,
) -> None:
    """Make, list and revoke the service's keys. A new key is shown once; the store has its hash."""
    from trivet.keys import Keys

    if action not in ACTIONS:
        raise InputError(f"keys: {action!r} is unknown; known: {', '.join(ACTIONS)}")
    if (action == "list") != (name is None):
        raise InputError("keys: give a name to create or revoke a key, and none to list them")
    if where and action != "create":
        raise InputError("keys: --where goes with create; a key's filter cannot be changed, so make another key")
    _place(store, action)
    with Keys(store) as found:
        if action == "list":
            _list(found.list(), json)
        elif action == "revoke":
            _told(found.revoke(str(name)), "revoked", json)
        else:
            key, text = found.create(str(name), scope, bound or (), where or None)
            _told(key, "made", json, text)


def _place(store: Path, action: str) -> None:
    """Only ``create`` makes a store: the service's first start needs its key before it."""
    from trivet.engine import is_store

    if action != "create" and not is_store(store):
        raise InputError(f"store: there is no file {str(store)!r}; name one with --store or TRIVET_STORE")


def _told(key: Key, became: str, json: bool, text: str = "") -> None:
    if json:
        screen.print_json({**_plain(key), **({"key": text} if text else {})})
        return
    if text:
        print(text)
        screen.say(f"{became} {key.name} ({_may(key)}); it is not shown again", "dim")
    else:
        print(f"{became} {screen.clean(key.name)} {key.id}")


def _list(found: list[Key], json: bool) -> None:
    if json:
        screen.print_json([_plain(key) for key in found])
        return
    for key in found:
        state = f"revoked {key.revoked:%Y-%m-%d}" if key.revoked else f"made {key.created:%Y-%m-%d}"
        print(screen.clean(f"{key.id}  {key.name}  {_may(key)}  {state}"))
    if not found:
        print("no keys: the service is open to this machine's user, and to nobody else")


def _plain(key: Key) -> dict[str, Any]:
    """The key as JSON-ready data; its filter as it can be given again."""
    from dataclasses import replace

    from trivet.filters import mapping
    from trivet.surfaces import wire

    return {**wire.plain(replace(key, where=None)), "where": mapping(key.where) if key.where is not None else None}


def _may(key: Key) -> str:
    from trivet.filters import to_json

    bound = f" where {to_json(key.where)}" if key.where is not None else ""
    return f"{key.scope} {', '.join(key.collections) or 'everywhere'}{bound}"
