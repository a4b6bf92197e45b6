"""How do the machines of a Ray cluster embed a bulk load together?

As the processes of one machine do (``workers.py``): each worker loads the model by its name and is handed texts, and
what comes back is committed by the one process that asked. A worker that is killed, or whose machine is, is started
again by Ray and its share done again. trivet must be installed where the workers run, in the same version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from trivet.embedders import load_embedder
from trivet.errors import EmbedderError, InputError, MissingExtraError

if TYPE_CHECKING:
    from trivet.types import Embedder, Vector

SHARE = 64  # texts a worker is handed at a time
TRIES = 3  # a share that ends its worker this often is what ends it
MOST = 1_024
SCHEME = "ray://"
HERE = {"local": "local", "auto": "auto"}  # started on this machine; the cluster this machine is part of


class RayWorkers:
    """An embedder whose passages are embedded on a Ray cluster; use as a context manager."""

    def __init__(self, embedder: Embedder, address: str) -> None:
        host, self._count = _parsed(address)
        self._inner = embedder
        self.id, self.spec, self.dim, self.unrelated = embedder.id, embedder.spec, embedder.dim, embedder.unrelated
        try:
            self._ray: Any = import_module("ray")
        except ImportError as error:
            raise MissingExtraError(f"workers: {address!r} needs Ray: pip install 'trivet[ray]'") from error
        try:
            self._ray.init(HERE.get(host, address.partition("?")[0]), log_to_driver=False)
        except Exception as error:  # of any kind: it starts processes and asks the network
            raise EmbedderError(f"workers: Ray at {address!r} cannot be reached ({_first_line(error)})") from error
        count = self._count or max(1, min(MOST, int(self._ray.cluster_resources().get("CPU", 1))))
        self.batch = SHARE * count  # what the backlog takes at a time
        self._workers: list[Any] = []
        try:
            worker = self._ray.remote(max_restarts=-1, max_task_retries=TRIES, num_cpus=1)(_Worker)
            self._workers = [worker.remote(self.spec, self.id) for _ in range(count)]
            self._answers([each.ready.remote() for each in self._workers])
        except BaseException:
            self.__exit__()
            raise

    def embed_queries(self, texts: list[str]) -> Vector:
        return self._inner.embed_queries(texts)

    def embed_passages(self, texts: list[str]) -> Vector:
        import numpy as np

        shares = [texts[start : start + SHARE] for start in range(0, len(texts), SHARE)]
        crew = self._workers
        return np.concatenate(
            self._answers([crew[at % len(crew)].embed.remote(share) for at, share in enumerate(shares)])
        )

    def _answers(self, asked: list[Any]) -> list[Any]:
        try:
            found: list[Any] = self._ray.get(asked)
        except self._ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            # its message is the worker's traceback: what was raised there stands in the last line
            said = next((line for line in reversed(lines) if "Error: " in line), lines[0]).partition("Error: ")
            mend = "the model must be loadable by its name on every machine, and trivet installed there"
            told = f"a worker of Ray failed ({said[2] or said[0]})"
            raise EmbedderError(f"embedder {self.spec!r}: {told}; {mend}") from error
        return found

    def __enter__(self) -> RayWorkers:
        return self

    def __exit__(self, *exc: object) -> None:
        for worker in self._workers:
            self._ray.kill(worker)
        self._ray.shutdown()


class _Worker:
    """Lives on some machine of the cluster."""

    def __init__(self, spec: str, identifier: str) -> None:
        self._embedder = load_embedder(spec)
        if self._embedder is None or self._embedder.id != identifier:
            raise EmbedderError(f"embedder {spec!r} is another model there")

    def ready(self) -> bool:
        return True

    def embed(self, texts: list[str]) -> Any:
        assert self._embedder is not None
        return self._embedder.embed_passages(texts)


def _parsed(address: str) -> tuple[str, int]:
    """(host, workers; 0 for as many as there are processors)."""
    parts = urlsplit(address)
    options = parse_qs(parts.query)
    said = options.pop("workers", ["0"])[-1]
    if not parts.netloc or options or parts.path.strip("/"):
        raise InputError(f"workers: {address!r} is no address of a Ray cluster; write ray://HOST:10001?workers=8")
    if not said.isdecimal() or not int(said) <= MOST:
        raise InputError(f"workers: {said!r} in {address!r} is not a number from 1 to {MOST}")
    return parts.netloc, int(said)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
