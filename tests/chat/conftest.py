"""Fixtures for the tests of conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from trivet.chat import Chat
from trivet.chat.endpoint import ChatSettings, Endpoint
from trivet.chat.proxy import Proxy
from trivet.engine import Engine

from .completions import Completions, serving


@pytest.fixture
def server() -> Iterator[Completions]:
    with serving() as running:
        yield running


@pytest.fixture
def chat(words: Engine) -> Chat:
    return Chat(words)


@pytest.fixture
def proxy(chat: Chat, server: Completions) -> Iterator[Callable[..., Proxy]]:
    """``proxy("down")``: one that asks the test's server with the manners of that model."""
    made: list[Endpoint] = []

    def make(model: str = "echo", **options: Any) -> Proxy:
        made.append(Endpoint(ChatSettings(**{"url": server.url, "model": model, **options})))
        return Proxy(chat, made[-1])

    yield make
    for endpoint in made:
        endpoint.close()
