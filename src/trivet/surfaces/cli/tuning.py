"""How are questions answered here? (``settings``, ``profiles``)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from trivet.surfaces.cli import flags, opening, options, screen
from trivet.surfaces.cli.options import argument, option

if TYPE_CHECKING:
    from trivet.profile import Profile


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
    """Show the collection's settings as TOML, or change them for everyone who searches it."""
    start, asked = flags.profile(profile), flags.changes(set_ or ())
    with opening.existing(store, collection) as engine:
        current = (start or engine.settings).with_changes(asked)
        if start is not None or asked:
            current = engine.update_settings(start, **asked)
    _show(current, f"the settings of {store} ({collection})", json)


def profiles(
    name: Annotated[str | None, argument("NAME", "Print this one as TOML.")] = None,
    json: options.Json = False,
) -> None:
    """List the shipped profiles, or print one as TOML to start your own from."""
    from trivet.profile import PROFILES, named

    if name is not None:
        _show(named(name), "a shipped profile", json)
    elif json:
        screen.print_json([{**profile.to_dict(), "identity": profile.identity} for profile in PROFILES.values()])
    else:
        _table(list(PROFILES.values()))


def _show(profile: Profile, whose: str, json: bool) -> None:
    if json:
        screen.print_json({**profile.to_dict(), "identity": profile.identity})
    else:
        print(f"# {profile.identity}: {whose}\n# {profile}\n\n{profile.to_toml()}", end="")


def _table(profiles: list[Profile]) -> None:
    from rich.table import Table
    from rich.text import Text

    from trivet.surfaces.cli import bars

    place = screen.stdout()
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
    for title in ("profile", "legs, with weight and depth", "fusion", "rerankers", "k"):
        table.add_column(title)
    for profile in profiles:
        legs = Text()
        for leg, weight in profile.weights.items():
            if weight > 0:
                legs.append(f"{leg} ", style=bars.colour(leg) if place.colour else "")
                legs.append(f"{weight:g}@{profile.depths.get(leg, profile.pool)}  ")
        fusion = f"rrf k={profile.rrf_k:g}" if profile.fusion == "rrf" else f"{profile.fusion} {profile.normalize}"
        steps = " → ".join(step.name for step in profile.rerankers) or "–"
        name, _, digest = profile.identity.partition("#")
        table.add_row(Text.assemble((name, "bold"), (f"#{digest}", "dim")), legs, fusion, steps, str(profile.k))
    place.show(table)
