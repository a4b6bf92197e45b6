"""What does the model answer, knowing what was said before?

The message is kept first, as an ``open`` episode, then the context is assembled and the endpoint asked. Nothing is
lost: with the answer the episode is ``complete``; with a part of one (the stream broke, the reader went away)
``partial``; with none ``failed``. The same message asked again after a failure takes the failed one's place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trivet.chat.context import Block, assemble
from trivet.chat.endpoint import ChatSettings, Endpoint, Message
from trivet.chat.episodes import Chat, Episode, Session
from trivet.errors import ChatError
from trivet.types import Degraded

GONE = "the reader went away"


@dataclass(frozen=True, slots=True)
class Reply:
    """An episode with what the model was shown for it, and what recall had to do without."""

    episode: Episode
    context: Block
    degraded: tuple[Degraded, ...] = ()


class Proxy:
    """One endpoint for the conversations of one collection."""

    def __init__(self, chat: Chat, endpoint: Endpoint | ChatSettings) -> None:
        self.chat = chat
        self.endpoint = endpoint if isinstance(endpoint, Endpoint) else Endpoint(endpoint)
        self.settings = self.endpoint.settings

    def ask(self, session: Session | str, user: str) -> Reply:
        """The whole answer, kept; a ``ChatError`` names the episode that holds the message."""
        return self.answered(self.begin(session, user))

    def stream(self, session: Session | str, user: str) -> Iterator[Reply | str]:
        """First the reply as it begins (what is shown is known), then the answer's pieces, last the reply as kept.

        Nothing is stored before the first is taken. Who stops listening closes the iterator: the part is kept.
        """
        reply = self.begin(session, user)
        try:
            yield reply
        except BaseException:
            self._kept(reply, "", ChatError(GONE, "broken"))
            raise
        yield from self.pieces(reply)

    def begin(self, session: Session | str, user: str) -> Reply:
        """Keep the message and find what the model will be shown; it is not asked yet."""
        home = self.chat.find_session(session)
        episode = self.chat.add(home, user, state="open", id=self._failed_before(home, user))
        block, degraded = self._context(home, user, None, episode)
        return Reply(episode, block, degraded)

    def answered(self, reply: Reply) -> Reply:
        """A reply that was begun, with its whole answer."""
        try:
            answer = self.endpoint.complete(self._messages(reply))
        except ChatError as error:
            self._kept(reply, "", error)
            raise error.of(reply.episode.id) from None
        return self._kept(reply, answer)

    def pieces(self, reply: Reply) -> Iterator[Reply | str]:
        """The answer of a reply that was begun as it comes, and last the reply as kept."""
        pieces: list[str] = []
        try:
            for piece in self.endpoint.stream(self._messages(reply)):
                pieces.append(piece)
                yield piece
        except ChatError as error:
            self._kept(reply, "".join(pieces), error)
            raise error.of(reply.episode.id) from None
        except BaseException:  # closed, interrupted: what has come is kept all the same
            self._kept(reply, "".join(pieces), ChatError(GONE, "broken"))
            raise
        yield self._kept(reply, "".join(pieces))

    def context(self, session: Session | str, query: str, budget: int | None = None) -> Block:
        """What the model would be shown for this question."""
        return self._context(session, query, budget, None)[0]

    def _failed_before(self, session: Session, user: str) -> str | None:
        """The id of the session's latest episode, if it is this message and its asking failed."""
        latest = self.chat.episodes(session, 1)
        again = latest and latest[0].state == "failed" and latest[0].user == user
        return latest[0].id if again else None

    def _context(
        self, session: Session | str, query: str, budget: int | None, asked: Episode | None
    ) -> tuple[Block, tuple[Degraded, ...]]:
        settings, own = self.settings, [asked.id] if asked else []
        recent = self.chat.recent(session, settings.recent, exclude=own)
        skipped = [*own, *(document.id for document in recent)]
        found = self.chat.recall(session, query, settings.k, settings.scope, recent=0, exclude=skipped)
        return assemble(recent, found.hits, settings.budget if budget is None else budget), found.degraded

    def _messages(self, reply: Reply) -> list[Message]:
        """What is recalled stands in the user's turn, not the system's: it has no authority of its own."""
        shown = f"{reply.context.text}\n\n{reply.episode.user}" if reply.context.text else reply.episode.user
        first: list[Message] = [{"role": "system", "content": self.settings.system}] if self.settings.system else []
        return [*first, {"role": "user", "content": shown}]

    def _kept(self, reply: Reply, answer: str, error: ChatError | None = None) -> Reply:
        """The episode with what came of it, under its own time."""
        begun = reply.episode
        state = "complete" if error is None else "partial" if answer else "failed"
        told = "" if error is None else str(error)
        episode = self.chat.add(begun.session, begun.user, answer, begun.at, state=state, error=told, id=begun.id)
        return replace(reply, episode=episode)
