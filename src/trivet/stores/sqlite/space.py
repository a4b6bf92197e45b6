"""What the bytes of a store on disk are for: tables of the file, its log, and the files of the indexes.

Every byte belongs to one part, so the parts add up to the sizes of the files.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TABLES = {  # part, by table; other tables are small
    "documents": "texts",
    "passages": "passages",
    "vectors": "vectors",
    "seals": "vectors",
    "fields": "metadata",
    "links": "links",
}
OTHER_TABLES, SQLITE_INDEXES, FREE, LOG = "other tables", "SQLite indexes", "free pages", "log"
#: Part of an index file, by its path in the folder of indexes; the first that matches counts.
FILES = (
    (re.compile(r"/words/forward-"), "forward files"),
    (re.compile(r"/words[/.]"), "word index"),
    (re.compile(r"/trigrams[/.]"), "trigram index"),
    (re.compile(r"/meaning-\d+/.*/(quick\.faiss|bytes\.npy|scale\.npy)$"), "vector codes"),
    (re.compile(r"/meaning-\d+/"), "vector index"),
    (re.compile(r"/graph/"), "graph index"),
    (re.compile(r""), "other files"),
)
_PAGES = (
    "SELECT m.type, m.tbl_name, sum(s.pgsize) FROM dbstat s LEFT JOIN sqlite_master m ON m.name = s.name "
    "WHERE s.pageno <= ? GROUP BY s.name"
)


def space(connection: sqlite3.Connection, path: Path, index_folder: Path) -> dict[str, int]:
    """Return the bytes of each part; the connection sees one state of the file."""
    found: Counter[str] = Counter()
    size = path.stat().st_size
    for part, taken in _parts(connection, size):
        found[part] += taken
    found[FREE] += size - sum(found.values())
    for log in log_files(path):
        found[LOG] += bytes_of(log)
    for file in index_folder.rglob("*"):
        inside = f"/{file.relative_to(index_folder).as_posix()}"
        found[next(part for pattern, part in FILES if pattern.search(inside))] += bytes_of(file)
    return {part: taken for part, taken in found.items() if taken}


def log_files(path: Path) -> tuple[Path, ...]:
    """Return the files in which SQLite keeps what is not in the file of the store yet."""
    return tuple(Path(f"{path}{suffix}") for suffix in ("-wal", "-shm"))


def bytes_of(file: Path) -> int:
    """Return the size of a file; 0 where there is none, as it was deleted meanwhile."""
    with contextlib.suppress(OSError):
        return file.stat().st_size if file.is_file() else 0
    return 0


def _parts(connection: sqlite3.Connection, size: int) -> Iterator[tuple[str, int]]:
    """Yield (part, bytes) of the pages in use, without those that are only in the log."""
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    try:
        rows = connection.execute(_PAGES, (size // page,)).fetchall()
    except sqlite3.OperationalError:  # this SQLite was built without dbstat: only what is free is known
        pages, free = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "freelist_count")
        )
        yield "tables", min(size, (pages - free) * page)
        return
    for kind, table, taken in rows:
        yield SQLITE_INDEXES if kind == "index" else TABLES.get(table, OTHER_TABLES), taken
