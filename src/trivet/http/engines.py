"""The open engines of one store: one for each collection, and one for each filter that a key is bound to."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from trivet.engine import Engine, collections_in
from trivet.engine import open as open_engine
from trivet.errors import NotFoundError

if TYPE_CHECKING:
    from trivet.filters import Filter
    from trivet.http.config import Config

BOUND_KEPT = 256  # engines bound to a filter, a few kilobytes each; enough for 256 tenants that search in turn


class Engines:
    """Opens the collections of a store on demand. They share the store's file and are closed together."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        known = collections_in(config.store)
        model = self._model(config.collection in known)
        self._main = open_engine(config.store, config.collection, embedder=model, scorer=config.scorer)
        self._open: dict[str, Engine] = {config.collection: self._main}
        # Each with the engine it was made from: a collection that was dropped and made again has another one.
        self._bound: OrderedDict[tuple[str, Filter], tuple[Engine, Engine]] = OrderedDict()

    def _model(self, exists: bool) -> str | None:
        """Return the configured model for a new collection; an existing one keeps its own."""
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
        """Return the engine of an existing collection."""
        engine = self._open.get(name)
        if engine is not None:
            return engine
        with self._lock:
            if name not in self._open:
                if name not in self._main.collections():
                    raise NotFoundError(f"collection: {name!r} not found; create it with PUT /v1/collections/NAME")
                self._open[name] = self._main.collection(name)
            return self._open[name]

    def within(self, name: str, where: Filter) -> Engine:
        """Return the engine bound to a filter. It is kept, because an engine caches what it computed."""
        engine = self.get(name)
        with self._lock:
            kept = self._bound.get((name, where))
            if kept is None or kept[0] is not engine:
                kept = self._bound[name, where] = engine, engine.within(where)
            self._bound.move_to_end((name, where))
            if len(self._bound) > BOUND_KEPT:
                self._bound.popitem(last=False)
        return kept[1]

    def create(self, name: str, **options: Any) -> tuple[Engine, bool]:
        """Return the engine of a collection, created if it does not exist, and whether it was created."""
        with self._lock:
            new = name not in self._main.collections()
            if not new and not options and name in self._open:
                return self._open[name], False
            words_only = options.pop("words_only", False)
            embedder = "none" if words_only else self._model(not new)
            self._open[name] = self._main.collection(name, embedder=embedder if new else None, **options)
            return self._open[name], new

    def forget(self, name: str) -> None:
        """Let go of the engines of a collection that was dropped."""
        with self._lock:
            self._open.pop(name, None)
            for known in [known for known in self._bound if known[0] == name]:
                del self._bound[known]

    def close(self) -> None:
        self._main.close()
