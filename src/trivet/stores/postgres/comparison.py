"""Comparison of the lexical index, the postings and the vectors of a collection with the texts of its documents.

Everything is read in one snapshot, shard by shard, a thousand passages at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trivet.stores.postgres import terms
from trivet.stores.postgres.database import Select
from trivet.stores.postgres.postings import ENTRY
from trivet.stores.postgres.shards import Shard
from trivet.stores.postgres.transaction import Transaction
from trivet.text.analysis import Analyzer
from trivet.types import Progress

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


BATCH = 1_000  # passages read at a time
TERMS = 2_000  # rows of the postings read at a time
NAMED = 3  # documents or terms that a problem names; further ones are counted

_DIFFERENT = (
    "SELECT p.pid, p.did FROM passages p JOIN unnest(%s::bigint[], %s::text[], %s::text[], %s::integer[]) "
    "AS x(pid, body, words, length) ON x.pid = p.pid WHERE p.cid = %s "
    "AND (p.words <> x.words::tsvector OR p.length <> x.length OR p.body <> x.body) ORDER BY p.pid"
)
_LEXICON = (
    "SELECT coalesce(w.term, l.term), count(*) OVER () FROM (SELECT t.term, count(*) AS passages FROM passages p, "
    "unnest(tsvector_to_array(p.words)) AS t(term) WHERE p.cid = %s GROUP BY t.term) w "
    "FULL JOIN (SELECT term, passages FROM lexicon WHERE cid = %s AND passages <> 0) l ON l.term = w.term "
    "WHERE w.passages IS DISTINCT FROM l.passages ORDER BY 1 LIMIT %s"
)
_STRAYS = (
    "SELECT count(*) FROM vectors v LEFT JOIN passages p ON p.cid = v.cid AND p.pid = v.pid "
    "WHERE v.cid = %s AND p.did IS DISTINCT FROM v.did"
)


def problems(
    select: Select, shard: Shard, root: int, analyzer: Analyzer, progress: Progress | None = None
) -> list[str]:
    """Return what differs in a shard from the texts of its documents; ``select`` must read one snapshot."""
    found: list[str] = []
    dids = list(dict.fromkeys(did for _, did, *_ in different(select, shard, analyzer, progress)))
    if dids:
        found.append(
            f"lexical: passages have other terms than their text ({_documents(select, shard, dids)}); run rebuild"
        )
    lexicon = select(_LEXICON, (shard.cid, shard.cid, NAMED))
    if lexicon:
        found.append(
            f"lexicon: the counts of {_listed([row[0] for row in lexicon], lexicon[0][1])} are wrong; run rebuild"
        )
    for first, last in select("SELECT first, last FROM segments WHERE cid = %s ORDER BY first", (shard.cid,)):
        wrong, strays = _segment(select, shard, root, int(first), int(last))
        if wrong:
            owners = _owners(select, shard, wrong)
            found.append(f"postings: passages have other terms than their words ({owners}); run rebuild")
        if strays:
            found.append(f"postings: {strays:,} entries of passages that were never there; run rebuild")
    ((count,),) = select(_STRAYS, (shard.cid,))
    if count:
        found.append(f"vectors: {count:,} belong to no passage of their document; run rebuild")
    return found


def repair(transaction: Transaction, shard: Shard) -> None:
    """Write the terms of passages again where they differ from the text, and delete vectors without a passage."""
    for pid, _, body, words, length in list(different(transaction.all, shard, transaction.analyzer)):
        sql = "UPDATE passages SET body = %s, words = %s::tsvector, length = %s WHERE cid = %s AND pid = %s"
        transaction.execute(sql, (body, words, length, shard.cid, pid))
    transaction.execute(
        "DELETE FROM vectors v WHERE v.cid = %s AND NOT EXISTS "
        "(SELECT 1 FROM passages p WHERE p.cid = v.cid AND p.pid = v.pid AND p.did = v.did)",
        (shard.cid,),
    )


def different(
    select: Select, shard: Shard, analyzer: Analyzer, progress: Progress | None = None
) -> Iterator[tuple[int, int, str, str, int]]:
    """Yield (pid, did, body, words, length), as they should be, of passages that differ from their text."""
    at, done = 0, 0
    sql = "SELECT pid, did, start, stop FROM passages WHERE cid = %s AND pid > %s ORDER BY pid LIMIT %s"
    while rows := select(sql, (shard.cid, at, BATCH)):
        at = rows[-1][0]
        expected = dict(_analysed(select, shard, analyzer, rows))
        bodies, words, lengths = (list(column) for column in zip(*expected.values(), strict=True))
        for pid, did in select(_DIFFERENT, (list(expected), bodies, words, lengths, shard.cid)):
            yield pid, did, *expected[pid]
        done += len(rows)
        if progress is not None:
            progress(done, done)


def _analysed(
    select: Select, shard: Shard, analyzer: Analyzer, rows: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, tuple[str, str, int]]]:
    sql = "SELECT did, title, text FROM documents WHERE cid = %s AND did = ANY(%s)"
    texts = {did: (title, text) for did, title, text in select(sql, (shard.cid, sorted({row[1] for row in rows})))}
    for pid, did, start, stop in rows:
        title, text = texts.get(did, ("", ""))
        body = f"{title}\n{text[start:stop]}" if title else text[start:stop]
        found = analyzer.terms(body)
        yield pid, (body, terms.tsvector(found, analyzer.terms(title) if title else ()), len(found))


def _segment(select: Select, shard: Shard, root: int, first: int, last: int) -> tuple[list[int], int]:
    """Return the passages of a segment with wrong entries, and the number of entries of passages that never existed."""
    import numpy as np

    begin = first // shard.step
    expected = np.zeros(last // shard.step - begin + 1, dtype=np.uint64)
    live = np.zeros(len(expected), dtype=np.bool_)
    at = first - 1
    sql = (
        "SELECT p.pid, p.length, tsvector_to_array(p.words), "
        "ARRAY(SELECT cardinality(u.positions) FROM unnest(p.words) u) "
        "FROM passages p WHERE p.cid = %s AND p.pid > %s AND p.pid <= %s ORDER BY p.pid LIMIT %s"
    )
    while rows := select(sql, (shard.cid, at, last, BATCH)):
        at = rows[-1][0]
        for pid, length, lexemes, counts in rows:
            place = pid // shard.step - begin
            live[place] = True
            hashes = np.array([hash(term) for term in lexemes], dtype=np.int64).view(np.uint64)
            lengths = np.full(len(lexemes), length)
            expected[place] = _mixed(hashes, lengths, np.array(counts, dtype=np.int64)).sum(dtype=np.uint64)
    actual, seen = _posted(select, shard, first, len(expected))
    wrong = np.flatnonzero(live & (actual != expected))
    removed = np.flatnonzero(seen & ~live)
    numbers = [shard.number(begin + int(place)) for place in removed]
    known = (
        select("SELECT count(*) FROM removed WHERE cid = %s AND pid = ANY(%s)", (root, numbers)) if numbers else [(0,)]
    )
    return [shard.number(begin + int(place)) for place in wrong], max(0, len(numbers) - int(known[0][0]))


def _posted(
    select: Select, shard: Shard, first: int, size: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Return for each place of a segment a checksum of its entries, and whether it has any."""
    import numpy as np

    sums, seen = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.bool_)
    term = None
    sql = "SELECT term, entries FROM postings WHERE cid = %s AND first = %s AND (%s::text IS NULL OR term > %s) "
    while rows := select(f"{sql}ORDER BY term LIMIT %s", (shard.cid, first, term, term, TERMS)):
        term = rows[-1][0]
        for word, data in rows:
            entries = np.frombuffer(data, dtype=ENTRY)
            places = entries["at"].astype(np.int64)
            inside = (places >= 0) & (places < size)
            places, entries = places[inside], entries[inside]
            hashes = np.full(len(places), hash(word), dtype=np.int64).view(np.uint64)
            np.add.at(sums, places, _mixed(hashes, entries["length"], entries["count"]))
            seen[places] = True
    return sums, seen


def _mixed(hashes: Any, lengths: Any, counts: Any) -> Any:
    import numpy as np

    odd = np.uint64(0x9E3779B97F4A7C15)
    return (hashes ^ (lengths.astype(np.uint64) * odd + counts.astype(np.uint64))) * odd


def _owners(select: Select, shard: Shard, pids: Sequence[int]) -> str:
    rows = select(
        "SELECT DISTINCT did FROM passages WHERE cid = %s AND pid = ANY(%s) ORDER BY did", (shard.cid, list(pids))
    )
    return _documents(select, shard, [did for (did,) in rows])


def _documents(select: Select, shard: Shard, dids: Sequence[int]) -> str:
    rows = select(
        "SELECT id FROM documents WHERE cid = %s AND did = ANY(%s) ORDER BY did", (shard.cid, list(dids[:NAMED]))
    )
    return f"document {_listed([id for (id,) in rows], len(dids))}"


def _listed(names: Sequence[str], total: int) -> str:
    more = f" and {total - len(names):,} more" if total > len(names) else ""
    return ", ".join(map(repr, names)) + more
