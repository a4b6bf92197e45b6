"""Conversations stored as documents, and the context a model gets from them.

Projects hold sessions, and sessions hold episodes (a message and its answer); all of them are documents of one
collection. ``Chat`` stores and recalls them, ``assemble`` builds the context block of a prompt, ``proxy`` sends a
message to a model with it.
"""

from __future__ import annotations

from trivet.chat.context import Block, Source, assemble
from trivet.chat.episodes import Chat, Episode, Project, Session
from trivet.errors import ChatError

__all__ = ["Block", "Chat", "ChatError", "Episode", "Project", "Session", "Source", "assemble"]
