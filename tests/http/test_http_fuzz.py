"""Random requests: none makes the service fail, and every response matches the OpenAPI document.

schemathesis makes requests from the OpenAPI description, right and wrong ones. ``TRIVET_FUZZ`` asks for more of them.
Conversations are asked too, with a real chat endpoint on this machine behind them.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.python import asgi
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import trivet
from chat.completions import serving
from trivet.chat import Chat
from trivet.http.app import create
from trivet.http.config import Config

EXAMPLES = int(os.environ.get("TRIVET_FUZZ", "12"))  # for each operation
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SESSION = "5f0c1d2e3a4b5c6d"  # as the description's example names it
SEEN: Counter[int] = Counter()
ANSWERED: list[str] = []  # conversations that went on
OURS = "collections|documents|search|settings|feedback|links|import and export|operation|compatibility|conversations"
OURS += "|openai"


@schemathesis.serializer("application/x-ndjson")
def ndjson(context: Any, value: Any) -> dict[str, Any]:
    return {"data": value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")}


# pytest collects by the description, so the app is there before any fixture; its store is made with the first request
PLACE = Path(tempfile.gettempdir()) / f"trivet-fuzz-{os.getpid()}"
APP = create(Config(store=str(PLACE / "memory.db"), embedder="hashing", log_level="error"))
schema = schemathesis.openapi.from_dict(APP.openapi())
schema.app = APP
schema = schema.include(tag_regex=OURS)


@pytest.fixture(scope="module", autouse=True)
def store() -> Iterator[None]:
    with serving() as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIVET_CHAT_URL", endpoint.url)
        patch.setenv("TRIVET_CHAT_MODEL", "echo")
        yield from asked()
        assert endpoint.log or not ANSWERED, "a conversation was answered, and the model was never asked"


def asked() -> Iterator[None]:
    PLACE.mkdir()
    with trivet.open(PLACE / "memory.db", embedder="hashing") as engine:
        engine.add(
            [{"id": "door-7", "text": "The side door sticks.", "meta": {"floor": 1}}, {"id": "0", "text": "zero"}]
        )
        chat = Chat(engine)
        chat.add(chat.session(chat.project("heron"), id=SESSION), "Why does the door stick?", "Rain.")
    yield
    asgi.shutdown_lifespans()
    assert 403 not in SEEN, "refused at the door: nothing behind it was asked"
    assert len(SEEN) < 5 or {200, 201, 404, 422} <= set(SEEN), SEEN
    shutil.rmtree(PLACE)


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=EXAMPLES <= 12,  # the same in every run, unless more is asked for
    database=None,
)
def test_no_failure_and_nothing_undocumented(case: Any) -> None:
    chance = random.Random(str(case.body) + str(case.query))
    if "collection" in (case.path_parameters or {}) and case.operation.label.count("/") > 3:
        case.path_parameters["collection"] = "default"  # a made-up one is a 404 and nothing more
    if "id" in (case.path_parameters or {}) and chance.random() < 0.6:
        case.path_parameters["id"] = SESSION if case.operation.path.startswith("/sessions") else "door-7"
    if (case.operation.method, case.operation.path) == ("delete", "/sessions/{id}"):
        case.path_parameters["id"] = f"not-{SESSION}"  # the others go on asking it
    status = case.call_and_validate(base_url="http://127.0.0.1", checks=CHECKS).status_code
    SEEN[status] += 1
    if status == 200 and case.operation.method == "post" and case.operation.path.endswith("/chat"):
        ANSWERED.append(case.operation.path)
