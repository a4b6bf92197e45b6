"""Runs the synchronous engine for the asynchronous server.

Every call of an engine goes through ``Dispatcher`` to one pool of threads, with a limit on how many wait (429) and on
how long one takes (504). Routes have a ``CallerAccess``, which checks the key in the same thread, so no route reaches
an engine without the check. A key that is bound to a filter gets an engine bound to it, and is refused (403) what
concerns more documents.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from trivet.chat.endpoint import ChatSettings, Endpoint
from trivet.concurrency import deadline
from trivet.engine.keys import Key, Keys
from trivet.errors import CollectionDroppedError, DeadlineError, TrivetError
from trivet.http.access import ANYWHERE, Caller, check, check_unbound
from trivet.http.engines import Engines
from trivet.http.jobs import Jobs
from trivet.http.problem_details import Refused
from trivet.http.recent_searches import RecentSearches

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.filters import Filter
    from trivet.http.config import Config
    from trivet.types import Stats

T = TypeVar("T")


def _too_busy(detail: str, retry_seconds: int) -> Refused:
    return Refused("too-busy", detail, headers={"Retry-After": str(retry_seconds)})


def _raised_by(future: asyncio.Future[Any], error: BaseException) -> bool:
    """Return whether the work itself raised ``error``, not the wait for it."""
    return future.done() and not future.cancelled() and future.exception() is error


class Dispatcher:
    """The engines of one worker process, their threads, and the limits on both."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.engines = Engines(config)
        self.keys = Keys(self.engines.url)
        self.recent, self.jobs = RecentSearches(), Jobs(self.engines.path)
        self._pool = ThreadPoolExecutor(config.threads, thread_name_prefix="trivet-http")
        self.import_pool = ThreadPoolExecutor(max(1, config.max_imports), thread_name_prefix="trivet-import")
        self.endpoint = Endpoint(ChatSettings.resolve(table=config.chat))
        self._waiting = self._importing = self._chatting = 0

    @property
    def waiting(self) -> int:
        """Return how many calls wait for a thread or have one."""
        return self._waiting

    def stats(self) -> Iterator[Stats]:
        """Yield the statistics of every collection, except one that is being dropped or cannot be opened."""
        for name in self.engines.names():
            with contextlib.suppress(TrivetError):
                yield self.call(name, lambda engine: engine.stats())

    async def probe(self) -> None:
        """Raise an error if the store cannot be read."""
        await self.in_pool(self.engines.names)

    def check_key(self, caller: Caller, scope: str, collection: str | None) -> Key | None:
        """Return the caller's key, or None where none is needed; refuse a caller who has no access."""
        caller.key = check(self.keys, self.config, caller.token, scope, collection)
        caller.checked = True
        return caller.key

    def call(self, collection: str, work: Callable[[Engine], T], where: Filter | None = None) -> T:
        """Run ``work`` with the engine of a collection, bound to ``where``."""

        def engine() -> Engine:
            return self.engines.get(collection) if where is None else self.engines.within(collection, where)

        try:
            return work(engine())
        except CollectionDroppedError:
            pass
        self.engines.forget(collection)  # another process dropped the collection, and may have created it again
        return work(engine())

    async def in_pool(self, call: Callable[[], T]) -> T:
        """Run ``call`` in a thread of the pool, within the limits of the configuration."""
        if self._waiting >= self.config.max_waiting + self.config.threads:
            raise _too_busy("too many requests are waiting; try again shortly", 1)
        self._waiting += 1
        until = deadline.after(self.config.request_seconds)

        def limited() -> T:
            with deadline.until(until):
                deadline.check()  # the time may have passed while the call waited for a thread
                return call()

        future = asyncio.get_running_loop().run_in_executor(self._pool, limited)
        future.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.config.request_seconds)
        except (TimeoutError, DeadlineError) as error:
            if isinstance(error, TimeoutError) and _raised_by(future, error):
                raise
            raise Refused(
                "timeout",
                f"no response within {self.config.request_seconds:g} s; a write may still finish: "
                "repeat it with the same id, which changes nothing if it did",
            ) from None

    def _done(self, future: asyncio.Future[Any]) -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()  # read it, or asyncio warns about a call that timed out and failed later

    def begin_import(self) -> None:
        """Count an import, which keeps a thread until its body has arrived; refuse one more than ``max_imports``."""
        if self._importing >= self.config.max_imports:
            raise _too_busy("other imports are running; try again when one has finished", 10)
        self._importing += 1

    def end_import(self, done: asyncio.Future[None]) -> None:
        self._importing -= 1
        if not done.cancelled():
            done.exception()

    @contextlib.contextmanager
    def chat_slot(self) -> Iterator[None]:
        """Count a request to the chat endpoint; refuse one more than ``max_chats``."""
        if self._chatting >= self.config.max_chats:
            raise _too_busy("too many chats are waiting for the model; try again shortly", 5)
        self._chatting += 1
        try:
            yield
        finally:
            self._chatting -= 1

    def in_own_thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run ``work`` in a new thread: a model may take minutes, and neither the pool nor a shutdown waits for it."""
        done: Future[T] = Future()

        def call() -> None:
            with contextlib.suppress(InvalidStateError):  # the client left; the work was done all the same
                try:
                    done.set_result(work())
                except InvalidStateError:
                    raise
                except BaseException as error:
                    done.set_exception(error)

        threading.Thread(target=call, name="trivet-chat", daemon=True).start()
        return asyncio.wrap_future(done)

    def close(self) -> None:
        """Wait for the threads, then close the store. Call it after the last request."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.import_pool.shutdown(wait=True, cancel_futures=True)
        self.jobs.close()
        self.endpoint.close()
        self.keys.close()
        self.engines.close()


@dataclass(frozen=True, slots=True)
class CallerAccess:
    """One caller's access to the engines: every method checks the caller's key for ``scope`` in the same thread."""

    dispatcher: Dispatcher
    caller: Caller

    @property
    def config(self) -> Config:
        return self.dispatcher.config

    def check_key(self, scope: str, collection: str | None) -> Key | None:
        """Return the caller's key, or None where none is needed; refuse a caller without access."""
        return self.dispatcher.check_key(self.caller, scope, collection)

    async def run(self, scope: str, collection: str, work: Callable[[Engine], T]) -> T:
        """Run ``work`` with the collection's engine, bound to the filter of the key."""

        def call() -> T:
            key = self.check_key(scope, collection)
            return self.dispatcher.call(collection, work, key.where if key else None)

        return await self.dispatcher.in_pool(call)

    async def resume(self, scope: str, collection: str, work: Callable[[], T]) -> T:
        """Run ``work`` that continues an earlier ``run``, if the key is still valid."""

        def call() -> T:
            self.check_key(scope, collection)
            return work()

        return await self.dispatcher.in_pool(call)

    async def run_unbound(self, scope: str, collection: str, work: Callable[[Engine], T]) -> T:
        """Run ``work`` that concerns all documents of a collection; refuse a key bound to a filter."""
        return await self.run_on_store(scope, lambda: self.dispatcher.call(collection, work), collection)

    async def run_on_store(self, scope: str, work: Callable[[], T], collection: str | None = None) -> T:
        """Run ``work`` that concerns the whole store; refuse a key bound to a filter."""

        def call() -> T:
            check_unbound(self.check_key(scope, collection))
            return work()

        return await self.dispatcher.in_pool(call)

    async def authorize(self, scope: str = "read", collection: str = ANYWHERE) -> None:
        """Refuse a caller without access; without a collection, one who may read nothing at all."""
        await self.dispatcher.in_pool(lambda: self.check_key(scope, collection))
