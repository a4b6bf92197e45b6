"""Profiles: all settings of a search in one frozen value, and the profiles that ship.

The profile that a collection uses is its *settings*. A profile can be written to and read from TOML and JSON, has an
identity that can be printed, and refuses unknown fields and values out of range by name.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, TypedDict

from trivet.errors import InputError
from trivet.filters import plain_value
from trivet.fusion import FUSIONS, alpha_weights, settings_of
from trivet.fusion.normalize import NORMALIZERS
from trivet.fusion.weighing import WEIGHINGS
from trivet.legs import LEGS
from trivet.plugins import Registry
from trivet.rerank import RERANKERS, build
from trivet.text.query import UNDERSTANDINGS

#: Every profile has a weight for each of these; legs of plug-ins only where they are given one.
BUILT_IN_LEGS = LEGS.built_in
MATCHES = ("auto", "all", "any")
TEMPORALS = ("boost", "filter")
#: Settings that were added after digests of profiles had been published. With this value they are not in the digest.
_ADDED_LATER = {
    "follow_links": True,
    "understanding": "plain",
    "temporal": "boost",
    "expansion": 0,
    "neighbours": 0,
    "context": 0.0,
}

MAX_WEIGHT = 5.0  # the limit of the profile `episodes`
MAX_K = 10_000
_OF_K = re.compile(r"([1-9][0-9]{0,2})?k(?:\+([1-9][0-9]{0,3}))?")  # "2k": twice k, "k+10": ten more than k

Depth = int | str

_DEPTH, _TIMEOUT = 100, 10_000.0  # documents, milliseconds: of a leg that a profile does not set
#: The depths of the built-in legs; written out in a profile, so that it is read back as it was.
_DEPTHS: dict[str, Depth] = {**dict.fromkeys(BUILT_IN_LEGS, _DEPTH), "trigram": 50, "graph": 50}
_TIMEOUTS = dict.fromkeys(BUILT_IN_LEGS, _TIMEOUT)


@dataclass(frozen=True, slots=True)
class Step:
    """One reranker of a profile with its options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


class Overrides(TypedDict, total=False):
    """The keyword arguments of a search beyond its own: settings of a profile, and ``queries``. ``k`` is its own."""

    name: str
    weights: Mapping[str, float]
    weighing: str
    depths: Mapping[str, Depth]
    gates: Mapping[str, float | None]
    timeouts: Mapping[str, float]
    match: str
    fusion: str
    normalize: str
    rrf_k: float
    pool: Depth
    rerankers: Sequence[str | Mapping[str, Any] | Step]
    min_relevance: float
    follow_links: bool
    understanding: str
    temporal: str
    expansion: int
    neighbours: int
    context: float
    alpha: float
    lexical_weight: float
    lexical_depth: Depth
    lexical_gate: float | None
    lexical_timeout: float
    trigram_weight: float
    trigram_depth: Depth
    trigram_gate: float | None
    trigram_timeout: float
    dense_weight: float
    dense_depth: Depth
    dense_gate: float | None
    dense_timeout: float
    graph_weight: float
    graph_depth: Depth
    graph_gate: float | None
    graph_timeout: float
    queries: Iterable[str]


