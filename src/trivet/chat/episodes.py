"""Projects, sessions and episodes, stored as documents.

Each is a document of its own kind, so that one file, one export and one search hold all of them. The text of an episode
is the message, a blank line and the answer. Its metadata holds the session, the project, the length of the message
(which separates the two again) and the state.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError, NotFoundError
from trivet.filters import And, Eq, Filter, Or, Range, to_json
from trivet.fusion.relevance import KNOWN
from trivet.profile import without_copies
from trivet.text.conversation import PROJECT, SESSION
from trivet.text.tokens import clean
from trivet.types import Document

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.types import Results

RECENT = 6  # latest episodes of the session, always part of the context and therefore left out of recall
#: Which episodes are recalled: those of the session's project or of the session. Without a project both are the same.
SCOPES = ("project", "session")
#: The message has its whole answer, a part of it, none because the endpoint failed, or none yet.
STATES = ("complete", "partial", "failed", "open")
_GAP = "\n\n"  # between a message and its answer
#: Time spans in which the latest episodes are searched for, before all episodes are read.
_WINDOWS = (timedelta(days=1), timedelta(days=30))


@dataclass(frozen=True, slots=True)
class Project:
    """A group of sessions."""

    id: str
    name: str
    created: datetime | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation, in a project or alone."""

    id: str
    title: str = ""
    project: str | None = None
    created: datetime | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """A message and its answer. ``error`` says why an answer is missing or partial."""

    id: str
    session: str
    project: str | None
    user: str
    answer: str
    at: datetime | None
    state: str = "complete"
    error: str = ""


