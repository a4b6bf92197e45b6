"""What was said before, and what of it helps now?

Projects hold sessions, sessions hold episodes (a message and its answer); all of them are documents of one collection.
``Chat`` keeps and recalls them, ``assemble`` makes the block a model is shown, ``proxy`` asks a model with it.
"""

from __future__ import annotations

from trivet.chat.context import Block, Source, assemble
from trivet.chat.episodes import Chat, Episode, Project, Session
from trivet.errors import ChatError

__all__ = ["Block", "Chat", "ChatError", "Episode", "Project", "Session", "Source", "assemble"]
