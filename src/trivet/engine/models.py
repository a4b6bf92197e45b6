"""The embedding model of a collection.

The embedder is looked up by the model that the records name, because another process may have re-embedded the
collection meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING

from trivet.concurrency import deadline
from trivet.engine.background import Backlog, embed, embed_few
from trivet.errors import EmbedderError, InputError, ModelMismatchError, TrivetError
from trivet.models.embedders import load_embedder
from trivet.stores.contract import Collection, Model
from trivet.types import Degraded, Embedder, Progress

if TYPE_CHECKING:
    from trivet.types import Vector


EMBED_AT_ONCE = 16  # passages: so few are embedded before `add` returns, more in the background


class CollectionModels:
    """Chooses the embedder of a collection and embeds its passages, at once or in the background."""

    def __init__(self, collection: Collection, asked: Embedder | str | None, background: bool = True) -> None:
        """``background`` says whether what waits is embedded from now on, without being asked."""
        self.collection = collection
        self.embedder, self.why_none = self._choose(asked)
        self.known = {self.embedder.id: self.embedder} if self.embedder else {}  # by the id of the model
        self.backlog = Backlog(self.collection)
        if background and self.embedder is not None and collection.state().pending and not collection.read_only:
            self.embed_in_background()

    def _choose(self, asked: Embedder | str | None) -> tuple[Embedder | None, str]:
        """Return the embedder, or why there is none; refuse a model other than the collection's."""
        model = self.collection.state().model
        if asked == "none":
            return None, "opened without an embedder"
        if model is None:
            if asked is None and self.collection.config.get("words_only"):
                return None, "the collection was created without an embedder"
            embedder = load_embedder(asked if asked is not None else "builtin")
            if embedder is None:
                return None, "no embedder"
            if not self.collection.read_only:
                self.collection.vectors.add_model(embedder.id, embedder.spec, embedder.dim, answers=True)
            return embedder, ""
        try:
            embedder = load_embedder(asked if asked is not None else model.spec)
        except TrivetError as error:
            if asked is not None:
                raise
            return None, str(error)  # the lexical leg still answers, and every search names the reason
        if embedder is not None and embedder.id != model.id:
            collection = self.collection
            where = f"--store {collection.store.path} --collection {collection.name}"
            raise ModelMismatchError(
                f"embedder: collection {collection.name!r} holds vectors of {model.id!r}, not of {embedder.id!r}; "
                "open it without naming an embedder to go on with the old model, or change it with "
                f"`trivet reembed {where} --embedder {embedder.spec}`"
            )
        return embedder, ""

    def embedder_of(self, model: Model | None) -> Embedder | None:
        """Return the embedder of a model; None, with the reason in ``why_none``, if it cannot be had."""
        if model is None or self.embedder is None:
            return None
        if model.id not in self.known:
            try:
                found = load_embedder(model.spec)
            except TrivetError as error:
                self.why_none = f"the collection was re-embedded with {model.id!r}: {error}"
                return None
            if found is None or found.id != model.id:
                self.why_none = f"the collection was re-embedded with {model.id!r}; open it again with that"
                return None
            self.known[model.id] = found
        return self.known[model.id]

    @deadline.lifted()  # stored passages are embedded even if the request that stored them times out
    def embed_in_background(self) -> None:
        model = self.collection.state().model
        embedder = self.embedder_of(model)
        if embedder is not None and model is not None and not model.spec.startswith("vectors:"):
            self.backlog.start(embedder, model)

    def vectors(self, texts: Sequence[str], queries: bool) -> Vector:
        """Return one vector for each text; refuse a collection without a model that can embed."""
        embedder = self.embedder_of(self.collection.state().model)
        if embedder is None:
            raise InputError(f"embed: collection {self.collection.name!r} has no embedding model: {self.why_none}")
        return (embedder.embed_queries if queries else embedder.embed_passages)(list(texts))

    def embed_new(self, pids: Sequence[int]) -> tuple[Degraded, ...]:
        model = self.collection.state().model
        embedder = self.embedder_of(model)
        if model is None or embedder is None or model.spec.startswith("vectors:"):
            return ()
        if len(pids) > EMBED_AT_ONCE:
            self.embed_in_background()
            return ()
        try:
            embed_few(self.collection, embedder, model, pids)
        except Exception as error:  # the document is stored; its vectors follow in the background
            self.embed_in_background()
            return (Degraded("dense", str(error) or type(error).__name__),)
        return ()

    def embed_with(self, workers: int | str, progress: Progress | None = None) -> None:
        """Embed what is missing with several processes or a Ray cluster, unless another process is at it."""
        model = self.collection.state().model
        embedder = self.embedder_of(model)
        if model is None or embedder is None or model.spec.startswith("vectors:"):
            return
        from trivet.models.embedders.workers import workers_for

        self.backlog.close()  # both would embed the same passages
        try:
            with self.collection.vectors.embedding_lock() as mine:
                if mine and self.collection.vectors.missing(model.mid):
                    with workers_for(embedder, workers) as pool:
                        embed(self.collection, pool, model, progress)
        except BrokenExecutor as error:
            reason = "could not be loaded there; --workers needs a model that can be loaded by its name"
            raise EmbedderError(f"embedder {embedder.spec!r}: it {reason}") from error
        finally:
            self.backlog = Backlog(self.collection)

    def wait(self, progress: Progress | None = None, timeout: float | None = None) -> None:
        """Block until every passage is embedded."""
        started, total = time.monotonic(), self.collection.state().pending
        self.backlog.error = ""  # of the attempt before
        self.embed_in_background()
        while (pending := self.collection.state().pending) and self.backlog.running:
            if self.backlog.error:
                raise EmbedderError(f"{pending:,} passages are not embedded: {self.backlog.error}")
            if timeout is not None and time.monotonic() - started > timeout:
                raise EmbedderError(
                    f"{pending:,} passages are still not embedded after {timeout:g} s; they follow in the background"
                )
            if progress:
                progress(max(0, total - pending), total)
            time.sleep(0.05)
        pending = self.collection.state().pending
        if pending and self.embedder is None:
            raise EmbedderError(f"{pending:,} passages are not embedded, and there is no embedder: {self.why_none}")
        if progress and total and not pending:
            progress(total, total)

    def reembed(self, embedder: str | Embedder, progress: Progress | None = None) -> int:
        """Embed everything with another model; the old one answers until the last passage is done."""
        new = load_embedder(embedder)
        if new is None:
            raise InputError(
                "embedder: 'none' embeds nothing; open the collection with the embedder none to search by words alone"
            )
        model = self.collection.vectors.add_model(new.id, new.spec, new.dim, answers=False)
        done = embed(self.collection, new, model, progress)
        while self.collection.vectors.missing(model.mid):  # written meanwhile
            done += embed(self.collection, new, model, progress)
        self.embedder = self.known[new.id] = (
            new  # before the model changes: a search looks the embedder up by the model's id
        )
        self.collection.vectors.add_model(new.id, new.spec, new.dim, answers=True)
        self.backlog.close()  # before the old vectors are removed: it would make them again
        self.collection.vectors.remove_other_models(model.mid)
        self.backlog = Backlog(self.collection)
        return done

    def close(self) -> None:
        self.backlog.close()