class Chat:
    """The conversations of one collection. It holds no state, so any number of processes may use one."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    # --- projects and sessions ----------------------------------------------------------------------------------------

    def project(self, name: str) -> Project:
        """Return the project of that name, created if it is new."""
        name = _filled(name, "project: name").strip()
        for identifier in self._project_ids(name):
            if (known := self.engine.get(identifier)) is not None:
                return _project(known)
        # within its own kind: a document of another kind that was added meanwhile is not replaced
        self.engine.within({"kind": "project", PROJECT: identifier}).add("", id=identifier, title=name)
        return _project(self.engine.get(identifier) or Document(identifier, "", title=name))

    def _project_ids(self, name: str) -> list[str]:
        """Return the ids that a project of that name may have; the last is that of a new one.

        The id is derived from the name, so that two processes that create it at once create one project. For an engine
        bound to a filter it is derived from the filter too: another tenant's project of that name has another id.
        """
        plain = _project_id(name)
        if self.engine.bound is None:
            return [plain]
        return [plain, _project_id(f"{name}\0{to_json(self.engine.bound)}")]

    def projects(self) -> list[Project]:
        """Return every project, in the order of creation."""
        return [_project(document) for document in self.engine.documents(Eq("kind", "project"))]

    def session(self, project: Project | str | None = None, title: str = "", *, id: str | None = None) -> Session:
        """Return a new session, in a project (the object, its name or its id) or alone; or the one with this ``id``."""
        home = None if project is None else self.find_project(project).id
        if id is not None and (known := self.engine.get(id)) is not None:
            if known.kind != "session":
                raise InputError(
                    f"id: {id!r} is taken by a document of kind {known.kind!r}; leave it out to get a new one"
                )
            found = _session(known)
            if project is not None and found.project != home:
                raise InputError(f"session {id!r} is of project {found.project!r}, not {home!r}; leave the project out")
            return found
        identifier = secrets.token_hex(8) if id is None else id
        meta = {SESSION: identifier} if home is None else {SESSION: identifier, PROJECT: home}
        self.engine.within({"kind": "session", **meta}).add(f"session {identifier}", id=identifier, title=title)
        return self.find_session(identifier)

    def sessions(self, project: Project | str | None = None) -> list[Session]:
        """Return every session, or those of a project, in the order of creation."""
        where: Filter = Eq("kind", "session")
        if project is not None:
            where = And((where, Eq(PROJECT, self.find_project(project).id)))
        return [_session(document) for document in self.engine.documents(where)]

    def find_project(self, project: Project | str) -> Project:
        """Return a project by its id or name; ``NotFoundError`` where there is none."""
        wanted = project.id if isinstance(project, Project) else project
        for identifier in (wanted, *self._project_ids(_filled(wanted, "project").strip())):
            found = self.engine.get(identifier)
            if found is not None and found.kind == "project":
                return _project(found)
        raise NotFoundError(f"project: {wanted!r} not found in collection {self.engine.name!r}; create it first")

    def find_session(self, session: Session | str) -> Session:
        """Return a session by its id; ``NotFoundError`` where there is none."""
        wanted = session.id if isinstance(session, Session) else session
        found = self.engine.get(wanted)
        if found is None:
            raise NotFoundError(f"session: {wanted!r} not found in collection {self.engine.name!r}; create it first")
        return _session(found)

    def forget(self, session: Session | str) -> int:
        """Delete a session with its episodes and their feedback; return the number of deleted episodes."""
        found = self.find_session(session)
        episodes = And((Eq("kind", "episode"), Eq(f"meta.{SESSION}", found.id)))
        # one transaction: no episode added meanwhile is left without its session
        return max(0, self.engine.forget(where=Or((Eq("id", found.id), episodes))).documents - 1)

    # --- episodes -----------------------------------------------------------------------------------------------------

    def add(
        self,
        session: Session | str,
        user: str,
        answer: str = "",
        at: datetime | str | float | None = None,
        *,
        state: str = "complete",
        error: str = "",
        id: str | None = None,
    ) -> Episode:
        """Store a message and its answer; with the ``id`` of an episode of this session, replace that one."""
        home = self.find_session(session)
        user, answer = clean(_filled(user, "user")), clean(_text(answer, "answer"))
        if state not in STATES:
            raise InputError(f"state: {state!r} is none of {', '.join(STATES)}")
        if id is not None and (known := self.engine.get(id)) is not None and _home(known) != home.id:
            raise InputError(f"id: {id!r} is not an episode of session {home.id!r}; leave it out to get a new one")
        meta: dict[str, Any] = {SESSION: home.id, "user": len(user), "state": state}
        meta |= {PROJECT: home.project} if home.project else {}
        meta |= {"error": error} if error else {}
        identifier = secrets.token_hex(8) if id is None else id
        text = f"{user}{_GAP}{answer}" if answer else user
        # within this session: no other document is replaced
        self.engine.within({"kind": "episode", SESSION: home.id}).add(text, id=identifier, meta=meta, created=at)
        kept = self.engine.get(identifier)
        if kept is None:
            raise NotFoundError(f"episode {identifier!r} was deleted while it was written")
        return episode_of(kept)

    def episode(self, id: str) -> Episode:
        """Return an episode by its id; ``NotFoundError`` where there is none."""
        found = self.engine.get(id)
        if found is None or found.kind != "episode":
            raise NotFoundError(f"episode: {id!r} not found in collection {self.engine.name!r}")
        return episode_of(found)

    def episodes(
        self, session: Session | str, limit: int | None = None, before: Episode | str | datetime | None = None
    ) -> list[Episode]:
        """Return the latest ``limit`` episodes of a session, or the latest before an episode, its id or a time.

        They are in order of time: ``before=page[0]`` returns the previous page.
        """
        return [episode_of(document) for document in self.recent(session, limit, before)]

    def recent(
        self,
        session: Session | str,
        limit: int | None = RECENT,
        before: Episode | str | datetime | None = None,
        exclude: Iterable[str] = (),
    ) -> list[Document]:
        """Return the same as documents, for ``assemble``, without the ids in ``exclude``."""
        home = self.find_session(session)
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise InputError(f"limit: {limit!r} is not a whole number from 0 up")
        if limit == 0:
            return []
        end = self._end(home, before)
        unwanted = {exclude} if isinstance(exclude, str) else set(exclude)
        anchor = end[0] if end else datetime.now(UTC)
        begins = [] if limit is None else [_back(anchor, window) for window in _WINDOWS]
        found: list[Document] = []
        for begin in (*begins, None):
            found = [item for item in self._episodes(home, begin, end) if item.id not in unwanted]
            if limit is not None and len(found) >= limit:
                break
        return found if limit is None else found[-limit:]

    def _episodes(
        self, session: Session, begin: datetime | None = None, end: tuple[datetime, str | None] | None = None
    ) -> list[Document]:
        """Return episodes from ``begin`` on and before ``end``, in order of time; equal times in order of adding."""
        where: Filter = Eq(SESSION, session.id)
        if begin or end:
            bounds = {"gte": begin.timestamp() if begin else None, "lte": end[0].timestamp() if end else None}
            where = And((where, Range("created", **bounds)))
        found = [item for item in self.engine.documents(where) if item.kind == "episode"]
        found.sort(key=lambda item: item.created or datetime.min.replace(tzinfo=UTC))
        if end is None:
            return found
        moment, identifier = end
        if identifier is None:
            return [item for item in found if item.created is not None and item.created < moment]
        ids = [item.id for item in found]
        return found[: ids.index(identifier)] if identifier in ids else found

    def _end(self, session: Session, before: Episode | str | datetime | None) -> tuple[datetime, str | None] | None:
        if before is None:
            return None
        if isinstance(before, datetime):
            return (before if before.tzinfo else before.replace(tzinfo=UTC)), None
        found = self.engine.get(before.id if isinstance(before, Episode) else before)
        if found is None or found.created is None or _home(found) != session.id:
            raise NotFoundError(f"before: {before!r} is not an episode of session {session.id!r}")
        return found.created, found.id

    # --- recall -------------------------------------------------------------------------------------------------------

    def scope(self, session: Session | str, scope: str = "project") -> Filter:
        """Return the filter for recall: episodes of the session, or of every session of its project."""
        home = self.find_session(session)
        if scope not in SCOPES:
            raise InputError(f"scope: {scope!r} is none of {', '.join(SCOPES)}")
        wide = scope == "project" and home.project is not None
        return And((Eq("kind", "episode"), Eq(PROJECT, home.project or "") if wide else Eq(SESSION, home.id)))

    def recall(
        self,
        session: Session | str,
        query: str,
        k: int | None = None,
        scope: str = "project",
        *,
        recent: int = RECENT,
        exclude: Iterable[str] = (),
        **how: Any,
    ) -> Results:
        """Search the episodes, without the session's ``recent`` latest ones and those in ``exclude``.

        Both are excluded inside every leg, before its cut, so other episodes take their places. ``how`` is as in
        ``Engine.search``: a profile or any setting of one. Without a profile it is ``careful``, and nothing is found
        where nothing is known.
        """
        where = self.scope(session, scope)
        skipped = [exclude] if isinstance(exclude, str) else list(exclude)
        skipped += [document.id for document in self.recent(session, recent, exclude=skipped)]
        careful = without_copies(self.engine.careful)
        usual = {"profile": careful, "min_relevance": max(careful.min_relevance, KNOWN)}
        return self.engine.search(query, k, where, exclude=skipped, **(how if "profile" in how else {**usual, **how}))


def episode_of(document: Document) -> Episode:
    """Return the episode in a document. Without a valid length of the message, the whole text is the message."""
    meta = document.meta
    length = meta.get("user")
    whole = isinstance(length, bool) or not isinstance(length, int) or not 0 <= length <= len(document.text)
    user, rest = (document.text, "") if whole else (document.text[:length], document.text[length:])
    return Episode(
        id=document.id,
        session=str(meta.get(SESSION, "")),
        project=meta.get(PROJECT),
        user=user,
        answer=rest.removeprefix(_GAP),
        at=document.created,
        state=str(meta.get("state", "complete")),
        error=str(meta.get("error", "")),
    )


def _project(document: Document) -> Project:
    return Project(document.id, document.title, document.created)


def _session(document: Document) -> Session:
    if document.kind != "session":
        raise NotFoundError(f"session: {document.id!r} is of kind {document.kind!r}, not a session")
    return Session(document.id, document.title, document.meta.get(PROJECT), document.created)


def _home(document: Document) -> str | None:
    """Return the session id of an episode; None for any other document."""
    return document.meta.get(SESSION) if document.kind == "episode" else None


def _project_id(name: str) -> str:
    return f"project-{hashlib.blake2b(clean(name).encode(), digest_size=8).hexdigest()}"


def _back(moment: datetime, window: timedelta) -> datetime:
    return moment - window if moment.replace(tzinfo=None) - datetime.min > window else moment


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name}: {type(value).__name__} is not text")
    return value


def _filled(value: Any, name: str) -> str:
    if not _text(value, name).strip():
        raise InputError(f"{name}: it is empty; give some text")
    return str(value)
