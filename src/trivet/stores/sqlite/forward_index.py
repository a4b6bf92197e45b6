"""The terms of each passage, with their positions.

The term index maps a term to its passages; this index maps a passage to its terms, for a reranker that compares a few
dozen passages: finding the terms of a query here takes 3 µs a passage, analysing its text 60. A passage never changes
and its number is never used twice, so nothing here is ever out of date; where a passage is missing or damaged, the
caller analyses its text. The files are in the folder of the term index and are deleted with it.

A *segment* is two files: the terms of the passages as packed numbers (``term_numbers.py``), and a table to read them
with. A term is known by 64 bits of its hash, so segments need no dictionary of words.
"""

from __future__ import annotations

import os
import uuid
import weakref
import zlib
from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trivet.stores.indexes.snapshots import narrowed
from trivet.stores.sqlite.term_numbers import Ints, Numbers, by_frequency, packed, unpacked

Hashes = npt.NDArray[np.uint64]

SEGMENT = 65_536  # passages of a new segment, in memory until it is written
MOST = 262_144  # passages of a merged segment
_UNITS, _WIDE, _TABLE = ".units", ".terms", ".npz"  # packed numbers; int32 each, of an older trivet; numpy's arrays
_ARRAYS = ("pids", "ends", "titles", "sums", "hashes", "numbers")

#: The terms in a passage's title, and the positions of each term in its text: 0, 1, … as the analyser lists them.
Positions = tuple[set[str], dict[str, list[int]]]


