"""Compare the words, postings and vectors of a collection on a server with the texts of its documents.

Everything is read in one state of the server, part by part, some thousand passages at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trivet.analysis import Analyzer
from trivet.stores.postgres import terms
from trivet.stores.postgres.links import All
from trivet.stores.postgres.parts import Part
from trivet.stores.postgres.postings import ENTRY

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from trivet.stores.contract import Progress
    from trivet.stores.postgres.database import Connection

BATCH = 1_000  # passages read at a time
TERMS = 2_000  # rows of the postings read at a time
NAMED = 3  # documents or words that a problem names; more are counted

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


def problems(ask: All, part: Part, root: int, analyzer: Analyzer, progress: Progress | None = None) -> list[str]:
    """What of a part is not what its documents say. ``ask`` sees one state."""
    found: list[str] = []
    dids = list(dict.fromkeys(did for _, did, *_ in different(ask, part, analyzer, progress)))
    if dids:
        found.append(f"words: passages are not those of their text ({_documents(ask, part, dids)}); run rebuild")
    lexicon = ask(_LEXICON, (part.cid, part.cid, NAMED))
    if lexicon:
        found.append(
            f"lexicon: the counts of {_listed([row[0] for row in lexicon], lexicon[0][1])} are wrong; run rebuild"
        )
    for first, last in ask("SELECT first, last FROM segments WHERE cid = %s ORDER BY first", (part.cid,)):
        wrong, strays = _segment(ask, part, root, int(first), int(last))
        if wrong:
            owners = _owners(ask, part, wrong)
            found.append(f"postings: passages have other terms than their words ({owners}); run rebuild")
        if strays:
            found.append(f"postings: {strays:,} entries of passages that were never there; run rebuild")
    ((count,),) = ask(_STRAYS, (part.cid,))
    if count:
        found.append(f"vectors: {count:,} belong to no passage of their document; run rebuild")
    return found


def mend(connection: Connection, part: Part, analyzer: Analyzer) -> None:
    """Write the words of passages anew where they are not those of the text, and delete vectors of no passage."""
    from trivet.stores.postgres.links import asking

    for pid, _, body, words, length in list(different(asking(connection), part, analyzer)):
        sql = "UPDATE passages SET body = %s, words = %s::tsvector, length = %s WHERE cid = %s AND pid = %s"
        connection.execute(sql, (body, words, length, part.cid, pid))
    connection.execute(
        "DELETE FROM vectors v WHERE v.cid = %s AND NOT EXISTS "
        "(SELECT 1 FROM passages p WHERE p.cid = v.cid AND p.pid = v.pid AND p.did = v.did)",
        (part.cid,),
    )


def different(
    ask: All, part: Part, analyzer: Analyzer, progress: Progress | None = None
) -> Iterator[tuple[int, int, str, str, int]]:
    """(pid, did, body, words, length), as they should be, of passages that are not what their text gives."""
    at, done = 0, 0
    sql = "SELECT pid, did, start, stop FROM passages WHERE cid = %s AND pid > %s ORDER BY pid LIMIT %s"
    while rows := ask(sql, (part.cid, at, BATCH)):
        at = rows[-1][0]
        right = dict(_analysed(ask, part, analyzer, rows))
        bodies, words, lengths = (list(column) for column in zip(*right.values(), strict=True))
        for pid, did in ask(_DIFFERENT, (list(right), bodies, words, lengths, part.cid)):
            yield pid, did, *right[pid]
        done += len(rows)
        if progress is not None:
            progress(done, done)


def _analysed(
    ask: All, part: Part, analyzer: Analyzer, rows: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, tuple[str, str, int]]]:
    sql = "SELECT did, title, text FROM documents WHERE cid = %s AND did = ANY(%s)"
    texts = {did: (title, text) for did, title, text in ask(sql, (part.cid, sorted({row[1] for row in rows})))}
    for pid, did, start, stop in rows:
        title, text = texts.get(did, ("", ""))
        body = f"{title}\n{text[start:stop]}" if title else text[start:stop]
        found = analyzer.terms(body)
        yield pid, (body, terms.vector(found, analyzer.terms(title) if title else ()), len(found))


def _segment(ask: All, part: Part, root: int, first: int, last: int) -> tuple[list[int], int]:
    """(passages of a segment whose entries are not those of their words, entries of passages that never were)."""
    import numpy as np

    begin = first // part.step
    right = np.zeros(last // part.step - begin + 1, dtype=np.uint64)
    live = np.zeros(len(right), dtype=np.bool_)
    at = first - 1
    sql = (
        "SELECT p.pid, p.length, tsvector_to_array(p.words), "
        "ARRAY(SELECT cardinality(u.positions) FROM unnest(p.words) u) "
        "FROM passages p WHERE p.cid = %s AND p.pid > %s AND p.pid <= %s ORDER BY p.pid LIMIT %s"
    )
    while rows := ask(sql, (part.cid, at, last, BATCH)):
        at = rows[-1][0]
        for pid, length, lexemes, counts in rows:
            place = pid // part.step - begin
            live[place] = True
            hashes = np.array([hash(term) for term in lexemes], dtype=np.int64).view(np.uint64)
            lengths = np.full(len(lexemes), length)
            right[place] = _mixed(hashes, lengths, np.array(counts, dtype=np.int64)).sum(dtype=np.uint64)
    mine, seen = _posted(ask, part, first, len(right))
    wrong = np.flatnonzero(live & (mine != right))
    gone = np.flatnonzero(seen & ~live)
    numbers = [part.number(begin + int(place)) for place in gone]
    known = ask("SELECT count(*) FROM removed WHERE cid = %s AND pid = ANY(%s)", (root, numbers)) if numbers else [(0,)]
    return [part.number(begin + int(place)) for place in wrong], max(0, len(numbers) - int(known[0][0]))


def _posted(ask: All, part: Part, first: int, size: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """For each place of a segment the sum of its entries, and whether it has any."""
    import numpy as np

    sums, seen = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.bool_)
    term = None
    sql = "SELECT term, entries FROM postings WHERE cid = %s AND first = %s AND (%s::text IS NULL OR term > %s) "
    while rows := ask(f"{sql}ORDER BY term LIMIT %s", (part.cid, first, term, term, TERMS)):
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


def _owners(ask: All, part: Part, pids: Sequence[int]) -> str:
    rows = ask(
        "SELECT DISTINCT did FROM passages WHERE cid = %s AND pid = ANY(%s) ORDER BY did", (part.cid, list(pids))
    )
    return _documents(ask, part, [did for (did,) in rows])


def _documents(ask: All, part: Part, dids: Sequence[int]) -> str:
    rows = ask("SELECT id FROM documents WHERE cid = %s AND did = ANY(%s) ORDER BY did", (part.cid, list(dids[:NAMED])))
    return f"document {_listed([identifier for (identifier,) in rows], len(dids))}"


def _listed(names: Sequence[str], total: int) -> str:
    more = f" and {total - len(names):,} more" if total > len(names) else ""
    return ", ".join(map(repr, names)) + more
