"""Comparison of the lexical index, the postings and the vectors of a collection with the texts of its documents.

Everything is read in one snapshot, a thousand passages at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trivet.stores.postgres import terms
from trivet.stores.postgres.database import Select
from trivet.stores.postgres.postings import ENTRY
from trivet.stores.postgres.tables import Tables
from trivet.stores.postgres.transaction import Transaction
from trivet.text.analysis import Analyzer
from trivet.types import Progress

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


BATCH = 1_000  # passages read at a time
TERMS = 2_000  # rows of the postings read at a time
NAMED = 3  # documents or terms that a problem names; further ones are counted


def problems(select: Select, tables: Tables, analyzer: Analyzer, progress: Progress | None = None) -> list[str]:
    """Return what differs from the texts of the documents; ``select`` must read one snapshot."""
    found: list[str] = []
    dids = list(dict.fromkeys(did for _, did, *_ in different(select, tables, analyzer, progress)))
    if dids:
        found.append(
            f"lexical: passages have other terms than their text ({_documents(select, tables, dids)}); run rebuild"
        )
    lexicon = _wrong_counts(select, tables)
    if lexicon:
        found.append(
            f"lexicon: the counts of {_listed([row[0] for row in lexicon], lexicon[0][1])} are wrong; run rebuild"
        )
    for first, last in select(f"SELECT first, last FROM segments WHERE {tables.of()} ORDER BY first", ()):
        wrong, strays = _segment(select, tables, int(first), int(last))
        if wrong:
            owners = _owners(select, tables, wrong)
            found.append(f"postings: passages have other terms than their words ({owners}); run rebuild")
        if strays:
            found.append(f"postings: {strays:,} entries of passages that were never there; run rebuild")
    ((count,),) = select(f"SELECT count(*) FROM {tables.vectors} v WHERE {_is_stray(tables)}", ())
    if count:
        found.append(f"vectors: {count:,} belong to no passage of their document; run rebuild")
    return found


def _wrong_counts(select: Select, tables: Tables) -> list[tuple[str, int]]:
    """Return some terms whose count in the lexicon is not that of the passages, each with the number of such terms."""
    counted = (
        f"SELECT t.term, count(*) AS passages FROM {tables.passages} p, unnest(tsvector_to_array(p.words)) AS t(term) "
        f"WHERE {tables.of('p')} GROUP BY t.term"
    )
    kept = f"SELECT l.term, -l.passages AS passages FROM lexicon l WHERE {tables.of('l')}"
    return [
        (term, total)
        for term, total in select(
            f"SELECT w.term, count(*) OVER () FROM (SELECT u.term FROM ({counted} UNION ALL {kept}) u "
            "GROUP BY u.term HAVING sum(u.passages) <> 0) w ORDER BY w.term LIMIT %s",
            (NAMED,),
        )
    ]


def _is_stray(tables: Tables) -> str:
    """Return the condition that a vector ``v`` belongs to no passage of its document."""
    passage = f"{tables.beside('p', 'v')} AND p.pid = v.pid AND p.did = v.did"
    return f"{tables.of('v')} AND NOT EXISTS (SELECT 1 FROM {tables.passages} p WHERE {passage})"


def repair(transaction: Transaction) -> None:
    """Write the terms of passages again where they differ from the text, and delete vectors without a passage."""
    tables = transaction.tables
    for pid, _, body, words, length in list(different(transaction.all, tables, transaction.analyzer)):
        this, where = tables.having("pid", [pid])
        sql = f"UPDATE {tables.passages} SET body = %s, words = %s::tsvector, length = %s WHERE {this}"
        transaction.execute(sql, (body, words, length, *where))
    transaction.execute(f"DELETE FROM {tables.vectors} v WHERE {_is_stray(tables)}")


def different(
    select: Select, tables: Tables, analyzer: Analyzer, progress: Progress | None = None
) -> Iterator[tuple[int, int, str, str, int]]:
    """Yield (pid, did, body, words, length), as they should be, of passages that differ from their text."""
    at, done = 0, 0
    sql = f"SELECT pid, did, start, stop FROM {tables.passages} WHERE {tables.of()} AND pid > %s ORDER BY pid LIMIT %s"
    given = "unnest(%s::bigint[], %s::text[], %s::text[], %s::integer[]) AS x(pid, body, words, length)"
    compared = (
        f"SELECT p.pid, p.did FROM {tables.passages} p JOIN {given} ON x.pid = p.pid WHERE {tables.of('p')} "
        "AND (p.words <> x.words::tsvector OR p.length <> x.length OR p.body <> x.body) ORDER BY p.pid"
    )
    while rows := select(sql, (at, BATCH)):
        at = rows[-1][0]
        expected = dict(_analysed(select, tables, analyzer, rows))
        bodies, words, lengths = (list(column) for column in zip(*expected.values(), strict=True))
        for pid, did in select(compared, (list(expected), bodies, words, lengths)):
            yield pid, did, *expected[pid]
        done += len(rows)
        if progress is not None:
            progress(done, done)


def _analysed(
    select: Select, tables: Tables, analyzer: Analyzer, rows: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, tuple[str, str, int]]]:
    dids = sorted({row[1] for row in rows})
    found = tables.select(select, f"SELECT did, title, text FROM {tables.documents}", "did", dids)
    texts = {did: (title, text) for did, title, text in found}
    for pid, did, start, stop in rows:
        title, text = texts.get(did, ("", ""))
        body = f"{title}\n{text[start:stop]}" if title else text[start:stop]
        terms_of_body = analyzer.terms(body)
        vector = terms.tsvector(terms_of_body, analyzer.terms(title) if title else ())
        yield pid, (body, vector, len(terms_of_body))


def _segment(select: Select, tables: Tables, first: int, last: int) -> tuple[list[int], int]:
    """Return the passages of a segment with wrong entries, and the number of entries of passages that never existed."""
    import numpy as np

    begin = first // tables.step
    expected = np.zeros(last // tables.step - begin + 1, dtype=np.uint64)
    live = np.zeros(len(expected), dtype=np.bool_)
    numbers: dict[int, int] = {}  # of the passages, by their place in the segment
    at = first - 1
    sql = (
        "SELECT p.pid, p.length, tsvector_to_array(p.words), "
        "ARRAY(SELECT cardinality(u.positions) FROM unnest(p.words) u) "
        f"FROM {tables.passages} p WHERE {tables.of('p')} AND p.pid > %s AND p.pid <= %s ORDER BY p.pid LIMIT %s"
    )
    while rows := select(sql, (at, last, BATCH)):
        at = rows[-1][0]
        for pid, length, lexemes, counts in rows:
            place = pid // tables.step - begin
            live[place], numbers[place] = True, pid
            hashes = np.array([hash(term) for term in lexemes], dtype=np.int64).view(np.uint64)
            lengths = np.full(len(lexemes), length)
            expected[place] = _mixed(hashes, lengths, np.array(counts, dtype=np.int64)).sum(dtype=np.uint64)
    actual, slots = _posted(select, tables, first, len(expected))
    wrong = [numbers[int(place)] for place in np.flatnonzero(live & (actual != expected))]
    gone = np.flatnonzero((slots >= 0) & ~live)
    removed = [tables.number(begin + int(place), int(slots[place])) for place in gone]
    sql = f"SELECT count(*) FROM removed WHERE {tables.of()} AND pid = ANY(%s)"
    known = select(sql, (removed,))[0][0] if removed else 0
    return wrong, max(0, len(removed) - int(known))


def _posted(
    select: Select, tables: Tables, first: int, size: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int8]]:
    """Return for each place of a segment a checksum of its entries, and its part by its place; -1 without entries."""
    import numpy as np

    sums, slots = np.zeros(size, dtype=np.uint64), np.full(size, -1, dtype=np.int8)
    for slot, condition in enumerate(f" AND part = {part}" for part in tables.parts) if tables.parts else [(0, "")]:
        term = None
        sql = f"SELECT term, entries FROM {tables.postings} WHERE {tables.of()}{condition} AND first = {first} "
        sql += "AND (%s::text IS NULL OR term > %s) ORDER BY term LIMIT %s"
        while rows := select(sql, (term, term, TERMS)):
            term = rows[-1][0]
            for word, data in rows:
                entries = np.frombuffer(data, dtype=ENTRY)
                places = entries["at"].astype(np.int64)
                inside = (places >= 0) & (places < size)
                places, entries = places[inside], entries[inside]
                hashes = np.full(len(places), hash(word), dtype=np.int64).view(np.uint64)
                np.add.at(sums, places, _mixed(hashes, entries["length"], entries["count"]))
                slots[places] = slot
    return sums, slots


def _mixed(hashes: Any, lengths: Any, counts: Any) -> Any:
    import numpy as np

    odd = np.uint64(0x9E3779B97F4A7C15)
    return (hashes ^ (lengths.astype(np.uint64) * odd + counts.astype(np.uint64))) * odd


def _owners(select: Select, tables: Tables, pids: Sequence[int]) -> str:
    rows = tables.select(select, f"SELECT DISTINCT did FROM {tables.passages}", "pid", pids, " ORDER BY did")
    return _documents(select, tables, [did for (did,) in rows])


def _documents(select: Select, tables: Tables, dids: Sequence[int]) -> str:
    rows = tables.select(select, f"SELECT id FROM {tables.documents}", "did", dids[:NAMED], " ORDER BY did")
    return f"document {_listed([id for (id,) in rows], len(dids))}"


def _listed(names: Sequence[str], total: int) -> str:
    more = f" and {total - len(names):,} more" if total > len(names) else ""
    return ", ".join(map(repr, names)) + more
