"""The search space of a tuning: which settings may change, and to which values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from trivet.errors import InputError
from trivet.fusion import FUSIONS
from trivet.legs import LEGS
from trivet.profile import MAX_WEIGHT, Profile

MAX_CANDIDATES = 2_000
ALPHAS = tuple(step / 10 for step in range(1, 10))
#: Small constants, with which a first place wins. A third more candidates (k = 60 and more normalisers) gained nothing
#: on five sets.
RRF_KS = (2.0, 10.0)
NORMALIZE = "zscore"
#: Half and three times as deep as the default. Worth less than 0.0005 on five sets; two depths are cheap.
DEPTHS = (50, 300)
FEW_ALPHAS = (0.3, 0.5, 0.7)
SHARES = (0.1, 0.2, 0.4, 0.8)  # weights of the trigram leg, where the weights of lexical and dense sum to 1
TIMES = (0.0, 0.5, 1.0, 2.0)  # factors of the start's weight of the trigram leg
#: Settings that do not change the order of hits, so nothing can be learnt about them.
NOT_LEARNT = ("name", "k", "min_relevance", "timeouts", *(f"{leg}_timeout" for leg in LEGS))


@dataclass(frozen=True, slots=True)
class Choice:
    """A profile that may be chosen, and how it differs from the start."""

    changes: Mapping[str, Any]
    profile: Profile


@dataclass(frozen=True, slots=True)
class Space:
    """The grids of a tuning: every combination of the values of each grid is a candidate.

    >>> Space(({"alpha": (0.2, 0.4, 0.6)}, {"fusion": ("rrf",), "rrf_k": (2, 10)}))

    Settings are named as in ``Profile.with_changes``.
    """

    grids: tuple[Mapping[str, Sequence[Any]], ...]

    @classmethod
    def around(cls, start: Profile, meaning: bool = True, trigrams: bool = False) -> Space:
        """Return the default space: weights of the lexical and dense legs, under several fusions, and the depths.

        The trigram leg takes part where the start uses it, with ``trigrams``, and without ``meaning`` (no dense leg),
        where nothing else can be weighted against the lexical leg. Not otherwise: on the turns of LongMemEval it gains
        0.03 nDCG@10, and a search takes 295 ms instead of 4.
        """
        words, fragments, dense = (start.weights[leg] for leg in ("lexical", "trigram", "dense"))
        if not meaning:
            return cls(({"trigram_weight": (0.0, *(words * share for share in SHARES))},) if words else ())
        balance: dict[str, Sequence[Any]] = {"alpha": ALPHAS}
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
        others = _unique(start.fusion, *FUSIONS.added_names())
        grids += [{"fusion": (name,), **balance} for name in others if name not in ("convex", "rrf")]
        return cls(tuple(grids))

    def candidates(self, start: Profile) -> list[Choice]:
        """Return the start, then every other profile once."""
        found = {_ranked(start): Choice({}, start)}
        for grid in self.grids:
            for name, values in grid.items():
                if name in NOT_LEARNT:
                    raise InputError(f"space: {name} does not change the order of hits; there is nothing to learn")
                if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                    raise InputError(f"space: {name} is {values!r}; give the values to try, such as (0.3, 0.5)")
            for values in product(*grid.values()):
                changes = dict(zip(grid, values, strict=True))
                profile = start.with_changes(changes)
                found.setdefault(_ranked(profile), Choice(changes, profile))
                if len(found) > MAX_CANDIDATES:
                    raise InputError(f"space: more than {MAX_CANDIDATES:,} combinations; take fewer values")
        if len(found) == 1:
            raise InputError("space: it holds nothing but the profile to start from; name a setting with other values")
        return list(found.values())


def _ranked(profile: Profile) -> str:
    """Return the digest of the settings that rank, without the name."""
    return profile.identity.rpartition("#")[2]


def _unique(*values: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))
