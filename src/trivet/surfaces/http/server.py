"""How is the service started, checked and ended?

uvicorn holds the sockets and the worker processes; this module says how it is to. Workers are started anew, not
forked: engines do not survive a fork.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from trivet.chat.endpoint import ChatSettings
from trivet.engine import collections_in, is_store, on_server
from trivet.engine import open as open_engine
from trivet.errors import InputError, StoreError
from trivet.keys import Keys
from trivet.scorers import load_scorer
from trivet.surfaces.config import Config

PROTOCOL = "trivet.surfaces.http.protocol:Protocol"
FACTORY = "trivet.surfaces.http.app:from_environment"


def refuse_open_door(config: Config) -> None:
    """A server that other machines can reach asks for a key; without one nobody could use it."""
    if config.loopback and not config.require_key:
        return
    why = "require_key is set" if config.loopback else f"{config.host!r} can be reached from other machines"
    if not _has_key(config):
        raise InputError(
            f"host: {why}, and there is no key; make one first with "
            "`trivet keys create NAME --scope admin`, or listen on 127.0.0.1"
        )


def _has_key(config: Config) -> bool:
    if not is_store(config.store):
        return False
    with Keys(config.store) as keys:
        return keys.any_in_use()


def serve(config: Config) -> None:
    """Run until a signal ends it. SIGTERM and Ctrl-C let requests in hand end first."""
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from trivet.surfaces.http import logs
    from trivet.surfaces.http.app import CONFIG_VARIABLE

    refuse_open_door(config)
    ChatSettings.resolve(table=config.chat)  # what is wrong with it is told here, not by every worker
    load_scorer(config.scorer)
    _make(config)
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
        proxy_headers=False,  # nothing here believes an address
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
            raise StoreError("serve: the service could not be started; the log above tells why")


def _listener(config: Config) -> socket.socket:
    """Bound here and not by uvicorn, whose own for several workers has no protocol in it: asyncio would then leave
    Nagle's algorithm on, and every answer but a connection's first would wait 40 ms (uvicorn issue 3149)."""
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


def _make(config: Config) -> None:
    """The store and the server's own collection, once, before the workers: what is wrong with the model of a new one is
    said here and ends the command, instead of ending every worker as it starts."""
    if config.collection not in collections_in(config.store):
        open_engine(config.store, config.collection, embedder=config.embedder).close()


@contextlib.contextmanager
def _shared_metrics(workers: int) -> Iterator[None]:
    """Where the workers' numbers meet."""
    from trivet.surfaces.http.metrics import SHARED_FOLDER

    if workers == 1 or os.environ.get(SHARED_FOLDER):
        yield
        return
    with tempfile.TemporaryDirectory(prefix="trivet-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder
        yield


def check(config: Config) -> list[tuple[str, str]]:
    """Would it start? (what was looked at, what was found); what is wrong is raised. Nothing is made or changed."""
    found = [("store", _store(config))]
    chat = ChatSettings.resolve(table=config.chat)
    refuse_open_door(config)
    found.append(("access", "open to this machine's user" if _open(config) else "a key is asked for"))
    found.append(("chat", f"asks {chat.model}" if chat.url else "no endpoint is set; everything else answers"))
    scorer = load_scorer(config.scorer)
    found.append(("scorer", scorer.id if scorer else "none: the reranker cross_encoder has nobody to ask"))
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
        return f"{len(collections_in(config.store))} collections on the server"
    path = Path(config.store)
    if not path.exists():
        if not path.absolute().parent.is_dir():
            raise InputError(f"store: the folder {str(path.absolute().parent)!r} does not exist; make it first")
        if not os.access(path.absolute().parent, os.W_OK):
            raise StoreError(f"store: the folder {str(path.absolute().parent)!r} cannot be written to")
        return f"{path} is new and will be made"
    if not os.access(path, os.W_OK):
        return f"{path} is read-only: it answers, and refuses to be written to"
    names = collections_in(path)
    if config.collection not in names:
        return f"{path} has {len(names)} collections; {config.collection!r} will be made"
    return f"{path} with {len(names)} collections"


def _address(config: Config) -> str:
    _listener(config).close()
    return f"{config.host}:{config.port} is free"
