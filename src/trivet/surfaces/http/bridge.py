"""How does an asynchronous server ask a synchronous engine?

Here, once: every call of the engine goes through ``Bridge.run`` to one pool of threads, with a limit on what waits
(429) and on how long it takes (504). The key is checked in the same hop, so there is no way to an engine around it. A
key that is bound to a filter gets an engine that is bound to it, and nothing that is not of one engine (403).
One engine a collection and process; all of them share the file, and are closed together.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from trivet import deadline
from trivet.chat.endpoint import ChatSettings, Endpoint
from trivet.engine import Engine, collections_in
from trivet.engine import open as open_engine
from trivet.errors import DeadlineError, NotFoundError, TrivetError
from trivet.keys import Key, Keys
from trivet.surfaces.http.access import ANYWHERE, Caller, check, check_unbound
from trivet.surfaces.http.jobs import Jobs
from trivet.surfaces.http.problems import Refused
from trivet.surfaces.http.recent import Recent

if TYPE_CHECKING:
    from trivet.filters import Filter
    from trivet.surfaces.config import Config
    from trivet.types import Stats

T = TypeVar("T")

RETRY_SECONDS = 1
BOUND_KEPT = 256  # engines bound to a filter, a few kilobytes each: as many tenants ask again and again


class Engines:
    """The open collections of one store."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        known = collections_in(config.store)
        model = self._model(config.collection in known)
        self._main = open_engine(config.store, config.collection, embedder=model, scorer=config.scorer)
        self._open: dict[str, Engine] = {config.collection: self._main}
        self._bound: OrderedDict[tuple[str, Filter], tuple[Engine, Engine]] = OrderedDict()  # with what it was made of

    def _model(self, exists: bool) -> str | None:
        """The configured model is for new collections; an old one has its own."""
        return None if exists else self._config.embedder

    @property
    def path(self) -> str:
        return self._main.path

    @property
    def url(self) -> str:
        return self._main.url

    def names(self) -> list[str]:
        return self._main.collections()

    def get(self, name: str) -> Engine:
        """The collection as it is; it is not made."""
        engine = self._open.get(name)
        if engine is not None:
            return engine
        with self._lock:
            if name not in self._open:
                if name not in self._main.collections():
                    raise NotFoundError(f"collection: there is no {name!r}; make it with PUT /v1/collections/NAME")
                self._open[name] = self._main.collection(name)
            return self._open[name]

    def within(self, name: str, where: Filter) -> Engine:
        """The collection bound to a filter; kept, for an engine remembers what it was asked."""
        engine = self.get(name)
        with self._lock:
            kept = self._bound.get((name, where))
            if kept is None or kept[0] is not engine:
                kept = self._bound[name, where] = engine, engine.within(where)
            self._bound.move_to_end((name, where))
            if len(self._bound) > BOUND_KEPT:
                self._bound.popitem(last=False)
        return kept[1]

    def make(self, name: str, **options: Any) -> tuple[Engine, bool]:
        """The collection, made if it is new; was it?"""
        with self._lock:
            new = name not in self._main.collections()
            if not new and not options and name in self._open:
                return self._open[name], False
            words_only = options.pop("words_only", False)
            embedder = "none" if words_only else self._model(not new)
            self._open[name] = self._main.collection(name, embedder=embedder if new else None, **options)
            return self._open[name], new

    def forget(self, name: str) -> None:
        with self._lock:
            self._open.pop(name, None)
            for known in [known for known in self._bound if known[0] == name]:
                del self._bound[known]

    def close(self) -> None:
        self._main.close()


def _is_of(error: BaseException, future: asyncio.Future[Any]) -> bool:
    """Did the work itself raise it, rather than whoever waits for it?"""
    return future.done() and not future.cancelled() and future.exception() is error