@dataclass(frozen=True, slots=True)
class Profile:
    """All settings of a search. docs/reference/settings.md describes each."""

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
    context: float = 0.0

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        plug_ins = [leg for leg in self.weights if leg not in BUILT_IN_LEGS]
        object.__setattr__(self, "depths", {**dict.fromkeys(plug_ins, _DEPTH), **self.depths})
        object.__setattr__(self, "timeouts", {**dict.fromkeys(plug_ins, _TIMEOUT), **self.timeouts})

    @property
    def identity(self) -> str:
        """``name#digest``. Two profiles with the same settings have the same digest, whatever their names."""
        ranked = {key: value for key, value in self.to_dict().items() if key != "name"}
        for name, usual in _ADDED_LATER.items():
            if ranked[name] == usual:
                del ranked[name]
        for leg, weight in self.weights.items():
            if not weight and (LEGS[leg].seeded or leg not in BUILT_IN_LEGS):  # these legs were added later, too
                for name in _MAPPINGS:
                    ranked[name].pop(leg, None)
        digest = hashlib.sha256(json.dumps(ranked, sort_keys=True).encode()).hexdigest()[:8]
        return f"{self.name}#{digest}"

    def __str__(self) -> str:
        legs = " ".join(f"{leg}={w:g}@{self.depths[leg]}" for leg, w in self.weights.items() if w > 0)
        if self.weighing != "fixed":
            legs += f" by {self.weighing}"
        steps = "".join(f" → {step.name}" for step in self.rerankers)
        return f"{self.identity} {self.fusion_summary} {legs}{steps} k={self.k}"

    @property
    def fusion_summary(self) -> str:
        """The fusion with the settings that it reads, such as ``rrf k=60`` or ``convex/zscore``."""
        read = settings_of(self.fusion)
        rrf_k = f" k={self.rrf_k:g}" if "rrf_k" in read else ""
        return f"{self.fusion}{rrf_k}" + (f"/{self.normalize}" if "normalize" in read else "")

    def depth(self, leg: str, k: int) -> int:
        """Return how many documents this leg ranks for a page of ``k`` hits: at least ``k``."""
        return _resolved(self.depths[leg], k)

    def pool_size(self, k: int) -> int:
        """Return how many candidates the rerankers see: more than ``k``, because they may drop some."""
        return _resolved(self.pool, k)

    @property
    def pool_grows_with_k(self) -> bool:
        """Whether the pool is given as a multiple of k. Then the candidates after it are hits, too."""
        return isinstance(self.pool, str)

    def with_changes(self, changes: Mapping[str, Any]) -> Profile:
        """Return a copy with these changes; mappings are merged, and short forms such as ``alpha`` are understood."""
        merged: dict[str, Any] = {}
        for name, value in _expanded(changes).items():
            if name not in _CHECKS:
                raise InputError(_unknown(name))
            if name in _MAPPINGS:
                value = {**getattr(self, name), **merged.get(name, {}), **value}
                if name == "gates":  # None removes a gate
                    value = {leg: number for leg, number in value.items() if number is not None}
            merged[name] = value
        return replace(self, **merged)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON and TOML."""
        plain: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name == "rerankers":
                value = [{"name": step.name, **step.options} for step in value]
            plain[item.name] = dict(value) if isinstance(value, Mapping) else value
        return plain

    def to_json(self) -> str:
        """Return JSON that ``from_json`` reads back to an equal profile."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_toml(self) -> str:
        """Return TOML that ``from_toml`` reads back to an equal profile."""
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
        """Return a profile from plain data; a setting that is left out has its default value."""
        return cls().with_changes({"name": "custom", **plain})

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Return a profile from a JSON object."""
        return cls.from_dict(_loaded("JSON", json.loads, text))

    @classmethod
    def from_toml(cls, text: str) -> Profile:
        """Return a profile from TOML."""
        return cls.from_dict(_loaded("TOML", tomllib.loads, text))


def _loaded(language: str, load: Callable[[str], Any], text: str) -> dict[str, Any]:
    try:
        plain = load(text)
    except (ValueError, RecursionError) as error:  # a syntax error, a number of 5,000 digits, too deeply nested lists
        raise InputError(f"profile: not {language} ({error})") from None
    if not isinstance(plain, dict):
        raise InputError(f"profile: expected a {language} object, got {type(plain).__name__}")
    return plain


# --- one check for each field; its error names the field, the value and what is allowed ------------------------------


def _number(name: str, value: Any, low: float, high: float) -> float:
    value = plain_value(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InputError(f"{name}: {value!r} is not a number from {low:g} to {high:g}")
    if not low <= value <= high:
        raise InputError(f"{name}: {value!r} is out of range; allowed: {low:g} to {high:g}")
    return float(value)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    value = plain_value(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name}: {value!r} is not a whole number from {low} to {high}")
    if not low <= value <= high:
        raise InputError(f"{name}: {value} is out of range; allowed: {low} to {high}")
    return value


def _choice(known: tuple[str, ...]) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise InputError(f"{name}: {value!r} is unknown; known: {', '.join(known)}")
        return value

    return check


def _registered(registry: Registry[Any]) -> Callable[[str, Any], str]:
    def check(name: str, value: Any) -> str:
        registry[value]  # refuses an unknown name, and a plug-in that cannot be imported
        return str(value)

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
        return {
            leg: check(f"{name}.{leg}", filled[leg])
            for leg in dict.fromkeys((*BUILT_IN_LEGS, *filled))
            if leg in filled
        }

    return checked


def _weights(name: str, value: Any) -> dict[str, float]:
    weights = _per_leg(lambda leg, weight: _number(leg, weight, 0.0, MAX_WEIGHT))(name, value)
    if not any(weights.values()):
        raise InputError(f"{name}: every leg has weight 0, so nothing would be found; give one leg a weight above 0")
    return {**dict.fromkeys(BUILT_IN_LEGS, 0.0), **weights}


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
        build(item.name, item.options)  # refuses an unknown name or option
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
    "weighing": _registered(WEIGHINGS),
    "depths": _per_leg(_depth, _DEPTHS),
    "gates": _per_leg(lambda name, value: _number(name, value, -1e9, 1e9)),
    "timeouts": _per_leg(lambda name, value: _number(name, value, 1.0, 600_000.0), _TIMEOUTS),
    "match": _choice(MATCHES),
    "fusion": _registered(FUSIONS),
    "normalize": _registered(NORMALIZERS),
    "rrf_k": lambda name, value: _number(name, value, 0.0, 10_000.0),
    "pool": _depth,
    "rerankers": _steps,
    "min_relevance": lambda name, value: _number(name, value, 0.0, 1.0),
    "follow_links": _flag,
    "understanding": _choice(UNDERSTANDINGS),
    "temporal": _choice(TEMPORALS),
    "expansion": lambda name, value: _whole(name, value, 0, 50),
    "neighbours": lambda name, value: _whole(name, value, 0, 10),
    "context": lambda name, value: _number(name, value, 0.0, 1.0),
}
_SHORT_FORMS = ("alpha", *(f"{leg}_{what}" for leg in BUILT_IN_LEGS for what in ("weight", "depth", "gate", "timeout")))


def _expanded(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Expand the short forms: ``alpha`` is two weights, ``dense_weight=2`` is ``weights={"dense": 2}``.

    The same for depth, gate and timeout. A weight changes that weight only: ``weighing`` stays as it is.
    """
    plain: dict[str, Any] = {}
    for name, value in changes.items():
        if not isinstance(name, str):
            raise InputError(f"settings: {name!r} is not the name of a setting; names are text")
        leg, _, what = name.rpartition("_")
        if name == "alpha":
            alpha = _number("alpha", value, 0.0, 1.0)
            alone = {
                leg: 0.0 for leg in BUILT_IN_LEGS if LEGS[leg].seeded and alpha in (0.0, 1.0)
            }  # lexical or dense only
            plain["weights"] = {**alone, **plain.get("weights", {}), **alpha_weights(alpha)}
        elif f"{what}s" in _MAPPINGS and leg in LEGS:
            plain[f"{what}s"] = {**plain.get(f"{what}s", {}), leg: value}
        elif name in _MAPPINGS:
            if not isinstance(value, Mapping):
                raise InputError(f"{name}: {value!r} is not a mapping such as {{'lexical': 1.0}}")
            plain[name] = {**plain.get(name, {}), **value}
        else:
            plain[name] = value
    return plain


