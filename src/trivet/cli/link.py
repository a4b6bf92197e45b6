"""``trivet link``: link two documents, or list the links of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from trivet.cli import get, options, output
from trivet.cli.options import argument, flag, option
from trivet.cli.store import open_existing
from trivet.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from trivet.types import Link


def link(
    source: Annotated[str | None, argument("SOURCE", "The document the link starts at.")] = None,
    target: Annotated[str | None, argument("TARGET", "The document it points to.")] = None,
    type: Annotated[
        str, option("--type -t", "NAME", "supersedes, resolved-by, part-of, see-also…", default=True)
    ] = "see-also",
    weight: Annotated[float, option("--weight", "N", "How strong the link is, from 0 up.", default=True)] = 1.0,
    list_: Annotated[str | None, option("--list -l", "ID", "List the links from and to this document.")] = None,
    remove: Annotated[bool, flag("--remove", "Remove the link.")] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Link two documents, remove a link, or list the links of a document."""
    if list_ is None and (source is None or target is None):
        raise InputError("link: give SOURCE and TARGET, or list the links of one document with --list ID")
    if list_ is not None and source is not None:
        raise InputError("link: --list takes no SOURCE and TARGET; leave them out")
    with open_existing(store, collection) as engine:
        if list_ is not None:
            get.find(engine, list_)
            links = engine.links(list_)
        elif remove:
            if not engine.unlink(str(source), str(target), type):
                raise NotFoundError(f"link: there is no {type!r} link from {source!r} to {target!r}")
            links = []
        else:
            links = [engine.link(str(source), str(target), type, weight)]
    _show(links, json, one=list_ is None)


def _show(links: list[Link], json: bool, one: bool) -> None:
    if json:
        output.print_json((links[0] if links else {"removed": 1}) if one else links)
        return
    for item in links:
        weight = f"  {item.weight:g}" if item.weight != 1 else ""
        print(output.clean(f"{item.source} —{item.type}→ {item.target}{weight}"))
    if not links:
        print("removed" if one else "no links")
