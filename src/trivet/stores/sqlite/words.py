"""Which passages have these words?

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
import struct
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import tantivy
from filelock import FileLock, Timeout

from trivet.errors import TrivetError
from trivet.spelling import beginnings, may_be_misspelt, nearest
from trivet.stores.sqlite import narrow
from trivet.stores.sqlite.forward import SEGMENT, Draft, Forward, Places
from trivet.stores.sqlite.narrow import Narrow
from trivet.stores.sqlite.scope import Scope
from trivet.stores.sqlite.tail import K1, Found, Tail, idf

if TYPE_CHECKING:
    from trivet.analysis import ParsedQuery

TAIL_LIMIT = 512  # passages and removals kept in memory before the index takes them
MANY = (
    5_000  # with more than this to catch up on, wait for the process that is indexing rather than hold them in memory
)
BATCH = 2_000  # passages read from the truth at a time
PORTION = 50_000  # passages that one commit takes while another process goes on writing
LULL, LONGEST = 0.5, 10.0  # seconds: so long a portion waits for more of them, and so long it lasts at most
LOOK = 0.01  # seconds between two looks at what was written meanwhile
FEW_ALLOWED = (
    1_024  # a scope this small is part of the query; a larger one is sifted from a longer list, which is faster
)
SPARE = 1.25  # times what a mask is likely to leave is asked for: every hit of a longer list costs a microsecond
AND_TERMS = 4  # more words are hardly ever all in `depth` documents: asking would only cost time
# Of a long query the rarest terms are kept. Not too few: two sentences of Chinese have a hundred terms, and what was
# asked is not what is rarest in them (memdaily_zh, noisy questions: nDCG@10 .53 at 64, .82 at 128, .86 at 256).
MAX_TERMS = 256

_HEAP_SMALL, _HEAP_LARGE = 16_000_000, 200_000_000  # bytes; tantivy wants at least 15 MB per thread
_MARK = "checkpoint"
_FOOTER_MAGIC = 1337
_CHECKSUMMED = (".term", ".idx", ".pos", ".fast", ".fieldnorm", ".store", ".del")
_SCHEMA_VERSION = 3

Progress = Callable[[int, int], None]
Halves = tuple[list[str], list[str]]  # words in place, and the tail behind them
Answer = TypeVar("Answer")


class Source(Protocol):
    """What the index reads from the truth (the store, or a list in a test)."""

    def passages_after(self, pid: int, limit: int) -> list[tuple[int, int, str, str]]:
        """(pid, did, title, text) in order of pid."""

    def count_after(self, pid: int) -> int: ...

    def removed_after(self, seq: int) -> list[tuple[int, int]]:
        """(seq, pid) in order."""

    def pids_of(self, dids: Sequence[int]) -> list[tuple[int, int]]:
        """(pid, did) of every passage of these documents."""

    def newest(self) -> tuple[int, int]:
        """The last passage and the last removal there ever was: an index that knows later ones is another's."""


