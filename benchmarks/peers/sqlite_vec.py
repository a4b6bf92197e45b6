"""sqlite-vec and FTS5 in one SQLite file: its brute-force scan, FTS5's bm25, both joined by RRF in one statement.

The standard library's sqlite3 may not load extensions, so apsw opens the file. ``coarse`` is the two steps its
documentation gives for more rows: a scan of one bit a dimension, the best of it ordered by the whole vectors.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import apsw
import sqlite_vec

from corpus import Corpus, Document, Floats, whole

STOPS = (  # each between two spaces
    " a an and are as at be but by can could did do does for from had has have how i if in into is it its may no not "
    "of on or our should so such than that the their them then there these they this those to was we were what when "
    "where which who why will with would you your "
)
FUSED = """
WITH meant AS ({meant}),
 said AS (
  SELECT at, row_number() OVER (ORDER BY score) AS place FROM (
   SELECT words.rowid AS at, words.rank AS score FROM words {joined}
   WHERE words MATCH :words {narrowed} ORDER BY words.rank LIMIT :depth)),
 fused AS (
  SELECT at, sum(share) AS score FROM (
   SELECT at, 1.0 / (60 + place) AS share FROM meant UNION ALL SELECT at, 1.0 / (60 + place) FROM said)
  GROUP BY at ORDER BY score DESC LIMIT :k)
SELECT documents.id, documents.text FROM fused JOIN documents ON documents.rowid = fused.at ORDER BY fused.score DESC
"""
EXACT = """
SELECT at, row_number() OVER (ORDER BY distance) AS place FROM meanings
WHERE meaning MATCH :vector AND k = :depth {narrowed}
"""
COARSE = """
SELECT at, row_number() OVER (ORDER BY far) AS place FROM (
 SELECT at, vec_distance_cosine(whole, :vector) AS far FROM meanings
 WHERE meaning MATCH vec_quantize_binary(:vector) AND k = :wide {narrowed})
ORDER BY far LIMIT :depth
"""


class Engine:
    def __init__(self, folder: Path, setting: dict[str, Any]) -> None:
        self.path, self.coarse, self.wide = str(folder / "documents.db"), setting["coarse"], setting.get("wide", 1)

    def build(self, corpus: Corpus) -> None:
        self.open()
        dim = corpus.vectors.shape[1]
        kept = f"meaning bit[{dim}], +whole BLOB" if self.coarse else f"meaning float[{dim}] distance_metric=cosine"
        for statement in (
            "CREATE TABLE documents (rowid INTEGER PRIMARY KEY, id TEXT UNIQUE, text TEXT, shelf TEXT, half TEXT)",
            "CREATE INDEX on_shelf ON documents (shelf)",
            "CREATE VIRTUAL TABLE words USING fts5(text, content='documents', content_rowid='rowid', "
            "tokenize='porter unicode61')",
            f"CREATE VIRTUAL TABLE meanings USING vec0(at INTEGER PRIMARY KEY, {kept}, shelf TEXT, half TEXT)",
        ):
            self.database.execute(statement)
        for documents, vectors in corpus.batches(10_000):
            self._store(documents, vectors)
        self.database.execute("INSERT INTO words(words) VALUES ('optimize')")
        self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _store(self, documents: list[Document], vectors: Floats) -> None:
        with self.database:
            for document, vector in zip(documents, vectors, strict=True):
                meta = document["meta"]
                text, placed = whole(document), (meta["shelf"], meta["half"])
                row = "INSERT INTO documents (id, text, shelf, half) VALUES (?, ?, ?, ?)"
                self.database.execute(row, (document["id"], text, *placed))
                at = self.database.last_insert_rowid()
                self.database.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (at, text))
                data = vector.tobytes()
                if self.coarse:
                    self.database.execute(
                        "INSERT INTO meanings (at, meaning, whole, shelf, half) "
                        "VALUES (?, vec_quantize_binary(?), ?, ?, ?)",
                        (at, data, data, *placed),
                    )
                else:
                    self.database.execute(
                        "INSERT INTO meanings (at, meaning, shelf, half) VALUES (?, ?, ?, ?)", (at, data, *placed)
                    )

    def open(self) -> None:
        self.database = apsw.Connection(self.path)
        self.database.set_busy_timeout(10_000)
        self.database.enable_load_extension(True)
        self.database.load_extension(sqlite_vec.loadable_path())
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = NORMAL")
        self.database.execute("PRAGMA mmap_size = 4000000000")

    def search(self, text: str, vector: Floats, where: dict[str, str], k: int) -> list[tuple[str, str]]:
        found = [word for word in re.findall(r"\w+", text.lower()) if f" {word} " not in STOPS] or re.findall(
            r"\w+", text
        )
        statement = FUSED.format(
            meant=self._meant(where),
            joined="JOIN documents ON documents.rowid = words.rowid" if where else "",
            narrowed="".join(f" AND documents.{field} = :{field}" for field in where),
        )
        words = " OR ".join(f'"{word}"' for word in found)
        return list(self.database.execute(statement, self._bound(vector, 100) | where | {"words": words, "k": k}))

    def dense(self, vector: Floats, where: dict[str, str], k: int) -> list[str]:
        statement = f"SELECT id FROM ({self._meant(where)}) JOIN documents ON documents.rowid = at ORDER BY place"
        return [id for (id,) in self.database.execute(statement, self._bound(vector, k) | where)]

    def _meant(self, where: dict[str, str]) -> str:
        return (COARSE if self.coarse else EXACT).format(
            narrowed="".join(f" AND {field} = :{field}" for field in where)
        )

    def _bound(self, vector: Floats, depth: int) -> dict[str, Any]:
        return {"vector": vector.tobytes(), "depth": depth, "wide": depth * self.wide}

    def write(self, document: Document, vector: Floats) -> None:
        self._store([document], vector[None])

    def handle(self) -> Engine:
        """Return a new connection: one serves a single thread."""
        other = Engine.__new__(Engine)
        other.__dict__ |= self.__dict__
        other.open()
        return other

    def close(self) -> None:
        self.database.close()
