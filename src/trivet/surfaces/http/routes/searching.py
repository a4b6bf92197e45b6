"""How is a question asked?

``POST`` with a body, ``GET`` with a query string; both become the same call of the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from trivet.engine import Engine
from trivet.errors import InputError
from trivet.profile import Profile, named
from trivet.surfaces import wire
from trivet.surfaces.http import answers, bodies, metrics, naming
from trivet.surfaces.http.access import Asking, Caller
from trivet.surfaces.http.bridge import Bridge
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.shared import (
    BODY,
    COLLECTION,
    NAMED,
    Asked,
    Name,
    Where,
    degraded,
    given,
    responses,
    shallow,
)
from trivet.types import Hit, Results

router = APIRouter(tags=["search"])
ACCOUNT = ("passage", "fused", "contributions", "adjustments")  # of a hit; left out with explain=false


def profile_for(engine: Engine, name: str | None, changes: dict[str, Any]) -> Profile:
    """The profile of this request; what is wrong with an override is said by the profile's own checks."""
    start = named(name) if name is not None else engine.settings
    return start.with_changes(naming.settings(changes)) if changes else start


def answer(found: Results, explain: bool) -> dict[str, Any]:
    plain = {**wire.results(found), "degraded": degraded(found.degraded)}
    if not explain:
        del plain["trace"]
        plain["hits"] = [_short(hit) for hit in found.hits]
    return plain


def _short(hit: Hit) -> dict[str, Any]:
    return {name: value for name, value in wire.hit(hit).items() if name not in ACCOUNT}


async def ask(bridge: Bridge, caller: Caller, collection: str, asked: dict[str, Any]) -> Response:
    """One search, counted."""
    overrides = dict(asked.get("overrides") or {})
    if asked.get("k") is not None:
        overrides["k"] = asked["k"]
    where = shallow(asked.get("where"), bridge.config.max_filter_depth)
    options = {
        "exclude": asked.get("exclude") or (),
        "offset": asked.get("offset") or 0,
        **{name: asked[name] for name in ("vector", "at", "as_of") if asked.get(name) is not None},
    }

    def work(engine: Engine) -> Results:
        profile = profile_for(engine, asked.get("profile"), overrides)
        return engine.search(asked["query"], where=_settled(where, engine), profile=profile, **options)

    found = await bridge.run(caller, "read", collection, work)
    metrics.count(found)
    told = answer(found, asked.get("explain", True))
    bridge.recent.note(collection, found, told["degraded"])
    if asked.get("marks"):
        for hit, spans in zip(told["hits"], await bridge.run(caller, "read", collection, _marking(found)), strict=True):
            hit["marks"] = spans
    return reply(told)


def _marking(found: Results) -> Callable[[Engine], list[list[tuple[int, int]]]]:
    """Which words of each hit's text were asked for, as the command line marks them."""

    def work(engine: Engine) -> list[list[tuple[int, int]]]:
        from trivet.surfaces.cli.marks import Marker

        alike = any(part.leg == "trigram" for hit in found.hits for part in hit.contributions)
        marker = Marker(found.query, engine.language, alike)
        return [[(start, end) for start, end, _ in marker.spans(hit.text)] for hit in found.hits]

    return work


def _settled(where: Any, engine: Engine) -> Any:
    """A filter may depend on what the collection knows (``seeds``)."""
    return [part(engine) if callable(part) else part for part in where] if isinstance(where, list) else where


@router.post(f"{COLLECTION}/search", responses=responses(answers.Found, *NAMED, *BODY), summary="Ask a question")
async def search(name: Name, body: bodies.Ask, bridge: Asked, caller: Asking) -> Response:
    """The best documents by words and by meaning. Pages (`offset`) never repeat or skip a hit."""
    return await ask(bridge, caller, name, given(body))


@router.get(f"{COLLECTION}/search", responses=responses(answers.Found, *NAMED), summary="Ask a question by its address")
async def search_by_address(
    name: Name,
    bridge: Asked,
    caller: Asking,
    q: Annotated[str, Query(description="The question.", examples=["why does the door stick"])],
    k: Annotated[int | None, Query(description="How many hits.")] = None,
    limit: Annotated[int | None, Query(description="The same as k.")] = None,
    offset: Annotated[int, Query(ge=0, le=bodies.MAX_OFFSET)] = 0,
    where: Where = None,
    profile: Annotated[str | None, Query()] = None,
    alpha: Annotated[float | None, Query(description="0: words alone, 1: meaning alone.")] = None,
    fusion: Annotated[str | None, Query()] = None,
    min_relevance: Annotated[float | None, Query()] = None,
    semantic_weight: Annotated[float | None, Query(alias="semanticWeight")] = None,
    keyword_weight: Annotated[float | None, Query(alias="keywordWeight")] = None,
    exclude: Annotated[list[str] | None, Query(description="Not this document. Repeat for more.")] = None,
    as_of: Annotated[str | None, Query(description="Only what was valid at that moment, ISO 8601.")] = None,
    explain: bool = True,
) -> Response:
    overrides = said(
        alpha=alpha,
        fusion=fusion,
        min_relevance=min_relevance,
        dense_weight=semantic_weight,
        lexical_weight=keyword_weight,
    )
    asked = {"query": q, "k": one_of(k, limit), "offset": offset, "where": where, "profile": profile, "as_of": as_of}
    return await ask(bridge, caller, name, {**asked, "overrides": overrides, "exclude": exclude, "explain": explain})


def said(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def one_of(k: int | None, limit: int | None) -> int | None:
    if k is not None and limit is not None and k != limit:
        raise InputError("limit: it is another name for k; give one of the two")
    return k if k is not None else limit


@router.post(
    f"{COLLECTION}/explain",
    responses=responses(answers.Explained, *NAMED, *BODY),
    summary="Why this document, or why not",
)
async def explain(name: Name, body: bodies.Why, bridge: Asked, caller: Asking) -> Response:
    where = shallow(body.where, bridge.config.max_filter_depth)

    def work(engine: Engine) -> dict[str, Any]:
        profile = profile_for(engine, body.profile, body.overrides or {})
        found = engine.explain(body.query, body.id, where=where, profile=profile)
        plain: dict[str, Any] = wire.plain(found)
        return plain

    return reply(await bridge.run(caller, "read", name, work))
