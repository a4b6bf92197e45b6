"""What was said, in which session, of which project?

Each is a Document of its kind, so that one file, one export and one search hold all of them. An episode's text is the
message, a blank line and the answer; its ``meta`` names its session and project, how long the message is (which tells
the two apart again, whatever they contain) and what became of it.
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
from trivet.intake import clean
from trivet.types import Document

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.types import Results

#: Episodes of the session that a context shows anyway, and recall therefore leaves out.
RECENT = 6
#: Of whom may an answer be? As in seed 000, "project" is the session alone where it has no project.
SCOPES = ("project", "session")
#: What became of a message: it has its answer, a part of it, none because asking failed, or none yet.
STATES = ("complete", "partial", "failed", "open")
#: Between a message and its answer.
_GAP = "\n\n"
#: How far back the latest episodes are looked for before all of them are.
_WINDOWS = (timedelta(days=1), timedelta(days=30))


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    name: str
    created: datetime | None = None


@dataclass(frozen=True, slots=True)
class Session:
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
    """The conversations of one collection. Keeps nothing in memory: any number of processes may have one."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    # --- projects and sessions ----------------------------------------------------------------------------------------

    def project(self, name: str) -> Project:
        """The project of that name, made if it is new."""
        name = _said(name, "project: name").strip()
        for identifier in self._project_ids(name):
            if (known := self.engine.get(identifier)) is not None:
                return _project(known)
        # bound to what it is: a document of another kind that came meanwhile is not replaced
        self.engine.within({"kind": "project", "project": identifier}).add("", id=identifier, title=name)
        return _project(self.engine.get(identifier) or Document(identifier, "", title=name))

    def _project_ids(self, name: str) -> list[str]:
        """The ids that a project of that name may have; the last is that of a new one.

        Follows from the name, so that two processes that make it at once make one. Of an engine that is bound to a
        filter it follows from the filter too: another tenant's project of the same name has another id.
        """
        plain = _project_id(name)
        if self.engine.bound is None:
            return [plain]
        return [plain, _project_id(f"{name}\0{to_json(self.engine.bound)}")]

    def projects(self) -> list[Project]:
        return [_project(document) for document in self.engine.documents(Eq("kind", "project"))]

    def session(self, project: Project | str | None = None, title: str = "", *, id: str | None = None) -> Session:
        """A new session, in a project (it, its name or its id) or alone; with the id of one there is, that one."""
        home = None if project is None else self.find_project(project).id
        if id is not None and (known := self.engine.get(id)) is not None:
            if known.kind != "session":
                raise InputError(
                    f"id: {id!r} is taken by a document of kind {known.kind!r}; leave it out to have one made"
                )
            found = _session(known)
            if project is not None and found.project != home:
                raise InputError(f"session {id!r} is of project {found.project!r}, not {home!r}; leave the project out")
            return found
        identifier = secrets.token_hex(8) if id is None else id
        meta = {"session": identifier} if home is None else {"session": identifier, "project": home}
        self.engine.within({"kind": "session", **meta}).add(f"session {identifier}", id=identifier, title=title)
        return self.find_session(identifier)

    def sessions(self, project: Project | str | None = None) -> list[Session]:
        """Every session, or those of a project, in the order they were made."""
        where: Filter = Eq("kind", "session")
        if project is not None:
            where = And((where, Eq("project", self.find_project(project).id)))
        return [_session(document) for document in self.engine.documents(where)]

    def find_project(self, project: Project | str) -> Project:
        wanted = project.id if isinstance(project, Project) else project
        for identifier in (wanted, *self._project_ids(_said(wanted, "project").strip())):
            found = self.engine.get(identifier)
            if found is not None and found.kind == "project":
                return _project(found)
        raise NotFoundError(f"project: there is no {wanted!r} in {self.engine.name!r}; make it with project(name)")

    def find_session(self, session: Session | str) -> Session:
        wanted = session.id if isinstance(session, Session) else session
        found = self.engine.get(wanted)
        if found is None:
            raise NotFoundError(f"session: there is no {wanted!r} in {self.engine.name!r}; make one with session()")
        return _session(found)

    def forget(self, session: Session | str) -> int:
        """Forget a session with its episodes and the feedback on them; returns how many episodes there were."""
        found = self.find_session(session)
        episodes = And((Eq("kind", "episode"), Eq("meta.session", found.id)))
        # in one transaction: an episode that is added meanwhile is not left behind without its session
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
        """Keep a message and its answer; with the id of an episode of this session, in that one's place."""
        home = self.find_session(session)
        user, answer = clean(_said(user, "user")), clean(_text(answer, "answer"))
        if state not in STATES:
            raise InputError(f"state: {state!r} is none of {', '.join(STATES)}")
        if id is not None and (known := self.engine.get(id)) is not None and _home(known) != home.id:
            raise InputError(f"id: {id!r} is not an episode of session {home.id!r}; leave it out to have one made")
        meta: dict[str, Any] = {"session": home.id, "user": len(user), "state": state}
        meta |= {"project": home.project} if home.project else {}
        meta |= {"error": error} if error else {}
        identifier = secrets.token_hex(8) if id is None else id
        text = f"{user}{_GAP}{answer}" if answer else user
        own = self.engine.within({"kind": "episode", "session": home.id})  # replaces nothing but an episode of this one
        own.add(text, id=identifier, meta=meta, created=at)
        kept = self.engine.get(identifier)
        if kept is None:
            raise NotFoundError(f"episode {identifier!r} was deleted while it was written")
        return episode_of(kept)

    def episode(self, id: str) -> Episode:
        found = self.engine.get(id)
        if found is None or found.kind != "episode":
            raise NotFoundError(f"episode: there is no {id!r} in {self.engine.name!r}")
        return episode_of(found)

    def episodes(
        self, session: Session | str, limit: int | None = None, before: Episode | str | datetime | None = None
    ) -> list[Episode]:
        """The latest ``limit`` episodes of a session, or the latest before an episode (or its id) or a moment.

        In order of time, so that pages of ``before=page[0]`` lead back to the beginning.
        """
        return [episode_of(document) for document in self.recent(session, limit, before)]

    def recent(
        self,
        session: Session | str,
        limit: int | None = RECENT,
        before: Episode | str | datetime | None = None,
        exclude: Iterable[str] = (),
    ) -> list[Document]:
        """The same as documents, which is what a context is assembled of."""
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
        """In order of time (what has the same time: as it came in), from ``begin`` on and before ``end``."""
        where: Filter = Eq("session", session.id)
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
        """Which episodes may answer: those of the session, or of every session of its project."""
        home = self.find_session(session)
        if scope not in SCOPES:
            raise InputError(f"scope: {scope!r} is none of {', '.join(SCOPES)}")
        wide = scope == "project" and home.project is not None
        return And((Eq("kind", "episode"), Eq("project", home.project or "") if wide else Eq("session", home.id)))

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
        """The episodes that answer best, without the session's ``recent`` latest and those in ``exclude``.

        Both hold inside every leg, before its cut: what is left out makes room for another. ``how`` is as in
        ``Engine.search``: a profile, or any setting of one.
        """
        where = self.scope(session, scope)
        skipped = [exclude] if isinstance(exclude, str) else list(exclude)
        skipped += [document.id for document in self.recent(session, recent, exclude=skipped)]
        return self.engine.search(query, k, where, exclude=skipped, **how)


def episode_of(document: Document) -> Episode:
    """A message and its answer out of a document; all of it is the message where nothing tells them apart."""
    meta = document.meta
    length = meta.get("user")
    whole = isinstance(length, bool) or not isinstance(length, int) or not 0 <= length <= len(document.text)
    user, rest = (document.text, "") if whole else (document.text[:length], document.text[length:])
    return Episode(
        id=document.id,
        session=str(meta.get("session", "")),
        project=meta.get("project"),
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
    return Session(document.id, document.title, document.meta.get("project"), document.created)


def _home(document: Document) -> str | None:
    """The session an episode is of; None of anything else."""
    return document.meta.get("session") if document.kind == "episode" else None


def _project_id(name: str) -> str:
    return f"project-{hashlib.blake2b(clean(name).encode(), digest_size=8).hexdigest()}"


def _back(moment: datetime, window: timedelta) -> datetime:
    return moment - window if moment.replace(tzinfo=None) - datetime.min > window else moment


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name}: {type(value).__name__} is not text")
    return value


def _said(value: Any, name: str) -> str:
    if not _text(value, name).strip():
        raise InputError(f"{name}: it is empty; give some text")
    return str(value)
