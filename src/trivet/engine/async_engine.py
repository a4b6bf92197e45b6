"""``AsyncEngine``: an engine for asyncio. Every call runs in a thread of its own pool, so no event loop waits for it.

There is one engine, the synchronous one: the methods are made from those of ``Engine``. When a task is cancelled, a
read ends at its next step. A write is not begun any more, or is finished: neither half of it nor an index half built
is left behind.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextvars import copy_context
from copy import copy
from functools import partial, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from trivet.concurrency import deadline
from trivet.concurrency.threads import ThreadPool
from trivet.engine.engine import Engine
from trivet.engine.opening import open
from trivet.errors import StoreError

if TYPE_CHECKING:
    from trivet.filters import Filter
    from trivet.profile import Profile

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8  # calls at a time, as in a process of the HTTP service
BATCH = 100  # items that an asynchronous iterator fetches at once

_to_the_end = deadline.lifted()  # decorates what is not ended when the task is cancelled


def _awaitable(
    method: Callable[Concatenate[Engine, P], T],
) -> Callable[Concatenate[AsyncEngine, P], Coroutine[Any, Any, T]]:
    """Return the asynchronous form of a method."""

    @wraps(method)
    async def call(self: AsyncEngine, /, *args: P.args, **options: P.kwargs) -> T:
        return await self._in_pool(lambda engine: method(engine, *args, **options))

    return call


def _sharing(
    method: Callable[Concatenate[Engine, P], Engine],
) -> Callable[Concatenate[AsyncEngine, P], Coroutine[Any, Any, AsyncEngine]]:
    """Return the asynchronous form of a method that returns another engine of the store: both share the threads."""

    @wraps(method)
    async def call(self: AsyncEngine, /, *args: P.args, **options: P.kwargs) -> AsyncEngine:
        return self._over(await self._in_pool(lambda engine: method(engine, *args, **options)))

    return call


def _iterated(
    method: Callable[Concatenate[Engine, P], Iterator[T]],
) -> Callable[Concatenate[AsyncEngine, P], AsyncGenerator[T, None]]:
    """Return the asynchronous form of a method that returns an iterator: it fetches ``BATCH`` items at once."""

    @wraps(method)
    async def each(self: AsyncEngine, /, *args: P.args, **options: P.kwargs) -> AsyncGenerator[T, None]:
        items = await self._in_pool(lambda engine: method(engine, *args, **options))
        while batch := await self._in_pool(lambda _: list(islice(items, BATCH))):
            for item in batch:
                yield item

    return each


class AsyncEngine:
    """One collection of a store, for asyncio; ``trivet.open_async`` returns it.

    Every method of ``Engine`` is here with the same arguments, to be awaited: ``await memory.search("door", k=3)``.
    These differ:

    - ``documents`` and ``lines`` are asynchronous iterators.
    - ``settings`` and ``careful`` are methods, because they read the store.
    - ``within`` is not awaited: it reads nothing.
    - ``loading`` and ``pipeline_over`` are used inside ``run``, which calls a function with the engine.

    Iterators that are passed in are read in a thread, and ``progress`` is called in one. Any event loop can use it.

    Args:
        engine: The engine; it is closed with this one.
        threads: How many calls run at a time; others wait for their turn.
    """

    def __init__(self, engine: Engine, threads: int = THREADS) -> None:
        self.engine = engine
        self._pool = ThreadPool(threads, "trivet-async")

    async def run(self, work: Callable[[Engine], T]) -> T:
        """Call a function with the engine in a thread and return its result: for several calls in one.

        It is called to its end even if the task is cancelled.
        """
        return await self._in_pool(_to_the_end(work))

    async def _in_pool(self, work: Callable[[Engine], T]) -> T:
        cancelled, context = threading.Event(), copy_context()

        def call() -> T:
            with deadline.until(None, cancelled):
                return context.run(work, self.engine)

        try:
            future = self._pool.submit(call)
        except RuntimeError:  # of a pool that was shut down
            raise self._closed() from None
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            cancelled.set()
            task = asyncio.current_task()
            if future.cancelled() and task is not None and not task.cancelling():  # by ``close``: nobody cancelled us
                raise self._closed() from None
            raise

    def _closed(self) -> StoreError:
        return StoreError(f"store: {self.path!r} is closed; open it again")

    def _over(self, engine: Engine) -> AsyncEngine:
        """Return the asynchronous form of another engine of the same store, with the same threads."""
        other = copy(self)
        other.engine = engine
        return other

    def within(self, where: Any) -> AsyncEngine:
        """Return the same collection bound to a filter, as ``Engine.within`` does."""
        return self._over(self.engine.within(where))

    # --- what reads nothing -------------------------------------------------------------------------------------------

    @property
    def bound(self) -> Filter | None:
        """The filter that this engine is bound to, or None."""
        return self.engine.bound

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self.engine.name

    @property
    def path(self) -> str:
        """The path or address of the store, without a password."""
        return self.engine.path

    @property
    def url(self) -> str:
        """The address that opens the store again; do not show it, a server's may hold a password."""
        return self.engine.url

    @property
    def language(self) -> str:
        """The language of its analyser."""
        return self.engine.language

    # --- reading: ended when the task is cancelled --------------------------------------------------------------------

    search = _awaitable(Engine.search)
    explain = _awaitable(Engine.explain)
    get = _awaitable(Engine.get)
    documents = _iterated(Engine.documents)
    page = _awaitable(Engine.page)
    facets = _awaitable(Engine.facets)
    timeline = _awaitable(Engine.timeline)
    redundant = _awaitable(Engine.redundant)
    links = _awaitable(Engine.links)
    feedbacks = _awaitable(Engine.feedbacks)
    embed = _awaitable(Engine.embed)
    settings_history = _awaitable(Engine.settings_history)
    stats = _awaitable(Engine.stats)
    space = _awaitable(Engine.space)
    verify = _awaitable(Engine.verify)
    lines = _iterated(Engine.lines)
    collections = _awaitable(Engine.collections)
    wait = _awaitable(Engine.wait)

    async def settings(self) -> Profile:
        """Return the settings of the collection, as every process sees them now."""
        return await self._in_pool(lambda engine: engine.settings)

    async def careful(self) -> Profile:
        """Return the settings with the built-in reader, for callers that can wait."""
        return await self._in_pool(lambda engine: engine.careful)

    # --- writing and maintenance: finished once it has begun ----------------------------------------------------------

    add = _awaitable(_to_the_end(Engine.add))
    remember = _awaitable(_to_the_end(Engine.remember))
    patch = _awaitable(_to_the_end(Engine.patch))
    touch = _awaitable(_to_the_end(Engine.touch))
    delete = _awaitable(_to_the_end(Engine.delete))
    forget = _awaitable(_to_the_end(Engine.forget))
    sweep = _awaitable(_to_the_end(Engine.sweep))
    compact = _awaitable(_to_the_end(Engine.compact))
    link = _awaitable(_to_the_end(Engine.link))
    unlink = _awaitable(_to_the_end(Engine.unlink))
    feedback = _awaitable(_to_the_end(Engine.feedback))
    forget_feedback = _awaitable(_to_the_end(Engine.forget_feedback))
    restore_feedback = _awaitable(_to_the_end(Engine.restore_feedback))
    update_settings = _awaitable(_to_the_end(Engine.update_settings))
    revert_settings = _awaitable(_to_the_end(Engine.revert_settings))
    reembed = _awaitable(_to_the_end(Engine.reembed))
    prepare = _awaitable(_to_the_end(Engine.prepare))
    rebuild = _awaitable(_to_the_end(Engine.rebuild))
    backup = _awaitable(_to_the_end(Engine.backup))
    export = _awaitable(_to_the_end(Engine.export))
    import_ = _awaitable(_to_the_end(Engine.import_))
    collection = _sharing(_to_the_end(Engine.collection))
    drop = _awaitable(_to_the_end(Engine.drop))

    async def close(self) -> None:
        """Close the store and all its collections, and end the threads.

        A call that runs has a few seconds to finish; one that waits for its turn fails.
        """
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._pool.close()
        self.engine.close()  # a call that still runs finds it closed, and ends

    async def __aenter__(self) -> AsyncEngine:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<trivet async {self.path} collection={self.name!r}>"


class Opening:
    """A store that is opened in a thread by ``await``, or by ``async with``, which closes it as well."""

    def __init__(self, open: Callable[[], Engine]) -> None:
        self._open = open

    def __await__(self) -> Generator[Any, None, AsyncEngine]:
        return self._opened().__await__()

    async def _opened(self) -> AsyncEngine:
        return AsyncEngine(await asyncio.to_thread(self._open))

    async def __aenter__(self) -> AsyncEngine:
        self._memory = await self
        return self._memory

    async def __aexit__(self, *exc: object) -> None:
        await self._memory.close()


def _opened_later(open: Callable[P, Engine]) -> Callable[P, Opening]:
    @wraps(open)
    def opening(*args: P.args, **options: P.kwargs) -> Opening:
        return Opening(partial(open, *args, **options))

    return opening


open_async = _opened_later(open)
"""Open a collection of a store for asyncio; takes the arguments of ``trivet.open``.

``async with trivet.open_async("memory.db") as memory:`` closes it at the end of the block;
``memory = await trivet.open_async("memory.db")`` leaves that to ``await memory.close()``.
"""
