"""The Qdrant store: vectors in Qdrant, everything else in a record store, which is SQLite or PostgreSQL."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from trivet.errors import InputError, StoreError
from trivet.stores import StoreType, is_there, open_keys, open_store, scheme_of
from trivet.stores.contract import Collection, KeyTable
from trivet.stores.qdrant.address import Address
from trivet.stores.qdrant.collection import NAME_KEY, QdrantCollection
from trivet.stores.qdrant.points import Points
from trivet.stores.qdrant.sync import PointSync


class QdrantStore:
    """The collections at one address of Qdrant."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._address = Address.parse(url)
        if scheme_of(self._address.records).startswith("qdrant"):
            raise InputError("store: words= names another Qdrant; name a file or a PostgreSQL store")
        if self._address.local:
            Path(self._address.client["path"]).parent.mkdir(parents=True, exist_ok=True)
        self._records = open_store(self._address.records)
        try:
            self._points = Points(self._address)
        except StoreError:
            self._records.close()
            raise

    @property
    def path(self) -> str:
        return self._address.shown

    def collection(self, name: str, config: Mapping[str, Any], settings: str) -> QdrantCollection:
        given = {key: value for key, value in config.items() if key != NAME_KEY}
        if name not in self._records.names():
            given[NAME_KEY] = secrets.token_hex(6)
        records = self._records.collection(name, given, settings)
        return QdrantCollection(self, records, self._sync(records))

    def _sync(self, records: Collection) -> PointSync:
        # a collection that was created without Qdrant has no name there: its address and its name make one
        made = blake2b(f"{self._records.path}\0{records.name}".encode(), digest_size=6).hexdigest()
        name = f"{self._address.prefix}-{records.config.get(NAME_KEY) or made}"
        return PointSync(records, self._points, name, self._address.tenant)

    def names(self) -> list[str]:
        return self._records.names()

    def drop(self, name: str) -> None:
        if name in self._records.names():
            self._sync(self._records.collection(name, {}, "")).drop()
        self._records.drop(name)

    def problems(self) -> list[str]:
        return self._records.problems()

    def sizes(self) -> tuple[int, int]:
        records, index = self._records.sizes()
        return records, index + self._local_bytes()

    def space(self) -> dict[str, int]:
        return {**self._records.space(), "qdrant": self._local_bytes()}

    def _local_bytes(self) -> int:
        """Return the bytes of a Qdrant in a folder; 0 for one on a server."""
        if not self._address.local:
            return 0
        folder = Path(self._address.client["path"])
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())

    def cursor_key(self) -> bytes:
        return self._records.cursor_key()

    def reclaim(self) -> None:
        """Reclaim the space of the record store; Qdrant does it for its own."""
        self._records.reclaim()

    def files(self) -> set[Path]:
        own = {Path(self._address.client["path"]).resolve()} if self._address.local else set()
        return self._records.files() | own

    def backup(self, target: Path, progress: Any = None) -> int:
        raise InputError("backup: this store is on a server; use the server's own backup, or `trivet copy` to a file")

    def redistribute(self, name: str, by: str) -> bool:
        return self._records.redistribute(name, by)

    def close(self) -> None:
        self._points.close()
        self._records.close()


def _exists(url: str) -> bool:
    return is_there(Address.parse(url).records)


def _keys(url: str) -> KeyTable:
    return open_keys(Address.parse(url).records)


STORE = StoreType(QdrantStore, _exists, _keys)
