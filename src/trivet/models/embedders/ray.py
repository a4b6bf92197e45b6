"""Bulk embedding on the machines of a Ray cluster.

As with the processes of one machine (``workers.py``), each worker loads the model by its spec and gets texts, and the
calling process commits the vectors. Ray restarts a worker that is killed, with its machine or alone, and its share is
embedded again. The workers need the same version of trivet.
"""

from __future__ import annotations

from importlib import import_module
from itertools import cycle
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from trivet.errors import EmbedderError, InputError, MissingExtraError
from trivet.models.embedders.workers import SHARE, load_same

if TYPE_CHECKING:
    from trivet.types import Embedder, Vector

RETRIES = 3  # for a share whose worker dies
MOST = 1_024  # workers
#: Hosts that are not addresses: a cluster started on this machine, and the one this machine is part of.
NAMED = ("local", "auto")


class RayWorkers:
    """An embedder that embeds passages on a Ray cluster; a context manager."""

    def __init__(self, embedder: Embedder, address: str) -> None:
        host, self._count = _parsed(address)
        self._inner = embedder
        self.id, self.spec, self.dim, self.unrelated = embedder.id, embedder.spec, embedder.dim, embedder.unrelated
        try:
            self._ray: Any = import_module("ray")
        except ImportError as error:
            raise MissingExtraError(f"workers: {address!r} needs Ray: pip install 'trivet[ray]'") from error
        try:
            self._ray.init(host if host in NAMED else address.partition("?")[0], log_to_driver=False)
        except Exception as error:  # of any kind: Ray starts processes and uses the network
            raise EmbedderError(f"workers: Ray at {address!r} cannot be reached ({_first_line(error)})") from error
        count = self._count or max(1, min(MOST, int(self._ray.cluster_resources().get("CPU", 1))))
        self.batch = SHARE * count  # passages that the background embedding takes at a time
        self._workers: list[Any] = []
        try:
            worker = self._ray.remote(max_restarts=-1, max_task_retries=RETRIES, num_cpus=1)(_Worker)
            self._workers = [worker.remote(self.spec, self.id) for _ in range(count)]
            self._results([each.ready.remote() for each in self._workers])
        except BaseException:
            self.__exit__()
            raise

    def embed_queries(self, texts: list[str]) -> Vector:
        return self._inner.embed_queries(texts)

    def embed_passages(self, texts: list[str]) -> Vector:
        import numpy as np

        shares = [texts[start : start + SHARE] for start in range(0, len(texts), SHARE)]
        calls = [worker.embed.remote(share) for worker, share in zip(cycle(self._workers), shares)]
        return np.concatenate(self._results(calls))

    def _results(self, calls: list[Any]) -> list[Any]:
        try:
            found: list[Any] = self._ray.get(calls)
        except self._ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            # the message is the worker's traceback; the exception raised there is in its last lines
            reason = next((line for line in reversed(lines) if "Error: " in line), lines[0]).partition("Error: ")
            raise EmbedderError(
                f"embedder {self.spec!r}: a worker of Ray failed ({reason[2] or reason[0]}); "
                "the model must load by its spec on every machine, and trivet must be installed there"
            ) from error
        return found

    def __enter__(self) -> RayWorkers:
        return self

    def __exit__(self, *exc: object) -> None:
        for worker in self._workers:
            self._ray.kill(worker)
        self._ray.shutdown()


class _Worker:
    """Runs on a machine of the cluster."""

    def __init__(self, spec: str, identifier: str) -> None:
        self._embedder = load_same(spec, identifier)

    def ready(self) -> bool:
        return True

    def embed(self, texts: list[str]) -> Any:
        return self._embedder.embed_passages(texts)


def _parsed(address: str) -> tuple[str, int]:
    """Return the host and the number of workers, 0 for one per processor."""
    parts = urlsplit(address)
    options = parse_qs(parts.query)
    count = options.pop("workers", ["0"])[-1]
    if not parts.netloc or options or parts.path.strip("/"):
        raise InputError(f"workers: {address!r} is not the address of a Ray cluster; write ray://HOST:10001?workers=8")
    if not count.isdecimal() or not int(count) <= MOST:
        raise InputError(f"workers: {count!r} in {address!r} is not a number from 1 to {MOST}")
    return parts.netloc, int(count)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
