"""Information that a client or a page needs before it offers anything: the caller's rights and the profile options."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from trivet import __version__, serialize
from trivet.filters import mapping
from trivet.fusion import FUSIONS, settings_of
from trivet.fusion.normalize import NORMALIZERS
from trivet.fusion.weighing import WEIGHINGS
from trivet.http.json_response import json_response
from trivet.http.response_models import responses
from trivet.http.routes.parameters import Access
from trivet.legs import LEGS
from trivet.profile import MATCHES, MAX_WEIGHT
from trivet.rerank import describe

router = APIRouter(tags=["operation"])


class CallerInfo(BaseModel):
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
    fusion_settings: dict[str, list[str]]
    normalizers: list[str]
    weighings: list[str]
    matches: list[str]
    rerankers: dict[str, dict[str, Any]]
    max_weight: float


@router.get("/v1/caller", responses=responses(CallerInfo), summary="Get the caller's key and rights")
async def get_caller(access: Access) -> Response:
    """`key` is null if no key is needed, `collections` is null if the key is valid for all collections, `where` (the
    filter that the key is bound to) is null if it allows all documents."""
    await access.authorize()
    key, config = access.caller.key, access.config
    where = key.where if key else None
    return json_response(
        {
            "key": key.name if key else None,
            "scope": key.scope if key else "admin",
            "collections": list(key.collections) if key and key.collections else None,
            "bound": where is not None,
            "where": mapping(where) if where is not None else None,
            "collection": config.collection,
            "version": __version__,
            "workers": config.workers,
            "evaluations": bool(config.evaluations),
        }
    )


@router.get("/v1/choices", responses=responses(Choices), summary="List the options of a profile")
async def list_choices(access: Access) -> Response:
    """The legs, fusions, normalizers, weighings and rerankers, and each reranker's options with default and range."""
    await access.authorize()
    rerankers = {
        name: {option: {**serialize.plain(about), "allowed": about.allowed} for option, about in options.items()}
        for name, options in describe().items()
    }
    listed = {
        "legs": LEGS.names(),
        "fusions": FUSIONS.names(),
        "normalizers": NORMALIZERS.names(),
        "weighings": WEIGHINGS.names(),
        "matches": list(MATCHES),
    }
    read = {name: settings_of(name) for name, _ in FUSIONS.items()}  # a plug-in that cannot be imported is left out
    return json_response({**listed, "fusion_settings": read, "rerankers": rerankers, "max_weight": MAX_WEIGHT})
