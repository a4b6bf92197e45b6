"""Embeddings by the model of a collection, as OpenAI's API returns them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.responses import Response

from trivet.engine import Engine
from trivet.errors import InputError
from trivet.http.json_response import json_response
from trivet.http.openai_models import Embeddings, NewEmbeddings
from trivet.http.problem_details import Refused
from trivet.http.response_models import NOT_FOUND, WITH_BODY, responses
from trivet.http.routes.parameters import Access, OtherCollection
from trivet.text.passages import estimate_tokens

if TYPE_CHECKING:
    from trivet.types import Vector

router = APIRouter(tags=["openai"])
DEFAULT = "default"  # the name of the model for callers who do not know its id


@router.post("/v1/embeddings", responses=responses(Embeddings, *NOT_FOUND, *WITH_BODY), summary="Embed texts")
async def create_embeddings(body: NewEmbeddings, access: Access, collection: OtherCollection = None) -> Response:
    """The vectors are those of the collection's own model. The number of tokens is an estimate."""
    texts = [body.input] if isinstance(body.input, str) else body.input
    if len(texts) > access.config.max_batch:
        detail = f"input: {len(texts):,} given; at most {access.config.max_batch:,} are allowed, send several requests"
        raise Refused("too-large", detail, "input")

    def work(engine: Engine) -> dict[str, Any]:
        model = _model(engine, body)
        vectors = engine.embed(texts, queries=body.input_type == "query")
        if body.dimensions not in (None, vectors.shape[1]):
            raise InputError(f"dimensions: {body.dimensions} asked for; {model!r} has {vectors.shape[1]}")
        tokens = sum(map(estimate_tokens, texts))
        data = [_embedding(index, vector, body.encoding_format) for index, vector in enumerate(vectors)]
        return {
            "object": "list",
            "data": data,
            "model": model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }

    return json_response(await access.run("read", collection or access.config.collection, work))


def _model(engine: Engine, body: NewEmbeddings) -> str:
    """Return the id of the collection's model; refuse a request for another one, and an empty list of texts."""
    known = engine.stats().model
    if not body.input:
        raise InputError("input: empty; give a text, or a list of texts")
    if known is None:
        raise InputError(f"model: collection {engine.name!r} has no embedding model")
    if body.model not in (DEFAULT, known):
        raise InputError(f"model: {body.model!r} is not the model of {engine.name!r}; write {DEFAULT!r} or {known!r}")
    return known


def _embedding(index: int, vector: Vector, encoding: str) -> dict[str, Any]:
    packed = base64.b64encode(vector.astype("<f4").tobytes()).decode() if encoding == "base64" else vector.tolist()
    return {"object": "embedding", "index": index, "embedding": packed}
