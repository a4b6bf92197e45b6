"""``trivet settings``, ``history``, ``revert`` and ``profiles``: show and change how a collection is searched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from rich.text import Text

from trivet.cli import bars, options, output, tables
from trivet.cli.options import argument, option
from trivet.cli.store import open_existing

if TYPE_CHECKING:
    from trivet.profile import Profile
    from trivet.types import SettingsChange


def settings(
    set_: Annotated[
        list[str] | None,
        option("--set", "NAME=VALUE", "Change one: weights.dense=2, rrf_k=5, rerankers=exact,dedup. Repeat for more."),
    ] = None,
    profile: Annotated[
        str | None, option("--profile -p", "NAME|FILE", "Start from a shipped profile or a .toml/.json file.")
    ] = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Show a collection's settings as TOML, or change them for everyone who searches it."""
    from trivet.engine import shown

    start, changes = options.read_profile(profile), options.parse_changes(set_ or ())
    with open_existing(store, collection) as engine:
        current = (start or engine.settings).with_changes(changes)
        if start is not None or changes:
            current = engine.update_settings(start, **changes)
    _show(current, f"the settings of {shown(store)} ({collection})", json)


def history(
    limit: Annotated[int, option("--limit -n", "N", "Number of changes.", default=True)] = 20,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Show the changes of a collection's settings: when, by whom and what, the latest first."""
    with open_existing(store, collection) as engine:
        changes = engine.settings_history(limit)
    if json:
        output.print_json([_plain(change) for change in changes])
        return
    screen = output.stdout()
    rows = [
        [str(change.number), f"{change.at:%Y-%m-%d %H:%M}", change.by or "–", _difference(change)] for change in changes
    ]
    shown = tables.table(("change", "time (UTC)", "by", "what"), rows, screen, left=("time (UTC)", "by", "what"))
    screen.show(shown if rows else tables.sentence("the settings were never changed"))


def revert(
    to: Annotated[
        int | None,
        option("--to", "N", "The change whose settings apply again; 0: before the first. Default: undo the last one."),
    ] = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Undo the last change of the settings, or go back to an earlier one. This is a change, too."""
    from trivet.engine import shown

    with open_existing(store, collection) as engine:
        current = engine.revert_settings(to, by="trivet revert")
    _show(current, f"the settings of {shown(store)} ({collection})", json)


def _plain(change: SettingsChange) -> dict[str, Any]:
    previous = change.previous.to_dict() if change.previous else None
    return {
        "number": change.number,
        "at": change.at,
        "by": change.by,
        "settings": change.profile.to_dict(),
        "previous": previous,
    }


def _difference(change: SettingsChange) -> str:
    """Return the settings that a change set, as ``k=5 weights.dense=2``."""
    before = _flat(change.previous.to_dict()) if change.previous else {}
    after = _flat(change.profile.to_dict())
    changed = [f"{name}={value}" for name, value in after.items() if before.get(name) != value]
    return output.one_line(" ".join(changed)) if before else change.profile.identity


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the parts of a mapping one by one, and rerankers by name."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            found |= {f"{name}.{part}": item for part, item in value.items()}
        else:
            found[name] = ",".join(step["name"] for step in value) if name == "rerankers" else value
    return found


def profiles(
    name: Annotated[str | None, argument("NAME", "Print this profile as TOML.")] = None,
    json: options.Json = False,
) -> None:
    """List the shipped profiles, or print one as TOML as a start for your own."""
    from trivet.profile import PROFILES, named

    if name is not None:
        _show(named(name), "a shipped profile", json)
    elif json:
        output.print_json([{**profile.to_dict(), "identity": profile.identity} for profile in PROFILES.values()])
    else:
        _list(PROFILES.values())


def _show(profile: Profile, about: str, json: bool) -> None:
    if json:
        output.print_json({**profile.to_dict(), "identity": profile.identity})
    else:
        print(f"# {profile.identity}: {about}\n# {profile}\n\n{profile.to_toml()}", end="")


def _list(profiles: Iterable[Profile]) -> None:
    screen = output.stdout()
    table = tables.plain_table(gap=3)
    for title in ("profile", "legs, with weight and depth", "fusion", "rerankers", "k"):
        table.add_column(title)
    for profile in profiles:
        legs = Text()
        for leg, weight in profile.weights.items():
            if weight > 0:
                legs.append(f"{leg} ", style=bars.colour(leg) if screen.colour else "")
                legs.append(f"{weight:g}@{profile.depths.get(leg, profile.pool)}  ")
        steps = " → ".join(step.name for step in profile.rerankers) or "–"
        name, _, digest = profile.identity.partition("#")
        table.add_row(
            Text.assemble((name, "bold"), (f"#{digest}", "dim")), legs, profile.fusion_summary, steps, str(profile.k)
        )
    screen.show(table)
