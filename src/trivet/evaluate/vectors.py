"""A cache of vectors on disk, by model and text.

Evaluations load the same texts into new stores again and again; only the first time needs the model.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from trivet.errors import EmbedderError, StoreError

if TYPE_CHECKING:
    from trivet.types import Embedder, Vector

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors (model TEXT NOT NULL, kind TEXT NOT NULL, hash BLOB NOT NULL, "
    "data BLOB NOT NULL, PRIMARY KEY (model, kind, hash))"
)
WAIT = 60.0  # seconds to wait for another process that writes


class CachedEmbedder:
    """An embedder that keeps its vectors on disk. Thread-safe; several processes may share the folder."""

    def __init__(self, inner: Embedder, folder: Path) -> None:
        self.inner = inner
        self.id, self.spec, self.dim, self.unrelated = inner.id, inner.spec, inner.dim, inner.unrelated
        #: A model may embed queries with other weights than passages.
        self._ids = {"passage": inner.id, "query": getattr(inner, "query_id", inner.id)}
        self.scripts: tuple[str, ...] = getattr(inner, "scripts", ())
        self.made = 0  # number of vectors that the model computed
        self._folder = folder
        self._lock = threading.Lock()
        self._queries: dict[str, Vector] = {}
        with self._explained():
            folder.mkdir(parents=True, exist_ok=True)
            # SQLite does not wait for a lock when the journal mode changes, so two processes would collide
            with FileLock(folder / "vectors.lock", timeout=WAIT):
                self._database = sqlite3.connect(
                    folder / "vectors.db", check_same_thread=False, isolation_level=None, timeout=WAIT
                )
                try:
                    self._database.execute("PRAGMA journal_mode = WAL")
                    self._database.execute("PRAGMA synchronous = OFF")  # lost vectors are computed again
                    self._database.execute(_SCHEMA)
                except BaseException:
                    self._database.close()
                    raise

    def embed_passages(self, texts: list[str]) -> Vector:
        return self._rows("passage", texts)

    def embed_queries(self, texts: list[str]) -> Vector:
        import numpy as np

        missing = [text for text in dict.fromkeys(texts) if text not in self._queries]
        if missing:
            self._queries.update(zip(missing, self._rows("query", missing), strict=True))
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for at, text in enumerate(texts):
            rows[at] = self._queries[text]
        return rows

    def _rows(self, kind: str, texts: list[str]) -> Vector:
        import numpy as np

        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        with self._lock, self._explained():
            known = {key: data for key in set(keys) if (data := self._find(kind, key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            fresh = dict(zip(missing, self._made(kind, list(missing.values())), strict=True))
            known.update(fresh)
            with self._lock, self._explained(), self._database:  # commits or rolls back
                self.made += len(fresh)
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)",
                    [(self._ids[kind], kind, key, data) for key, data in fresh.items()],
                )
        for at, key in enumerate(keys):
            rows[at] = np.frombuffer(known[key], dtype="<f4")
        return rows

    def _made(self, kind: str, texts: list[str]) -> list[bytes]:
        """Return the model's vectors; raise for invalid ones, which must not get into the cache."""
        import numpy as np

        rows = np.asarray((self.inner.embed_passages if kind == "passage" else self.inner.embed_queries)(texts), "<f4")
        if rows.shape != (len(texts), self.dim):
            raise EmbedderError(
                f"embedder {self.spec!r} gave {rows.shape} for {len(texts)} texts of {self.dim} numbers"
            )
        if not np.isfinite(rows).all():
            raise EmbedderError(f"embedder {self.spec!r} gave a NaN or infinite value")
        return [row.tobytes() for row in rows]

    def _find(self, kind: str, key: bytes) -> bytes | None:
        row = self._database.execute(
            "SELECT data FROM vectors WHERE model = ? AND kind = ? AND hash = ?", (self._ids[kind], kind, key)
        ).fetchone()
        return row[0] if row and len(row[0]) == 4 * self.dim else None  # a damaged row is computed again

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"cache: {self._folder} cannot be used ({error}); delete its vectors.db or give another with --cache"
            ) from None

    def close(self) -> None:
        self._database.close()
