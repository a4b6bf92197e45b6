"""Have I embedded this before?

The lab puts the same texts into a new store again and again; only the first time needs the model. Vectors are kept
by model and content in one SQLite file, so a second run takes seconds and an edited set embeds what was edited.
"""

from __future__ import annotations

import contextlib
import os
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
WAIT = 60.0  # seconds, for another process to have written


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
        self.scripts: tuple[str, ...] = getattr(inner, "scripts", ())
        self.made = 0  # vectors the model was really asked for
        self._folder = folder
        self._lock = threading.Lock()
        self._queries: dict[str, Vector] = {}
        with self._explained():
            folder.mkdir(parents=True, exist_ok=True)
            # SQLite does not wait for its turn to change the journal's mode: two that begin at once would collide
            with FileLock(folder / "vectors.lock", timeout=WAIT):
                self._database = sqlite3.connect(
                    folder / "vectors.db", check_same_thread=False, isolation_level=None, timeout=WAIT
                )
                try:
                    self._database.execute("PRAGMA journal_mode = WAL")
                    self._database.execute("PRAGMA synchronous = OFF")  # a cache: what a crash takes is made again
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
            with self._lock, self._explained(), self._database:  # which ends the transaction, either way
                self.made += len(fresh)
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)",
                    [(self.id, kind, key, data) for key, data in fresh.items()],
                )
        for at, key in enumerate(keys):
            rows[at] = np.frombuffer(known[key], dtype="<f4")
        return rows

    def _made(self, kind: str, texts: list[str]) -> list[bytes]:
        """What the model says; nothing is kept that is no vector, or it would be found again for ever."""
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
            "SELECT data FROM vectors WHERE model = ? AND kind = ? AND hash = ?", (self.id, kind, key)
        ).fetchone()
        return row[0] if row and len(row[0]) == 4 * self.dim else None  # a damaged row is made again

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
