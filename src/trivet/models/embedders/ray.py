"""Bulk embedding on the machines of a Ray cluster.

As with the processes of one machine (``workers.py``), each worker loads the model by its spec and gets texts, and the
calling process commits the vectors. The share of a worker that is killed, with its machine or alone, is embedded again
by another one. The workers need the same version of trivet.
"""

from __future__ import annotations

from importlib import import_module
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
        self._inner, self._address = embedder, address
        self.id, self.spec, self.dim, self.unrelated = embedder.id, embedder.spec, embedder.dim, embedder.unrelated
        try:
            self._ray: Any = import_module("ray")
        except ImportError as error:
            raise MissingExtraError(f"workers: {address!r} needs Ray: pip install 'trivet[ray]'") from error
        try:
            self._ray.init(host if host in NAMED else address.partition("?")[0], log_to_driver=False)
        except Exception as error:  # of any kind: Ray starts processes and uses the network
            raise EmbedderError(f"workers: Ray at {address!r} cannot be reached ({_reason(error)})") from error
        count = self._count or max(1, min(MOST, int(self._ray.cluster_resources().get("CPU", 1))))
        self.batch = SHARE * count  # passages that the background embedding takes at a time
        # tasks and not actors: an actor whose machine is lost waits for a free processor, and its calls with it
        self._embed = self._ray.remote(max_retries=RETRIES, num_cpus=1, scheduling_strategy="SPREAD")(embed_share)
        try:
            self._results([[] for _ in range(count)])  # a model that cannot be loaded there is an error now
        except BaseException:
            self.__exit__()
            raise

    def embed_queries(self, texts: list[str]) -> Vector:
        return self._inner.embed_queries(texts)

    def embed_passages(self, texts: list[str]) -> Vector:
        import numpy as np

        return np.concatenate(self._results([texts[start : start + SHARE] for start in range(0, len(texts), SHARE)]))

    def _results(self, shares: list[list[str]]) -> list[Any]:
        try:
            found: list[Any] = self._ray.get([self._embed.remote(self.spec, self.id, share) for share in shares])
        except self._ray.exceptions.RayError as error:
            raise EmbedderError(
                f"embedder {self.spec!r}: a worker of Ray failed ({_reason(error)}); "
                "the model must load by its spec on every machine, and trivet must be installed there"
            ) from error
        except ConnectionError as error:
            raise EmbedderError(
                f"workers: the connection to Ray at {self._address!r} was lost ({_reason(error)}); "
                "what was embedded is kept, and the same command continues from there"
            ) from error
        return found

    def __enter__(self) -> RayWorkers:
        return self

    def __exit__(self, *exc: object) -> None:
        self._ray.shutdown()


def embed_share(spec: str, identifier: str, texts: list[str]) -> Any:
    """Embed texts in a worker process."""
    embedder = load_same(spec, identifier)  # a process loads it once
    return embedder.embed_passages(texts) if texts else None


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


def _reason(error: BaseException) -> str:
    """Return one line of an error: Ray's message may be a traceback, with the exception raised there at its end."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    found = next((line for line in reversed(lines) if "Error: " in line), lines[0])
    return found.partition("Error: ")[2] or found