def _unknown(name: str) -> str:
    known = (*_CHECKS, *_SHORT_FORMS)
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{name}: unknown setting; {hint}Known: {', '.join(known)}"


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # a JSON scalar, or a list of them, is also TOML


# --- the profiles that ship -------------------------------------------------------------------------------------------

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        # Chosen by the mean rank over the public datasets, each left out in turn: docs/evidence/results.md, ADR 10.
        # Negation and periods of time: ADR 17, ADR 18. Turns of a session: ADR 36.
        Profile(
            name="default",
            weights={"lexical": 0.5, "dense": 0.5, "graph": 0.4},
            normalize="zscore",
            weighing="query",
            rerankers=(Step("learned"), Step("avoid"), Step("temporal")),
            understanding="full",
            context=0.4,
        ),
        # The systems of docs/explanation/profiles.md.
        # System 000: episodes. The lexical leg has weight 0; it ranks 2 × k documents if that is raised.
        Profile(
            name="episodes",
            weights={"lexical": 0.0, "dense": 1.0},
            depths={"lexical": "2k", "dense": "1k"},
            fusion="rrf",
            rrf_k=60.0,
        ),
        # System 001: memories. Importance is a prior after the fusion, not a leg.
        Profile(
            name="memories",
            weights={"lexical": 1.0, "dense": 1.0},
            depths={"lexical": 50, "dense": 50},
            fusion="rrf",
            rrf_k=60.0,
            pool=50,
            rerankers=(Step("importance", {"floor": 0.7}),),
        ),
        # System 002: chunks. Dense and trigram, ten each, trigram at weight 1.5 from a word_similarity of 0.3 up.
        Profile(
            name="chunks",
            weights={"trigram": 1.5, "dense": 1.0},
            depths={"trigram": 10, "dense": 10},
            gates={"trigram": 0.3},
            fusion="rrf",
            rrf_k=60.0,
        ),
        # System 003: composite. Its ranks count from 0 with the constant 5: 1/(5 + r0) = 1/(4 + r1).
        Profile(
            name="composite",
            weights={"lexical": 1.0, "dense": 1.0},
            depths={"lexical": 50, "dense": 50},
            fusion="rrf",
            rrf_k=4.0,
            pool=50,
            rerankers=(Step("dedup"), Step("composite", {"relevance": 0.80, "recency": 0.05, "importance": 0.15})),
        ),
        # System 004: snippets. alpha 0.5, three times k from each leg, twenty hits.
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


READER = Step("reader")
#: Candidates that the rerankers see in ``careful``: at least as many as the reader reads.
_CAREFUL_POOL = "k+30"


def with_reader(profile: Profile) -> Profile:
    """Return the default profile, as it is or as it was changed, with the built-in reader; any other as it is.

    The reader comes first: what a query excludes is dropped afterwards.
    """
    if profile.name != "default" or READER in profile.rerankers:
        return profile
    scoring = [step for step in profile.rerankers if step.name == "learned"]
    rest = [step for step in profile.rerankers if step.name != "learned"]
    return replace(profile, name="careful", pool=_CAREFUL_POOL, rerankers=(*scoring, READER, *rest))


PROFILES["careful"] = with_reader(PROFILES["default"])


def without_copies(profile: Profile) -> Profile:
    """Return the profile with the reranker `dedup` at its end: in the context of a model a copy only takes space."""
    dedup = Step("dedup")
    return profile if dedup in profile.rerankers else replace(profile, rerankers=(*profile.rerankers, dedup))


def named(name: str) -> Profile:
    """Return the profile of that name that ships."""
    if name not in PROFILES:
        raise InputError(f"profile: {name!r} is unknown; known: {', '.join(PROFILES)}")
    return PROFILES[name]
