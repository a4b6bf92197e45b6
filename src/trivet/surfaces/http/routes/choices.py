"""Who am I here, and what is there to choose from? (what a page or a client needs before it can offer anything)"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from trivet._version import __version__
from trivet.filters import mapping
from trivet.fusion import FUSIONS
from trivet.fusion.normalize import NORMALIZERS
from trivet.fusion.weighing import WEIGHINGS
from trivet.profile import LEGS, MATCHES, MAX_WEIGHT
from trivet.rerank import describe
from trivet.surfaces import wire
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.shared import Asked, responses

router = APIRouter(tags=["operation"])


class WhoAsks(BaseModel):
    key: str | None
    scope: str
    collections: list[str] | None
    bound: bool
    where: dict[str, Any] | None
    collection: str
    version: str
    workers: int
    evaluations: bool


class Choices(BaseModel):
    legs: list[str]
    fusions: list[str]
    normalizers: list[str]
    weighings: list[str]
    matches: list[str]
    rerankers: dict[str, dict[str, Any]]
    max_weight: float


@router.get("/v1/caller", responses=responses(WhoAsks), summary="Who am I, and what may I do?")
async def who(bridge: Asked, caller: Asking) -> Response:
    """`key` and `collections` are null where no key is needed, and where it holds for all collections; `where` is the
    filter that the key is bound to, null for all documents."""
    await bridge.listed(caller, lambda: None)
    key = caller.key
    within = key.where if key else None
    return reply(
        {
            "key": key.name if key else None,
            "scope": key.scope if key else "admin",
            "collections": list(key.collections) if key and key.collections else None,
            "bound": within is not None,
            "where": mapping(within) if within is not None else None,
            "collection": bridge.config.collection,
            "version": __version__,
            "workers": bridge.config.workers,
            "evaluations": bool(bridge.config.evaluations),
        }
    )


@router.get("/v1/choices", responses=responses(Choices), summary="What can a profile be made of?")
async def choices(bridge: Asked, caller: Asking) -> Response:
    """The legs, fusions, weighings and rerankers this service knows; of a reranker its options, each with its
    default and what is allowed."""
    await bridge.listed(caller, lambda: None)
    known = {
        name: {option: {**wire.plain(about), "allowed": about.allowed} for option, about in options.items()}
        for name, options in describe().items()
    }
    found = {"legs": LEGS, "fusions": FUSIONS, "normalizers": NORMALIZERS, "weighings": WEIGHINGS, "matches": MATCHES}
    return reply({**{name: list(item) for name, item in found.items()}, "rerankers": known, "max_weight": MAX_WEIGHT})
