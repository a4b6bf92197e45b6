"""Starts and checks the service.

uvicorn owns the sockets and the worker processes. Workers are spawned, not forked, because engines do not survive a
fork.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from trivet.chat.endpoint import ChatSettings
from trivet.engine import collections_in, is_store, on_server
from trivet.engine import open as open_engine
from trivet.engine.keys import Keys
from trivet.errors import InputError, StoreError
from trivet.http.config import Config
from trivet.models.scorers import load_scorer

PROTOCOL = "trivet.http.protocol:Protocol"
FACTORY = "trivet.http.app:from_environment"


def require_key(config: Config) -> None:
    """Refuse to start a server that requires a key while the store has none; nobody could use it."""
    if config.loopback and not config.require_key:
        return
    why = "require_key is set" if config.loopback else f"{config.host!r} can be reached from other machines"
    if not _has_key(config):
        raise InputError(
            f"host: {why}, and the store has no API key; create one with "
            "`trivet keys create NAME --scope admin`, or listen on 127.0.0.1"
        )


def _has_key(config: Config) -> bool:
    if not is_store(config.store):
        return False
    with Keys(config.store) as keys:
        return keys.any_in_use()


def serve(config: Config) -> None:
    """Run the service until a signal ends it. After SIGTERM or Ctrl-C, running requests finish first."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from trivet.http import logs
    from trivet.http.app import CONFIG_VARIABLE

    require_key(config)
    ChatSettings.resolve(table=config.chat)  # an error is reported here once, not by every worker
    load_scorer(config.scorer)
    _create_store(config)
    logs.set_up(config.log_level, config.log_format)
    os.environ[CONFIG_VARIABLE] = config.to_json()
    settings = uvicorn.Config(
        FACTORY,
        factory=True,
        http=PROTOCOL,
        ws="none",
        host=config.host,
        port=config.port,
        workers=config.workers,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here uses the client's address
        timeout_graceful_shutdown=max(1, round(config.drain_seconds)),
    )
    listener = _listener(config)
    logs.event("listening", host=config.host, port=listener.getsockname()[1], workers=config.workers)
    with _shared_metrics(config.workers), contextlib.suppress(KeyboardInterrupt):
        if config.workers > 1:
            Multiprocess(settings, sockets=[listener]).run()
            return
        server = uvicorn.Server(settings)
        server.run(sockets=[listener])
        if not server.started:
            raise StoreError("serve: the service could not start; see the log above")


def _listener(config: Config) -> socket.socket:
    """Bind the socket here, with a protocol number.

    uvicorn's own socket for several workers has none. asyncio then leaves Nagle's algorithm on, and every response
    after the first on a connection waits 40 ms (uvicorn issue 3149).
    """
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((config.host.strip("[]"), config.port))
    except OSError as error:
        listener.close()
        raise StoreError(f"port: cannot listen on {config.host}:{config.port}: {error.strerror or error}") from None
    listener.set_inheritable(True)
    return listener


def _create_store(config: Config) -> None:
    """Create the store and the default collection before the workers start.

    An error in the model of a new collection then ends the command, not every worker as it starts.
    """
    if config.collection not in collections_in(config.store):
        open_engine(config.store, config.collection, embedder=config.embedder).close()


@contextlib.contextmanager
def _shared_metrics(workers: int) -> Iterator[None]:
    """Give several workers a shared folder for their metrics."""
    from trivet.http.metrics import SHARED_FOLDER

    if workers == 1 or os.environ.get(SHARED_FOLDER):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="trivet-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder
        yield


def check(config: Config) -> list[tuple[str, str]]:
    """Return (what was checked, what was found) or raise the first error. Nothing is created or changed."""
    found = [("store", _store(config))]
    chat = ChatSettings.resolve(table=config.chat)
    require_key(config)
    found.append(("access", "open to users of this machine" if _open(config) else "an API key is required"))
    found.append(("chat", f"model {chat.model}" if chat.url else "no endpoint is configured; everything else works"))
    scorer = load_scorer(config.scorer)
    found.append(("scorer", scorer.id if scorer else "none; the reranker cross_encoder does nothing"))
    found.append(("address", _address(config)))
    return found


def _open(config: Config) -> bool:
    if not config.loopback or config.require_key:
        return False
    if not is_store(config.store):
        return True
    with Keys(config.store) as keys:
        return not keys.any()


def _store(config: Config) -> str:
    if on_server(config.store):
        return f"{_count(collections_in(config.store))} on the server"
    path = Path(config.store)
    if not path.exists():
        if not path.absolute().parent.is_dir():
            raise InputError(f"store: the folder {str(path.absolute().parent)!r} does not exist; create it first")
        if not os.access(path.absolute().parent, os.W_OK):
            raise StoreError(f"store: the folder {str(path.absolute().parent)!r} cannot be written to")
        return f"{path} does not exist and will be created"
    if not os.access(path, os.W_OK):
        return f"{path} is read-only: searches work, writes are refused"
    names = collections_in(path)
    if config.collection not in names:
        return f"{path} with {_count(names)}; {config.collection!r} will be created"
    return f"{path} with {_count(names)}"


def _count(names: Sequence[str]) -> str:
    return "1 collection" if len(names) == 1 else f"{len(names)} collections"


def _address(config: Config) -> str:
    _listener(config).close()
    return f"{config.host}:{config.port} is free"