class Draft:
    """Passages of a segment that is being made."""

    def __init__(self) -> None:
        self._pids, self._ends, self._titles = array("q"), array("q"), array("i")
        self._terms = bytearray()
        self._vocabulary = _Vocabulary()
        self._numbers = _Numbers(self._vocabulary)

    def __len__(self) -> int:
        return len(self._pids)

    def add(self, pid: int, title: list[str], text: list[str]) -> None:
        """Add the analysed title and text; each item has the terms of one raw token, separated by spaces."""
        number = self._numbers.__getitem__
        heading = b"".join(map(number, title))
        self._terms += heading
        self._terms += b"".join(map(number, text))
        self._pids.append(pid)
        self._ends.append(len(self._terms) // 4)
        self._titles.append(len(heading) // 4)

    def save(self, folder: Path) -> None:
        hashes = np.fromiter(map(hash_of, self._vocabulary), dtype=np.uint64, count=len(self._vocabulary))
        _write(
            folder,
            np.frombuffer(self._terms, dtype=np.int32),
            np.array(self._ends, dtype=np.int64),
            hashes,
            pids=np.array(self._pids, dtype=np.int64),
            titles=np.array(self._titles, dtype=np.int64),
        )


class ForwardIndex:
    """The segments in a folder, as they were when it was opened."""

    def __init__(self, folder: Path) -> None:
        tables = {path: _opened(path) for path in sorted(folder.glob(f"forward-*{_TABLE}"))}
        self._segments = [found for found in tables.values() if found is not None]
        #: Segments with a missing or damaged file: the index has to be rebuilt.
        self.damaged = [path for path, found in tables.items() if found is None]

    def __len__(self) -> int:
        return sum(map(len, self._segments))

    def positions(self, pids: Sequence[int], terms: Collection[str]) -> dict[int, Positions]:
        """Map those of the passages that are here and undamaged to the positions of these terms."""
        found: dict[int, Positions] = {}
        wanted = np.array(pids, dtype=np.int64)
        listed = list(terms)
        hashes = _hashes(listed)
        for segment in self._segments:
            found.update(segment.positions(wanted, listed, hashes))
            if not segment.whole:
                self.damaged.append(segment.path)
        return found

    def terms_of(self, pids: Ints) -> list[PassageTerms]:
        """Return all terms of those passages that are here and undamaged, by segment."""
        return [part for segment in self._segments if len((part := segment.terms_of(pids)).pids)]

    def problems(self, name: str) -> list[str]:
        """Return the files whose bytes are not those that were written."""
        wrong = [*self.damaged, *(part.path for part in self._segments if not part.is_sound())]
        return [f"{name}: {path.name} is damaged; run rebuild" for path in dict.fromkeys(wrong) if path.exists()]

    def drop_after(self, pid: int) -> None:
        """Delete the segments that begin after this passage: a writer was killed before it had committed them."""
        for segment in [part for part in self._segments if int(part.table["pids"][0]) > pid]:
            segment.delete()
            self._segments.remove(segment)

    def merge(self) -> None:
        """Merge the newest segments where they are about as large as those before, so that there are never many."""
        while len(self._segments) > 1:
            *_, before, last = self._segments
            if 4 * len(last) < len(before) or len(last) + len(before) > MOST:
                return
            merged = _merged(before, last)
            for old in (before, last):
                old.delete()
            self._segments[-2:] = [merged] if merged else []


@dataclass(frozen=True, slots=True)
class PassageTerms:
    """Passages of a segment with all their terms, one passage after the other."""

    pids: Ints
    sizes: Ints
    numbers: Numbers
    segment: _Segment

    def hashed(self) -> list[tuple[int, bytes, bytes]]:
        """Return (pid, hashes of the title's terms, hashes of the text's terms), eight bytes a term, in order."""
        terms = self.segment.hashes_of(self.numbers)
        titles = self.segment.titles_of(self.pids)
        stops = np.cumsum(self.sizes)
        listed = zip(self.pids.tolist(), (stops - self.sizes).tolist(), titles, stops.tolist(), strict=True)
        return [
            (pid, terms[start : start + title].tobytes(), terms[start + title : stop].tobytes())
            for pid, start, title, stop in listed
        ]

    def numbers_of(self, terms: Sequence[str]) -> list[int]:
        """Return the numbers of terms; -1 for one that no passage of the segment has."""
        return self.segment.numbers_of(terms)


class _Segment:
    """One segment. Its file stays open while it is read, even if another process deletes it."""

    def __init__(self, path: Path, table: dict[str, Any]) -> None:
        self.path, self.table, self.whole = path, table, True
        self._unit = 2 if path.suffix == _UNITS else 4  # bytes
        self._starts = np.concatenate([[0], table["ends"]])
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        if os.fstat(self._file).st_size != self._unit * int(self._starts[-1]):
            raise ValueError(f"{path.name} is not whole")

    def __len__(self) -> int:
        return len(self.table["pids"])

    def positions(self, wanted: Ints, terms: Sequence[str], hashes: Hashes) -> dict[int, Positions]:
        rows, parts = self._read(_rows_of(self.table["pids"], wanted))
        if not len(rows):
            return {}
        pids = self.table["pids"][rows].tolist()
        found: dict[int, Positions] = {pid: (set(), {}) for pid in pids}
        here = _rows_of(self.table["hashes"], hashes, every=True)
        named = {int(self.table["numbers"][at]): term for at, term in zip(here.tolist(), terms, strict=True) if at >= 0}
        if not named or not parts:
            return found
        numbers, ends = self._unpacked(parts)
        sought = np.zeros(len(self.table["numbers"]), dtype=np.bool_)
        sought[list(named)] = True
        matches = np.flatnonzero(sought[numbers])
        owners = np.searchsorted(ends, matches, side="right")
        begins = np.concatenate([[0], ends[:-1]])[owners] + self.table["titles"][rows][owners]
        for owner, number, place in zip(
            owners.tolist(), numbers[matches].tolist(), (matches - begins).tolist(), strict=True
        ):
            title, places = found[pids[owner]]
            term = named[number]
            if place < 0:
                title.add(term)
            elif term in places:
                places[term].append(place)
            else:
                places[term] = [place]
        return found

    def _read(self, rows: Ints) -> tuple[Ints, list[bytes]]:
        """Read the terms of these rows; leave damaged ones out."""
        starts = self._unit * self._starts[rows]
        sizes = self._unit * self._starts[rows + 1] - starts
        listed = zip(starts.tolist(), sizes.tolist(), strict=True)
        parts = [os.pread(self._file, size, start) for start, size in listed]
        if list(map(zlib.crc32, parts)) != self.table["sums"][rows].tolist():
            self.whole = False
            whole = [zlib.crc32(part) == self.table["sums"][row] for part, row in zip(parts, rows, strict=True)]
            rows, parts = rows[whole], list(compress(parts, whole))
        return rows, parts

    def _unpacked(self, parts: Sequence[bytes]) -> tuple[Numbers, Ints]:
        """Return the numbers of these passages, one passage after the other, and where each ends."""
        return self._numbers(b"".join(parts), np.cumsum([len(part) for part in parts], dtype=np.int64) // self._unit)

    def _numbers(self, data: bytes, ends: Ints) -> tuple[Numbers, Ints]:
        if self._unit == 4:
            return np.frombuffer(data, dtype=np.int32), ends
        return unpacked(np.frombuffer(data, dtype="<u2"), ends)

    def terms_of(self, wanted: Ints) -> PassageTerms:
        rows, parts = self._read(_rows_of(self.table["pids"], wanted))
        numbers, ends = self._unpacked(parts)
        return PassageTerms(self.table["pids"][rows], np.diff(ends, prepend=0), numbers, self)

    def numbers_of(self, terms: Sequence[str]) -> list[int]:
        here = _rows_of(self.table["hashes"], _hashes(terms), every=True).tolist()
        return [int(self.table["numbers"][at]) if at >= 0 else -1 for at in here]

    def hashes_of(self, numbers: Numbers) -> Hashes:
        found = np.empty(len(self.table["numbers"]), dtype=np.uint64)
        found[self.table["numbers"]] = self.table["hashes"]
        return found[numbers]

    def titles_of(self, pids: Ints) -> list[int]:
        """Return how many terms of each of these passages are in its title."""
        titles: list[int] = self.table["titles"][_rows_of(self.table["pids"], pids)].tolist()
        return titles

    def terms(self) -> tuple[Numbers, Ints]:
        """Return the numbers of all passages, and where each ends."""
        return self._numbers(self.path.read_bytes(), self.table["ends"])

    def is_sound(self) -> bool:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:  # merged into another one meanwhile
            return True
        edges, sums = pairwise((self._unit * self._starts).tolist()), self.table["sums"].tolist()
        return all(zlib.crc32(data[start:stop]) == total for (start, stop), total in zip(edges, sums, strict=True))

    def delete(self) -> None:
        self.path.with_suffix(_TABLE).unlink(missing_ok=True)  # first: a table without its numbers is damage
        self.path.unlink(missing_ok=True)


def _opened(table: Path) -> _Segment | None:
    """Open a segment; None where it is damaged."""
    try:
        with table.open("rb") as file, np.load(file) as arrays:
            found = {name: arrays[name] for name in _ARRAYS}
        for name in ("pids", "ends", "titles", "numbers"):
            found[name] = found[name].astype(np.int64)
        units = table.with_suffix(_UNITS)
        return _Segment(units if units.exists() else table.with_suffix(_WIDE), found)
    except Exception:  # numpy and zipfile have many errors for damage
        return None


def _write(folder: Path, numbers: Numbers, ends: Ints, hashes: Hashes, *, pids: Ints, titles: Ints) -> Path:
    """Write a segment; return the path of its table. ``hashes`` are those of the terms, by their numbers."""
    renumbered = by_frequency(numbers, len(hashes))
    units, stops = packed(renumbered[numbers], ends)
    sums = [zlib.crc32(units[start:stop].tobytes()) for start, stop in pairwise([0, *stops.tolist()])]
    order = np.argsort(hashes, kind="stable")
    name = f"forward-{int(pids[0]):016d}-{uuid.uuid4().hex[:8]}"
    (folder / f"{name}{_UNITS}").write_bytes(units.tobytes())
    draft, table = folder / f"{name}.draft", folder / f"{name}{_TABLE}"
    with draft.open("wb") as file:
        np.savez(
            file,
            pids=narrowed(pids),
            ends=narrowed(stops),
            titles=narrowed(titles),
            sums=np.array(sums, dtype=np.uint32),
            hashes=hashes[order],
            numbers=narrowed(renumbered[order]),
        )
    draft.rename(table)  # a segment exists when its table does
    return table


def _merged(one: _Segment, other: _Segment) -> _Segment | None:
    hashes = np.unique(np.concatenate([one.table["hashes"], other.table["hashes"]]))
    (first, ends), (second, later) = (_renumbered(part, hashes) for part in (one, other))
    numbers, ends = np.concatenate([first, second]), np.concatenate([ends, later + len(first)])
    pids, titles = (np.concatenate([one.table[name], other.table[name]]) for name in ("pids", "titles"))
    if other.table["pids"][0] <= one.table["pids"][-1]:  # a killed writer's passages were written again
        pids, order = np.unique(pids, return_index=True)
        starts, titles = np.concatenate([[0], ends]), titles[order]
        numbers = np.concatenate([numbers[starts[row] : ends[row]] for row in order])
        ends = np.cumsum((ends - starts[:-1])[order])
    return _opened(_write(one.path.parent, numbers, ends, hashes, pids=pids, titles=titles))


def _renumbered(segment: _Segment, hashes: Hashes) -> tuple[Numbers, Ints]:
    """Return the numbers of all terms as places in ``hashes``, and where each passage ends."""
    table = np.empty(len(segment.table["numbers"]), dtype=np.int32)
    table[segment.table["numbers"]] = np.searchsorted(hashes, segment.table["hashes"]).astype(np.int32)
    numbers, ends = segment.terms()
    return table[numbers], ends


def _rows_of(column: npt.NDArray[Any], wanted: npt.NDArray[Any], every: bool = False) -> Ints:
    """Return the rows of these values in a sorted column; leave missing ones out, or give -1 with ``every``."""
    if not len(column):
        return np.full(len(wanted) if every else 0, -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(column, wanted), len(column) - 1)
    there = column[at] == wanted
    return np.where(there, at, -1) if every else at[there]


class _Vocabulary(dict[str, int]):
    """Terms and their numbers; a new term gets the next number."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class _Numbers(dict[str, bytes]):
    """The terms of an item as numbers, cached: most items of a text were seen before."""

    def __init__(self, vocabulary: _Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, item: str) -> bytes:
        numbers = self[str(item)] = array("i", [self._vocabulary[term] for term in item.split()]).tobytes()
        return numbers


def _hashes(terms: Sequence[str]) -> Hashes:
    return np.fromiter(map(hash_of, terms), dtype=np.uint64, count=len(terms))


def hash_of(term: str) -> int:
    """Return the 64 bits by which a segment knows a term."""
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
