"""Have I embedded this before?

The lab puts the same texts into a new store again and again; only the first time needs the model. Vectors are kept
by model and content in one SQLite file, so a second run takes seconds and an edited set embeds what was edited.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from trivet.errors import StoreError

if TYPE_CHECKING:
    from trivet.types import Embedder, Vector

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors (model TEXT NOT NULL, kind TEXT NOT NULL, hash BLOB NOT NULL, "
    "data BLOB NOT NULL, PRIMARY KEY (model, kind, hash))"
)


def default_folder() -> Path:
    """Where vectors are kept when nobody says: the user's cache folder."""
    said = os.environ.get("TRIVET_CACHE")
    if said:
        return Path(said)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trivet"


class CachedEmbedder:
    """An embedder that remembers on disk what it was asked. Thread-safe; two processes may share the folder."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self.inner = inner
        self.id, self.spec, self.dim, self.unrelated = inner.id, inner.spec, inner.dim, inner.unrelated
        self.made = 0  # vectors the model was really asked for
        self._lock = threading.Lock()
        self._queries: dict[str, Vector] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                folder / "vectors.db", check_same_thread=False, isolation_level=None, timeout=60
            )
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = OFF")  # a cache: what a crash takes is made again
            self._database.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cache: {folder} cannot be used ({error}); give another with --cache") from None

    def embed_passages(self, texts: list[str]) -> Vector:
        return self._rows("passage", texts)

    def embed_queries(self, texts: list[str]) -> Vector:
        import numpy as np

        missing = [text for text in dict.fromkeys(texts) if text not in self._queries]
        if missing:
            self._queries.update(zip(missing, self._rows("query", missing), strict=True))
        return np.stack([self._queries[text] for text in texts])

    def _rows(self, kind: str, texts: list[str]) -> Vector:
        import numpy as np

        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        with self._lock:
            known = {key: data for key in set(keys) if (data := self._find(kind, key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            embed = self.inner.embed_passages if kind == "passage" else self.inner.embed_queries
            made = np.asarray(embed(list(missing.values())), dtype="<f4")
            self.made += len(missing)
            fresh = {key: row.tobytes() for key, row in zip(missing, made, strict=True)}
            known.update(fresh)
            with self._lock:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany(
                    "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?)",
                    [(self.id, kind, key, data) for key, data in fresh.items()],
                )
                self._database.execute("COMMIT")
        for at, key in enumerate(keys):
            rows[at] = np.frombuffer(known[key], dtype="<f4")
        return rows

    def _find(self, kind: str, key: bytes) -> bytes | None:
        row = self._database.execute(
            "SELECT data FROM vectors WHERE model = ? AND kind = ? AND hash = ?", (self.id, kind, key)
        ).fetchone()
        return row[0] if row and len(row[0]) == 4 * self.dim else None

    def close(self) -> None:
        self._database.close()
