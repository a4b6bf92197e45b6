"""One fused list and its documents: in which order, and without which, is it best shown?

*Useful for* what only the document can tell: priors, copies, exact words. *Not useful for* finding anything: no
reranker adds a hit. The profile names them with their settings and the engine applies them in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from trivet.errors import InputError
from trivet.rerank.avoid import Avoid
from trivet.rerank.cap import Cap
from trivet.rerank.composite import Composite
from trivet.rerank.cross_encoder import CrossEncoder
from trivet.rerank.dedup import Dedup
from trivet.rerank.exact import Exact
from trivet.rerank.importance import Importance
from trivet.rerank.learned import Learned
from trivet.rerank.mmr import Mmr
from trivet.rerank.recency import Recency
from trivet.rerank.reranker import Option, Reranked, Reranker, Tools, renumbered
from trivet.rerank.temporal import Temporal

__all__ = [
    "RERANKERS",
    "Avoid",
    "Cap",
    "Composite",
    "CrossEncoder",
    "Dedup",
    "Exact",
    "Importance",
    "Learned",
    "Mmr",
    "Option",
    "Recency",
    "Reranked",
    "Reranker",
    "Temporal",
    "Tools",
    "build",
    "describe",
    "renumbered",
]

RERANKERS: dict[str, type[Reranker]] = {
    kind.name: kind
    for kind in (Exact, Importance, Composite, Dedup, Learned, CrossEncoder, Avoid, Temporal, Recency, Mmr, Cap)
}


def build(name: str, options: Mapping[str, object] | None = None) -> Reranker:
    """The named reranker with its settings; a name or a value it does not know is refused with the known ones."""
    if name not in RERANKERS:
        raise InputError(f"reranker {name!r} is not known; known: {', '.join(RERANKERS)}")
    kind, given = RERANKERS[name], dict(options or {})
    known = kind.options()
    if unknown := [key for key in given if key not in known]:
        raise InputError(f"reranker {name!r} has no option {unknown[0]!r}; known: {', '.join(known)}")
    return cast(Callable[..., Reranker], kind)(**given)


def describe() -> dict[str, dict[str, Option]]:
    """Every reranker's settings with default, range and meaning: for the docs and for checking profiles."""
    return {name: kind.options() for name, kind in RERANKERS.items()}
