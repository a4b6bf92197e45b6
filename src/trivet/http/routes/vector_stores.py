"""Vector stores as OpenAI's API has them: each is a collection, and each of its files one document or more."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from trivet.engine import Engine
from trivet.http import metrics, uploads
from trivet.http.access import ANYWHERE
from trivet.http.json_response import degraded, json_response
from trivet.http.openai_filters import translated
from trivet.http.openai_models import (
    DeletedObject,
    FoundContents,
    NewVectorStore,
    NewVectorStoreFile,
    VectorStore,
    VectorStoreFile,
    VectorStoreFiles,
    VectorStores,
    VectorStoreSearch,
)
from trivet.http.problem_details import Refused
from trivet.http.response_models import NOT_FOUND, WITH_BODY, responses
from trivet.http.routes import collections
from trivet.http.routes.files import After, Limit, in_uploads, on_uploads
from trivet.http.routes.parameters import Access, Id, Name
from trivet.integrations.engine import lenient
from trivet.types import Document, Hit, Results

router = APIRouter(tags=["openai"])
STORES, STORE = "/v1/vector_stores", "/v1/vector_stores/{collection}"
FILES, FILE = f"{STORE}/files", f"{STORE}/files/{{id:path}}"


def _store(engine: Engine) -> dict[str, Any]:
    stats = engine.stats()
    counts = {"in_progress": 0, "failed": 0, "cancelled": 0, "completed": stats.documents, "total": stats.documents}
    return {
        "id": engine.name,
        "object": "vector_store",
        "name": engine.name,
        "created_at": 0,
        "status": "in_progress" if stats.pending else "completed",
        "usage_bytes": 0,
        "file_counts": counts,
        "metadata": {},
    }


def _file(document: Document, store: str) -> dict[str, Any]:
    return {
        "id": document.id,
        "object": "vector_store.file",
        "vector_store_id": store,
        "created_at": uploads.seconds(document),
        "status": "completed",
        "usage_bytes": uploads.size(document),
        "last_error": None,
        "attributes": uploads.attributes(document),
    }


def _found(hit: Hit) -> dict[str, Any]:
    return {
        "file_id": uploads.file_id(hit.document),
        "filename": uploads.filename(hit.document),
        "score": hit.relevance,
        "attributes": uploads.attributes(hit.document),
        "content": [{"type": "text", "text": hit.text}],
    }


@router.post(STORES, responses=responses(VectorStore, 404, 409, *WITH_BODY), summary="Create a vector store")
async def create_vector_store(body: NewVectorStore, access: Access) -> Response:
    name = body.name if body.name is not None else f"vs_{secrets.token_hex(8)}"

    def work() -> dict[str, Any]:
        if name in access.dispatcher.engines.names():
            raise Refused("conflict", f"name: there is a collection {name!r} already; choose another name", "name")
        files = [in_uploads(access, partial(uploads.documents, id=id), None) for id in body.file_ids or ()]
        engine, _ = access.dispatcher.engines.create(name)
        for documents in files:
            uploads.attach(documents, engine, {})
        return _store(engine)

    return json_response(await access.run_on_store("admin", work, name))


@router.get(STORES, responses=responses(VectorStores), summary="List the vector stores")
async def list_vector_stores(access: Access) -> Response:
    """Every collection that the key may see, in one page; that of the uploaded files is left out."""

    def work() -> list[dict[str, Any]]:
        key = access.caller.key
        names = [name for name in access.dispatcher.engines.names() if key is None or key.sees(name)]
        where = key.where if key else None
        return [access.dispatcher.call(name, _store, where) for name in names if name != uploads.COLLECTION]

    found = await access.resume("read", ANYWHERE, work)
    return json_response({"object": "list", "data": found, "has_more": False})


@router.get(STORE, responses=responses(VectorStore, *NOT_FOUND), summary="Get a vector store")
async def get_vector_store(name: Name, access: Access) -> Response:
    return json_response(await access.run("read", name, _store))


@router.delete(STORE, responses=responses(DeletedObject, 404, 409), summary="Drop a vector store and its files")
async def drop_vector_store(name: Name, access: Access) -> Response:
    await collections.drop_collection(name, access)
    return json_response({"id": name, "object": "vector_store.deleted", "deleted": True})


@router.post(FILES, responses=responses(VectorStoreFile, *NOT_FOUND, *WITH_BODY, 409), summary="Attach a file")
async def attach_file(name: Name, body: NewVectorStoreFile, access: Access) -> Response:
    """It is found by its words at once, and by its meaning as soon as it is embedded."""
    await access.authorize("write", name)
    documents = await on_uploads(access, "read", lambda engine: uploads.documents(engine, body.file_id))

    def work(engine: Engine) -> Document:
        return uploads.attach(documents, engine, body.attributes or {})

    found = await access.run("write", name, work)
    metrics.WRITTEN.inc(len(documents))
    return json_response(_file(found, name))


@router.get(FILES, responses=responses(VectorStoreFiles, *NOT_FOUND), summary="List the files of a vector store")
async def list_vector_store_files(name: Name, access: Access, after: After = None, limit: Limit = 20) -> Response:
    """In the order in which they were added; documents that were added in another way are among them."""
    found, more = await access.run("read", name, lambda engine: uploads.page(engine, after, limit))
    return json_response({"object": "list", "data": [_file(item, name) for item in found], "has_more": more})


@router.get(FILE, responses=responses(VectorStoreFile, *NOT_FOUND), summary="Get a file of a vector store")
async def get_vector_store_file(name: Name, id: Id, access: Access) -> Response:
    return json_response(_file(await access.run("read", name, lambda engine: uploads.first(engine, id)), name))


@router.delete(FILE, responses=responses(DeletedObject, *NOT_FOUND), summary="Remove a file from a vector store")
async def remove_vector_store_file(name: Name, id: Id, access: Access) -> Response:
    await access.run("write", name, lambda engine: uploads.remove(engine, id))
    return json_response({"id": id, "object": "vector_store.file.deleted", "deleted": True})


@router.post(
    f"{STORE}/search", responses=responses(FoundContents, *NOT_FOUND, *WITH_BODY), summary="Search a vector store"
)
async def search_vector_store(name: Name, body: VectorStoreSearch, access: Access) -> Response:
    """The search of the collection, by its settings. A field that no document has is a condition that is not met."""
    query, *others = [body.query] if isinstance(body.query, str) else body.query
    where = None if body.filters is None else translated(body.filters, access.config.max_filter_depth)
    ranking = body.ranking_options
    options: dict[str, Any] = {"queries": others} if others else {}
    if ranking is not None and ranking.score_threshold is not None:
        options["min_relevance"] = ranking.score_threshold

    def work(engine: Engine) -> Results:
        if where is None:
            return engine.search(query, body.max_num_results, **options)
        return lenient(engine, where, lambda known: engine.search(query, body.max_num_results, known, **options))

    found = await access.run("read", name, work)
    metrics.count(found)
    parts = degraded(found.degraded)
    access.dispatcher.recent.add(name, found, parts)
    page = {"search_query": [query, *others], "data": [_found(hit) for hit in found], "degraded": parts}
    return json_response({"object": "vector_store.search_results.page", **page, "has_more": False, "next_page": None})
