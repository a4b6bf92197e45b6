"""How does an application talk over HTTP?

A router for any FastAPI app: projects, sessions, episodes, recall, context and the proxied chat. Which engine, and who
may ask it, is the app's business; which endpoint answers is the configuration's, never a request's. Handlers are plain
functions, so FastAPI runs them in its threads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import chain
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive, Scope, Send

from trivet.chat.context import Block
from trivet.chat.endpoint import ChatSettings, Endpoint
from trivet.chat.episodes import RECENT, Chat, Episode, Project, Session, episode_of
from trivet.chat.errors import ChatError, without_paths
from trivet.chat.proxy import Proxy, Reply
from trivet.engine import Engine
from trivet.types import Contribution, Degraded

MAX_PAGE = 1_000  # episodes
MAX_HITS = 200
MAX_BUDGET = 1_000_000  # tokens
EVENT_STREAM = "text/event-stream"
PROBLEM = "application/problem+json"

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
#: An id that can stand in a path.
Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$")]
Id = Annotated[str, Path(description="The session's id.", examples=["5f0c1d2e3a4b5c6d"])]
Collection = Annotated[str | None, Query(description="Another collection than the server's own.", min_length=1)]
Asked = Annotated[str, Query(min_length=1, description="The question.", examples=["why does the door stick?"])]
Budget = Annotated[int | None, Query(ge=0, le=MAX_BUDGET, description="Tokens; the configured number otherwise.")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewProject(_Body):
    name: Text = Field(examples=["heron"])


class NewSession(_Body):
    project: str | None = Field(None, description="A project's id or name.", examples=["heron"])
    title: str = Field("", examples=["the greenhouse door"])
    id: Name | None = Field(None, description="Of your own; with one that is there, that session is answered.")


class NewEpisode(_Body):
    user: Text = Field(examples=["Why does the door stick?"])
    answer: str = Field("", examples=["It swells when it rains."])
    at: datetime | None = None


class NewMessage(_Body):
    message: Text = Field(examples=["Why does the door stick?"])
    stream: bool = Field(False, description="Server-sent events instead of one JSON object.")


class ChatProblem(BaseModel):
    """RFC 9457; ``episode`` keeps what was said."""

    type: str
    title: str
    status: int
    detail: str
    episode: str | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    rank: int
    score: float
    relevance: float
    episode: Episode
    contributions: tuple[Contribution, ...]


@dataclass(frozen=True, slots=True)
class Recall:
    """What was found, by which profile, and what did not take part."""

    query: str
    profile: str
    hits: tuple[Recalled, ...]
    degraded: tuple[Degraded, ...]


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    always = (400, 401, 403, 422, 429, 500, 503, 504)
    return {status: {"model": ChatProblem, "description": "A problem"} for status in (*always, *statuses)}


def router(engine_for: Callable[..., Engine], settings: ChatSettings | None = None) -> APIRouter:
    """``engine_for(collection)`` is the engine of a collection, or of the server's own for None."""
    endpoint = Endpoint(ChatSettings.resolve() if settings is None else settings)
    routes = APIRouter(tags=["conversations"])

    def chat_of(collection: Collection = None) -> Chat:
        return Chat(engine_for(collection))

    here = Depends(chat_of)

    @routes.post("/projects", status_code=201, responses=_problems(404, 413, 415), summary="Make a project")
    def make_project(body: NewProject, chat: Chat = here) -> Project:
        """The one of that name, made if it is new."""
        return chat.project(body.name)

    @routes.get("/projects", responses=_problems(404), summary="List the projects")
    def list_projects(chat: Chat = here) -> list[Project]:
        return chat.projects()

    @routes.post("/sessions", status_code=201, responses=_problems(404, 413, 415), summary="Begin a session")
    def make_session(body: NewSession, chat: Chat = here) -> Session:
        return chat.session(body.project, body.title, id=body.id)

    @routes.get("/sessions", responses=_problems(404), summary="List the sessions")
    def list_sessions(
        project: Annotated[str | None, Query(min_length=1, description="A project's id or name.")] = None,
        chat: Chat = here,
    ) -> list[Session]:
        return chat.sessions(project)

    @routes.get("/sessions/{id}", responses=_problems(404), summary="A session")
    def get_session(id: Id, chat: Chat = here) -> Session:
        return chat.find_session(id)

    @routes.delete("/sessions/{id}", responses=_problems(404), summary="Forget a session with its episodes")
    def forget_session(id: Id, chat: Chat = here) -> dict[str, int]:
        return {"deleted": chat.forget(id)}

    @routes.get("/sessions/{id}/episodes", responses=_problems(404), summary="The latest episodes, in order of time")
    def list_episodes(
        id: Id,
        limit: Annotated[int, Query(ge=0, le=MAX_PAGE)] = 50,
        before: Annotated[str | None, Query(min_length=1, description="The first id of the page after.")] = None,
        chat: Chat = here,
    ) -> list[Episode]:
        return chat.episodes(id, limit, before)

    @routes.post(
        "/sessions/{id}/episodes", status_code=201, responses=_problems(404, 413, 415), summary="Keep an episode"
    )
    def add_episode(id: Id, body: NewEpisode, chat: Chat = here) -> Episode:
        return chat.add(id, body.user, body.answer, body.at)

    @routes.get("/sessions/{id}/search", responses=_problems(404), summary="Episodes that answer a question")
    def search_session(
        id: Id,
        q: Asked,
        k: Annotated[int | None, Query(ge=1, le=MAX_HITS)] = None,
        scope: Annotated[str, Query(description="`project`: every session of its project; `session`.")] = "project",
        recent: Annotated[int, Query(ge=0, le=MAX_PAGE, description="The latest ones, left out.")] = RECENT,
        chat: Chat = here,
    ) -> Recall:
        found = chat.recall(id, q, k, scope, recent=recent)
        hits = [
            Recalled(hit.rank, hit.score, hit.relevance, episode_of(hit.document), hit.contributions) for hit in found
        ]
        return Recall(found.query, found.profile, tuple(hits), _shown(found.degraded))

    @routes.get("/sessions/{id}/context", responses=_problems(404), summary="What a model would be shown")
    def context(id: Id, q: Asked, budget: Budget = None, chat: Chat = here) -> Block:
        """The recent episodes, then recalled ones, whole, under a budget, fenced as data."""
        return Proxy(chat, endpoint).context(id, q, budget)

    @routes.post(
        "/sessions/{id}/chat",
        response_model=Reply,
        responses={
            **_problems(404, 413, 415, 502),
            200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}}}, "description": "The answer"},
        },
        summary="Ask the configured model",
    )
    def ask(id: Id, body: NewMessage, request: Request, chat: Chat = here) -> Any:
        """The episode with its context; or the events `context`, `delta` …, then `done` or `error`."""
        proxy = Proxy(chat, endpoint)
        try:
            return _streamed(proxy, id, body.message) if body.stream else _told(proxy.ask(id, body.message))
        except ChatError as error:
            body_ = _problem(error, getattr(request.state, "request_id", None))
            return JSONResponse(body_, error.status, media_type=PROBLEM)

    return routes


