"""The metadata keys that say which session a document belongs to, who speaks in it and who owns it.

Where two uses need different keys there are two constants, each with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: The keys that trivet itself writes and reads for conversations: the id of the session, and of its project.
SESSION = "session"
PROJECT = "project"

#: Session keys of the reranking features. The weights of a learned reranker were fitted with exactly these: another key
#: would change its scores.
SESSION_KEYS = (SESSION, "session_id", "thread", "thread_id", "conversation", "conversation_id")
#: Session keys of the graph: it also connects the turns of chat exports, which use the last two.
GRAPH_SESSION_KEYS = (*SESSION_KEYS, "chat", "dialogue")

#: Keys within which a session's name is unique, for the reranking features: session 1 of two projects is two sessions.
SESSION_SCOPE_KEYS = ("scope", PROJECT, "project_id", "user", "user_id")
#: The same for the graph, where a chat export's channel or room counts too.
GRAPH_SCOPE_KEYS = ("scope", PROJECT, "user", "user_id", "channel", "room")

#: Speaker keys of the reranking features, fixed for the same reason as ``SESSION_KEYS``.
SPEAKER_KEYS = ("role", "speaker")
#: Speaker keys of the graph: messages imported from mail and chat have an author or a sender.
GRAPH_SPEAKER_KEYS = (*SPEAKER_KEYS, "author", "sender")
_SPEAKER = frozenset(SPEAKER_KEYS)

#: Speakers that are a language model, in lower case.
ASSISTANTS = frozenset({"assistant", "ai", "bot", "model"})
#: Speakers whose turns the graph walk steps over, and to which neighbours add nothing: they only repeat or process
#: what a person said.
GRAPH_SKIPPED_SPEAKERS = ASSISTANTS | {"agent", "system", "tool"}

#: Keys that say whose a document is. Documents of different owners are never reported as similar. A channel or a room
#: is no owner, and a tenant is no scope of a session.
OWNER_KEYS = ("tenant", "tenant_id", "namespace", "scope", PROJECT, "project_id", "user", "user_id")

#: Keys that identify the session of a turn when the turns before and after it are sought: sessions of the same name
#: that belong to different owners are different sessions.
TURN_KEYS = (*SESSION_KEYS, *OWNER_KEYS)


def session_of_turn(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that identifies the session of a turn, its owner included; empty if it is in none."""
    found = {key: meta[key] for key in TURN_KEYS if isinstance(meta.get(key), str | int | float)}
    return found if any(key in found for key in SESSION_KEYS) else {}


def by_assistant(meta: Mapping[str, Any]) -> bool:
    """Tell whether a language model wrote the turn with this metadata."""
    if _SPEAKER.isdisjoint(meta):  # most documents are no turns
        return False
    return any(str(meta[key]).lower() in ASSISTANTS for key in SPEAKER_KEYS if key in meta)


def is_skipped(speakers: Iterable[Any]) -> bool:
    """Tell whether one of the values under ``GRAPH_SPEAKER_KEYS`` is a speaker whose turns are skipped."""
    return any(str(speaker).lower() in GRAPH_SKIPPED_SPEAKERS for speaker in speakers)
