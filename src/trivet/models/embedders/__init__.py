"""Embedders: models that turn texts into vectors.

A kind of embedder is one module with a loader, which takes the part of a spec after its colon and returns an
``Embedder``. Built-in kinds stand in ``KINDS``; packages add theirs by an entry point of the group
``trivet.embedders``. Nothing heavy is imported before a spec needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trivet.models.spec import Kind, Models
from trivet.plugins import Registry

if TYPE_CHECKING:
    from trivet.types import Embedder

KINDS: Mapping[str, Kind] = {
    "granite": Kind("trivet.models.embedders.granite:load", "granite, granite:fp32", languages=("en",)),
    "builtin": Kind("trivet.models.embedders.granite:load", "builtin (the same as granite)"),
    "multilingual": Kind("trivet.models.embedders.multilingual:load", "multilingual"),
    "hashing": Kind("trivet.models.embedders.hashing:load", "hashing, hashing:DIM"),
    "folder": Kind("trivet.models.embedders.folder:load", "folder:PATH, folder:PATH?int8"),
    "http": Kind("trivet.models.embedders.http:HttpModel", "http://HOST/v1#MODEL"),
    "https": Kind("trivet.models.embedders.http:HttpModel", "https://HOST/v1#MODEL"),
    "fastembed": Kind("trivet.models.embedders.optional:load_fastembed", "fastembed:NAME"),
    "sentence-transformers": Kind(
        "trivet.models.embedders.optional:load_sentence_transformers", "sentence-transformers:NAME"
    ),
    "vectors": Kind("trivet.models.embedders.supplied:load", "vectors:DIM (the caller gives every vector)"),
}
EMBEDDERS: Registry[Callable[[str], Embedder]] = Registry(
    "embedder", "trivet.embedders", {name: kind.loader for name, kind in KINDS.items()}
)
MEMBERS = ("spec", "id", "dim", "unrelated", "embed_queries", "embed_passages")
MODELS: Models[Embedder] = Models("embedder", EMBEDDERS, KINDS, MEMBERS)


def languages_of(spec: str) -> tuple[str, ...]:
    """Return the codes of the languages that a model reads; none where it reads all or that is not known."""
    kind = KINDS.get(spec.partition(":")[0])
    return kind.languages if kind else ()


def load_embedder(spec: str | Embedder | None) -> Embedder | None:
    """Return the embedder a spec names, one per process; an embedder is returned as it is, ``"none"`` is None."""
    return MODELS.get(spec)
