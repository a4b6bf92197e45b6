"""Where is it kept? Documents and words in a companion store, vectors in Qdrant."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from trivet.errors import InputError, StoreError
from trivet.stores.contract import Shelf
from trivet.stores.qdrant.place import Place
from trivet.stores.qdrant.points import Points
from trivet.stores.qdrant.shelf import HIDDEN, QdrantShelf


class QdrantStore:
    def __init__(self, url: str) -> None:
        from trivet.stores import open_store, scheme_of

        self.url = url
        self._place = Place.parse(url)
        if scheme_of(self._place.words).startswith("qdrant"):
            raise InputError("store: words= names another Qdrant; name a file or a PostgreSQL store")
        if self._place.local:
            Path(self._place.client["path"]).parent.mkdir(parents=True, exist_ok=True)
        self._companion = open_store(self._place.words)
        try:
            self._points = Points(self._place)
        except StoreError:
            self._companion.close()
            raise

    @property
    def path(self) -> str:
        return self._place.shown

    def shelf(self, name: str, config: Mapping[str, Any], settings: str) -> Shelf:
        asked = {key: value for key, value in config.items() if key != HIDDEN}
        if name not in self._companion.names():
            asked[HIDDEN] = secrets.token_hex(6)
        inner = self._companion.shelf(name, asked, settings)
        return cast(Shelf, self._wrapped(inner))

    def _wrapped(self, inner: Shelf) -> QdrantShelf:
        # a companion that was there before Qdrant was: its address and the name tell the collection
        known = blake2b(f"{self._companion.path}\0{inner.name}".encode(), digest_size=6).hexdigest()
        token = inner.config.get(HIDDEN) or known
        return QdrantShelf(self, inner, self._points, f"{self._place.prefix}-{token}", self._place.tenant)

    def names(self) -> list[str]:
        return self._companion.names()

    def drop(self, name: str) -> None:
        if name in self._companion.names():
            self._wrapped(self._companion.shelf(name, {}, "")).drop_points()
        self._companion.drop(name)

    def problems(self) -> list[str]:
        return self._companion.problems()

    def sizes(self) -> tuple[int, int]:
        store, index = self._companion.sizes()
        if self._place.local:
            folder = Path(self._place.client["path"])
            index += sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        return store, index

    def cursor_key(self) -> bytes:
        return self._companion.cursor_key()

    def reclaim(self) -> None:
        """The companion's; Qdrant merges its own segments."""
        self._companion.reclaim()

    def files(self) -> set[Path]:
        own = {Path(self._place.client["path"]).resolve()} if self._place.local else set()
        return self._companion.files() | own

    def close(self) -> None:
        self._points.close()
        self._companion.close()