class Bridge:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.engines = Engines(config)
        self.keys = Keys(self.engines.url)
        self.recent, self.jobs = Recent(), Jobs(self.engines.path)
        self._pool = ThreadPoolExecutor(config.threads, thread_name_prefix="trivet-http")
        self.import_pool = ThreadPoolExecutor(max(1, config.max_imports), thread_name_prefix="trivet-import")
        self.endpoint = Endpoint(ChatSettings.resolve(table=config.chat))
        self._waiting = self._importing = self._chatting = 0

    @property
    def waiting(self) -> int:
        return self._waiting

    async def run(self, caller: Caller, scope: str, collection: str, work: Callable[[Engine], T]) -> T:
        """``work`` with the collection's engine, if the caller may; bound to the filter of their key."""

        def call() -> T:
            key = self.allow(caller, scope, collection)
            return self.ask(collection, work, key.where if key else None)

        return await self._timed(call)

    async def resume(self, caller: Caller, scope: str, collection: str, work: Callable[[], T]) -> T:
        """``work`` that goes on with what ``run`` gave the caller before, if they still may."""

        def call() -> T:
            self.allow(caller, scope, collection)
            return work()

        return await self._timed(call)

    async def whole(self, caller: Caller, scope: str, collection: str, work: Callable[[Engine], T]) -> T:
        """``work`` that tells or changes what is of all documents of a collection: not with a bound key."""

        def call() -> T:
            check_unbound(self.allow(caller, scope, collection))
            return self.ask(collection, work)

        return await self._timed(call)

    async def store(self, caller: Caller, scope: str, work: Callable[[], T], collection: str | None = None) -> T:
        """``work`` on the store as a whole: not with a bound key."""

        def call() -> T:
            check_unbound(self.allow(caller, scope, collection))
            return work()

        return await self._timed(call)

    async def listed(self, caller: Caller, work: Callable[[], T]) -> T:
        """``work`` for whoever may read anything at all."""

        def call() -> T:
            self.allow(caller, "read", ANYWHERE)
            return work()

        return await self._timed(call)

    async def permit(self, caller: Caller, scope: str, collection: str) -> None:
        """Refuse who may not, before their body is read; the work itself asks again."""
        await self._timed(lambda: self.allow(caller, scope, collection))

    def stats(self) -> Iterator[Stats]:
        """Of every collection, whoever opened it; of one that is being dropped, or cannot be opened, there are none."""
        for name in self.engines.names():
            with contextlib.suppress(TrivetError):
                yield self.ask(name, lambda engine: engine.stats())

    async def probe(self) -> None:
        """Can the truth be read?"""
        await self._timed(self.engines.names)

    def allow(self, caller: Caller, scope: str, collection: str | None) -> Key | None:
        caller.key = check(self.keys, self.config, caller.token, scope, collection)
        caller.checked = True
        return caller.key

    def ask(self, collection: str, work: Callable[[Engine], T], where: Filter | None = None) -> T:
        def engine() -> Engine:
            return self.engines.get(collection) if where is None else self.engines.within(collection, where)

        try:
            return work(engine())
        except NotFoundError as error:
            if not str(error).endswith("was dropped"):
                raise
        self.engines.forget(collection)  # another process dropped it, and may have made it anew
        return work(engine())

    async def _timed(self, call: Callable[[], T]) -> T:
        if self._waiting >= self.config.max_waiting + self.config.threads:
            raise Refused(
                "too-busy", "too many requests wait; try again shortly", headers={"Retry-After": str(RETRY_SECONDS)}
            )
        self._waiting += 1
        until = deadline.after(self.config.request_seconds)

        def limited() -> T:
            with deadline.until(until):
                deadline.check()  # it may have waited for a thread for longer than anybody waits for it
                return call()

        future = asyncio.get_running_loop().run_in_executor(self._pool, limited)
        future.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.config.request_seconds)
        except (TimeoutError, DeadlineError) as error:
            if isinstance(error, TimeoutError) and _is_of(error, future):
                raise
            raise Refused(
                "timeout",
                f"no answer within {self.config.request_seconds:g} s; a write may still be done: "
                "repeat it with the same id, which changes nothing if it was",
            ) from None

    def _done(self, future: asyncio.Future[Any]) -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()  # looked at: a call nobody waits for any more is not "never retrieved"

    def begin_import(self) -> None:
        """An import has a thread of its own for as long as its body comes; there are only so many."""
        if self._importing >= self.config.max_imports:
            raise Refused(
                "too-busy", "other imports are running; try again when one is done", headers={"Retry-After": "10"}
            )
        self._importing += 1

    def end_import(self, done: asyncio.Future[None]) -> None:
        self._importing -= 1
        if not done.cancelled():
            done.exception()

    @contextlib.contextmanager
    def chatting(self) -> Iterator[None]:
        """An answer of the chat endpoint is waited for; there are only so many."""
        if self._chatting >= self.config.max_chats:
            raise Refused(
                "too-busy", "other answers are being waited for; try again shortly", headers={"Retry-After": "5"}
            )
        self._chatting += 1
        try:
            yield
        finally:
            self._chatting -= 1

    def aside(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """``work`` in a thread of its own. A model may take minutes: neither the pool nor the server's end waits."""
        done: Future[T] = Future()

        def call() -> None:
            with contextlib.suppress(InvalidStateError):  # nobody waits any more; the work was done all the same
                try:
                    done.set_result(work())
                except InvalidStateError:
                    raise
                except BaseException as error:
                    done.set_exception(error)

        threading.Thread(target=call, name="trivet-chat", daemon=True).start()
        return asyncio.wrap_future(done)

    def close(self) -> None:
        """After the last request: let the threads end, then let go of the file."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.import_pool.shutdown(wait=True, cancel_futures=True)
        self.jobs.close()
        self.endpoint.close()
        self.keys.close()
        self.engines.close()
