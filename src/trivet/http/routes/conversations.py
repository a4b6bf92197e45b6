"""Conversations (``trivet.chat``): projects, sessions, episodes, recall, context and the proxied chat.

The configuration sets the chat endpoint; a request cannot. Waiting for the model does not occupy a thread of the
dispatcher's pool, and is limited by ``max_chats``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from trivet import serialize
from trivet.chat.context import Block
from trivet.chat.episodes import RECENT, Chat, Episode, Project, Session, episode_of
from trivet.chat.proxy import Proxy, Reply
from trivet.engine import Engine
from trivet.http import middleware
from trivet.http.dispatch import CallerAccess, Dispatcher
from trivet.http.json_response import degraded, json_response, to_bytes, with_degraded
from trivet.http.request_models import Body, Moment
from trivet.http.response_models import NOT_FOUND, WITH_BODY, Deleted, responses
from trivet.http.routes.parameters import Access, OtherCollection
from trivet.types import Contribution, Degraded

T = TypeVar("T")

MAX_PAGE = 1_000  # episodes
MAX_HITS = 200
MAX_BUDGET = 1_000_000  # tokens
EVENT_STREAM = "text/event-stream"

router = APIRouter(tags=["conversations"])

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
#: An id that can be part of a path.
Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$")]
Id = Annotated[str, Path(description="The session's id.", examples=["5f0c1d2e3a4b5c6d"])]
QueryText = Annotated[str, Query(min_length=1, description="The query.", examples=["why does the door stick?"])]


class NewProject(Body):
    name: Text = Field(examples=["heron"])


class NewSession(Body):
    project: str | None = Field(None, description="A project's id or name.", examples=["heron"])
    title: str = Field("", examples=["the greenhouse door"])
    id: Name | None = Field(None, description="Your own id; if a session has it, that session is returned.")


class NewEpisode(Body):
    user: Text = Field(examples=["Why does the door stick?"])
    answer: str = Field("", examples=["It swells when it rains."])
    at: Moment | None = None


class NewMessage(Body):
    message: Text = Field(examples=["Why does the door stick?"])
    stream: bool = Field(False, description="Stream server-sent events instead of one JSON object.")


@dataclass(frozen=True, slots=True)
class Recalled:
    rank: int
    score: float
    relevance: float
    episode: Episode
    contributions: tuple[Contribution, ...]


@dataclass(frozen=True, slots=True)
class Recall:
    """Episodes found for a query."""

    query: str
    profile: str
    hits: tuple[Recalled, ...]
    degraded: tuple[Degraded, ...]


async def _run(access: CallerAccess, scope: str, collection: str | None, work: Callable[[Chat], T]) -> T:
    """Run ``work`` with the conversations of a collection."""
    return await access.run(scope, collection or access.config.collection, lambda engine: work(Chat(engine)))


@router.post(
    "/projects",
    status_code=201,
    responses=responses(Project, *NOT_FOUND, *WITH_BODY, 409, status=201),
    summary="Create a project",
)
async def create_project(body: NewProject, access: Access, collection: OtherCollection = None) -> Response:
    """Return the project of that name; it is created if it does not exist."""
    made = await _run(access, "write", collection, lambda chat: chat.project(body.name))
    return json_response(serialize.plain(made), 201)


@router.get("/projects", responses=responses(list[Project], *NOT_FOUND), summary="List the projects")
async def list_projects(access: Access, collection: OtherCollection = None) -> Response:
    return json_response(serialize.plain(await _run(access, "read", collection, lambda chat: chat.projects())))


@router.post(
    "/sessions",
    status_code=201,
    responses=responses(Session, *NOT_FOUND, *WITH_BODY, 409, status=201),
    summary="Start a session",
)
async def create_session(body: NewSession, access: Access, collection: OtherCollection = None) -> Response:
    def work(chat: Chat) -> Session:
        return chat.session(body.project, body.title, id=body.id)

    return json_response(serialize.plain(await _run(access, "write", collection, work)), 201)


@router.get("/sessions", responses=responses(list[Session], *NOT_FOUND), summary="List the sessions")
async def list_sessions(
    access: Access,
    project: Annotated[str | None, Query(min_length=1, description="A project's id or name.")] = None,
    collection: OtherCollection = None,
) -> Response:
    return json_response(serialize.plain(await _run(access, "read", collection, lambda chat: chat.sessions(project))))


@router.get("/sessions/{id}", responses=responses(Session, *NOT_FOUND), summary="Get a session")
async def get_session(id: Id, access: Access, collection: OtherCollection = None) -> Response:
    return json_response(serialize.plain(await _run(access, "read", collection, lambda chat: chat.find_session(id))))


@router.delete("/sessions/{id}", responses=responses(Deleted, *NOT_FOUND), summary="Delete a session and its episodes")
async def delete_session(id: Id, access: Access, collection: OtherCollection = None) -> Response:
    return json_response({"deleted": await _run(access, "write", collection, lambda chat: chat.forget(id))})


@router.get(
    "/sessions/{id}/episodes",
    responses=responses(list[Episode], *NOT_FOUND),
    summary="List the latest episodes, in order of time",
)
async def list_episodes(
    id: Id,
    access: Access,
    limit: Annotated[int, Query(ge=0, le=MAX_PAGE)] = 50,
    before: Annotated[str | None, Query(min_length=1, description="The first id of the following page.")] = None,
    collection: OtherCollection = None,
) -> Response:
    found = await _run(access, "read", collection, lambda chat: chat.episodes(id, limit, before))
    return json_response(serialize.plain(found))


@router.post(
    "/sessions/{id}/episodes",
    status_code=201,
    responses=responses(Episode, *NOT_FOUND, *WITH_BODY, status=201),
    summary="Add an episode",
)
async def add_episode(id: Id, body: NewEpisode, access: Access, collection: OtherCollection = None) -> Response:
    def work(chat: Chat) -> Episode:
        return chat.add(id, body.user, body.answer, body.at)

    return json_response(serialize.plain(await _run(access, "write", collection, work)), 201)


@router.get(
    "/sessions/{id}/search",
    responses=responses(Recall, *NOT_FOUND),
    summary="Search the episodes of a session or project",
)
async def search_session(
    id: Id,
    q: QueryText,
    access: Access,
    k: Annotated[int | None, Query(ge=1, le=MAX_HITS)] = None,
    scope: Annotated[
        str, Query(description="`project`: all sessions of the project; `session`: this one.")
    ] = "project",
    recent: Annotated[
        int, Query(ge=0, le=MAX_PAGE, description="Leave out this many of the latest episodes.")
    ] = RECENT,
    collection: OtherCollection = None,
) -> Response:
    found = await _run(access, "read", collection, lambda chat: chat.recall(id, q, k, scope, recent=recent))
    hits = [Recalled(hit.rank, hit.score, hit.relevance, episode_of(hit.document), hit.contributions) for hit in found]
    return json_response(with_degraded(Recall(found.query, found.profile, tuple(hits), found.degraded)))


@router.get("/sessions/{id}/context", responses=responses(Block, *NOT_FOUND), summary="Get the context for the model")
async def get_context(
    id: Id,
    q: QueryText,
    access: Access,
    budget: Annotated[int | None, Query(ge=0, le=MAX_BUDGET, description="Tokens; as configured if left out.")] = None,
    collection: OtherCollection = None,
) -> Response:
    """The recent episodes, then recalled ones, all complete, within a budget of tokens and marked as data."""

    def work(chat: Chat) -> Block:
        return Proxy(chat, access.dispatcher.endpoint).context(id, q, budget)

    return json_response(serialize.plain(await _run(access, "read", collection, work)))


_CHAT = responses(Reply, *NOT_FOUND, *WITH_BODY, 502)
#: The schema of one event; `data` is JSON that depends on the event.
_EVENT = {
    "type": "object",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}
_CHAT[200]["content"] = {EVENT_STREAM: {"schema": _EVENT}}


@router.post("/sessions/{id}/chat", responses=_CHAT, summary="Send a message to the configured model")
async def send_message(
    id: Id, body: NewMessage, request: Request, access: Access, collection: OtherCollection = None
) -> Response:
    """Returns the episode with its context, or streams the events `context`, `delta` …, then `done` or `error`."""

    def begin(engine: Engine) -> tuple[Proxy, Reply]:
        proxy = Proxy(Chat(engine), access.dispatcher.endpoint)
        return proxy, proxy.begin(id, body.message)

    with ExitStack() as held:
        held.enter_context(access.dispatcher.chat_slot())
        proxy, begun = await access.run("write", collection or access.config.collection, begin)
        if not body.stream:
            return json_response(with_degraded(await access.dispatcher.in_own_thread(lambda: proxy.answered(begun))))
        stream = ReplyStream(proxy, begun, access.dispatcher)
        first = await stream.next()
        if isinstance(first, Exception):  # a status code for an endpoint that is down, not a broken stream
            raise first
        return EventResponse(stream.events(first, request.state.request_id), stream, held.pop_all())


class ReplyStream:
    """The pieces of a reply, handed from the thread that reads them to the event loop."""

    def __init__(self, proxy: Proxy, begun: Reply, dispatcher: Dispatcher) -> None:
        self._begun = begun
        self._stopped = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[Reply | str | Exception] = asyncio.Queue()
        dispatcher.in_own_thread(lambda: self._read(proxy))

    def _read(self, proxy: Proxy) -> None:
        pieces = proxy.pieces(self._begun)
        try:
            for piece in pieces:
                self._put(piece)
                if self._stopped.is_set():
                    pieces.close()  # type: ignore[attr-defined]  # saves the pieces so far
        except Exception as error:
            self._put(error)

    def _put(self, piece: Reply | str | Exception) -> None:
        with suppress(RuntimeError):  # the event loop has ended; the reply is saved all the same
            self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)

    async def next(self) -> Reply | str | Exception:
        return await self._pieces.get()

    def stop(self) -> None:
        self._stopped.set()

    async def events(self, piece: Reply | str | Exception, request_id: str) -> AsyncIterator[bytes]:
        context = {**asdict(self._begun.context), "episode": self._begun.episode.id}
        yield _event("context", {**context, "degraded": degraded(self._begun.degraded)})
        while isinstance(piece, str):
            yield _event("delta", {"text": piece})
            piece = await self.next()
        if isinstance(piece, Exception):
            yield _event("error", middleware.problem_of(piece).body(request_id))
        else:
            yield _event("done", {"episode": serialize.plain(piece.episode)})


def _event(name: str, data: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + to_bytes(data) + b"\n\n"


class EventResponse(StreamingResponse):
    """Server-sent events. A disconnect stops the stream, so that the episode is saved as partial."""

    def __init__(self, events: AsyncIterator[bytes], stream: ReplyStream, held: ExitStack) -> None:
        super().__init__(events, media_type=EVENT_STREAM, headers={"Cache-Control": "no-store"})
        self._stream, self._held = stream, held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.stop()
            self._held.close()
