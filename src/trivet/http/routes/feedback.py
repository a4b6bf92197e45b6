"""Feedback on hits, and the same feedback as judgements (qrels)."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import Response

from trivet import serialize
from trivet.http.json_response import json_response
from trivet.http.request_models import NewFeedback
from trivet.http.response_models import NOT_FOUND, WITH_BODY, DeletedFeedback, Feedbacks, responses
from trivet.http.routes.parameters import COLLECTION, Access, Name
from trivet.types import Feedback

router = APIRouter(tags=["feedback"])
FEEDBACK = f"{COLLECTION}/feedback"


class JudgedQuery(BaseModel):
    id: str
    text: str
    grades: dict[str, int]


class Qrels(BaseModel):
    topics: list[JudgedQuery]
    needed: int
    few: int
    notes: list[str]


@router.post(
    FEEDBACK,
    status_code=201,
    responses=responses(Feedback, *NOT_FOUND, *WITH_BODY, status=201),
    summary="Give feedback on a hit",
)
async def give_feedback(name: Name, body: NewFeedback, access: Access) -> Response:
    """A later feedback on the same query and document replaces the earlier one."""
    given = await access.run("write", name, lambda engine: engine.feedback(body.query, body.id, body.good))
    return json_response(serialize.plain(given), 201)


@router.get(FEEDBACK, responses=responses(Feedbacks, *NOT_FOUND), summary="List all feedback")
async def list_feedback(name: Name, access: Access) -> Response:
    given = await access.run("read", name, lambda engine: engine.feedbacks())
    return json_response({"feedback": serialize.plain(given)})


@router.delete(FEEDBACK, responses=responses(DeletedFeedback, *NOT_FOUND), summary="Delete feedback")
async def delete_feedback(
    name: Name,
    access: Access,
    query: Annotated[str | None, Query(description="Only feedback on this query.")] = None,
    id: Annotated[str | None, Query(description="Only feedback on this document.")] = None,
) -> Response:
    """Without `query` and `id`, all feedback of the collection is deleted."""
    count = await access.run("write", name, lambda engine: engine.forget_feedback(query, id))
    return json_response({"forgotten": count})


_QRELS = responses(Qrels, *NOT_FOUND)
_QRELS[200]["content"] = {"text/plain": {"schema": {"type": "string"}, "example": "3f2a9c0d11e2 0 door-7 1\n"}}


@router.get(f"{COLLECTION}/qrels", responses=_QRELS, summary="Get the feedback as judgements (qrels)")
async def get_qrels(
    name: Name,
    access: Access,
    format: Annotated[Literal["json", "trec"], Query(description="trec: a qrels file.")] = "json",
) -> Response:
    """Good is grade 1, bad is grade 0. Feedback on deleted documents and queries without a good document are left out;
    `notes` says how many. Tuning needs at least `needed` queries, and `few` to change a setting."""
    from trivet.evaluate.feedback import FEWEST, judged, topic_id
    from trivet.evaluate.significance import FEW

    grades, notes = await access.run("read", name, judged)
    if format == "trec":
        lines = [f"{topic_id(text)} 0 {id} {grade}\n" for text, found in grades.items() for id, grade in found.items()]
        return Response("".join(lines).encode("utf-8", "replace"), media_type="text/plain; charset=utf-8")
    topics = [{"id": topic_id(text), "text": text, "grades": found} for text, found in grades.items()]
    return json_response({"topics": topics, "needed": FEWEST, "few": FEW, "notes": notes})
