"""Search and explain. A search is a ``POST`` with a body or a ``GET`` with a query string."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from trivet import serialize
from trivet.engine import Engine
from trivet.errors import InputError
from trivet.http import metrics, setting_aliases
from trivet.http.dispatch import CallerAccess
from trivet.http.json_response import degraded, json_response
from trivet.http.request_models import MAX_OFFSET, ExplainBody, SearchBody
from trivet.http.response_models import EXPLAIN_FIELDS, NOT_FOUND, WITH_BODY, Found, responses
from trivet.http.routes.parameters import COLLECTION, Access, Name, Where, checked_filter, fields_set
from trivet.profile import Profile, named
from trivet.types import Explanation, Results

router = APIRouter(tags=["search"])


def profile_for(engine: Engine, name: str | None, changes: dict[str, Any]) -> Profile:
    """Return the profile of a request; the profile checks its overrides."""
    start = named(name) if name is not None else engine.settings
    return start.with_changes(setting_aliases.canonical(changes)) if changes else start


def _body(found: Results, explain: bool, full: bool, keys: Collection[str]) -> dict[str, Any]:
    body = {**serialize.results(found, full, keys), "degraded": degraded(found.degraded)}
    if not explain:
        del body["trace"]
    if not explain and not keys:
        for hit, name in product(body["hits"], EXPLAIN_FIELDS):
            del hit[name]
    return body


async def respond(access: CallerAccess, collection: str, request: dict[str, Any]) -> Response:
    """Run one search, count it in the metrics and return the response."""
    overrides = dict(request.get("overrides") or {})
    if request.get("k") is not None:
        overrides["k"] = request["k"]
    keys = serialize.check_keys(request.get("fields") or ())
    where = checked_filter(request.get("where"), access.config.max_filter_depth)
    options = {
        "exclude": request.get("exclude") or (),
        "offset": request.get("offset") or 0,
        **{name: request[name] for name in ("vector", "at", "as_of") if request.get(name) is not None},
    }

    def work(engine: Engine) -> Results:
        profile = profile_for(engine, request.get("profile"), overrides)
        return engine.search(request["query"], where=_resolved(where, engine), profile=profile, **options)

    found = await access.run("read", collection, work)
    metrics.count(found)
    body = _body(found, request.get("explain", True), request.get("full", False), keys)
    access.dispatcher.recent.add(collection, found, body["degraded"])
    if request.get("marks"):
        marks = await access.run("read", collection, lambda engine: _marks(found, engine))
        for hit, spans in zip(body["hits"], marks, strict=True):
            hit["marks"] = spans
    return json_response(body)


def _marks(found: Results, engine: Engine) -> list[list[tuple[int, int]]]:
    """Return the positions in each hit's text that match words of the query."""
    from trivet.text.highlight import Marker

    trigram = any(part.leg == "trigram" for hit in found.hits for part in hit.contributions)
    marker = Marker(found.query, engine.language, trigram)
    return [[(start, end) for start, end, _ in marker.spans(hit.text)] for hit in found.hits]


def _resolved(where: Any, engine: Engine) -> Any:
    """Return the filter; its parts may depend on the fields of the collection (``compatibility``)."""
    return [part(engine) if callable(part) else part for part in where] if isinstance(where, list) else where


@router.post(f"{COLLECTION}/search", responses=responses(Found, *NOT_FOUND, *WITH_BODY), summary="Search")
async def search(name: Name, body: SearchBody, access: Access) -> Response:
    """The best documents by all legs of the profile. Pages (`offset`) never repeat or skip a hit."""
    return await respond(access, name, fields_set(body))


@router.get(f"{COLLECTION}/search", responses=responses(Found, *NOT_FOUND), summary="Search with a query string")
async def search_by_query_string(
    name: Name,
    access: Access,
    q: Annotated[str, Query(description="The query.", examples=["why does the door stick"])],
    k: Annotated[int | None, Query(description="Number of hits.")] = None,
    limit: Annotated[int | None, Query(description="Another name of k.")] = None,
    offset: Annotated[int, Query(ge=0, le=MAX_OFFSET)] = 0,
    where: Where = None,
    profile: Annotated[str | None, Query()] = None,
    alpha: Annotated[float | None, Query(description="0: lexical leg only, 1: dense leg only.")] = None,
    fusion: Annotated[str | None, Query()] = None,
    min_relevance: Annotated[float | None, Query()] = None,
    semantic_weight: Annotated[float | None, Query(alias="semanticWeight")] = None,
    keyword_weight: Annotated[float | None, Query(alias="keywordWeight")] = None,
    exclude: Annotated[list[str] | None, Query(description="Leave out this document. Repeat it for more.")] = None,
    as_of: Annotated[str | None, Query(description="Only what was valid at that moment, ISO 8601.")] = None,
    explain: bool = True,
    full: Annotated[bool, Query(description="Include the whole text of each document.")] = False,
    fields: Annotated[
        str | None, Query(description="Only these keys of a hit, separated by commas.", examples=["id,relevance,text"])
    ] = None,
) -> Response:
    overrides = without_none(
        alpha=alpha,
        fusion=fusion,
        min_relevance=min_relevance,
        dense_weight=semantic_weight,
        lexical_weight=keyword_weight,
    )
    request = {
        "query": q,
        "k": hit_count(k, limit),
        "offset": offset,
        "where": where,
        "profile": profile,
        "as_of": as_of,
        "exclude": exclude,
        "explain": explain,
        "full": full,
        "fields": [key.strip() for key in fields.split(",")] if fields else None,
    }
    return await respond(access, name, {**request, "overrides": overrides})


def without_none(**values: Any) -> dict[str, Any]:
    """Return the values that were given."""
    return {name: value for name, value in values.items() if value is not None}


def hit_count(k: int | None, limit: int | None) -> int | None:
    """Return the number of hits under either name; refuse two different numbers."""
    if k is not None and limit is not None and k != limit:
        raise InputError("limit: another name of k, which is given too; give one of the two")
    return k if k is not None else limit


@router.post(
    f"{COLLECTION}/explain",
    responses=responses(Explanation, *NOT_FOUND, *WITH_BODY),
    summary="Explain the rank of a document",
)
async def explain(name: Name, body: ExplainBody, access: Access) -> Response:
    where = checked_filter(body.where, access.config.max_filter_depth)

    def work(engine: Engine) -> dict[str, Any]:
        profile = profile_for(engine, body.profile, body.overrides or {})
        found: dict[str, Any] = serialize.plain(engine.explain(body.query, body.id, where=where, profile=profile))
        return found

    return json_response(await access.run("read", name, work))
