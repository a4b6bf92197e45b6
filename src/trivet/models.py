"""Which model embeds this collection, and what waits for it?

The embedder is looked up by the model the truth names, because another process may have re-embedded the collection
meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor

from trivet import deadline
from trivet.backlog import Backlog, embed, embed_few
from trivet.embedders import load_embedder
from trivet.embedders.workers import crew
from trivet.errors import EmbedderError, InputError, ModelMismatchError, TrivetError
from trivet.stores.contract import Model, Shelf
from trivet.types import Degraded, Embedder

Progress = Callable[[int, int], None]

EMBED_AT_ONCE = (
    16  # passages: an add this small returns when its meaning is searchable, a larger one goes to the backlog
)


class Models:
    def __init__(self, shelf: Shelf, asked: Embedder | str | None) -> None:
        self.shelf = shelf
        self.embedder, self.why_none = self._choose(asked)
        self._known = {self.embedder.id: self.embedder} if self.embedder else {}
        self.backlog = self._new_backlog()
        if self.embedder is not None and shelf.state().pending and not shelf.read_only:
            self.embed_in_background()

    def _new_backlog(self) -> Backlog:
        return Backlog(self.shelf)

    def _choose(self, asked: Embedder | str | None) -> tuple[Embedder | None, str]:
        """The embedder and, where there is none, why; a model other than the collection's is refused."""
        model = self.shelf.state().model
        if asked == "none":
            return None, "opened with embedder='none'"
        if model is None:
            if asked is None and self.shelf.config.get("words_only"):
                return None, "the collection was made with embedder='none'"
            embedder = load_embedder(asked if asked is not None else "builtin")
            if embedder is None:
                return None, "no embedder"
            if not self.shelf.read_only:
                self.shelf.add_model(embedder.id, embedder.spec, embedder.dim, answers=True)
            return embedder, ""
        try:
            embedder = load_embedder(asked if asked is not None else model.spec)
        except TrivetError as error:
            if asked is not None:
                raise
            return None, str(error)  # words still answer, and every search says what is missing
        if embedder is not None and embedder.id != model.id:
            shelf = self.shelf
            where = f"--store {shelf.store.path} --collection {shelf.name}"
            raise ModelMismatchError(
                f"embedder: collection {shelf.name!r} holds vectors of {model.id!r}, not of {embedder.id!r}; open it "
                "without embedder= to go on with the old model, or change it with "
                f"`trivet reembed {where} --embedder {embedder.spec}`"
            )
        return embedder, ""

    def embedder_of(self, model: Model | None) -> Embedder | None:
        """The embedder whose vectors these are: another process may have changed the model meanwhile."""
        if model is None or self.embedder is None:
            return None
        if model.id not in self._known:
            try:
                found = load_embedder(model.spec)
            except TrivetError as error:
                self.why_none = f"the collection was re-embedded with {model.id!r}: {error}"
                return None
            if found is None or found.id != model.id:
                self.why_none = f"the collection was re-embedded with {model.id!r}; open it again with that"
                return None
            self._known[model.id] = found
        return self._known[model.id]

    @deadline.lifted()  # what is stored is embedded, however the request ends that stored it
    def embed_in_background(self) -> None:
        model = self.shelf.state().model
        embedder = self.embedder_of(model)
        if embedder is not None and model is not None and not model.spec.startswith("vectors:"):
            self.backlog.start(embedder, model)

    def embed_new(self, pids: Sequence[int]) -> tuple[Degraded, ...]:
        model = self.shelf.state().model
        embedder = self.embedder_of(model)
        if model is None or embedder is None or model.spec.startswith("vectors:"):
            return ()
        if len(pids) > EMBED_AT_ONCE:
            self.embed_in_background()
            return ()
        try:
            embed_few(self.shelf, embedder, model, pids)
        except Exception as error:  # the document is stored; its meaning follows when there is an embedder, and room
            self.embed_in_background()
            return (Degraded("dense", str(error) or type(error).__name__),)
        return ()

    def embed_with(self, workers: int | str, progress: Progress | None = None) -> None:
        """Work the backlog off with several processes or a Ray cluster; another that is at it already is left to it."""
        model = self.shelf.state().model
        embedder = self.embedder_of(model)
        if model is None or embedder is None or model.spec.startswith("vectors:"):
            return
        self.backlog.close()  # two would embed the same
        try:
            with self.shelf.embedding() as mine:
                if mine and self.shelf.unembedded(model.mid):
                    with crew(embedder, workers) as pool:
                        embed(self.shelf, pool, model, progress)
        except BrokenExecutor as error:
            told = "could not be loaded there; --workers needs a model that can be loaded by its name"
            raise EmbedderError(f"embedder {embedder.spec!r}: it {told}") from error
        finally:
            self.backlog = self._new_backlog()

    def wait(self, progress: Progress | None = None, timeout: float | None = None) -> None:
        """Block until every passage is embedded."""
        started, total = time.monotonic(), self.shelf.state().pending
        self.backlog.error = ""  # of the last attempt; this is a new one
        self.embed_in_background()
        while (pending := self.shelf.state().pending) and self.backlog.running:
            if self.backlog.error:
                raise EmbedderError(f"{pending:,} passages are not embedded: {self.backlog.error}")
            if timeout is not None and time.monotonic() - started > timeout:
                raise EmbedderError(
                    f"{pending:,} passages are still not embedded after {timeout:g} s; they go on in the background"
                )
            if progress:
                progress(max(0, total - pending), total)
            time.sleep(0.05)
        pending = self.shelf.state().pending
        if pending and self.embedder is None:
            raise EmbedderError(f"{pending:,} passages are not embedded, and nothing embeds them: {self.why_none}")
        if progress and total and not pending:
            progress(total, total)

    def reembed(self, embedder: str | Embedder, progress: Progress | None = None) -> int:
        """Embed everything with another model; the old one answers until the last passage is done."""
        new = load_embedder(embedder)
        if new is None:
            raise InputError(
                "embedder: 'none' embeds nothing; open the collection with embedder='none' to search by words alone"
            )
        model = self.shelf.add_model(new.id, new.spec, new.dim, answers=False)
        done = embed(self.shelf, new, model, progress)
        while self.shelf.unembedded(model.mid):  # written meanwhile
            done += embed(self.shelf, new, model, progress)
        self.embedder = self._known[new.id] = new  # before the change: a search looks it up by the model's id
        self.shelf.add_model(new.id, new.spec, new.dim, answers=True)
        self.backlog.close()  # before the old vectors go: it would make them again
        self.shelf.forget_other_models(model.mid)
        self.backlog = self._new_backlog()
        return done

    def close(self) -> None:
        self.backlog.close()
