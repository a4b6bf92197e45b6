"""How is a question answered?

A ``Profile`` is one frozen value: which legs, with what weight and depth, fused how, reranked by what, cut where. The
named ones below ship; a collection's current one is its *settings*. A profile is data: it goes to and comes from TOML
and JSON, has a printable identity, and refuses unknown or out-of-range fields by name.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

from trivet.errors import InputError
from trivet.fusion import FUSIONS, alpha_weights
from trivet.fusion.normalize import NORMALIZERS
from trivet.fusion.weighing import WEIGHINGS
from trivet.rerank import RERANKERS, build
from trivet.understanding import UNDERSTANDINGS

LEGS = ("lexical", "trigram", "dense", "graph")
#: Asked after the others, with what those found: they are nothing by themselves.
SEEDED = ("graph",)
MATCHES = ("auto", "all", "any")
TEMPORALS = ("boost", "filter")
#: Settings younger than the digests that are written down: not part of one where they have this value.
_YOUNGER = {"follow_links": True, "understanding": "plain", "temporal": "boost", "expansion": 0, "neighbours": 0}

MAX_WEIGHT = 5.0  # seed 000's range, 0-5
MAX_K = 10_000
_OF_K = re.compile(r"([1-9][0-9]{0,2})?k(?:\+([1-9][0-9]{0,3}))?")  # of the hits asked for: "2k" twice, "k+10" ten more

Depth = int | str

# what a leg that a profile says nothing of has; filled in, so that a profile comes back from TOML and JSON as it was
_DEPTHS: dict[str, Depth] = {"lexical": 100, "trigram": 50, "dense": 100, "graph": 50}
_TIMEOUTS = dict.fromkeys(LEGS, 10_000.0)  # milliseconds


@dataclass(frozen=True, slots=True)
class Step:
    """One reranker of a profile with its options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Profile:
    name: str = "default"
    k: int = 10
    weights: Mapping[str, float] = field(default_factory=lambda: {"lexical": 0.5, "trigram": 0.0, "dense": 0.5})
    weighing: str = "fixed"
    depths: Mapping[str, Depth] = field(default_factory=lambda: dict(_DEPTHS))
    gates: Mapping[str, float] = field(default_factory=dict)
    timeouts: Mapping[str, float] = field(default_factory=lambda: dict(_TIMEOUTS))
    match: str = "auto"
    fusion: str = "convex"
    normalize: str = "minmax"
    rrf_k: float = 60.0
    pool: Depth = "k+10"
    rerankers: tuple[Step, ...] = ()
    min_relevance: float = 0.0
    follow_links: bool = True
    understanding: str = "plain"
    temporal: str = "boost"
    expansion: int = 0
    neighbours: int = 0

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))

    @property
    def identity(self) -> str:
        """``name#digest``: two profiles that rank alike have the same digest, whatever they are called."""
        ranked = {key: value for key, value in self.to_dict().items() if key != "name"}
        for name, usual in _YOUNGER.items():
            if ranked[name] == usual:
                del ranked[name]
        for leg in SEEDED:  # younger as well, and off unless it is said
            if not self.weights[leg]:
                for name in _MAPPINGS:
                    ranked[name].pop(leg, None)
        digest = hashlib.sha256(json.dumps(ranked, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.name}#{digest}"

    def __str__(self) -> str:
        legs = " ".join(f"{leg}={w:g}@{self.depths[leg]}" for leg, w in self.weights.items() if w > 0)
        how = f"rrf k={self.rrf_k:g}" if self.fusion == "rrf" else self.fusion
        if self.weighing != "fixed":
            legs += f" by {self.weighing}"
        if self.fusion in ("convex", "comb_sum", "comb_mnz"):
            how += f"/{self.normalize}"
        steps = "".join(f" → {step.name}" for step in self.rerankers)
        return f"{self.identity} {how} {legs}{steps} k={self.k}"

    def depth(self, leg: str, k: int) -> int:
        """How deep does this leg look when ``k`` hits are wanted? Never less than ``k``."""
        return _resolved(self.depths[leg], k)

    def pool_size(self, k: int) -> int:
        """How many fused candidates do the rerankers see? Head-room, so that what they drop is made up for."""
        return _resolved(self.pool, k)

    def with_changes(self, changes: Mapping[str, Any]) -> Profile:
        """A copy with fields changed; mappings are merged, and the sugar of ``_sugar`` is understood."""
        merged: dict[str, Any] = {}
        for name, value in _sugar(changes).items():
            if name not in _CHECKS:
                raise InputError(_unknown(name))
            if name in _MAPPINGS:
                value = {**getattr(self, name), **merged.get(name, {}), **value}
                if name == "gates":  # None takes one away
                    value = {leg: number for leg, number in value.items() if number is not None}
            merged[name] = value
        return replace(self, **merged)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON and TOML."""
        plain: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name == "rerankers":
                value = [{"name": step.name, **step.options} for step in value]
            plain[item.name] = dict(value) if isinstance(value, Mapping) else value
        return plain

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_toml(self) -> str:
        """TOML that ``from_toml`` reads back to an equal profile."""
        plain = self.to_dict()
        lines = [f"{key} = {_toml(value)}" for key, value in plain.items() if not isinstance(value, dict | list)]
        for key, table in plain.items():
            if isinstance(table, dict) and table:
                lines += ["", f"[{key}]", *(f"{name} = {_toml(value)}" for name, value in table.items())]
        for step in plain["rerankers"]:
            lines += ["", "[[rerankers]]", *(f"{name} = {_toml(value)}" for name, value in step.items())]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Profile:
        """A profile from plain data; what is left out has the default's value."""
        return cls().with_changes({"name": "custom", **plain})

    @classmethod
    def from_json(cls, text: str) -> Profile:
        try:
            plain = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"profile: not JSON ({error})") from None
        except (ValueError, RecursionError) as error:  # a number of 5,000 digits, a list in a list in a list…
            raise InputError(f"profile: cannot be read ({error})") from None
        if not isinstance(plain, dict):
            raise InputError(f"profile: expected a JSON object, got {type(plain).__name__}")
        return cls.from_dict(plain)

    @classmethod
    def from_toml(cls, text: str) -> Profile:
        try:
            plain = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"profile: not TOML ({error})") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"profile: cannot be read ({error})") from None
        return cls.from_dict(plain)


