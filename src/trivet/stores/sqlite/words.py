"""How is the index of words kept up to date?

A tantivy index on disk plus a ``Tail`` in memory, both projections of the passages in the truth. The index holds its
own checkpoint (the last passage and the last removal it has applied) inside the same commit as the documents, so it
always knows what it has; what is missing is read from the truth. It may be deleted or damaged at any time: it is
built anew.

Any process may advance the index, one at a time (a file lock held only while it does); the others go on searching the
commit they have open plus their own tail.
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

from trivet import deadline
from trivet.errors import DeadlineError, TrivetError
from trivet.stores.sqlite import snapshots
from trivet.stores.sqlite.forward import SEGMENT, Draft, Forward
from trivet.stores.sqlite.sound_files import SoundFiles, is_sound
from trivet.stores.sqlite.tail import Tail
from trivet.stores.sqlite.waiting import acquire

if TYPE_CHECKING:
    from trivet.stores.sqlite.comparison import Differences, HeldTerms

TAIL_LIMIT = 512  # passages and removals kept in memory before the index takes them
MANY = (
    5_000  # with more than this to catch up on, wait for the process that is indexing rather than hold them in memory
)
BATCH = 2_000  # passages read from the truth at a time
PORTION = 50_000  # passages that one commit takes while another process goes on writing
LULL, LONGEST = 0.5, 10.0  # seconds: so long a portion waits for more of them, and so long it lasts at most
WAIT = 600.0  # seconds, for another process that is writing the index
PRUNED_TRIES = 3  # times that removals may be pruned by others while the index is brought up to date
LOOK = 0.01  # seconds between two looks at what was written meanwhile
CHECK_SECONDS = 1.0  # between two looks at whether a file of the index changed under it

_HEAP_SMALL, _HEAP_LARGE = 16_000_000, 200_000_000  # bytes; tantivy wants at least 15 MB per thread
_MARK = "checkpoint"
_PARTS = ("term", "idx", "pos", "fast", "fieldnorm", "store")  # the files of a segment
_SCHEMA_VERSION = 4

Progress = Callable[[int, int], None]
Halves = tuple[list[str], list[str]]  # words in place, and the tail behind them
Answer = TypeVar("Answer")


class Source(Protocol):
    """What the index reads from the truth (the store, or a list in a test)."""

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        """(pid, did, title, text) in order of pid."""

    def count_after(self, pid: int) -> int: ...

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        """(seq, pid) in order; ``PrunedError`` where some are no longer kept."""

    def last_removed(self) -> int:
        """The number of the last removal."""

    def pruned(self) -> int:
        """The last removal that is no longer kept; 0 where all are."""

    def pids_of(self, dids: Sequence[int], most: int) -> list[tuple[int, int]]:
        """(pid, did) of the passages of these documents, so many at most."""

    def checkpoint(self, name: str) -> dict[str, Any]:
        """What an index says of the state it was made from; asked for after that was read."""

    def knows(self, name: str, checkpoint: dict[str, Any]) -> bool:
        """Was an index with this checkpoint made of this truth, and not of one that a backup has replaced?"""


class Words:
    """The index as it is kept; ``terms.py`` asks it."""

    def __init__(
        self,
        folder: Path,
        source: Source,
        analyse: Callable[[str], str],
        identity: str,
        positions: bool = True,
        halves: Callable[[str], Halves] | None = None,
    ) -> None:
        """``halves``: ``analyse`` before its two parts are joined. With it, the index can tell where terms stand."""
        self._folder, self._source, self._analyse, self._halves = folder, source, analyse, halves
        self._given, self._positions = identity, positions
        self._schema = _schema(positions)
        self._identity = f"{_SCHEMA_VERSION}/{identity}"
        self._lock = threading.RLock()
        self._seen = -1
        self._index: Any = None
        self._searcher: Any = None
        self._tail = Tail()
        self._forward: Forward | None = None
        self._disk_pid = self._tail_pid = self._disk_removed = self._tail_removed = self._disk_tokens = 0
        self._disk_gone = 0  # passages that were deleted from the index on disk: their terms may still be in its files
        self._files = SoundFiles(folder)
        self._live: tuple[str, ...] = ()  # the files of the commit that is open
        self._checked = 0.0  # when they were looked at last
        self.deleted: list[str] = []  # what lay on disk and was not used, for ``verify``; until it is made anew
        try:
            self._open()
        except snapshots.ForeignError:
            self._delete_foreign()

    # --- catching up --------------------------------------------------------------------------------------------------

    @deadline.lifted()
    def catch_up(self, version: int, progress: Progress | None = None) -> None:
        """See everything the truth held when its version number was read."""
        with self._lock:
            if version == self._seen:
                return
            self._unpruned(lambda: self._catch_up(progress))
            self._seen = version

    def _catch_up(self, progress: Progress | None) -> None:
        waiting = self._source.count_after(self._tail_pid)
        removed = self._source.removed_after(self._tail_removed)
        if len(self._tail) + len(self._tail.removed) + waiting + len(removed) > TAIL_LIMIT:
            with contextlib.suppress(Timeout, NoRoomError):  # the tail can hold it all, only less fast
                self._advance(wait=waiting > MANY, progress=progress)
            removed = self._source.removed_after(self._tail_removed)
        self._extend_tail(removed)

    def _unpruned(self, work: Callable[[], None]) -> None:
        """Do it; again from what is on disk where another process has pruned removals that were not read yet."""
        for _ in range(PRUNED_TRIES):
            try:
                work()
                return
            except snapshots.PrunedError:
                self._usable()  # the other one has brought the index on disk up to date; else it is made anew
        work()

    @deadline.lifted()
    def settle(self) -> None:
        """Write what is only in memory into the index on disk; ``Timeout`` when another process is at it."""
        with self._lock:
            self._advance(wait=False, progress=None)
            self._seen = -1

    @deadline.lifted()
    def rewrite(self, progress: Progress | None = None) -> None:
        """Make the index on disk anew without removed passages, where it holds any; searches go on meanwhile.

        tantivy only marks a document as deleted: its terms stay in the files until it merges them some day.
        """
        with self._lock:
            self._advance(wait=True, progress=None)
            self._seen = -1
            if not self._disk_gone:
                return
        place = self._folder.parent / "draft"
        place.mkdir(parents=True, exist_ok=True)
        with acquire(place / f"{self._folder.name}-compact.lock", WAIT):
            made = place / self._folder.name  # under the same name: its checkpoints are of that
            shutil.rmtree(made, ignore_errors=True)  # left by a process that was killed
            fresh = Words(made, self._source, self._analyse, self._given, self._positions, self._halves)
            fresh._advance(wait=True, progress=progress)
            with self._lock, acquire(f"{self._folder}.lock", WAIT):
                self._index = self._searcher = self._forward = None
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
        """The last removal that the index on disk has applied, as this process knows it; None where there is none."""
        return self._disk_removed if self._index is not None else None

    def follow(self, ended: Callable[[], bool]) -> None:
        """Take in what another process writes, portion by portion, until it has ``ended``.

        A portion ends where the writer pauses: whoever searches meanwhile waits for the lock, and must not wait for a
        writer that has nothing to say.
        """
        while True:
            last = ended()  # asked first: what was written before the end is there to be read
            with self._lock:
                if last or self._source.count_after(self._disk_pid) > MANY:
                    self._advance(wait=True, progress=None, more=_patience(ended))
            if last:
                return
            time.sleep(LOOK)

    def is_near(self, version: int, writes: int) -> bool:
        """Has it caught up but for so many?"""
        return 0 <= self._seen <= version <= self._seen + writes

    def discard(self) -> None:
        """Throw the index away; the next catch-up reads the truth again."""
        with self._lock:
            self._discard()
            self._seen = -1

    def _extend_tail(self, removed: list[tuple[int, int]]) -> None:
        while batch := self._source.passages_after(self._tail_pid, BATCH):
            for pid, did, title, text in batch:
                self._tail.add(pid, did, self._terms(title, text))
            self._tail_pid = batch[-1][0]
        for seq, pid in removed:
            self._tail.remove(pid)
            if self._searcher is not None and self._searcher.doc_freq("pid", pid):
                self._tail.removed.add(pid)
                self._tail.tokens -= self._lengths([pid])[1]
            self._tail_removed = seq

    def _advance(
        self, wait: bool, progress: Progress | None, anew: bool = False, more: Callable[[int], bool] | None = None
    ) -> None:
        """Write what is missing into the index on disk; ``Timeout`` when another process is at it."""
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            lock = acquire(f"{self._folder}.lock", WAIT if wait else 0)
        except OSError as error:
            if isinstance(error, Timeout):
                raise
            raise NoRoomError(str(error)) from error
        with lock:
            if anew or not self._usable():  # another process may have done the work
                self._discard()
            try:
                self._write_missing(progress, more)
            except BaseException as error:
                _check_room(error)
                # half-written or damaged: what is on disk is worth nothing, the truth is worth everything
                self._discard()
                self._write_anew(progress)
            self.deleted = []
            self._usable()

    def _write_anew(self, progress: Progress | None) -> None:
        """What fails here fails for want of room, whatever tantivy calls it ("An index writer was killed")."""
        try:
            self._write_missing(progress)
        except BaseException as error:
            _check_room(error)
            self._discard()
            raise NoRoomError(str(error)) from error

    def _write_missing(self, progress: Progress | None, more: Callable[[int], bool] | None = None) -> None:
        """``more``: with so many taken in and none left to read, is it worth looking again before the commit?"""
        total = self._source.count_after(self._disk_pid)
        removed = self._source.removed_after(self._disk_removed)
        if not total and not removed:
            return
        if self._index is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._index = tantivy.Index(self._schema, path=str(self._folder))
        Forward(self._folder).drop_after(self._disk_pid)
        writer = self._index.writer(_HEAP_LARGE if total > MANY else _HEAP_SMALL, 1)
        here, length = self._lengths([gone for _, gone in removed])
        pid, tokens, done = self._disk_pid, self._disk_tokens - length, 0
        for _, gone in removed:
            # by query: tantivy-py's delete by term reads a Python int as signed and never matches an unsigned field
            writer.delete_documents_by_query(tantivy.Query.term_query(self._schema, "pid", gone, "basic"))
        draft = Draft()
        while (batch := self._source.passages_after(pid, BATCH)) or (more is not None and more(done)):
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
            Forward(self._folder).merge()
        gone = self._disk_gone + (len(removed) if self._disk_pid else 0)
        state = {"identity": self._identity, "pid": pid, "tokens": tokens, "gone": gone}
        state["documents"] = self._documents(self._searcher) - here + done
        state["forward"] = len(Forward(self._folder)) if self._halves is not None else 0
        state["checkpoint"] = self._source.checkpoint(self._folder.name)
        state["removed"] = removed[-1][0] if removed else self._disk_removed
        writer.delete_documents_by_term("mark", _MARK)
        mark = tantivy.Document()
        mark.add_text("mark", _MARK)
        mark.add_text("state", json.dumps(state))
        writer.add_document(mark)
        writer.commit()
        writer.wait_merging_threads()

    def _lengths(self, pids: Sequence[int]) -> tuple[int, int]:
        """How many of these passages the index on disk has, and how many terms they have, all together."""
        if self._searcher is None:
            return 0, 0
        found = [
            address
            for pid in pids
            for _, address in self._searcher.search(tantivy.Query.term_query(self._schema, "pid", pid, "basic"), 1).hits
        ]
        return len(found), sum(self._searcher.fast_field_values("length", found))

    def _delete_foreign(self) -> None:
        """Delete an index of another timeline at once: nobody may take it for this one's later."""
        self.deleted = [f"{self._folder.name}: {snapshots.FOREIGN}"]
        with contextlib.suppress(Timeout, OSError), acquire(f"{self._folder}.lock", 0):
            if not self._usable():  # another process may have made it anew
                self._discard()

    def _usable(self) -> bool:
        """Open the newest commit, if there is one of this timeline that can be read."""
        try:
            return self._open()
        except snapshots.ForeignError:
            return False

    def _open(self) -> bool:
        """Open the newest commit. False: none can be read (only ``_advance``, under the lock, may delete it)."""
        self._empty()
        if not (self._folder / "meta.json").exists():
            return False
        try:
            index, searcher, live = self._commit()
            if not searcher.num_docs:  # begun by a process that was killed before its first commit
                return False
            found = searcher.search(tantivy.Query.term_query(index.schema, "mark", _MARK), 1).hits
            state = json.loads(str(searcher.doc(found[0][1]).get_first("state")))
            pid, removed, tokens = int(state["pid"]), int(state["removed"]), int(state["tokens"])
            identity, checkpoint = state["identity"], state["checkpoint"]
            gone = int(state.get("gone", 1))  # of an older trivet: nobody counted
            if state.get("documents", self._documents(searcher)) != self._documents(searcher):
                raise DamagedError("meta.json counts other passages than were written")
        except BaseException as error:
            if not _is_damage(error):
                raise
            self._tell_damage(str(error) if isinstance(error, DamagedError) else "it cannot be read")
            return False
        if not self._source.knows(self._folder.name, checkpoint):
            raise snapshots.ForeignError(self._folder.name)
        if identity != self._identity or removed < self._source.pruned():
            return False  # made by another analyser; or it has missed removals that are no longer kept
        forward = Forward(self._folder) if self._halves is not None else None
        if forward is not None and (forward.damaged or len(forward) < state.get("forward", 0)):
            self._tell_damage(
                f"{forward.damaged[0].name} is damaged" if forward.damaged else "a forward file is missing"
            )
            return False
        self._live = live
        self._index, self._searcher, self._forward = index, searcher, forward
        self._reset(pid, removed, tokens, gone)
        return True

    def _commit(self) -> tuple[Any, Any, tuple[str, ...]]:
        """The newest commit, with the names of its files; ``DamagedError`` if one of them is not what was written."""
        while True:
            meta = (self._folder / "meta.json").read_bytes()
            live = _files_of(meta)
            wrong = self._files.damaged(live) or self._files.missing(live)  # before tantivy maps them into memory
            if not wrong:
                index = tantivy.Index.open(str(self._folder))
                index.reload()
                searcher = index.searcher()
            if (self._folder / "meta.json").read_bytes() == meta:  # else another process merged segments meanwhile
                break
        if wrong:
            raise DamagedError(f"{wrong[0]} is damaged")
        self._checked = time.monotonic()
        return index, searcher, live

    def _tell_damage(self, what: str) -> None:
        self.deleted = [f"{self._folder.name}: {what}; run rebuild"]

    def _empty(self) -> None:
        """Hold nothing; what is read from now on has been through all removals up to now."""
        self._index = self._searcher = self._forward = None
        self._reset(0, self._source.last_removed(), 0, 0)

    def _reset(self, pid: int, removed: int, tokens: int, gone: int) -> None:
        self._disk_gone = gone
        self._disk_pid = self._tail_pid = pid
        self._disk_removed = self._tail_removed = removed
        self._disk_tokens = tokens
        self._tail = Tail()

    def _discard(self) -> None:
        with contextlib.suppress(OSError):  # first: what a kill leaves of the rest is no index, and no damage
            (self._folder / "meta.json").unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._empty()

    def _terms(self, title: str, text: str) -> list[str]:
        return self._analyse(f"{title}\n{text}" if title else text).split()

    def _line(self, title: str, text: str, pid: int, draft: Draft) -> str:
        """What the index takes; where each term of title and text stands goes into the draft."""
        heading, words, line = self.analysed(title, text)
        if self._halves is not None:
            draft.add(pid, heading, words)
        return line

    def analysed(self, title: str, text: str) -> tuple[list[str], list[str], str]:
        """The items of the title, those of the text, and the line that the index takes."""
        if self._halves is None:
            return [], [], self._analyse(f"{title}\n{text}" if title else text)
        (heading, after), (words, tail) = self._halves(title), self._halves(text)
        return heading + after, words + tail, " ".join(heading + words + after + tail)

    # --- what it has --------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        with self._lock:
            return self._documents(self._searcher) + len(self._tail) - len(self._tail.removed)

    @property
    def name(self) -> str:
        return self._folder.name

    def compare(self, report: Progress | None = None) -> Differences:
        """Compare what it holds with the passages of the truth."""
        from trivet.stores.sqlite.comparison import Differences, compare_terms

        try:
            return compare_terms(self.held(), self._source, self.analysed, report)
        except BaseException as error:
            if not _is_damage(error) or isinstance(error, TrivetError):
                raise
            return Differences(self.name, {"it cannot be read": {}})

    def held(self) -> HeldTerms:
        """What it holds now, for a comparison."""
        from trivet.stores.sqlite.comparison import HeldTerms, sum_of

        with self._lock:
            tail = self._tail
            held = {pid: (did, len(tail.terms[pid]), sum_of(set(tail.terms[pid]))) for pid, did in tail.dids.items()}
            return HeldTerms(
                self._folder.name,
                self._schema,
                self._searcher,
                self._forward,
                self._disk_pid,
                self._tail_pid,
                self._tail_removed,
                held,
                frozenset(tail.removed),
            )

    def problems(self) -> list[str]:
        """Files whose bytes are not those that were written: tantivy ends every file with its checksum."""
        if self._searcher is None or not (self._folder / "meta.json").exists():
            return []  # nothing there, or deleted: it is made anew
        try:
            live = _files_of((self._folder / "meta.json").read_bytes())
        except (OSError, ValueError, KeyError, TypeError):
            return [f"{self._folder.name}: meta.json is damaged; run rebuild"]
        unsound = [name for name in live if not is_sound(self._folder / name)]
        wrong = [f"{self._folder.name}: {name} is damaged; run rebuild" for name in unsound]
        return wrong if self._forward is None else [*wrong, *self._forward.problems(self._folder.name)]

    def healed(self, ask: Callable[[], Answer]) -> Answer:
        """What ``ask`` answers; where a file cannot be read or was changed, the index is made anew and asked again."""
        if self._is_changed():
            self._make_anew()
        try:
            return ask()
        except BaseException as error:
            if not _is_damage(error):
                raise
            self._make_anew()
        return ask()

    def _is_changed(self) -> bool:
        """Tell whether a file of the open commit was damaged since it was opened. It looks once a second at most."""
        now = time.monotonic()
        if now - self._checked < CHECK_SECONDS:
            return False
        self._checked = now
        return bool(self._files.damaged(self._live))

    @deadline.lifted()
    def _make_anew(self) -> None:
        with self._lock:
            with contextlib.suppress(Timeout, NoRoomError):
                self._advance(wait=True, progress=None, anew=True)
            self._unpruned(lambda: self._extend_tail(self._source.removed_after(self._tail_removed)))

    def _documents(self, searcher: Any) -> int:
        return searcher.num_docs - 1 if searcher is not None else 0  # less the checkpoint


