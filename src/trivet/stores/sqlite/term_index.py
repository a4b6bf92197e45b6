"""A term index: a tantivy index on disk and a ``Tail`` in memory, made from the passages of the records.

The index has its own checkpoint (the last passage and the last removal it has applied) in the same commit as the
passages, so it always knows what it has, and reads what is missing from the records. It may be deleted or damaged at
any time: then it is rebuilt.

Any process may update the index on disk, one at a time (a file lock held only meanwhile). The others search the commit
they have open and their own tail.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import tantivy
from filelock import Timeout

from trivet.concurrency import deadline
from trivet.errors import DeadlineError, TrivetError
from trivet.stores.indexes import snapshots
from trivet.stores.indexes.file_locks import acquire
from trivet.stores.sqlite.file_checksums import FileChecksums, is_sound
from trivet.stores.sqlite.forward_index import SEGMENT, Draft, ForwardIndex
from trivet.stores.sqlite.term_search import Tail, documents_in, idf
from trivet.types import Progress

if TYPE_CHECKING:
    from trivet.stores.indexes.differences import Differences
    from trivet.stores.sqlite.verify_indexes import HeldTerms

TAIL_LIMIT = 512  # passages and removals kept in memory before the index takes them
MANY = 5_000  # new passages; for more, wait for the process that is indexing rather than hold them in memory
BATCH = 2_000  # passages read from the records at a time
PORTION = 50_000  # passages of one commit while another process goes on writing
LULL, LONGEST = 0.5, 10.0  # seconds that a portion waits for more passages, and that it lasts at most
WAIT = 600.0  # seconds, for another process that is writing the index
PRUNED_TRIES = 3  # attempts to update the index while other processes prune removals
LOOK = 0.01  # seconds between two looks for new passages
CHECK_SECONDS = 1.0  # between two checks of the files of the open commit

_HEAP_SMALL, _HEAP_LARGE = 16_000_000, 200_000_000  # bytes; tantivy wants at least 15 MB per thread
_MARK = "checkpoint"
_PARTS = ("term", "idx", "pos", "fast", "fieldnorm", "store")  # the files of a segment
_SCHEMA_VERSION = 4

Halves = tuple[list[str], list[str]]  # the words in order, and further terms of them
Answer = TypeVar("Answer")


class Source(Protocol):
    """What the index reads from the records (``ChangeFeed``, or a list in a test)."""

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        """Return (pid, did, title, text) in order of pid."""

    def count_after(self, pid: int) -> int: ...

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        """Return (seq, pid) in order; ``PrunedError`` where some are no longer kept."""

    def last_removed(self) -> int:
        """Return the number of the last removal."""

    def pruned(self) -> int:
        """Return the last removal that is no longer kept; 0 where all are."""

    def pids_of(self, dids: Sequence[int], most: int) -> list[tuple[int, int]]:
        """Return (pid, did) of up to ``most`` passages of these documents."""

    def checkpoint(self, name: str) -> dict[str, Any]:
        """Return the checkpoint of the newest state; called after the passages were read."""

    def knows(self, name: str, checkpoint: dict[str, Any]) -> bool:
        """Tell whether an index with this checkpoint was made from these records."""


class TermIndex:
    """The terms of the passages of one collection, kept up to date; ``TermSearch`` ranks passages with it.

    Public attributes change together, under ``lock``: the open commit (``searcher``, ``forward``, ``disk_pid``) and the
    ``tail`` of what came after it.
    """

    def __init__(
        self,
        folder: Path,
        source: Source,
        analyse: Callable[[str], str],
        identity: str,
        positions: bool = True,
        halves: Callable[[str], Halves] | None = None,
    ) -> None:
        """``halves`` is ``analyse`` before its two parts are joined; with it, the index keeps positions."""
        self._folder, self.source, self._analyse, self._halves = folder, source, analyse, halves
        self._given, self._positions = identity, positions
        self.schema = _schema(positions)
        self._identity = f"{_SCHEMA_VERSION}/{identity}"
        self.lock = threading.RLock()
        self._seen = -1
        self._index: Any = None
        self.searcher: Any = None
        self.tail = Tail()
        self.forward: ForwardIndex | None = None
        self.disk_pid = self._tail_pid = self._disk_removed = self._tail_removed = self._disk_tokens = 0
        self._disk_gone = 0  # passages deleted from the index on disk: their terms may still be in its files
        self._files = FileChecksums(folder)
        self._live: tuple[str, ...] = ()  # the files of the open commit
        self._checked = 0.0  # when they were checked last
        self.deleted: list[str] = []  # what was on disk and could not be used, for ``verify``
        try:
            self._open()
        except snapshots.ForeignError:
            self._delete_foreign()

    # --- updates ------------------------------------------------------------------------------------------------------

    def catch_up(self, version: int, progress: Progress | None = None) -> None:
        """Read everything that the records held at this version."""
        if version != self._seen:
            self._catch_up(version, progress)

    @deadline.lifted()
    def _catch_up(self, version: int, progress: Progress | None) -> None:
        with self.lock:
            if version != self._seen:
                self._unpruned(lambda: self._read_new(progress))
                self._seen = version

    def _read_new(self, progress: Progress | None) -> None:
        waiting = self.source.count_after(self._tail_pid)
        removed = self.source.removed_after(self._tail_removed)
        if len(self.tail) + len(self.tail.removed) + waiting + len(removed) > TAIL_LIMIT:
            with contextlib.suppress(Timeout, NoRoomError):  # the tail can hold everything, only slower
                self._advance(wait=waiting > MANY, progress=progress)
            removed = self.source.removed_after(self._tail_removed)
        self._extend_tail(removed)

    def _unpruned(self, work: Callable[[], None]) -> None:
        """Run ``work``; again from the index on disk where another process pruned removals that were not read yet."""
        for _ in range(PRUNED_TRIES):
            try:
                work()
                return
            except snapshots.PrunedError:
                self._usable()  # the other process has updated the index on disk; else it is rebuilt
        work()

    @deadline.lifted()
    def settle(self) -> None:
        """Write what is only in memory to the index on disk; ``Timeout`` when another process has its lock."""
        with self.lock:
            self._advance(wait=False, progress=None)
            self._seen = -1

    @deadline.lifted()
    def rewrite(self, progress: Progress | None = None) -> None:
        """Rebuild the index on disk without removed passages, where it has any; searches go on meanwhile.

        tantivy only marks a document as deleted: its terms stay in the files until segments are merged.
        """
        with self.lock:
            self._advance(wait=True, progress=None)
            self._seen = -1
            if not self._disk_gone:
                return
        place = self._folder.parent / "draft"
        place.mkdir(parents=True, exist_ok=True)
        with acquire(place / f"{self._folder.name}-compact.lock", WAIT):
            made = place / self._folder.name  # under the same name: checkpoints belong to the name
            shutil.rmtree(made, ignore_errors=True)  # left by a process that was killed
            fresh = TermIndex(made, self.source, self._analyse, self._given, self._positions, self._halves)
            fresh._advance(wait=True, progress=progress)
            with self.lock, acquire(f"{self._folder}.lock", WAIT):
                self._index = self.searcher = self.forward = None
                old = place / f"{self._folder.name}-{uuid.uuid4().hex}"
                if self._folder.exists():
                    self._folder.rename(old)
                if made.exists():  # nothing is written where there is no passage
                    made.rename(self._folder)
                shutil.rmtree(old, ignore_errors=True)
                self._usable()
            Path(f"{made}.lock").unlink(missing_ok=True)

    @property
    def applied(self) -> int | None:
        """The last removal that the open index on disk has applied; None where there is no index."""
        return self._disk_removed if self._index is not None else None

    def follow(self, ended: Callable[[], bool]) -> None:
        """Index what another process writes, portion by portion, until it has ``ended``.

        A portion ends where the writer pauses: a search waits for the lock, and must not wait for an idle writer.
        """
        while True:
            last = ended()  # first: what was written before the end can be read now
            with self.lock:
                if last or self.source.count_after(self.disk_pid) > MANY:
                    self._advance(wait=True, progress=None, more=_until_pause(ended))
            if last:
                return
            time.sleep(LOOK)

    def is_near(self, version: int, writes: int) -> bool:
        """Tell whether it is up to date but for so many writes."""
        return 0 <= self._seen <= version <= self._seen + writes

    def discard(self) -> None:
        """Delete the index; the next ``catch_up`` reads the records again."""
        with self.lock:
            self._discard()
            self._seen = -1

    def _extend_tail(self, removed: list[tuple[int, int]]) -> None:
        while batch := self.source.passages_after(self._tail_pid, BATCH):
            for pid, did, title, text in batch:
                self.tail.add(pid, did, self._terms(title, text))
            self._tail_pid = batch[-1][0]
        for seq, pid in removed:
            self.tail.remove(pid)
            if self.searcher is not None and self.searcher.doc_freq("pid", pid):
                self.tail.removed.add(pid)
                self.tail.tokens -= self._lengths([pid])[1]
            self._tail_removed = seq

    def _advance(
        self, wait: bool, progress: Progress | None, rebuild: bool = False, more: Callable[[int], bool] | None = None
    ) -> None:
        """Write what is missing to the index on disk; ``Timeout`` when another process has its lock."""
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            lock = acquire(f"{self._folder}.lock", WAIT if wait else 0)
        except OSError as error:
            if isinstance(error, Timeout):
                raise
            raise NoRoomError(str(error)) from error
        with lock:
            if rebuild or not self._usable():  # another process may have done the work
                self._discard()
            try:
                self._write_missing(progress, more)
            except BaseException as error:
                _check_room(error)
                # half-written or damaged: rebuild it from the records
                self._discard()
                self._write_again(progress)
            self.deleted = []
            self._usable()

    def _write_again(self, progress: Progress | None) -> None:
        """Rebuild the index. An error here means no space, whatever tantivy calls it ("An index writer was killed")."""
        try:
            self._write_missing(progress)
        except BaseException as error:
            _check_room(error)
            self._discard()
            raise NoRoomError(str(error)) from error

    def _write_missing(self, progress: Progress | None, more: Callable[[int], bool] | None = None) -> None:
        """Write new passages and removals. ``more(done)``: whether to wait for further passages before the commit."""
        total = self.source.count_after(self.disk_pid)
        removed = self.source.removed_after(self._disk_removed)
        if not total and not removed:
            return
        if self._index is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._index = _unwatched(tantivy.Index(self.schema, path=str(self._folder)))
        ForwardIndex(self._folder).drop_after(self.disk_pid)
        writer = self._index.writer(_HEAP_LARGE if total > MANY else _HEAP_SMALL, 1)
        here, length = self._lengths([gone for _, gone in removed])
        pid, tokens, done = self.disk_pid, self._disk_tokens - length, 0
        for _, gone in removed:
            # by query: tantivy-py's delete by term reads a Python int as signed and never matches an unsigned field
            writer.delete_documents_by_query(tantivy.Query.term_query(self.schema, "pid", gone, "basic"))
        draft = Draft()
        while (batch := self.source.passages_after(pid, BATCH)) or (more is not None and more(done)):
            for number, did, title, text in batch:
                line = self._line(title, text, number, draft)
                length = line.count(" ") + 1
                document = tantivy.Document()
                document.add_unsigned("pid", number)
                document.add_unsigned("did", did)
                document.add_unsigned("length", length)
                document.add_text("body", line)
                writer.add_document(document)
                tokens += length
            pid = batch[-1][0] if batch else pid
            done += len(batch)
            if progress:
                progress(done, total)
            if more is not None and done >= PORTION:
                break
            if len(draft) >= SEGMENT:
                draft.save(self._folder)
                draft = Draft()
        if len(draft):
            draft.save(self._folder)
            ForwardIndex(self._folder).merge()
        gone = self._disk_gone + (len(removed) if self.disk_pid else 0)
        state = {"identity": self._identity, "pid": pid, "tokens": tokens, "gone": gone}
        state["documents"] = documents_in(self.searcher) - here + done
        state["forward"] = len(ForwardIndex(self._folder)) if self._halves is not None else 0
        state["checkpoint"] = self.source.checkpoint(self._folder.name)
        state["removed"] = removed[-1][0] if removed else self._disk_removed
        writer.delete_documents_by_term("mark", _MARK)
        mark = tantivy.Document()
        mark.add_text("mark", _MARK)
        mark.add_text("state", json.dumps(state))
        writer.add_document(mark)
        writer.commit()
        writer.wait_merging_threads()

    def _lengths(self, pids: Sequence[int]) -> tuple[int, int]:
        """Return how many of these passages the index on disk has, and their number of terms."""
        if self.searcher is None:
            return 0, 0
        found = [
            address
            for pid in pids
            for _, address in self.searcher.search(tantivy.Query.term_query(self.schema, "pid", pid, "basic"), 1).hits
        ]
        return len(found), sum(self.searcher.fast_field_values("length", found))

    def _delete_foreign(self) -> None:
        """Delete an index of another timeline at once, so that no process uses it later."""
        self.deleted = [f"{self._folder.name}: {snapshots.FOREIGN}"]
        with contextlib.suppress(Timeout, OSError), acquire(f"{self._folder}.lock", 0):
            if not self._usable():  # another process may have rebuilt it
                self._discard()

    def _usable(self) -> bool:
        """Open the newest commit; False where none of this timeline can be read."""
        try:
            return self._open()
        except snapshots.ForeignError:
            return False

    def _open(self) -> bool:
        """Open the newest commit; False where none can be read. Only ``_advance``, under the lock, deletes it."""
        self._empty()
        if not (self._folder / "meta.json").exists():
            return False
        try:
            index, searcher, live = self._commit()
            if not searcher.num_docs:  # created by a process that was killed before its first commit
                return False
            found = searcher.search(tantivy.Query.term_query(index.schema, "mark", _MARK), 1).hits
            state = json.loads(str(searcher.doc(found[0][1]).get_first("state")))
            pid, removed, tokens = int(state["pid"]), int(state["removed"]), int(state["tokens"])
            identity, checkpoint = state["identity"], state["checkpoint"]
            gone = int(state.get("gone", 1))  # of an older trivet, which did not count
            if state.get("documents", documents_in(searcher)) != documents_in(searcher):
                raise DamagedError("meta.json counts other passages than were written")
        except BaseException as error:
            if not _is_damage(error):
                raise
            self._note_damage(str(error) if isinstance(error, DamagedError) else "it cannot be read")
            return False
        if not self.source.knows(self._folder.name, checkpoint):
            raise snapshots.ForeignError(self._folder.name)
        if identity != self._identity or removed < self.source.pruned():
            return False  # of another analyser; or removals that it needs are no longer kept
        forward = ForwardIndex(self._folder) if self._halves is not None else None
        if forward is not None and (forward.damaged or len(forward) < state.get("forward", 0)):
            self._note_damage(
                f"{forward.damaged[0].name} is damaged" if forward.damaged else "a forward file is missing"
            )
            return False
        self._live = live
        self._index, self.searcher, self.forward = index, searcher, forward
        self._reset(pid, removed, tokens, gone)
        return True

    def _commit(self) -> tuple[Any, Any, tuple[str, ...]]:
        """Open the newest commit; return its index, searcher and files. ``DamagedError`` where a file is damaged."""
        while True:
            meta = (self._folder / "meta.json").read_bytes()
            live = _files_of(meta)
            wrong = self._files.damaged(live) or self._files.missing(live)  # before tantivy maps them into memory
            if not wrong:
                index = _unwatched(tantivy.Index.open(str(self._folder)))
                index.reload()
                searcher = index.searcher()
            if (self._folder / "meta.json").read_bytes() == meta:  # else another process merged segments meanwhile
                break
        if wrong:
            raise DamagedError(f"{wrong[0]} is damaged")
        self._checked = time.monotonic()
        return index, searcher, live

    def _note_damage(self, what: str) -> None:
        self.deleted = [f"{self._folder.name}: {what}; run rebuild"]

    def _empty(self) -> None:
        """Hold nothing. What is read from now on needs no earlier removal."""
        self._index = self.searcher = self.forward = None
        self._reset(0, self.source.last_removed(), 0, 0)

    def _reset(self, pid: int, removed: int, tokens: int, gone: int) -> None:
        self._disk_gone = gone
        self.disk_pid = self._tail_pid = pid
        self._disk_removed = self._tail_removed = removed
        self._disk_tokens = tokens
        self.tail = Tail()

    def _discard(self) -> None:
        with contextlib.suppress(OSError):  # first: what is left after a kill then does not look like damage
            (self._folder / "meta.json").unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._empty()

    def _terms(self, title: str, text: str) -> list[str]:
        return self._analyse(f"{title}\n{text}" if title else text).split()

    def _line(self, title: str, text: str, pid: int, draft: Draft) -> str:
        """Return the line that the index takes; add the positions of its terms to the draft."""
        heading, words, line = self.analysed(title, text)
        if self._halves is not None:
            draft.add(pid, heading, words)
        return line

    def analysed(self, title: str, text: str) -> tuple[list[str], list[str], str]:
        """Return the items of the title, those of the text, and the line that the index takes."""
        if self._halves is None:
            return [], [], self._analyse(f"{title}\n{text}" if title else text)
        (heading, after), (words, tail) = self._halves(title), self._halves(text)
        return heading + after, words + tail, " ".join(heading + words + after + tail)

    # --- checks -------------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """How many passages it has."""
        with self.lock:
            return documents_in(self.searcher) + len(self.tail) - len(self.tail.removed)

    @property
    def name(self) -> str:
        """The name of its folder, for messages."""
        return self._folder.name

    def compare(self, report: Progress | None = None) -> Differences:
        """Compare what it holds with the passages of the records."""
        from trivet.stores.indexes.differences import Differences
        from trivet.stores.sqlite.verify_indexes import compare_terms

        try:
            return compare_terms(self.held(), self.source, self.analysed, report)
        except BaseException as error:
            if not _is_damage(error) or isinstance(error, TrivetError):
                raise
            return Differences(self.name, {"it cannot be read": {}})

    def held(self) -> HeldTerms:
        """Return what it holds now, for a comparison."""
        from trivet.stores.sqlite.verify_indexes import HeldTerms, sum_of

        with self.lock:
            tail = self.tail
            held = {pid: (did, len(tail.terms[pid]), sum_of(set(tail.terms[pid]))) for pid, did in tail.dids.items()}
            return HeldTerms(
                self._folder.name,
                self.schema,
                self.searcher,
                self.forward,
                self.disk_pid,
                self._tail_pid,
                self._tail_removed,
                held,
                frozenset(tail.removed),
            )

    def problems(self) -> list[str]:
        """Return the files whose bytes are not those that were written: tantivy ends every file with its checksum."""
        if self.searcher is None or not (self._folder / "meta.json").exists():
            return []  # nothing there, or deleted: it is rebuilt
        try:
            live = _files_of((self._folder / "meta.json").read_bytes())
        except (OSError, ValueError, KeyError, TypeError):
            return [f"{self._folder.name}: meta.json is damaged; run rebuild"]
        unsound = [name for name in live if not is_sound(self._folder / name)]
        wrong = [f"{self._folder.name}: {name} is damaged; run rebuild" for name in unsound]
        return wrong if self.forward is None else [*wrong, *self.forward.problems(self._folder.name)]

    def healed(self, search: Callable[[], Answer]) -> Answer:
        """Return what ``search`` returns; where a file cannot be read or was changed, rebuild the index first."""
        if self._is_changed():
            self.rebuild()
        try:
            return search()
        except BaseException as error:
            if not _is_damage(error):
                raise
            self.rebuild()
        return search()

    def _is_changed(self) -> bool:
        """Tell whether a file of the open commit was damaged since it was opened; check once a second at most."""
        now = time.monotonic()
        if now - self._checked < CHECK_SECONDS:
            return False
        self._checked = now
        return bool(self._files.damaged(self._live))

    @deadline.lifted()
    def rebuild(self) -> None:
        """Build the index on disk again from the records."""
        with self.lock:
            with contextlib.suppress(Timeout, NoRoomError):
                self._advance(wait=True, progress=None, rebuild=True)
            self._unpruned(lambda: self._extend_tail(self.source.removed_after(self._tail_removed)))

    # --- statistics of BM25 -------------------------------------------------------------------------------------------

    @property
    def documents(self) -> int:
        """How many passages the index on disk has."""
        return documents_in(self.searcher)

    def frequency(self, term: str) -> int:
        """Return how many passages have the term."""
        on_disk = self.searcher.doc_freq("body", term) if self.searcher is not None else 0
        return int(on_disk) + self.tail.frequency(term)

    def idf(self, term: str) -> float:
        return idf(documents_in(self.searcher) + len(self.tail), self.frequency(term))

    def average_length(self) -> float:
        """Return the mean number of terms of a passage."""
        documents = documents_in(self.searcher) + len(self.tail) - len(self.tail.removed)
        return max(1.0, (self._disk_tokens + self.tail.tokens) / max(1, documents))


def _schema(positions: bool) -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("pid", indexed=True, fast=True)
    builder.add_unsigned_field("did", indexed=True, fast=True)
    builder.add_unsigned_field("length", fast=True)
    builder.add_text_field("body", tokenizer_name="whitespace", index_option="position" if positions else "basic")
    builder.add_text_field("mark", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("state", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def _unwatched(index: Any) -> Any:
    """Stop tantivy from mapping the files of later commits by itself: a thread of it would do so before any check."""
    index.config_reader("Manual", 0)
    return index


class DamagedError(Exception):
    """A file of the index is not what was written."""


class NoRoomError(Exception):
    """The folder of the indexes cannot be written: full or read-only."""


def _check_room(error: BaseException) -> None:
    if not _is_damage(error) or isinstance(error, TrivetError):  # of the records: it says nothing about the index
        raise error
    message = str(error)
    if any(
        sign in message for sign in ("No space left", "Read-only file system", "Permission denied", "Quota exceeded")
    ):
        raise NoRoomError(message) from error


def _files_of(meta: bytes) -> tuple[str, ...]:
    """Return the names of the files of a commit."""
    found: list[str] = []
    for part in json.loads(meta)["segments"]:
        name = part["segment_id"].replace("-", "")
        found += [f"{name}.{kind}" for kind in _PARTS]
        if part["deletes"]:
            found.append(f"{name}.{part['deletes']['opstamp']}.del")
    return tuple(found)


def _until_pause(ended: Callable[[], bool]) -> Callable[[int], bool]:
    """Return a function that waits a moment for more passages; False after an end, a pause or ``LONGEST``."""
    started = paused = time.monotonic()
    seen = 0

    def more(done: int) -> bool:
        nonlocal paused, seen
        now = time.monotonic()
        if done != seen:
            seen, paused = done, now
        if ended() or now - paused > LULL or now - started > LONGEST:
            return False
        time.sleep(LOOK)
        return True

    return more


def _is_damage(error: BaseException) -> bool:
    """Tell whether an error means damage: tantivy raises an error or a Rust panic, which is no ``Exception``."""
    if isinstance(error, DeadlineError):
        return False
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