# --- one check per field: names the field, the value and what is allowed ---------------------------------------------


def _number(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InputError(f"{name}: {value!r} is not a number from {low:g} to {high:g}")
    if not low <= value <= high:
        raise InputError(f"{name}: {value!r} is out of range; allowed: {low:g} to {high:g}")
    return float(value)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name}: {value!r} is not a whole number from {low} to {high}")
    if not low <= value <= high:
        raise InputError(f"{name}: {value} is out of range; allowed: {low} to {high}")
    return value


def _choice(known: Mapping[str, Any] | tuple[str, ...]) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise InputError(f"{name}: {value!r} is unknown; known: {', '.join(known)}")
        return value

    return check


def _resolved(depth: Depth, k: int) -> int:
    if not isinstance(depth, str):
        return max(depth, k)
    found = _OF_K.fullmatch(depth)
    assert found is not None  # checked when the profile was made
    return int(found[1] or 1) * k + int(found[2] or 0)


def _per_leg(
    check: Callable[[str, Any], Any], otherwise: Mapping[str, Any] | None = None
) -> Callable[[str, Any], dict[str, Any]]:
    def checked(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise InputError(f"{name}: {value!r} is not a mapping such as {{'lexical': 1.0}}")
        for leg in value:
            if leg not in LEGS:
                raise InputError(f"{name}.{leg}: unknown leg; known: {', '.join(LEGS)}")
        filled = {**(otherwise or {}), **value}
        return {leg: check(f"{name}.{leg}", filled[leg]) for leg in LEGS if leg in filled}

    return checked


def _weights(name: str, value: Any) -> dict[str, float]:
    weights = _per_leg(lambda leg, weight: _number(leg, weight, 0.0, MAX_WEIGHT))(name, value)
    if not any(weights.values()):
        raise InputError(f"{name}: every leg has weight 0, nothing would be asked; give one leg a weight above 0")
    return {leg: weights.get(leg, 0.0) for leg in LEGS}


def _depth(name: str, value: Any) -> Depth:
    if isinstance(value, str):
        if not _OF_K.fullmatch(value):
            raise InputError(f"{name}: {value!r} is not a depth; give a whole number or a multiple of k such as '3k'")
        return value
    return _whole(name, value, 1, MAX_K)


def _steps(name: str, value: Any) -> tuple[Step, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise InputError(f"{name}: {value!r} is not a list of rerankers; known: {', '.join(RERANKERS)}")
    steps = []
    for item in value:
        if isinstance(item, str):
            item = Step(item)
        elif isinstance(item, Mapping):
            options = dict(item)
            item = Step(str(options.pop("name", "")), options)
        elif not isinstance(item, Step):
            raise InputError(f"{name}: {item!r} is not a reranker; known: {', '.join(RERANKERS)}")
        build(item.name, item.options)  # refuses unknown names and options
        steps.append(item)
    return tuple(steps)


def _name(name: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[\w.-]{1,64}", value):
        raise InputError(f"{name}: {value!r} is not a profile name; use 1 to 64 letters, digits, '.', '_' or '-'")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{name}: {value!r} is not true or false")
    return value


_MAPPINGS = ("weights", "depths", "gates", "timeouts")
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "name": _name,
    "k": lambda name, value: _whole(name, value, 1, MAX_K),
    "weights": _weights,
    "weighing": _choice(WEIGHINGS),
    "depths": _per_leg(_depth, _DEPTHS),
    "gates": _per_leg(lambda name, value: _number(name, value, -1e9, 1e9)),
    "timeouts": _per_leg(lambda name, value: _number(name, value, 1.0, 600_000.0), _TIMEOUTS),
    "match": _choice(MATCHES),
    "fusion": _choice(FUSIONS),
    "normalize": _choice(NORMALIZERS),
    "rrf_k": lambda name, value: _number(name, value, 0.0, 10_000.0),
    "pool": _depth,
    "rerankers": _steps,
    "min_relevance": lambda name, value: _number(name, value, 0.0, 1.0),
    "follow_links": _flag,
    "understanding": _choice(UNDERSTANDINGS),
    "temporal": _choice(TEMPORALS),
    "expansion": lambda name, value: _whole(name, value, 0, 50),
    "neighbours": lambda name, value: _whole(name, value, 0, 10),
}
_SUGAR = ("alpha", *(f"{leg}_{what}" for leg in LEGS for what in ("weight", "depth", "gate", "timeout")))


def _sugar(changes: Mapping[str, Any]) -> dict[str, Any]:
    """``alpha`` is two weights; ``dense_weight=2`` is ``weights={"dense": 2}``, likewise depth, gate and timeout.

    Weights given by hand are meant as given: they are not shifted by the question, unless that is asked for too.
    """
    plain: dict[str, Any] = {}
    for name, value in changes.items():
        if not isinstance(name, str):
            raise InputError(f"settings: {name!r} is not the name of one; names are text")
        leg, _, what = name.partition("_")
        if name == "alpha":
            alpha = _number("alpha", value, 0.0, 1.0)
            alone = dict.fromkeys(SEEDED, 0.0) if alpha in (0.0, 1.0) else {}  # words alone, meaning alone
            plain["weights"] = {**alone, **plain.get("weights", {}), **alpha_weights(alpha)}
        elif leg in LEGS and f"{what}s" in _MAPPINGS:
            plain[f"{what}s"] = {**plain.get(f"{what}s", {}), leg: value}
        elif name in _MAPPINGS:
            if not isinstance(value, Mapping):
                raise InputError(f"{name}: {value!r} is not a mapping such as {{'lexical': 1.0}}")
            plain[name] = {**plain.get(name, {}), **value}
        else:
            plain[name] = value
    if "weights" in plain:
        plain.setdefault("weighing", "fixed")
    return plain


def _unknown(name: str) -> str:
    known = (*_CHECKS, *_SUGAR)
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{name}: unknown setting; {hint}Known: {', '.join(known)}"


def _toml(value: Any) -> str:
    # JSON scalars (and inline lists of them) are TOML scalars as well
    return json.dumps(value, ensure_ascii=False)


# --- the profiles that ship -------------------------------------------------------------------------------------------

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        # Chosen by mean rank over the public sets, each left out in turn: docs/RESULTS.md, ADR 10.
        # Negation and time: ADR 17, ADR 18.
        Profile(
            name="default",
            weights={"lexical": 0.5, "dense": 0.5, "graph": 0.4},
            normalize="zscore",
            weighing="query",
            rerankers=(Step("learned"), Step("avoid"), Step("temporal"), Step("dedup")),
            understanding="full",
        ),
        # Seed 000: episodes. Words are off until keyword weight is raised; they look 2 × k deep.
        Profile(
            name="episodes",
            weights={"lexical": 0.0, "dense": 1.0},
            depths={"lexical": "2k", "dense": "1k"},
            fusion="rrf",
            rrf_k=60.0,
        ),
        # Seed 001: memories. Importance is a prior after fusion, not a list in it.
        Profile(
            name="memories",
            weights={"lexical": 1.0, "dense": 1.0},
            depths={"lexical": 50, "dense": 50},
            fusion="rrf",
            rrf_k=60.0,
            pool=50,
            rerankers=(Step("importance", {"floor": 0.7}),),
        ),
        # Seed 002: chunks. Meaning and trigrams, ten of each, trigrams at 1.5 above word_similarity 0.3.
        Profile(
            name="chunks",
            weights={"trigram": 1.5, "dense": 1.0},
            depths={"trigram": 10, "dense": 10},
            gates={"trigram": 0.3},
            fusion="rrf",
            rrf_k=60.0,
        ),
        # Seed 003: composite. Its ranks are 0-based with constant 5: 1/(5 + r0) = 1/(4 + r1).
        Profile(
            name="composite",
            weights={"lexical": 1.0, "dense": 1.0},
            depths={"lexical": 50, "dense": 50},
            fusion="rrf",
            rrf_k=4.0,
            pool=50,
            rerankers=(Step("dedup"), Step("composite", {"relevance": 0.80, "recency": 0.05, "importance": 0.15})),
        ),
        # Seed 004: snippets. alpha 0.5, three times the page from each leg, twenty results.
        Profile(
            name="snippets",
            k=20,
            weights={"lexical": 0.5, "dense": 0.5},
            depths={"lexical": "3k", "dense": "3k"},
            fusion="rrf",
            rrf_k=60.0,
        ),
    )
}


def named(name: str) -> Profile:
    """The shipped profile of that name."""
    if name not in PROFILES:
        raise InputError(f"profile: {name!r} is unknown; known: {', '.join(PROFILES)}")
    return PROFILES[name]
