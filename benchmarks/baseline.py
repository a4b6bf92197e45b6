"""The baseline of `speed.py`: SQLite FTS5 and numpy, fused by RRF.

Its vectors stay in memory as one matrix; seed 004, which it follows, loads them from the database at every query.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

STOP = frozenset(
    {"a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "has", "have", "how", "i", "if", "in"}
    | {"is", "it", "its", "not", "of", "on", "or", "that", "the", "their", "this", "to", "was", "we", "what", "when"}
    | {"where", "which", "who", "will", "with", "you", "your"}
)
Floats = npt.NDArray[np.float32]


class Baseline:
    def __init__(self, path: Path, vectors: Floats) -> None:
        self.db = sqlite3.connect(path)
        self.vectors = vectors

    def load(self, documents: Iterable[dict[str, Any]]) -> None:
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("CREATE TABLE snippets (rowid INTEGER PRIMARY KEY, id TEXT, title TEXT, text TEXT, meta TEXT)")
        self.db.execute(
            "CREATE VIRTUAL TABLE fts USING fts5(title, text, content='snippets', tokenize='porter unicode61')"
        )
        rows = [
            (at, item["id"], item["title"], item["text"], json.dumps(item["meta"]))
            for at, item in enumerate(documents, 1)
        ]
        self.db.executemany("INSERT INTO snippets VALUES (?, ?, ?, ?, ?)", rows)
        self.db.execute("INSERT INTO fts (rowid, title, text) SELECT rowid, title, text FROM snippets")
        self.db.commit()

    def search(self, query: str, vector: Floats, limit: int, where: tuple[str, list[Any]] | None = None) -> list[Any]:
        words = [word for word in query.lower().split() if word not in STOP] or query.lower().split()
        match = " OR ".join('"' + word.replace('"', "") + '"' for word in words)
        sql = "SELECT s.rowid FROM fts JOIN snippets s ON s.rowid = fts.rowid WHERE fts MATCH ?"
        values: list[Any] = [match]
        allowed = None
        if where is not None:
            sql += f" AND {where[0]}"
            values += where[1]
            condition = f"SELECT s.rowid FROM snippets s WHERE {where[0]}"
            allowed = np.fromiter((row[0] - 1 for row in self.db.execute(condition, where[1])), dtype=np.int64)
        lexical = [row[0] for row in self.db.execute(f"{sql} ORDER BY fts.rank LIMIT ?", (*values, limit * 3))]
        scores = self.vectors @ vector if allowed is None else self.vectors[allowed] @ vector
        count = min(limit * 3, len(scores))
        top = np.argpartition(-scores, count - 1)[:count]
        top = top[np.argsort(-scores[top])]
        dense = [int(row) + 1 for row in (top if allowed is None else allowed[top])]
        fused: dict[int, float] = {}
        for ranking in (lexical, dense):
            for rank, row in enumerate(ranking):
                fused[row] = fused.get(row, 0.0) + 1 / (60 + rank + 1)
        best = sorted(fused, key=lambda row: -fused[row])[:limit]
        marks = ", ".join("?" * len(best))
        found = {row[0]: row for row in self.db.execute(f"SELECT * FROM snippets WHERE rowid IN ({marks})", best)}
        return [found[row] for row in best]
