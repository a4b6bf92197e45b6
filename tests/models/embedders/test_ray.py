"""A Ray cluster embeds what one process would, and a killed worker loses nothing.

Ray is heavy and not part of the test environment. With ``trivet[ray]`` installed these start a cluster here.
"""

from __future__ import annotations

import os
import signal
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


@needs_ray
def test_the_same_vectors_and_a_killed_worker_costs_its_share(hashing: Any) -> None:
    import ray

    with workers_for(hashing, LOCAL) as workers:
        assert (workers.id, workers.dim, workers.batch) == (hashing.id, 32, 128)
        assert np.array_equal(workers.embed_passages(TEXTS), hashing.embed_passages(TEXTS))
        assert isinstance(workers, RayWorkers)
        pid = ray.get(workers._workers[0].__ray_call__.remote(lambda self: os.getpid()))
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
