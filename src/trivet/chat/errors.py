"""What can go wrong between us and the model that answers?"""

from __future__ import annotations

import re

from trivet.errors import TrivetError

#: Each kind of failure, and the HTTP status a surface answers with.
STATUSES = {
    "unconfigured": 503,  # nobody said which endpoint to ask
    "unreachable": 502,  # no connection
    "timeout": 504,  # a connection, but no answer in time
    "refused": 502,  # it answered with an error
    "garbage": 502,  # it answered with something that is not an answer
    "broken": 502,  # the answer ended before its end
}

# An absolute path of two parts or more: what a server may quote of its own machine, and of no use to anyone else.
_PATH = re.compile(r"(?<![\w:/.-])(?:/[\w.+@~-]+){2,}/?|\b[A-Za-z]:\\[\w.\\+@~-]+")


def without_paths(text: str) -> str:
    return _PATH.sub("[path]", text)


class ChatError(TrivetError, RuntimeError):
    """The chat endpoint did not give a whole answer. What was said so far is kept in ``episode``."""

    def __init__(self, message: str, kind: str = "refused", episode: str | None = None) -> None:
        super().__init__(message)
        self.kind, self.episode = kind, episode

    def of(self, episode: str) -> ChatError:
        """The same, about the episode that keeps the message."""
        return ChatError(str(self), self.kind, episode)

    @property
    def status(self) -> int:
        return STATUSES[self.kind]
