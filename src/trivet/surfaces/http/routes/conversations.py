"""What was said before, and what does the model answer? (``trivet.chat`` over HTTP)

Projects, sessions, episodes, recall, context and the proxied chat. Which endpoint answers is the configuration's, never
a request's. What the engine does goes over the bridge like everything else; waiting for a model does not keep one of
its threads, and is limited by ``max_chats``.
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

from trivet.chat.context import Block
from trivet.chat.episodes import RECENT, Chat, Episode, Project, Session, episode_of
from trivet.chat.proxy import Proxy, Reply
from trivet.engine import Engine
from trivet.surfaces import wire
from trivet.surfaces.http import answers, bodies, gate
from trivet.surfaces.http.access import Asking, Caller
from trivet.surfaces.http.bridge import Bridge
from trivet.surfaces.http.replies import payload, reply
from trivet.surfaces.http.routes.shared import BODY, NAMED, Asked, degraded, responses
from trivet.types import Contribution, Degraded

T = TypeVar("T")

MAX_PAGE = 1_000  # episodes
MAX_HITS = 200
MAX_BUDGET = 1_000_000  # tokens
EVENT_STREAM = "text/event-stream"

router = APIRouter(tags=["conversations"])

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
#: An id that can stand in a path.
Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$")]
Id = Annotated[str, Path(description="The session's id.", examples=["5f0c1d2e3a4b5c6d"])]
Collection = Annotated[str | None, Query(description="Another than the server's own.", min_length=1)]
Question = Annotated[str, Query(min_length=1, description="The question.", examples=["why does the door stick?"])]


class NewProject(bodies.Body):
    name: Text = Field(examples=["heron"])


class NewSession(bodies.Body):
    project: str | None = Field(None, description="A project's id or name.", examples=["heron"])
    title: str = Field("", examples=["the greenhouse door"])
    id: Name | None = Field(None, description="Of your own; with one that is there, that session is answered.")


class NewEpisode(bodies.Body):
    user: Text = Field(examples=["Why does the door stick?"])
    answer: str = Field("", examples=["It swells when it rains."])
    at: bodies.Moment | None = None


class NewMessage(bodies.Body):
    message: Text = Field(examples=["Why does the door stick?"])
    stream: bool = Field(False, description="Server-sent events instead of one JSON object.")


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


async def of(bridge: Bridge, caller: Caller, scope: str, collection: str | None, work: Callable[[Chat], T]) -> T:
    """``work`` with the conversations of the collection."""
    return await bridge.run(caller, scope, collection or bridge.config.collection, lambda engine: work(Chat(engine)))


@router.post(
    "/projects", status_code=201, responses=responses(Project, *NAMED, *BODY, 409, status=201), summary="Make a project"
)
async def make_project(body: NewProject, bridge: Asked, caller: Asking, collection: Collection = None) -> Response:
    """The one of that name, made if it is new."""
    made = await of(bridge, caller, "write", collection, lambda chat: chat.project(body.name))
    return reply(wire.plain(made), 201)


@router.get("/projects", responses=responses(list[Project], *NAMED), summary="List the projects")
async def list_projects(bridge: Asked, caller: Asking, collection: Collection = None) -> Response:
    return reply(wire.plain(await of(bridge, caller, "read", collection, lambda chat: chat.projects())))


@router.post(
    "/sessions",
    status_code=201,
    responses=responses(Session, *NAMED, *BODY, 409, status=201),
    summary="Begin a session",
)
async def make_session(body: NewSession, bridge: Asked, caller: Asking, collection: Collection = None) -> Response:
    def work(chat: Chat) -> Session:
        return chat.session(body.project, body.title, id=body.id)

    return reply(wire.plain(await of(bridge, caller, "write", collection, work)), 201)


@router.get("/sessions", responses=responses(list[Session], *NAMED), summary="List the sessions")
async def list_sessions(
    bridge: Asked,
    caller: Asking,
    project: Annotated[str | None, Query(min_length=1, description="A project's id or name.")] = None,
    collection: Collection = None,
) -> Response:
    return reply(wire.plain(await of(bridge, caller, "read", collection, lambda chat: chat.sessions(project))))


@router.get("/sessions/{id}", responses=responses(Session, *NAMED), summary="A session")
async def get_session(id: Id, bridge: Asked, caller: Asking, collection: Collection = None) -> Response:
    return reply(wire.plain(await of(bridge, caller, "read", collection, lambda chat: chat.find_session(id))))


@router.delete(
    "/sessions/{id}", responses=responses(answers.Deleted, *NAMED), summary="Forget a session with its episodes"
)
async def forget_session(id: Id, bridge: Asked, caller: Asking, collection: Collection = None) -> Response:
    return reply({"deleted": await of(bridge, caller, "write", collection, lambda chat: chat.forget(id))})


@router.get(
    "/sessions/{id}/episodes",
    responses=responses(list[Episode], *NAMED),
    summary="The latest episodes, in order of time",
)
async def list_episodes(
    id: Id,
    bridge: Asked,
    caller: Asking,
    limit: Annotated[int, Query(ge=0, le=MAX_PAGE)] = 50,
    before: Annotated[str | None, Query(min_length=1, description="The first id of the page after.")] = None,
    collection: Collection = None,
) -> Response:
    found = await of(bridge, caller, "read", collection, lambda chat: chat.episodes(id, limit, before))
    return reply(wire.plain(found))


@router.post(
    "/sessions/{id}/episodes",
    status_code=201,
    responses=responses(Episode, *NAMED, *BODY, status=201),
    summary="Keep an episode",
)
async def add_episode(
    id: Id, body: NewEpisode, bridge: Asked, caller: Asking, collection: Collection = None
) -> Response:
    def work(chat: Chat) -> Episode:
        return chat.add(id, body.user, body.answer, body.at)

    return reply(wire.plain(await of(bridge, caller, "write", collection, work)), 201)


@router.get("/sessions/{id}/search", responses=responses(Recall, *NAMED), summary="Episodes that answer a question")
async def search_session(
    id: Id,
    q: Question,
    bridge: Asked,
    caller: Asking,
    k: Annotated[int | None, Query(ge=1, le=MAX_HITS)] = None,
    scope: Annotated[str, Query(description="`project`: every session of its project; `session`.")] = "project",
    recent: Annotated[int, Query(ge=0, le=MAX_PAGE, description="The latest ones, left out.")] = RECENT,
    collection: Collection = None,
) -> Response:
    found = await of(bridge, caller, "read", collection, lambda chat: chat.recall(id, q, k, scope, recent=recent))
    hits = [Recalled(hit.rank, hit.score, hit.relevance, episode_of(hit.document), hit.contributions) for hit in found]
    told = wire.plain(Recall(found.query, found.profile, tuple(hits), ()))
    return reply({**told, "degraded": degraded(found.degraded)})


@router.get("/sessions/{id}/context", responses=responses(Block, *NAMED), summary="What a model would be shown")
async def context(
    id: Id,
    q: Question,
    bridge: Asked,
    caller: Asking,
    budget: Annotated[int | None, Query(ge=0, le=MAX_BUDGET, description="Tokens; else as configured.")] = None,
    collection: Collection = None,
) -> Response:
    """The recent episodes, then recalled ones, whole, under a budget, fenced as data."""

    def work(chat: Chat) -> Block:
        return Proxy(chat, bridge.endpoint).context(id, q, budget)

    return reply(wire.plain(await of(bridge, caller, "read", collection, work)))


_CHAT = responses(Reply, *NAMED, *BODY, 502)
#: Of one event; what `data` holds is JSON, by the event's name.
_EVENT = {
    "type": "object",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
    "required": ["data"],
}
_CHAT[200]["content"] = {EVENT_STREAM: {"schema": _EVENT}}


@router.post("/sessions/{id}/chat", responses=_CHAT, summary="Ask the configured model")
async def ask(
    id: Id, body: NewMessage, request: Request, bridge: Asked, caller: Asking, collection: Collection = None
) -> Response:
    """The episode with its context; or the events `context`, `delta` …, then `done` or `error`."""

    def begin(engine: Engine) -> tuple[Proxy, Reply]:
        proxy = Proxy(Chat(engine), bridge.endpoint)
        return proxy, proxy.begin(id, body.message)

    with ExitStack() as held:
        held.enter_context(bridge.chatting())
        proxy, begun = await bridge.run(caller, "write", collection or bridge.config.collection, begin)
        if not body.stream:
            return reply(_told(await bridge.aside(lambda: proxy.answered(begun))))
        telling = Telling(proxy, begun, bridge)
        first = await telling.next()
        if isinstance(first, Exception):  # an endpoint that is down is a status, and not a broken stream
            raise first
        return Events(telling.events(first, request.state.request_id), telling, held.pop_all())


def _told(answered: Reply) -> dict[str, Any]:
    return {**wire.plain(answered), "degraded": degraded(answered.degraded)}


# --- server-sent events -----------------------------------------------------------------------------------------------


class Telling:
    """The pieces of an answer, out of the thread that reads them."""

    def __init__(self, proxy: Proxy, begun: Reply, bridge: Bridge) -> None:
        self._begun = begun
        self._gone = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[Reply | str | Exception] = asyncio.Queue()
        bridge.aside(lambda: self._read(proxy))

    def _read(self, proxy: Proxy) -> None:
        pieces = proxy.pieces(self._begun)
        try:
            for piece in pieces:
                self._tell(piece)
                if self._gone.is_set():
                    pieces.close()  # type: ignore[attr-defined]  # keeps what has come
        except Exception as error:
            self._tell(error)

    def _tell(self, piece: Reply | str | Exception) -> None:
        with suppress(RuntimeError):  # the server has ended; what is said is kept all the same
            self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)

    async def next(self) -> Reply | str | Exception:
        return await self._pieces.get()

    def stop(self) -> None:
        self._gone.set()

    async def events(self, piece: Reply | str | Exception, request_id: str) -> AsyncIterator[bytes]:
        shown = {**asdict(self._begun.context), "episode": self._begun.episode.id}
        yield _event("context", {**shown, "degraded": degraded(self._begun.degraded)})
        while isinstance(piece, str):
            yield _event("delta", {"text": piece})
            piece = await self.next()
        if isinstance(piece, Exception):
            yield _event("error", gate.known(piece).body(request_id))
        else:
            yield _event("done", {"episode": wire.plain(piece.episode)})


def _event(name: str, data: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + payload(data) + b"\n\n"


class Events(StreamingResponse):
    """However it ends, the reading is told: a client that goes away leaves a partial episode, not an open one."""

    def __init__(self, events: AsyncIterator[bytes], telling: Telling, held: ExitStack) -> None:
        super().__init__(events, media_type=EVENT_STREAM, headers={"Cache-Control": "no-store"})
        self._telling, self._held = telling, held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._telling.stop()
            self._held.close()
