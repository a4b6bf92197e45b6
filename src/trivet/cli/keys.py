"""``trivet keys``: create, list and revoke the API keys of the service."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from trivet import serialize
from trivet.cli import options, output
from trivet.cli.options import argument, option
from trivet.cli.store import check_store
from trivet.errors import InputError

if TYPE_CHECKING:
    from trivet.engine.keys import Key

ACTIONS = ("list", "create", "revoke")


def keys(
    action: Annotated[str, argument("ACTION", "list, create or revoke.")] = "list",
    name: Annotated[str | None, argument("NAME", "A name for the key; to revoke one, its name or its id.")] = None,
    scope: Annotated[
        str, option("--scope", "NAME", "read, write (includes read) or admin (includes all).", default=True)
    ] = "read",
    bound: Annotated[
        list[str] | None,
        option("--for", "COLLECTION", "Restrict it to this collection. Repeat for more. Default: all."),
    ] = None,
    where: options.BoundTo = None,
    store: options.Store = options.DEFAULT_STORE,
    json: options.Json = False,
) -> None:
    """Create, list and revoke the API keys of the service. A new key is shown once; the store keeps only its hash."""
    from trivet.engine.keys import Keys

    if action not in ACTIONS:
        raise InputError(f"keys: {action!r} is not an action; use one of: {', '.join(ACTIONS)}")
    if (action == "list") != (name is None):
        raise InputError("keys: `create` and `revoke` need a NAME, `list` takes none")
    if where and action != "create":
        raise InputError("keys: --where goes with `create`; a key's filter cannot be changed, so create another key")
    if action != "create":  # `create` makes the store: the first start of a service needs a key
        check_store(store)
    with Keys(store) as found:
        if action == "list":
            _list(found.list(), json)
        elif action == "revoke":
            key = found.revoke(str(name))
            output.result(_plain(key), f"revoked {key.name} {key.id}", json)
        else:
            _show_created(*found.create(str(name), scope, bound or (), where or None), json)


def _show_created(key: Key, text: str, json: bool) -> None:
    if json:
        output.print_json({**_plain(key), "key": text})
    else:
        print(text)
        output.message(f"created {key.name} ({_permissions(key)}); the key is not shown again", "dim")


def _list(found: list[Key], json: bool) -> None:
    if json:
        output.print_json([_plain(key) for key in found])
        return
    for key in found:
        state = f"revoked {key.revoked:%Y-%m-%d}" if key.revoked else f"created {key.created:%Y-%m-%d}"
        print(output.clean(f"{key.id}  {key.name}  {_permissions(key)}  {state}"))
    if not found:
        print("no keys: only this machine can use the service")


def _plain(key: Key) -> dict[str, Any]:
    """Return the key as JSON data, its filter in the form in which it was given."""
    from trivet.filters import mapping

    return {**serialize.plain(replace(key, where=None)), "where": mapping(key.where) if key.where is not None else None}


def _permissions(key: Key) -> str:
    from trivet.filters import to_json

    where = f" where {to_json(key.where)}" if key.where is not None else ""
    return f"{key.scope}, {', '.join(key.collections) or 'all collections'}{where}"