def _told(reply: Reply) -> dict[str, Any]:
    return {"episode": reply.episode, "context": reply.context, "degraded": _shown(reply.degraded)}


def _shown(degraded: tuple[Degraded, ...]) -> tuple[Degraded, ...]:
    """A reason may quote a path of a model: not to the world."""
    return tuple(Degraded(item.part, without_paths(item.reason)) for item in degraded)


def _problem(error: ChatError, request_id: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": f"https://trivet.invalid/problems/chat-{error.kind}",
        "title": "The chat endpoint gave no whole answer",
        "status": error.status,
        "detail": str(error),
        "episode": error.episode,
    }
    return {**found, "request_id": request_id} if request_id else found


# --- server-sent events -----------------------------------------------------------------------------------------------


def _streamed(proxy: Proxy, session: str, message: str) -> Response:
    """The first piece is waited for, so that an endpoint that is down is a status and not a broken stream."""
    stream = proxy.stream(session, message)
    begun = next(stream)
    assert isinstance(begun, Reply)
    first = next(stream)
    return _Events(stream, _events(begun, first, stream))


def _events(begun: Reply, first: Reply | str, stream: Iterator[Reply | str]) -> Iterator[bytes]:
    yield _event("context", {**asdict(begun.context), "episode": begun.episode.id, "degraded": _shown(begun.degraded)})
    try:
        for piece in chain((first,), stream):
            yield _piece(piece)
    except ChatError as error:
        yield _event("error", _problem(error))


def _piece(piece: Reply | str) -> bytes:
    return _event("delta", {"text": piece}) if isinstance(piece, str) else _event("done", {"episode": piece.episode})


def _event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(jsonable_encoder(data))}\n\n".encode()


class _Events(StreamingResponse):
    """Closes its stream however it ends: a client that goes away leaves a partial episode, not an open one."""

    def __init__(self, stream: Any, events: Any) -> None:
        super().__init__(events, media_type=EVENT_STREAM, headers={"Cache-Control": "no-store"})
        self._closing = (events, stream)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                for each in self._closing:
                    await anyio.to_thread.run_sync(each.close)
