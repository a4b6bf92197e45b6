"""How do many documents get in at once?

In batches, each one transaction: checked, cut and hashed before it, durable after it. Of a large load the words are
indexed meanwhile by a second process, where the store has one to offer (``Following``); who loads little starts none.
Meaning follows in the background, as always (``backlog.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trivet import intake
from trivet.errors import InputError
from trivet.memory.redaction import redact_values
from trivet.models import EMBED_AT_ONCE
from trivet.passages import cut
from trivet.stores.contract import Following, Receiving
from trivet.types import Added, Degraded, Document

if TYPE_CHECKING:
    from trivet.filters import Filter
    from trivet.models import Models
    from trivet.stores.contract import Follower, Prepared, Shelf

Progress = Callable[[int, int], None]

BATCH_DOCUMENTS, BATCH_CHARACTERS = 1_000, 8_000_000  # one transaction of a bulk add
TIDY_FROM, TIDY_EVERY = 1_000, 50_000  # passages added in one load
FOLLOW_FROM = 4_000  # passages: indexing them takes about as long as starting a process


class Load:
    """Documents on their way into one collection; use as a context manager, and ``finish`` at the end."""

    def __init__(
        self, shelf: Shelf, models: Models, connected: Callable[[], bool], within: Filter | None = None
    ) -> None:
        """``connected``: do searches of this collection ask its graph? ``within`` is the filter the caller is bound
        to."""
        self._shelf, self._models, self._connected, self._within = shelf, models, connected, within
        self._untidy = self._stored = 0  # passages: since the index was last brought up to date; in all
        self._follower: Follower | None = None
        self._alone = ""  # why nobody indexes meanwhile, where somebody should
        self._since, self._writes = (0, 0), 0  # when it began, and how often it has changed something

    def begin(self, key: str) -> dict[str, Any] | None:
        """What is known of this very import, where it would change nothing; else it begins now, for ``keep``."""
        if not isinstance(self._shelf, Receiving):
            return None
        self._since, self._writes = self._shelf.mark(), 0
        return self._shelf.receipt(key)

    def keep(self, key: str, told: Mapping[str, Any]) -> None:
        """This import is in the store as a whole: let ``begin`` know the next time."""
        if isinstance(self._shelf, Receiving):
            self._shelf.keep_receipt(key, told, self._since, self._writes)

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        if self._follower is not None:
            self._follower.stop()
            self._follower = None

    def add(
        self,
        documents: Any,
        *,
        progress: Progress | None = None,
        redact: bool = False,
        fields: Mapping[str, Any] | None = None,
    ) -> Added:
        """As ``Engine.add``; the index may follow later, with ``finish``."""
        model = self._shelf.state().model
        taken: Counter[str] = Counter()
        read = intake.documents(documents, fields or {}, self._within)
        if redact:
            read = ((redacted(document, taken), links, vector) for document, links, vector in read)
        given = (intake.prepare(*item, self._cut, model.dim if model else None) for item in read)
        whole = isinstance(documents, Sequence)
        if whole:  # known as a whole: nothing is stored unless all of it can be
            given = (item for item in list(given))
        ids: list[str] = []
        pids: list[int] = []
        became: Counter[str] = Counter()
        try:
            for batch in _batches(given):
                latest = {item.document.id: item for item in batch}
                became["duplicates"] += len(batch) - len(latest)
                written = self._shelf.write(list(latest.values()), model.mid if model else None)
                self._writes += bool(written.added or written.updated)
                became.update(added=written.added, updated=written.updated, unchanged=written.unchanged)
                pids += written.pids[: EMBED_AT_ONCE + 1]  # the first few say whether there are few
                ids += latest
                if progress:
                    progress(len(ids), len(documents) if whole else 0)
                self._index(len(written.pids))
        except InputError as error:
            if not ids:
                raise
            self._models.embed_new(pids)
            raise InputError(f"{error} (the {len(ids):,} documents before it are stored)") from error
        degraded = self._models.embed_new(pids)
        pending = self._pending()
        return Added(tuple(ids), **became, pending=pending, degraded=degraded, redacted=dict(taken))

    def _pending(self) -> int:
        """Passages that wait to be embedded, of those the caller may see."""
        if not self._shelf.state().pending:
            return 0
        counts = self._shelf.counts()
        return counts.passages - counts.embedded

    def finish(self) -> tuple[Degraded, ...]:
        """Bring the indexes up to date, where this load is why they are not: the next search must not pay for it."""
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.end()
            if isinstance(self._shelf, Following):
                self._shelf.tidy_vectors()
            self._alone = follower.finish()
        if self._untidy > TIDY_FROM:
            whole = self._models.shelf
            whole.tidy()
            self._untidy = 0
            if self._connected():
                whole.read_connections()
        told = f"the words of this load were indexed by one process, not by a second one meanwhile: {self._alone}"
        return (Degraded("load", told),) if self._alone else ()

    def _index(self, passages: int) -> None:
        """So many were written: who indexes them?"""
        self._untidy += passages
        self._stored += passages
        if self._follower is None and not self._alone and self._stored >= FOLLOW_FROM:
            self._start()
        if self._follower is None and self._untidy > TIDY_EVERY:  # in portions: who searches waits for one at most
            self._models.shelf.tidy_words()
            self._untidy = TIDY_FROM + 1  # vectors and graph are still to be looked at

    def _start(self) -> None:
        if isinstance(self._shelf, Following):
            try:
                self._follower = self._shelf.follower()
            except OSError as error:
                self._alone = str(error)

    def _cut(self, text: str) -> list[Any]:
        return passages(self._shelf, text)


def passages(shelf: Shelf, text: str) -> list[Any]:
    """The text as this collection cuts it."""
    size = shelf.config.get("passage_size")
    return cut(text) if size is None else cut(text, size=size)


def redacted(document: Document, taken: Counter[str]) -> Document:
    """The document without secrets in its text, title and metadata; ``taken`` counts them by kind."""
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
