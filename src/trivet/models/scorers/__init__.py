"""Scorers: models that rate how well a passage answers a query.

A kind of scorer is one module with a loader, which takes the part of a spec after its colon and returns a ``Scorer``.
Built-in kinds stand in ``KINDS``; packages add theirs by an entry point of the group ``trivet.scorers``. The engine
uses a scorer through ``CachedScorer``. The operator chooses the scorer, never a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trivet.models.spec import Kind, Models
from trivet.plugins import Registry

if TYPE_CHECKING:
    from trivet.types import Scorer

KINDS: Mapping[str, Kind] = {
    "folder": Kind("trivet.models.scorers.folder:load", "folder:PATH, folder:PATH?int8"),
    "http": Kind("trivet.models.scorers.http:HttpScorer", "http://HOST/rerank, http://HOST/v1/rerank#MODEL"),
    "https": Kind("trivet.models.scorers.http:HttpScorer", "https://HOST/v2/rerank#MODEL"),
    "llm": Kind("trivet.models.scorers.llm:LlmScorer", "llm:http://HOST/v1#MODEL"),
    "reader": Kind("trivet.models.scorers.reader:load", "reader (built in)"),
    "words": Kind("trivet.models.scorers.words:load", "words (shared words, for tests)"),
}
SCORERS: Registry[Callable[[str], Scorer]] = Registry(
    "scorer", "trivet.scorers", {name: kind.loader for name, kind in KINDS.items()}
)
MEMBERS = ("spec", "id", "batch", "scores")
MODELS: Models[Scorer] = Models("scorer", SCORERS, KINDS, MEMBERS)


def load_scorer(spec: str | Scorer | None) -> Scorer | None:
    """Return the scorer a spec names, one per process; a scorer is returned as it is, ``"none"`` is None."""
    return MODELS.get(spec)