def _schema(positions: bool) -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("pid", indexed=True, fast=True)
    builder.add_unsigned_field("did", indexed=True, fast=True)
    builder.add_unsigned_field("length", fast=True)
    builder.add_text_field("body", tokenizer_name="whitespace", index_option="position" if positions else "basic")
    builder.add_text_field("mark", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("state", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


class DamagedError(Exception):
    """A file of the index is not what was written."""


class NoRoomError(Exception):
    """The folder of the projections cannot be written: full or read-only."""


def _check_room(error: BaseException) -> None:
    if not _is_damage(error) or isinstance(error, TrivetError):  # of the truth, which says nothing about the index
        raise error
    told = str(error)
    if any(sign in told for sign in ("No space left", "Read-only file system", "Permission denied", "Quota exceeded")):
        raise NoRoomError(told) from error


def _files_of(meta: bytes) -> tuple[str, ...]:
    """The names of the files that the segments of a commit have."""
    found: list[str] = []
    for part in json.loads(meta)["segments"]:
        name = part["segment_id"].replace("-", "")
        found += [f"{name}.{kind}" for kind in _PARTS]
        if part["deletes"]:
            found.append(f"{name}.{part['deletes']['opstamp']}.del")
    return tuple(found)


def _patience(ended: Callable[[], bool]) -> Callable[[int], bool]:
    """Waits a moment for a writer that goes on writing; no for one that has ended, pauses, or never pauses."""
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
    """tantivy reports a damaged file as an error or as a Rust panic, which is no ``Exception``."""
    if isinstance(error, DeadlineError):
        return False
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
