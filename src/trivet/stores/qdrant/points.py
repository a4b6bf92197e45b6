"""The client of Qdrant.

There is one Qdrant collection for each model of a collection, and its vector is named after the model: re-embedding
builds the new one beside the old. Vectors have unit length, so their dot product is the cosine and their bytes do not
change.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qdrant_client import QdrantClient, models

from trivet.errors import StoreError
from trivet.stores.qdrant.address import Address
from trivet.stores.qdrant.tags import BLANK, FIELD

BATCH = 256  # points sent at a time
PAGE = 5_000  # point numbers read at a time
MARKER = 0  # the point that names the state of the others; passages are numbered from 1
MAX_NAME = 64  # characters of the name of a vector

Row = tuple[int, list[float], dict[str, Any]]  # a point: its number, vector and payload


@dataclass(frozen=True, slots=True)
class Mark:
    """A state of the record store: its version and the random token of that version."""

    version: int
    token: bytes


def named(model: str) -> str:
    """Return the name of a model as Qdrant accepts it for a vector."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", model)[:MAX_NAME]


class _Local:
    """Clients of local mode: a folder allows one client, which all engines of this process share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[QdrantClient, int]] = {}

    def take(self, folder: str) -> QdrantClient:
        key = str(Path(folder).resolve())
        with self._lock:
            client, users = self._open.get(key) or (QdrantClient(path=folder), 0)
            self._open[key] = (client, users + 1)
            return client

    def give_back(self, folder: str) -> None:
        key = str(Path(folder).resolve())
        with self._lock:
            client, users = self._open.pop(key)
            if users > 1:
                self._open[key] = (client, users - 1)
            else:
                client.close()


_LOCAL = _Local()
_ONE_AT_A_TIME = threading.RLock()  # local mode is not safe to use from threads


class Points:
    """The client of one store, with its errors as ``StoreError``."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock = _ONE_AT_A_TIME if address.local else contextlib.nullcontext()
        self._closed = False
        with self._translated():
            self._client = _LOCAL.take(address.client["path"]) if address.local else QdrantClient(**address.client)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        if self._closed:
            raise StoreError(f"store: {self._address.shown!r} is closed; open it again")
        with self._lock:
            try:
                yield
            except StoreError:
                raise
            except Exception as error:  # the client has other errors for each transport
                reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
                raise StoreError(f"store: {self._address.shown!r}: Qdrant does not answer ({reason})") from error

    def exists(self, name: str) -> bool:
        """Tell whether there is a Qdrant collection."""
        with self._translated():
            return bool(self._client.collection_exists(name))

    def create(self, name: str, vector: str, dim: int) -> bool:
        """Create a Qdrant collection, in place of one of another model; return False where it exists."""
        if self.exists(name):
            if self.is_for(name, vector, dim):
                return False
            self.drop(name)
        with self._translated():
            on_disk = True if self._address.on_disk else None
            params = models.VectorParams(size=dim, distance=models.Distance.DOT, on_disk=on_disk)
            self._client.create_collection(name, vectors_config={named(vector): params}, **self._address.collection)
            if not self._address.local:  # local mode has no indexes, and warns
                keyword = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD)
                self._client.create_payload_index(name, FIELD, keyword)
                self._client.create_payload_index(name, "did", models.PayloadSchemaType.INTEGER)
                if self._address.tenant:
                    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
                    self._client.create_payload_index(name, "tenant", tenant)
        return True

    def is_for(self, name: str, vector: str, dim: int) -> bool:
        """Tell whether a Qdrant collection is for this model: a restored record store repeats numbers of models."""
        with self._translated():
            params = self._client.get_collection(name).config.params.vectors
        found = params.get(named(vector)) if isinstance(params, dict) else None
        return found is not None and found.size == dim

    def put(self, name: str, vector: str, rows: Sequence[Row], mark: Mark | None = None) -> None:
        """Write points, and the marker in the same request as the first of them."""
        points = [] if mark is None else [_marker(mark)]
        points += [
            models.PointStruct(id=pid, vector={named(vector): data}, payload=payload) for pid, data, payload in rows
        ]
        for start in range(0, len(points), BATCH):
            with self._translated():
                self._client.upsert(name, points[start : start + BATCH], wait=True)

    def mark(self, name: str) -> Mark | None:
        """Return what the marker says; None where there is none: an older version of trivet wrote the points."""
        if not self.exists(name):
            return None
        with self._translated():
            found = self._client.retrieve(name, [MARKER], with_payload=True, with_vectors=False)
        payload = (found[0].payload or {}) if found else {}
        if not isinstance(payload.get("version"), int) or not isinstance(payload.get("token"), str):
            return None
        return Mark(payload["version"], bytes.fromhex(payload["token"]))

    def read(self, name: str, vector: str, pids: Sequence[int], vectors: bool) -> dict[int, Row]:
        """Read points, with their vectors if ``vectors``; without those that do not exist."""
        found: dict[int, Row] = {}
        for start in range(0, len(pids), BATCH):
            with self._translated():
                points = self._client.retrieve(
                    name, list(pids[start : start + BATCH]), with_payload=True, with_vectors=vectors
                )
            for point in points:
                kept = point.vector.get(named(vector)) if isinstance(point.vector, dict) else None
                data = [float(value) for value in kept] if isinstance(kept, list) else []  # type: ignore[arg-type]
                found[int(point.id)] = (int(point.id), data, point.payload or {})
        return found

    def remove(self, name: str, dids: Sequence[int], but: Sequence[int] = ()) -> None:
        """Remove the points of documents, except for some."""
        chosen = models.Filter(
            must=[models.FieldCondition(key="did", match=models.MatchAny(any=list(dids)))],
            must_not=[models.HasIdCondition(has_id=list(but))] if but else None,
        )
        with self._translated():
            self._client.delete(name, models.FilterSelector(filter=chosen), wait=True)

    def remove_points(self, name: str, pids: Sequence[int]) -> None:
        """Remove points by number."""
        with self._translated():
            self._client.delete(name, models.PointIdsList(points=list(pids)), wait=True)

    def nearest(
        self, name: str, vector: str, query: list[float], limit: int, where: models.Filter | None
    ) -> list[tuple[float, int, int, str]]:
        """Return (score, passage, document, hash of the passage); an older version of trivet wrote no hash."""
        with self._translated():
            found = self._client.query_points(
                name,
                query=query,
                using=named(vector),
                query_filter=where,
                limit=limit,
                with_payload=["did", "hash"],
                # local mode compares all points, and warns about parameters
                search_params=None if self._address.local else models.SearchParams(hnsw_ef=max(128, limit)),
            )
        return [
            (float(point.score), int(point.id), int(payload["did"]), str(payload.get("hash", "")))
            for point in found.points
            if (payload := point.payload or {})
        ]

    def count(self, name: str) -> int:
        """Count the points, without the marker."""
        points = models.Filter(must_not=[models.HasIdCondition(has_id=[MARKER])])
        with self._translated():
            return int(self._client.count(name, count_filter=points, exact=True).count)

    def numbers(self, name: str) -> set[int]:
        """Return the numbers of all points, without the marker."""
        found: set[int] = set()
        after: Any = None
        while True:
            with self._translated():
                page, after = self._client.scroll(
                    name, limit=PAGE, offset=after, with_payload=False, with_vectors=False
                )
            found |= {int(point.id) for point in page}
            if after is None:
                return found - {MARKER}

    def collections(self, beginning: str) -> list[str]:
        """Return the names of Qdrant collections that begin so."""
        with self._translated():
            names = [item.name for item in self._client.get_collections().collections]
        return [name for name in names if name.startswith(beginning)]

    def drop(self, name: str) -> None:
        """Drop a Qdrant collection."""
        with self._translated():
            self._client.delete_collection(name)

    def close(self) -> None:
        """Close the client; one of local mode with its last user."""
        if not self._closed:
            with self._lock:
                self._closed = True
                if self._address.local:
                    _LOCAL.give_back(self._address.client["path"])
                else:
                    self._client.close()


def _marker(mark: Mark) -> models.PointStruct:
    payload = {"did": 0, FIELD: [BLANK], "version": mark.version, "token": mark.token.hex()}
    return models.PointStruct(id=MARKER, vector={}, payload=payload)  # without a vector it is never found
