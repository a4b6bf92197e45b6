"""Ingest of many documents in batches.

A batch is one transaction: checked, cut and hashed before it, durable after it. For a large load a second process
indexes meanwhile, if the store has one (``Maintenance.indexer``). Vectors follow in the background (``background.py``),
those of a large load after its last batch: until then the cores are for the words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trivet.concurrency import deadline
from trivet.engine import tables, validation
from trivet.engine.models import EMBED_AT_ONCE
from trivet.errors import InputError
from trivet.text.passages import cut
from trivet.types import Added, Degraded, Document, Progress

if TYPE_CHECKING:
    from trivet.engine.models import CollectionModels
    from trivet.filters import Filter
    from trivet.stores.contract import Collection, Indexer, Model, Prepared


BATCH_DOCUMENTS, BATCH_CHARACTERS = 1_000, 8_000_000  # at most, in one transaction
TIDY_FROM, TIDY_EVERY = 1_000, 50_000  # passages of one load after which indexes are updated at its end, or meanwhile
INDEXER_FROM = 4_000  # passages: indexing them takes about as long as starting a process


class Load:
    """A load of documents into one collection; a context manager. Call ``finish`` at the end."""

    def __init__(
        self,
        collection: Collection,
        models: CollectionModels,
        connected: Callable[[], bool],
        within: Filter | None = None,
    ) -> None:
        """``connected`` tells whether searches use the graph; ``within`` is the filter of a bound caller."""
        self._collection, self._models, self._connected, self._within = collection, models, connected, within
        self._untidy = self._stored = 0  # passages: since the last update of the index; in all
        self._indexer: Indexer | None = None
        self._unembedded = False  # whether many passages wait for the end
        self._alone = ""  # why no second process indexes, where one should
        self._since, self._writes = (0, 0), 0  # when it began, and how many writes it made

    def begin(self, key: str) -> dict[str, Any] | None:
        """Return what was kept of the same import if it would change nothing; otherwise begin it, for ``keep``."""
        imports = self._collection.imports
        if imports is None:
            return None
        self._since, self._writes = imports.mark(), 0
        return imports.find(key)

    def keep(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep a value for ``begin``: this import is completely in the store."""
        if self._collection.imports is not None:
            self._collection.imports.keep(key, value, self._since, self._writes)

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        if self._indexer is not None:
            self._indexer.stop()
            self._indexer = None
        self._embed()

    def add(
        self,
        documents: Any,
        *,
        progress: Progress | None = None,
        redact: bool = False,
        fields: Mapping[str, Any] | None = None,
    ) -> Added:
        """Add documents as ``Engine.add`` does; the index is up to date after ``finish``."""
        documents = tables.documents(documents, validation.KNOWN)
        model = self._collection.state().model
        taken: Counter[str] = Counter()
        read = validation.documents(documents, fields or {}, self._within)
        if redact:
            read = ((redacted(document, taken), links, vector) for document, links, vector in read)
        given = (validation.prepare(*item, self._cut, model.dim if model else None) for item in read)
        whole = isinstance(documents, Sequence)
        if whole:  # check all of a sequence first: nothing is stored unless all of it can be
            given = (item for item in list(given))
        ids: list[str] = []
        pids: list[int] = []
        became: Counter[str] = Counter()
        try:
            for batch in _batches(given):
                latest = {item.document.id: item for item in batch}
                became["duplicates"] += len(batch) - len(latest)
                written = self._collection.documents.write(list(latest.values()), model.mid if model else None)
                self._writes += bool(written.added or written.updated)
                became.update(added=written.added, updated=written.updated, unchanged=written.unchanged)
                known = self._keep_vectors(model, latest)
                # only whether there are few matters
                pids += [pid for pid in written.pids if pid not in known][: EMBED_AT_ONCE + 1]
                ids += latest
                if progress:
                    progress(len(ids), len(documents) if whole else 0)
                self._index(len(written.pids))
        except InputError as error:
            if not ids:
                raise
            self._embed_new(pids)
            raise InputError(f"{error} (the {len(ids):,} documents before it are stored)") from error
        except BaseException:  # a deadline, say: ``close`` lets what is stored be embedded
            self._unembedded = self._unembedded or bool(ids)
            raise
        degraded = self._embed_new(pids)
        pending = self._pending()
        return Added(tuple(ids), **became, pending=pending, degraded=degraded, redacted=dict(taken))

    def _keep_vectors(self, model: Model | None, batch: Mapping[str, Prepared]) -> set[int]:
        """Store the vectors that passages of an export came with; return the passages that have one."""
        given = {id: item.vectors for id, item in batch.items() if item.vectors}
        if model is None or not given:
            return set()
        whole = self._models.collection
        ids = {did: id for id, did in whole.documents.numbers(list(given)).items()}
        rows = [
            (pid, given[ids[did]][digest])
            for pid, did, _, _, _, digest in whole.documents.passages(list(ids))
            if digest in given[ids[did]]
        ]
        whole.vectors.add(model.mid, rows)
        return {pid for pid, _ in rows}

    def _embed_new(self, pids: Sequence[int]) -> tuple[Degraded, ...]:
        """Embed a few passages now; leave many to the end of the load."""
        self._unembedded = self._unembedded or len(pids) > EMBED_AT_ONCE
        return () if self._unembedded else self._models.embed_new(pids)

    def _embed(self) -> None:
        """Embed what was left to the end, in the background."""
        if self._unembedded:
            self._unembedded = False
            with deadline.lifted():
                self._models.embed_in_background()

    def _pending(self) -> int:
        """Count the passages without a vector, of those that the caller may see."""
        if not self._collection.state().pending:
            return 0
        counts = self._collection.documents.counts()
        return counts.passages - counts.embedded

    def finish(self) -> tuple[Degraded, ...]:
        """Bring the indexes up to date after a large load, so that the next search need not."""
        indexer, self._indexer = self._indexer, None
        if indexer is not None:
            indexer.end()
            self._models.collection.maintenance.update_vectors()
            self._alone = indexer.finish()
        if self._untidy > TIDY_FROM:
            whole = self._models.collection
            whole.maintenance.update()
            self._untidy = 0
            if self._connected() and whole.graph is not None:
                whole.graph.update_in_background()
        self._embed()
        reason = f"no second process indexed this load, so it took longer: {self._alone}"
        return (Degraded("load", reason),) if self._alone else ()

    def _index(self, passages: int) -> None:
        """Take note of written passages; start the second process, or update the index, when they are many."""
        self._untidy += passages
        self._stored += passages
        if self._indexer is None and not self._alone and self._stored >= INDEXER_FROM:
            self._start()
        if self._indexer is None and self._untidy > TIDY_EVERY:  # in portions: a search waits for one at most
            self._models.collection.maintenance.update_lexical()
            self._untidy = TIDY_FROM + 1  # vectors and graph are still to be updated

    def _start(self) -> None:
        if self._collection.bound is not None:
            return
        try:
            self._indexer = self._models.collection.maintenance.indexer()
        except OSError as error:
            self._alone = str(error)

    def _cut(self, text: str) -> list[Any]:
        return passages(self._collection, text)


def passages(collection: Collection, text: str) -> list[Any]:
    """Cut a text into passages as this collection does."""
    size = collection.config.get("passage_size")
    return cut(text) if size is None else cut(text, size=size)


def redacted(document: Document, taken: Counter[str]) -> Document:
    """Remove secrets from text, title and metadata; ``taken`` counts them by kind."""
    from trivet.memory.redaction import redact_values

    plain, kinds = redact_values({"text": document.text, "title": document.title, "meta": document.meta})
    taken.update(kinds)
    return replace(document, **plain)


def _batches(given: Iterator[Prepared]) -> Iterator[list[Prepared]]:
    batch: list[Prepared] = []
    size = 0
    for item in given:
        batch.append(item)
        size += len(item.document.text)
        if len(batch) >= BATCH_DOCUMENTS or size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
