"""The exceptions, and the exit code of each kind.

Every message names the field, the value and the way out, because every surface prints it as it is. ``EXIT_CODES`` is
the one table from a kind of error to the exit code of a process.
"""

from __future__ import annotations

import re


class TrivetError(Exception):
    """Base of every error a caller can act on."""


class InputError(TrivetError, ValueError):
    """The call was wrong: a bad value, an unknown field or an unknown name."""


class NotAllowedError(InputError):
    """The caller is bound to some of the documents and asked for what concerns others."""


class TakenError(InputError):
    """The id is another document's, and was to be new."""


class NotFoundError(TrivetError, LookupError):
    """The thing named does not exist in this store."""


class CollectionDroppedError(NotFoundError):
    """The collection that is open was dropped, perhaps by another process."""


class ModelReplacedError(NotFoundError):
    """The model a search began with was replaced before its vectors were read; a search begins again by itself."""


class StoreError(TrivetError, OSError):
    """The store could not be read or written (permissions, full disk, corrupt file)."""


class StoreBusyError(StoreError):
    """Others kept the store locked for as long as the caller was willing to wait."""


class IndexNotReadyError(StoreError):
    """An index is being made in the background; a search leaves its leg out until then."""


class StoreReplacedError(StoreError):
    """The file that is open is no longer the store: a backup was put in its place, or it was moved or deleted."""


class SnapshotLostError(StoreError):
    """The server hung up while one state was read; a search, and what else only reads, begins again by itself."""


class DeadlineError(TrivetError):
    """The time that was allowed for the call is over; what it had begun to read is given up."""


class EmbedderError(TrivetError, RuntimeError):
    """An embedding model could not be loaded or did not answer."""


class ScorerError(TrivetError, RuntimeError):
    """A scorer could not be loaded or did not answer; a search goes on without it."""


class ModelMismatchError(EmbedderError, ValueError):
    """The collection holds vectors of another model than the one offered."""


class ChatError(TrivetError, RuntimeError):
    """The chat endpoint did not give a whole answer. What was said so far is kept in ``episode``.

    ``kind``: unconfigured, unreachable, timeout, refused (an error status), garbage (no answer at all), broken (half).
    """

    def __init__(self, message: str, kind: str = "refused", episode: str | None = None) -> None:
        super().__init__(message)
        self.kind, self.episode = kind, episode

    def of(self, episode: str) -> ChatError:
        """The same, about the episode that keeps the message."""
        return ChatError(str(self), self.kind, episode)


class MissingExtraError(TrivetError, ImportError):
    """An optional dependency is not installed; the message holds the pip line."""


# 1: the thing asked for failed; 2: the call was wrong.
EXIT_CODES: dict[type[TrivetError], int] = {
    InputError: 2,
    TakenError: 2,
    NotAllowedError: 2,
    ModelMismatchError: 2,
    MissingExtraError: 2,
    NotFoundError: 1,
    CollectionDroppedError: 1,
    ModelReplacedError: 1,
    StoreError: 1,
    StoreBusyError: 1,
    IndexNotReadyError: 1,
    StoreReplacedError: 1,
    SnapshotLostError: 1,
    DeadlineError: 1,
    EmbedderError: 1,
    ScorerError: 1,
    ChatError: 1,
    TrivetError: 1,
}


def exit_code(error: TrivetError) -> int:
    """The exit code of the most specific known kind of ``error``."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


# An absolute path of two parts or more, or a file's URL: what a message of the system, a model or a server may quote.
_PATH = re.compile(r"(?:\bfile:(?://)?|(?<![\w:/.-]))(?:/[\w.+@~-]+){2,}/?|[A-Za-z]:\\[\w.\\ +@~-]+")


def without_paths(text: str) -> str:
    """For whoever is not on this machine: where things lie on it is of no use to them."""
    return _PATH.sub("[path]", text)
