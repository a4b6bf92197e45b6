"""Which settings may a tuning choose from?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from trivet.errors import InputError
from trivet.fusion.weighing import WEIGHINGS
from trivet.profile import LEGS, MAX_WEIGHT, Profile

MAX_CANDIDATES = 2_000
ALPHAS = tuple(step / 10 for step in range(1, 10))
#: Ranks are tried with constants that let a first place win. With 60, and with more normalisers than these, a third
#: more candidates gained nothing on five sets.
RRF_KS = (2.0, 10.0)
NORMALIZE = "zscore"
#: Half and three times as deep as the default. Worth less than 0.0005 on five sets; two depths are cheap.
DEPTHS = (50, 300)
FEW_ALPHAS = (0.3, 0.5, 0.7)
SHARES = (0.1, 0.2, 0.4, 0.8)  # of trigrams, beside words and meaning that sum to 1
TIMES = (0.0, 0.5, 1.0, 2.0)  # the start's own weight of trigrams
#: Settings that say how much is shown or how long is waited, not in which order: no ranking tells them apart.
NOT_LEARNT = ("name", "k", "min_relevance", "timeouts", *(f"{leg}_timeout" for leg in LEGS))


@dataclass(frozen=True, slots=True)
class Choice:
    """A profile that may be chosen, and how it differs from the start."""

    changes: Mapping[str, Any]
    profile: Profile


@dataclass(frozen=True, slots=True)
class Space:
    """Which settings may change, and to what: every combination of the values of each grid.

    >>> Space(({"alpha": (0.2, 0.4, 0.6)}, {"fusion": ("rrf",), "rrf_k": (2, 10)}))

    Settings are named as in ``Profile.with_changes``. A grid that does not name ``weighing`` keeps the start's.
    """

    grids: tuple[Mapping[str, Sequence[Any]], ...]

    @classmethod
    def around(cls, start: Profile, meaning: bool = True, trigrams: bool = False) -> Space:
        """The balance of words and meaning, under the start's fusion and the likeliest others, and how deep to look.

        Trigrams take part where the start asks them or ``trigrams`` says so, and without ``meaning``, because nothing
        else is left to weigh words against. Not otherwise: on the turns of LongMemEval they gain 0.03 nDCG@10, and a
        search takes 295 ms instead of 4.
        """
        words, fragments, dense = (start.weights[leg] for leg in ("lexical", "trigram", "dense"))
        if not meaning:
            return cls(({"trigram_weight": (0.0, *(words * share for share in SHARES))},) if words else ())
        balance: dict[str, Sequence[Any]] = {"weighing": _unique(start.weighing, *WEIGHINGS), "alpha": ALPHAS}
        if fragments:
            own = fragments / (words + dense or fragments)  # beside weights that sum to 1
            balance |= {"alpha": ALPHAS[::2], "trigram_weight": [min(MAX_WEIGHT, own * times) for times in TIMES]}
        scaled = start.normalize if start.fusion == "convex" else NORMALIZE
        grids: list[Mapping[str, Sequence[Any]]] = [
            {"fusion": ("convex",), "normalize": _unique(scaled, NORMALIZE), **balance},
            {"fusion": ("rrf",), "rrf_k": _unique(*((start.rrf_k,) if start.fusion == "rrf" else ()), *RRF_KS)}
            | balance,
            {"alpha": (0.0, 1.0)},
        ]
        for depth in DEPTHS:
            deep = {"lexical_depth": (depth,), "dense_depth": (depth,)}
            grids += [deep, {**deep, "alpha": FEW_ALPHAS}]
        if trigrams and not fragments:
            grids.append({"trigram_weight": SHARES, "alpha": FEW_ALPHAS})
        if start.fusion not in ("convex", "rrf"):
            grids.append({"fusion": (start.fusion,), **balance})
        return cls(tuple(grids))

    def candidates(self, start: Profile) -> list[Choice]:
        """The start first, then every other profile once."""
        found = {_ranked(start): Choice({}, start)}
        for grid in self.grids:
            for name, values in grid.items():
                if name in NOT_LEARNT:
                    raise InputError(f"space: {name} does not change the order of hits; there is nothing to learn")
                if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                    raise InputError(f"space: {name} is {values!r}; give the values to try, such as (0.3, 0.5)")
            for values in product(*grid.values()):
                changes = dict(zip(grid, values, strict=True))
                profile = start.with_changes({"weighing": start.weighing, **changes})
                found.setdefault(_ranked(profile), Choice(changes, profile))
                if len(found) > MAX_CANDIDATES:
                    raise InputError(f"space: more than {MAX_CANDIDATES:,} combinations; take fewer values")
        if len(found) == 1:
            raise InputError("space: it holds nothing but the profile to start from; name a setting with other values")
        return list(found.values())


def _ranked(profile: Profile) -> str:
    """The digest of what ranks, without the name."""
    return profile.identity.rpartition("#")[2]


def _unique(*values: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))
