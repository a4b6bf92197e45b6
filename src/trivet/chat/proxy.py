"""Sends a message to a model together with its context, and stores what became of it.

The message is stored first, as an ``open`` episode; then the context is assembled and the endpoint is called. Nothing
is lost: with the answer the episode becomes ``complete``, with a part of it (the stream broke, the reader
disconnected) ``partial``, without one ``failed``. The same message sent again after a failure replaces the failed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trivet.chat.context import Block, assemble
from trivet.chat.endpoint import ChatSettings, Endpoint, Message
from trivet.chat.episodes import Chat, Episode, Session
from trivet.errors import ChatError
from trivet.types import Degraded

GONE = "the reader disconnected"


@dataclass(frozen=True, slots=True)
class Reply:
    """An episode, the context the model got for it, and the parts that recall had to do without."""

    episode: Episode
    context: Block
    degraded: tuple[Degraded, ...] = ()


class Proxy:
    """Sends the messages of one collection's conversations to one endpoint."""

    def __init__(self, chat: Chat, endpoint: Endpoint | ChatSettings) -> None:
        self.chat = chat
        self.endpoint = endpoint if isinstance(endpoint, Endpoint) else Endpoint(endpoint)
        self.settings = self.endpoint.settings

    def ask(self, session: Session | str, user: str) -> Reply:
        """Return the stored reply with its whole answer; a ``ChatError`` names the episode that holds the message."""
        return self.answered(self.begin(session, user))

    def stream(self, session: Session | str, user: str) -> Iterator[Reply | str]:
        """Yield the new reply with its context, then the pieces of the answer, then the reply as stored.

        Nothing is stored before the first item is taken. A caller that stops early closes the iterator, and the part
        received so far is stored.
        """
        reply = self.begin(session, user)
        try:
            yield reply
        except BaseException:
            self._stored(reply, "", ChatError(GONE, "broken"))
            raise
        yield from self.pieces(reply)

    def begin(self, session: Session | str, user: str) -> Reply:
        """Store the message and assemble its context, without sending anything yet."""
        home = self.chat.find_session(session)
        episode = self.chat.add(home, user, state="open", id=self._failed_before(home, user))
        block, degraded = self._context(home, user, None, episode)
        return Reply(episode, block, degraded)

    def answered(self, reply: Reply) -> Reply:
        """Send the message of a reply that ``begin`` returned, and return the reply with its whole answer."""
        try:
            answer = self.endpoint.complete(self._messages(reply))
        except ChatError as error:
            self._stored(reply, "", error)
            raise error.of(reply.episode.id) from None
        return self._stored(reply, answer)

    def pieces(self, reply: Reply) -> Iterator[Reply | str]:
        """Send the message of a reply that ``begin`` returned; yield the answer in pieces, then the stored reply."""
        pieces: list[str] = []
        try:
            for piece in self.endpoint.stream(self._messages(reply)):
                pieces.append(piece)
                yield piece
        except ChatError as error:
            self._stored(reply, "".join(pieces), error)
            raise error.of(reply.episode.id) from None
        except BaseException:  # closed or interrupted: store the part received so far
            self._stored(reply, "".join(pieces), ChatError(GONE, "broken"))
            raise
        yield self._stored(reply, "".join(pieces))

    def context(self, session: Session | str, query: str, budget: int | None = None) -> Block:
        """Return the context block the model would get for this query."""
        return self._context(session, query, budget, None)[0]

    def _failed_before(self, session: Session, user: str) -> str | None:
        """Return the id of the session's latest episode, if it has this message and failed."""
        latest = self.chat.episodes(session, 1)
        again = latest and latest[0].state == "failed" and latest[0].user == user
        return latest[0].id if again else None

    def _context(
        self, session: Session | str, query: str, budget: int | None, current: Episode | None
    ) -> tuple[Block, tuple[Degraded, ...]]:
        settings, excluded = self.settings, [current.id] if current else []
        recent = self.chat.recent(session, settings.recent, exclude=excluded)
        skipped = [*excluded, *(document.id for document in recent)]
        found = self.chat.recall(session, query, settings.k, settings.scope, recent=0, exclude=skipped)
        return assemble(recent, found.hits, settings.budget if budget is None else budget), found.degraded

    def _messages(self, reply: Reply) -> list[Message]:
        """Return the messages of the request. Recalled text goes into the user message: it has no authority."""
        content = f"{reply.context.text}\n\n{reply.episode.user}" if reply.context.text else reply.episode.user
        first: list[Message] = [{"role": "system", "content": self.settings.system}] if self.settings.system else []
        return [*first, {"role": "user", "content": content}]

    def _stored(self, reply: Reply, answer: str, error: ChatError | None = None) -> Reply:
        """Store the outcome in the episode, under the time of its message; return the reply with it."""
        sent = reply.episode
        state = "complete" if error is None else "partial" if answer else "failed"
        reason = "" if error is None else str(error)
        episode = self.chat.add(sent.session, sent.user, answer, sent.at, state=state, error=reason, id=sent.id)
        return replace(reply, episode=episode)
