"""Rerankers: reorder, rescore or drop hits by what their documents say; they never add a hit.

A profile names its rerankers with their options, and a search applies them in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from trivet.errors import InputError
from trivet.plugins import Registry
from trivet.rerank.reranker import (
    Option,
    Reranked,
    Reranker,
    Tools,
    best_first,
    option,
    renumbered,
    spread_of,
)

__all__ = [
    "RERANKERS",
    "Option",
    "Reranked",
    "Reranker",
    "Tools",
    "best_first",
    "build",
    "describe",
    "option",
    "renumbered",
    "spread_of",
]


def _check(name: str, kind: object) -> None:
    if not (isinstance(kind, type) and issubclass(kind, Reranker) and kind.name == name):
        raise InputError(f"reranker: {name!r} is {kind!r}; register a subclass of Reranker whose name is {name!r}")


RERANKERS: Registry[type[Reranker]] = Registry(
    "reranker",
    "trivet.rerankers",
    {
        "exact": "trivet.rerank.exact:Exact",
        "importance": "trivet.rerank.importance:Importance",
        "composite": "trivet.rerank.composite:Composite",
        "dedup": "trivet.rerank.dedup:Dedup",
        "learned": "trivet.rerank.learned:Learned",
        "cross_encoder": "trivet.rerank.cross_encoder:CrossEncoder",
        "reader": "trivet.rerank.reader:Reader",
        "avoid": "trivet.rerank.avoid:Avoid",
        "temporal": "trivet.rerank.temporal:Temporal",
        "recency": "trivet.rerank.recency:Recency",
        "mmr": "trivet.rerank.mmr:Mmr",
        "cap": "trivet.rerank.cap:Cap",
    },
    _check,
)


def build(name: str, options: Mapping[str, object] | None = None) -> Reranker:
    """Return the named reranker with these options; refuse an unknown name, option or value, ignore a retired one."""
    kind = RERANKERS[name]
    given = {key: value for key, value in (options or {}).items() if key not in kind.retired}
    known = kind.options()
    if unknown := [key for key in given if key not in known]:
        raise InputError(f"reranker {name!r} has no option {unknown[0]!r}; known: {', '.join(known)}")
    return cast(Callable[..., Reranker], kind)(**given)


def describe() -> dict[str, dict[str, Option]]:
    """Return the options of every reranker, with default, range and meaning."""
    return {name: kind.options() for name, kind in RERANKERS.items()}