class TermIndex:
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
        self._schema = _schema(positions)
        self._identity = f"{_SCHEMA_VERSION}/{identity}"
        self._lock = threading.RLock()
        self._seen = -1
        self._index: Any = None
        self._searcher: Any = None
        self._tail = Tail()
        self._forward: Forward | None = None
        self._crowding = 1.5  # passages to a document among those found; a running mean
        self._narrow: dict[Scope, tuple[int, Narrow | None]] = {}  # with the last passage that it knows
        self._disk_pid = self._tail_pid = self._disk_removed = self._tail_removed = self._disk_tokens = 0
        self._open()

    # --- catching up --------------------------------------------------------------------------------------------------

    def catch_up(self, version: int, progress: Progress | None = None) -> None:
        """See everything the truth held when its version number was read."""
        with self._lock:
            if version == self._seen:
                return
            waiting = self._source.count_after(self._tail_pid)
            removed = self._source.removed_after(self._tail_removed)
            if len(self._tail) + len(self._tail.removed) + waiting + len(removed) > TAIL_LIMIT:
                with contextlib.suppress(Timeout, NoRoomError):  # the tail can hold it all, only less fast
                    self._advance(wait=waiting > MANY, progress=progress)
                removed = self._source.removed_after(self._tail_removed)
            self._extend_tail(removed)
            self._seen = version

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
                self._tail.tokens -= self._lengths([pid])
            self._tail_removed = seq

    def _advance(
        self, wait: bool, progress: Progress | None, anew: bool = False, more: Callable[[int], bool] | None = None
    ) -> None:
        """Write what is missing into the index on disk; ``Timeout`` when another process is at it."""
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(f"{self._folder}.lock", timeout=600 if wait else 0)
            lock.acquire()
        except OSError as error:
            if isinstance(error, Timeout):
                raise
            raise NoRoomError(str(error)) from error
        try:
            if anew or not self._open():  # another process may have done the work
                self._discard()
            try:
                self._write_missing(progress, more)
            except BaseException as error:
                _check_room(error)
                # half-written or damaged: what is on disk is worth nothing, the truth is worth everything
                self._discard()
                self._write_anew(progress)
            self._open()
        finally:
            lock.release()

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
        writer = self._index.writer(_HEAP_LARGE if total > MANY else _HEAP_SMALL, 1)
        pid, tokens, done = self._disk_pid, self._disk_tokens - self._lengths([gone for _, gone in removed]), 0
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
        state = {"identity": self._identity, "pid": pid, "tokens": tokens}
        state["removed"] = removed[-1][0] if removed else self._disk_removed
        writer.delete_documents_by_term("mark", _MARK)
        mark = tantivy.Document()
        mark.add_text("mark", _MARK)
        mark.add_text("state", json.dumps(state))
        writer.add_document(mark)
        writer.commit()
        writer.wait_merging_threads()

    def _lengths(self, pids: Sequence[int]) -> int:
        """How many terms do these passages of the index on disk have, all together?"""
        if self._searcher is None:
            return 0
        found = [
            address
            for pid in pids
            for _, address in self._searcher.search(tantivy.Query.term_query(self._schema, "pid", pid, "basic"), 1).hits
        ]
        return sum(self._searcher.fast_field_values("length", found))

    def _open(self) -> bool:
        """Open the newest commit. False: none can be read (only ``_advance``, under the lock, may delete it)."""
        self._index = self._searcher = self._forward = None
        self._reset(0, 0, 0)
        if not (self._folder / "meta.json").exists():
            return False
        try:
            index = tantivy.Index.open(str(self._folder))
            index.reload()
            searcher = index.searcher()
            found = searcher.search(tantivy.Query.term_query(index.schema, "mark", _MARK), 1).hits
            state = json.loads(str(searcher.doc(found[0][1]).get_first("state")))
            pid, removed, tokens = int(state["pid"]), int(state["removed"]), int(state["tokens"])
            identity = state["identity"]
        except BaseException as error:
            if not _is_damage(error):
                raise
            return False
        newest = self._source.newest()
        if identity != self._identity or pid > newest[0] or removed > newest[1]:
            return False  # made by another analyser, for another store, or for a later state of this one
        forward = Forward(self._folder) if self._halves is not None else None
        if forward is not None and forward.damaged:
            return False
        self._index, self._searcher, self._forward = index, searcher, forward
        self._reset(pid, removed, tokens)
        return True

    def _reset(self, pid: int, removed: int, tokens: int) -> None:
        self._disk_pid = self._tail_pid = pid
        self._disk_removed = self._tail_removed = removed
        self._disk_tokens = tokens
        self._tail = Tail()

    def _discard(self) -> None:
        self._index = self._searcher = self._forward = None
        shutil.rmtree(self._folder, ignore_errors=True)
        self._reset(0, 0, 0)

    def _terms(self, title: str, text: str) -> list[str]:
        return self._analyse(f"{title}\n{text}" if title else text).split()

    def _line(self, title: str, text: str, pid: int, draft: Draft) -> str:
        """What the index takes; where each term of title and text stands goes into the draft."""
        if self._halves is None:
            return self._analyse(f"{title}\n{text}" if title else text)
        (heading, after), (words, tail) = self._halves(title), self._halves(text)
        draft.add(pid, heading + after, words + tail)
        return " ".join(heading + words + after + tail)

    # --- answering ----------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        with self._lock:
            return self._documents(self._searcher) + len(self._tail) - len(self._tail.removed)

    def problems(self) -> list[str]:
        """Files whose bytes are not those that were written: tantivy ends every file with its checksum."""
        if self._searcher is None or not (self._folder / "meta.json").exists():
            return []  # nothing there, or deleted: it is made anew
        try:
            parts = json.loads((self._folder / "meta.json").read_text())["segments"]
            live = [part["segment_id"].replace("-", "") for part in parts]
        except (OSError, ValueError, KeyError, TypeError):
            return [f"{self._folder.name}: meta.json is damaged; run rebuild"]
        files = [path for name in live for path in sorted(self._folder.glob(f"{name}.*"))]
        wrong = [f"{self._folder.name}: {path.name} is damaged; run rebuild" for path in files if not _is_sound(path)]
        return wrong if self._forward is None else [*wrong, *self._forward.problems(self._folder.name)]

    def healed(self, ask: Callable[[], Answer]) -> Answer:
        """What ``ask`` answers; where a file cannot be read, the index is made anew and asked again."""
        try:
            return ask()
        except BaseException as error:
            if not _is_damage(error):
                raise
            self._make_anew()
        return ask()

    def _make_anew(self) -> None:
        with self._lock:
            with contextlib.suppress(Timeout, NoRoomError):
                self._advance(wait=True, progress=None, anew=True)
            self._extend_tail(self._source.removed_after(self._tail_removed))

    def bm25(
        self, query: ParsedQuery, match: str, depth: int, scope: Scope | None
    ) -> tuple[list[Found], float, tuple[str, ...]]:
        """Best passages by BM25, one per document; the score a perfect match would have; how it was asked."""
        with self._lock:
            searcher, tail = self._searcher, self._tail
            query, meant = self._meant(query)
            singles = tuple(words[0] for words in query.phrases if len(words) == 1)
            phrases = [words for words in query.phrases if len(words) > 1]
            terms, cut = self._rarest(query.terms, singles)
            boosts = dict(query.weights)
            idfs = {term: self._idf(term) * boosts.get(term, 1.0) for term in terms}
            weights = [sum(self._idf(word) for word in words) for words in phrases]
            average = self._average_length()
        ceiling = (K1 + 1.0) * (sum(idfs.values()) + sum(weights))
        notes = (*([f"the {MAX_TERMS} rarest of {len(query.terms)} terms"] if cut else []), *meant)

        small = self._small(scope) if scope is not None and not phrases else None

        def ask(required: Collection[str]) -> list[Found]:
            if small is not None:
                disk = small.bm25(idfs, required, average, depth, tail.removed)
            else:
                disk = self._ask_disk(searcher, terms, boosts, required, phrases, depth, scope, tail.removed)
            with self._lock:
                fresh = tail.bm25(idfs, required, list(zip(phrases, weights, strict=True)), average) if tail else []
            return _best(disk, fresh, depth, scope)

        every = {*singles, *(term for term in query.required if term in idfs)}
        starved = scope is not None and scope.count <= FEW_ALLOWED  # hardly ever are all words in enough of so few
        if match == "all" or (match == "auto" and 1 < len(query.required) <= AND_TERMS and not starved):
            found = ask(every)
            if match == "all" or len(found) >= depth:
                return found, ceiling, (*notes, "all words")
        return ask(singles), ceiling, (*notes, "any word")

    def _small(self, scope: Scope) -> Narrow | None:
        """The index of a scope that leaves little and is asked again and again; None: the large one is asked."""
        scope.asked += 1
        few = scope.count <= narrow.MOST and scope.count * narrow.SHARE <= self._documents(self._searcher)
        if scope.asked < narrow.WORTH_IT or not few or self._forward is None:
            return None
        with self._lock:
            forward, last = self._forward, self._disk_pid
            known, found = self._narrow.get(scope, (-1, None))
        if known == last or forward is None:
            return found
        found = narrow.narrow(forward, self._source.pids_of(scope.dids()), last)
        with self._lock:
            while len(self._narrow) >= narrow.KEPT:
                del self._narrow[next(iter(self._narrow))]
            self._narrow[scope] = (last, found)
        return found

    def _meant(self, query: ParsedQuery) -> tuple[ParsedQuery, tuple[str, ...]]:
        """The query with the nearest word in the place of each that no document has; and what was changed."""
        missing = [term for term in query.required if query.lenient and may_be_misspelt(term)]
        meant = {term: word for term in missing if not self._frequency(term) and (word := self._nearest(term))}
        if not meant:
            return query, ()
        terms, required = (
            tuple(dict.fromkeys(meant.get(term, term) for term in of)) for of in (query.terms, query.required)
        )
        told = tuple(f"did you mean {word!r} for {term!r}?" for term, word in meant.items())
        return replace(query, terms=terms, required=required), told

    def _nearest(self, term: str) -> str | None:
        known: dict[str, int] = {}
        for begin in beginnings(term):
            if self._searcher is not None:
                known.update(self._searcher.terms_with_prefix("body", begin))
            for word, places in self._tail.postings.items():
                if places and word.startswith(begin):
                    known.setdefault(word, len(places))
        return nearest(term, known.items())

    def places(self, pids: Sequence[int], terms: Collection[str]) -> dict[int, Places]:
        """Where these terms stand in those of the passages that the index on disk has read."""
        forward = self._forward
        if forward is None:
            return {}
        found = forward.places(pids, terms)
        if forward.damaged and forward is self._forward:
            self._make_anew()
        return found

    def likeliest(self, terms: Sequence[str], depth: int, scope: Scope | None) -> list[Found]:
        """Passages with any of the terms, best by BM25, several of a document if need be."""
        with self._lock:
            searcher, tail = self._searcher, self._tail
            idfs = {term: self._idf(term) for term in terms}
            fresh = tail.bm25(idfs, (), (), self._average_length()) if tail else []
        disk: list[Found] = []
        if searcher is not None:
            schema, should = self._schema, tantivy.Occur.Should
            parts = [(should, tantivy.Query.term_query(schema, "body", term, "basic")) for term in terms]
            query = tantivy.Query.boolean_query(parts)
            disk = self._collect(searcher, query, depth, scope, tail.removed, per_document=False)
        allowed = [hit for hit in disk + fresh if scope is None or hit[2] in scope]
        return sorted(allowed, key=lambda hit: (-hit[0], hit[1]))[:depth]

    def _ask_disk(
        self,
        searcher: Any,
        terms: Sequence[str],
        boosts: Mapping[str, float],
        required: Collection[str],
        phrases: Sequence[tuple[str, ...]],
        depth: int,
        scope: Scope | None,
        removed: set[int],
    ) -> list[Found]:
        if searcher is None or not (terms or phrases):
            return []
        schema = self._schema
        must, should = tantivy.Occur.Must, tantivy.Occur.Should

        def asked(term: str) -> Any:
            plain = tantivy.Query.term_query(schema, "body", term, "freq")
            return tantivy.Query.boost_query(plain, boosts[term]) if term in boosts else plain

        parts = [(must if term in required else should, asked(term)) for term in terms]
        parts += [(must, tantivy.Query.phrase_query(schema, "body", list(words))) for words in phrases]
        return self._collect(searcher, tantivy.Query.boolean_query(parts), depth, scope, removed)

    def _collect(
        self,
        searcher: Any,
        query: Any,
        depth: int,
        scope: Scope | None,
        removed: Collection[int],
        per_document: bool = True,
    ) -> list[Found]:
        """The best ``depth`` allowed documents (or passages); deepened until the scope gave enough: the cut is last."""
        limit = int(depth * self._crowding) + 16
        if scope is not None:
            if scope.count <= FEW_ALLOWED:
                query = tantivy.Query.boolean_query(
                    [(tantivy.Occur.Must, query), (tantivy.Occur.Must, self._only(scope))]
                )
            else:
                # a mask may count row numbers of other collections as well, and more of them than this one has
                limit = max(limit, int((depth + 16) * SPARE * self._documents(searcher) / scope.count))
        while True:
            hits = searcher.search(query, limit, count=False).hits
            found = self._sift(searcher, hits, scope, removed, per_document)
            if scope is None and found and per_document:
                self._crowding += (min(2.0, len(hits) / len(found)) - self._crowding) / 16
            if len(found) >= depth or len(hits) < limit:
                return found
            limit *= min(8, 2 * depth // len(found) + 1) if found else 8

    def _only(self, scope: Scope) -> Any:
        """The scope as a part of the query that changes no score; kept, for a conversation asks within the same one."""
        if scope.lookup is None:
            schema, should = self._schema, tantivy.Occur.Should
            ones = [(should, tantivy.Query.term_query(schema, "did", did, "basic")) for did in scope.dids()]
            scope.lookup = tantivy.Query.const_score_query(tantivy.Query.boolean_query(ones), 0.0)
        return scope.lookup

    def _sift(
        self, searcher: Any, hits: list[Any], scope: Scope | None, removed: Collection[int], per_document: bool
    ) -> list[Found]:
        """What of these hits may be seen, the best passage of each document where that is wanted."""
        dids = searcher.fast_field_values("did", [address for _, address in hits])
        if scope is not None:
            seen = np.flatnonzero(scope.rows(np.asarray(dids, dtype=np.int64))).tolist()
            hits, dids = [hits[at] for at in seen], [dids[at] for at in seen]
        pids = searcher.fast_field_values("pid", [address for _, address in hits])
        if None in dids or None in pids:
            raise ValueError("a passage without its numbers: the file is damaged")
        found: list[Found] = []
        taken: set[int] = set()
        for (score, _), pid, did in zip(hits, pids, dids, strict=True):
            if pid in removed or (per_document and did in taken):
                continue
            taken.add(did)
            found.append((score, pid, did))
        return found

    def _documents(self, searcher: Any) -> int:
        return searcher.num_docs - 1 if searcher is not None else 0  # less the checkpoint

    def _idf(self, term: str) -> float:
        return idf(self._documents(self._searcher) + len(self._tail), self._frequency(term))

    def _frequency(self, term: str) -> int:
        on_disk = self._searcher.doc_freq("body", term) if self._searcher is not None else 0
        return int(on_disk) + self._tail.frequency(term)

    def _rarest(self, terms: Iterable[str], kept: Sequence[str]) -> tuple[list[str], bool]:
        """At most ``MAX_TERMS``, and those that must occur whatever their number; were any left out?"""
        ordered = list(dict.fromkeys((*kept, *terms)))
        if len(ordered) <= MAX_TERMS:
            return ordered, False
        others = sorted((term for term in ordered if term not in kept and self._frequency(term)), key=self._frequency)
        return [*dict.fromkeys(kept), *others[: max(0, MAX_TERMS - len(kept))]], True

    def _average_length(self) -> float:
        documents = self._documents(self._searcher) + len(self._tail) - len(self._tail.removed)
        return max(1.0, (self._disk_tokens + self._tail.tokens) / max(1, documents))


def _schema(positions: bool) -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("pid", indexed=True, fast=True)
    builder.add_unsigned_field("did", indexed=True, fast=True)
    builder.add_unsigned_field("length", fast=True)
    builder.add_text_field("body", tokenizer_name="whitespace", index_option="position" if positions else "basic")
    builder.add_text_field("mark", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("state", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def _best(disk: list[Found], fresh: list[Found], depth: int, scope: Scope | None) -> list[Found]:
    if not fresh:
        return disk[:depth]
    allowed = fresh if scope is None else [hit for hit in fresh if hit[2] in scope]
    best: dict[int, Found] = {}
    for hit in sorted(disk + allowed, key=lambda hit: (-hit[0], hit[2], hit[1])):
        best.setdefault(hit[2], hit)
        if len(best) == depth:
            break
    return list(best.values())


class NoRoomError(Exception):
    """The folder of the projections cannot be written: full or read-only."""


def _check_room(error: BaseException) -> None:
    if not _is_damage(error) or isinstance(error, TrivetError):  # of the truth, which says nothing about the index
        raise error
    told = str(error)
    if any(sign in told for sign in ("No space left", "Read-only file system", "Permission denied", "Quota exceeded")):
        raise NoRoomError(told) from error


def _is_sound(path: Path) -> bool:
    """tantivy's footer: JSON with the CRC-32 of what stands before it, its length, a magic number."""
    if path.suffix not in _CHECKSUMMED:
        return True
    try:
        data = path.read_bytes()
    except FileNotFoundError:  # merged away by another process since it was listed
        return True
    length, magic = struct.unpack("<II", data[-8:]) if len(data) >= 8 else (0, 0)
    if magic != _FOOTER_MAGIC or length > len(data) - 8:
        return False
    try:
        footer = json.loads(data[-8 - length : -8])
        return bool(zlib.crc32(data[: -8 - length]) == footer["crc"])
    except (ValueError, KeyError, TypeError):
        return False


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
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
