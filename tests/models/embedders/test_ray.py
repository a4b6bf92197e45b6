"""A Ray cluster embeds what one process would, and a killed worker loses nothing.

Ray is heavy and not part of the test environment: ``make test-ray`` installs it. A stand-in shows the errors without.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import trivet
from trivet.errors import EmbedderError, InputError, MissingExtraError
from trivet.models.embedders import load_embedder
from trivet.models.embedders.ray import RayWorkers
from trivet.models.embedders.workers import Workers, workers_for

TEXTS = [f"heron number {n} stands in the river" for n in range(150)]
LOCAL = "ray://local?workers=2"
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="the extra `ray` is not installed")


@pytest.fixture
def hashing() -> Any:
    return load_embedder("hashing:32")


@pytest.fixture(scope="module", autouse=True)
def _own_token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give Ray a token of these tests before it is imported: it would write one into the home folder."""
    path = tmp_path_factory.mktemp("ray") / "token"
    path.write_text(secrets.token_hex(32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN_PATH", str(path))
        yield


class StandIn:
    """What ``RayWorkers`` uses of Ray, in this process; ``failure`` is raised instead of the results."""

    exceptions = SimpleNamespace(RayError=type("RayError", (Exception,), {}))

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.running = False
        self.options: dict[str, Any] = {}

    def init(self, address: str, **options: Any) -> None:
        if address == "ray://nobody:10001":
            raise ConnectionError("Initialization failure from server:\nTraceback:\n  File\nTimeoutError: too late\n")
        self.running = True

    def shutdown(self) -> None:
        self.running = False

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def remote(self, **options: Any) -> Any:
        self.options = options
        return lambda function: SimpleNamespace(remote=lambda *arguments: (function, arguments))

    def get(self, calls: list[Any]) -> list[Any]:
        if self.failure is not None:
            raise self.failure
        return [function(*arguments) for function, arguments in calls]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    ray = StandIn()
    monkeypatch.setitem(sys.modules, "ray", ray)  # type: ignore[arg-type]
    return ray


def test_shares_come_back_in_order_and_are_tried_again(hashing: Any, stand_in: StandIn) -> None:
    with workers_for(hashing, "ray://head:10001") as workers:
        assert workers.batch == 3 * 64 and stand_in.running
        assert np.array_equal(workers.embed_passages(TEXTS), hashing.embed_passages(TEXTS))
    assert not stand_in.running
    assert stand_in.options["max_retries"] > 0


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (ConnectionError("Client is shutting down."), "connection to Ray at 'ray://head:10001' was lost.*is kept"),
        (StandIn.exceptions.RayError("Traceback:\n  File\nOSError: no model\n"), r"worker of Ray failed \(no model\)"),
    ],
)
def test_an_error_there_says_what_to_do(hashing: Any, stand_in: StandIn, failure: Exception, message: str) -> None:
    with workers_for(hashing, "ray://head:10001") as workers:
        stand_in.failure = failure
        with pytest.raises(EmbedderError, match=message):
            workers.embed_passages(TEXTS)


def test_a_cluster_that_does_not_answer_is_named_with_the_reason(hashing: Any, stand_in: StandIn) -> None:
    with pytest.raises(EmbedderError, match=r"'ray://nobody:10001' cannot be reached \(too late\)"):
        workers_for(hashing, "ray://nobody:10001")
    assert not stand_in.running


@needs_ray
def test_the_same_vectors_and_a_killed_worker_costs_its_share(hashing: Any) -> None:
    import ray

    with workers_for(hashing, LOCAL) as workers:
        assert (workers.id, workers.dim, workers.batch) == (hashing.id, 32, 128)
        assert np.array_equal(workers.embed_passages(TEXTS), hashing.embed_passages(TEXTS))
        assert isinstance(workers, RayWorkers)
        pid = ray.get(ray.remote(lambda: os.getpid()).remote())
        os.kill(pid, signal.SIGKILL)
        assert np.array_equal(workers.embed_passages(TEXTS), hashing.embed_passages(TEXTS))
        assert np.array_equal(workers.embed_queries(TEXTS[:2]), hashing.embed_queries(TEXTS[:2]))
    assert not ray.is_initialized()


@needs_ray
def test_a_bulk_load_on_ray(tmp_path: Path) -> None:
    with trivet.open(tmp_path / "m.db", embedder="hashing:32") as memory:
        memory.add([{"id": str(n), "text": text} for n, text in enumerate(TEXTS)])
        memory.wait(workers=LOCAL)
        assert (memory.stats().embedded, memory.stats().pending) == (150, 0) and memory.verify().ok


@needs_ray
def test_a_model_that_is_another_there_is_refused(hashing: Any) -> None:
    other = SimpleNamespace(id="another", spec=hashing.spec, dim=32, unrelated=hashing.unrelated)
    with pytest.raises(EmbedderError, match="a different model in the worker"):
        RayWorkers(other, LOCAL)  # type: ignore[arg-type]


@pytest.mark.skipif(find_spec("ray") is not None, reason="the extra `ray` is installed")
def test_without_the_extra_the_error_has_the_pip_line(hashing: Any) -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'trivet\[ray\]'"):
        workers_for(hashing, LOCAL)


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ("ray://", "is not the address of a Ray cluster"),
        ("ray://host:10001/x", "is not the address of a Ray cluster"),
        ("ray://host:10001?speed=9", "is not the address of a Ray cluster"),
        ("ray://host:10001?workers=many", "'many'"),
        ("several", "neither a number"),
        ("-2", "neither a number"),
    ],
)
def test_a_wrong_value_is_refused(hashing: Any, workers: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        workers_for(hashing, workers)


def test_a_number_may_be_text(hashing: Any) -> None:
    with workers_for(hashing, "1") as workers:
        assert isinstance(workers, Workers) and len(workers.embed_passages(TEXTS[:3])) == 3
