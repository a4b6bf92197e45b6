"""Which profiles are tried?

``-p`` by name or file, each changed by ``--alpha``, ``--weight``, ``--set`` and ``-k``, under names that tell them
apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from trivet.errors import InputError
from trivet.surfaces.cli import flags
from trivet.surfaces.cli.options import option
from trivet.surfaces.cli.sources import one_of

if TYPE_CHECKING:
    from trivet.profile import Profile

_KNOBS = "How it is ranked"
UNNAMED = "custom"  # what a file without a name is called by Profile


@dataclass(frozen=True, slots=True)
class Contenders:
    """The options that say how the questions are answered."""

    profile: Annotated[
        list[str] | None,
        option("--profile -p", "NAME|FILE", "One of `trivet profiles` or a .toml/.json file. Repeat for more.", _KNOBS),
    ] = None
    k: Annotated[int | None, option("-k", "N", "How many hits; else as the profile says.", _KNOBS)] = None
    alpha: Annotated[float | None, option("--alpha", "0–1", "0: words alone, 1: meaning alone.", _KNOBS)] = None
    weight: Annotated[
        list[str] | None, option("--weight", "LEG=N", "One leg's weight; 0 turns it off. Repeat for more.", _KNOBS)
    ] = None
    set_: Annotated[
        list[str] | None,
        option("--set", "NAME=VALUE", "Any other setting: fusion=rrf, rrf_k=20, depths.dense=200.", _KNOBS),
    ] = None

    @property
    def changes(self) -> dict[str, Any]:
        """What is changed but for the number of hits."""
        return flags.changes(self.set_ or (), self.weight or (), alpha=self.alpha)

    def profiles(self, otherwise: Iterable[str] = ("default",)) -> dict[str, Profile]:
        """Name → profile, all that were named, each with the changes."""
        return told_apart([self._changed(_read(said)) for said in self.profile or otherwise])

    def one(self, otherwise: Profile | None = None) -> Profile:
        """The one that was named, or else the default, with the changes."""
        said = one_of(self.profile, "--profile")
        return self._changed(otherwise if said is None and otherwise else _read(said or "default"))

    def as_it_is_and_changed(self) -> dict[str, Profile]:
        """The one that was named, beside itself with the changes."""
        start = _read(one_of(self.profile, "--profile") or "default").with_changes(flags.changes(k=self.k))
        return told_apart([start, start.with_changes({"name": f"{start.name}-changed", **self.changes})])

    def _changed(self, profile: Profile) -> Profile:
        return profile.with_changes({**self.changes, **flags.changes(k=self.k)})


@dataclass(frozen=True, slots=True)
class Contender(Contenders):
    """The same of one profile. Still a list: of two, typer would take the second and say nothing."""

    profile: Annotated[
        list[str] | None, option("--profile -p", "NAME|FILE", "One of `trivet profiles` or a .toml/.json file.", _KNOBS)
    ] = None


def told_apart(profiles: list[Profile]) -> dict[str, Profile]:
    """Each under its name; under its identity where another has the same name."""
    names = Counter(profile.name for profile in profiles)
    found = {profile.name if names[profile.name] == 1 else profile.identity: profile for profile in profiles}
    if len(found) < len(profiles):
        twice = Counter(profile.identity for profile in profiles).most_common(1)[0][0]
        raise InputError(f"--profile: {twice} was named twice")
    return found


def _read(said: str) -> Profile:
    found = flags.profile(said)
    assert found is not None  # something was said
    stem = re.sub(r"[^\w.-]", "-", Path(said).stem)[:64]
    return found.with_changes({"name": stem}) if found.name == UNNAMED and stem else found
