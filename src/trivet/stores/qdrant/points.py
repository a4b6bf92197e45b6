"""How is Qdrant asked, and what if it does not answer?

One Qdrant collection a model of a collection, its vector named by the model, so that re-embedding builds the new one
beside the old. Vectors have unit length, so their dot product is the cosine and their bytes stay what they were.
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
from trivet.stores.qdrant.place import Place
from trivet.stores.qdrant.tags import BLANK, FIELD

BATCH = 256  # points sent at a time
PAGE = 5_000  # point numbers read at a time
MARKER = 0  # the point that says of which state the others are; passages are numbered from 1
NAME = 64  # characters of a model's name that name its vector


Row = tuple[int, list[float], dict[str, Any]]  # a point: its number, vector and payload


@dataclass(frozen=True, slots=True)
class Mark:
    """A state of the companion: a version, and the token that only one timeline gives to it."""

    version: int
    token: bytes


def named(model: str) -> str:
    """A model's name as Qdrant takes one for a vector."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", model)[:NAME]


class _Local:
    """Clients of local mode: a folder is one client's, and every engine of this process shares it."""

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
_ONE_AT_A_TIME = threading.RLock()  # local mode knows no threads


class Points:
    """The client, with its errors told to a person."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock = _ONE_AT_A_TIME if place.local else contextlib.nullcontext()
        self._closed = False
        with self._told():
            self._client = _LOCAL.take(place.client["path"]) if place.local else QdrantClient(**place.client)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        if self._closed:
            raise StoreError(f"store: {self._place.shown!r} is closed; open it again with trivet.open")
        with self._lock:
            try:
                yield
            except StoreError:
                raise
            except Exception as error:  # the client has a kind of its own for each transport
                told = (str(error).strip().splitlines() or [type(error).__name__])[0]
                raise StoreError(f"store: {self._place.shown!r}: Qdrant does not answer ({told})") from error

    def exists(self, name: str) -> bool:
        with self._told():
            return bool(self._client.collection_exists(name))

    def make(self, name: str, vector: str, dim: int) -> bool:
        """Make the collection, unless it is there; one that was made for another model is replaced. True: it is new."""
        if self.exists(name):
            if self.is_for(name, vector, dim):
                return False
            self.drop(name)
        with self._told():
            config = {named(vector): models.VectorParams(size=dim, distance=models.Distance.DOT)}
            self._client.create_collection(name, vectors_config=config, **self._place.collection)
            if not self._place.local:  # there it has no effect and warns
                keyword = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD)
                self._client.create_payload_index(name, FIELD, keyword)
                self._client.create_payload_index(name, "did", models.PayloadSchemaType.INTEGER)
                if self._place.tenant:
                    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
                    self._client.create_payload_index(name, "tenant", tenant)
        return True

    def is_for(self, name: str, vector: str, dim: int) -> bool:
        """Tell whether the collection holds vectors of this model: a restored companion numbers models again."""
        with self._told():
            kept = self._client.get_collection(name).config.params.vectors
        found = kept.get(named(vector)) if isinstance(kept, dict) else None
        return found is not None and found.size == dim

    def put(self, name: str, vector: str, rows: Sequence[Row], mark: Mark | None = None) -> None:
        """Write points; with a mark, the marker in the same request as the first of them, never after."""
        points = [] if mark is None else [_marker(mark)]
        points += [
            models.PointStruct(id=pid, vector={named(vector): data}, payload=payload) for pid, data, payload in rows
        ]
        for start in range(0, len(points), BATCH):
            with self._told():
                self._client.upsert(name, points[start : start + BATCH], wait=True)

    def mark(self, name: str) -> Mark | None:
        """Return what the marker says; None where there is none, as an older trivet left it."""
        if not self.exists(name):
            return None
        with self._told():
            found = self._client.retrieve(name, [MARKER], with_payload=True, with_vectors=False)
        payload = (found[0].payload or {}) if found else {}
        if not isinstance(payload.get("version"), int) or not isinstance(payload.get("token"), str):
            return None
        return Mark(payload["version"], bytes.fromhex(payload["token"]))

    def read(self, name: str, vector: str, pids: Sequence[int], vectors: bool) -> dict[int, Row]:
        """Return those of the points that are there, with their vectors if asked for."""
        found: dict[int, Row] = {}
        for start in range(0, len(pids), BATCH):
            with self._told():
                points = self._client.retrieve(
                    name, list(pids[start : start + BATCH]), with_payload=True, with_vectors=vectors
                )
            for point in points:
                kept = point.vector.get(named(vector)) if isinstance(point.vector, dict) else None
                data = [float(value) for value in kept] if isinstance(kept, list) else []  # type: ignore[arg-type]
                found[int(point.id)] = (int(point.id), data, point.payload or {})
        return found

    def remove(self, name: str, dids: Sequence[int], but: Sequence[int] = ()) -> None:
        """The points of these documents, but for some."""
        chosen = models.Filter(
            must=[models.FieldCondition(key="did", match=models.MatchAny(any=list(dids)))],
            must_not=[models.HasIdCondition(has_id=list(but))] if but else None,
        )
        with self._told():
            self._client.delete(name, models.FilterSelector(filter=chosen), wait=True)

    def remove_points(self, name: str, pids: Sequence[int]) -> None:
        with self._told():
            self._client.delete(name, models.PointIdsList(points=list(pids)), wait=True)

    def near(
        self, name: str, vector: str, query: list[float], limit: int, where: models.Filter | None
    ) -> list[tuple[float, int, int, str]]:
        """Return (score, passage, document, hash of the passage in hex, empty where an older trivet put it)."""
        with self._told():
            found = self._client.query_points(
                name,
                query=query,
                using=named(vector),
                query_filter=where,
                limit=limit,
                with_payload=["did", "hash"],
                # local mode compares all of them, and warns of a parameter it has no use for
                search_params=None if self._place.local else models.SearchParams(hnsw_ef=max(128, limit)),
            )
        return [
            (float(point.score), int(point.id), int(payload["did"]), str(payload.get("hash", "")))
            for point in found.points
            if (payload := point.payload or {})
        ]

    def count(self, name: str) -> int:
        """Count the points, without the marker."""
        points = models.Filter(must_not=[models.HasIdCondition(has_id=[MARKER])])
        with self._told():
            return int(self._client.count(name, count_filter=points, exact=True).count)

    def numbers(self, name: str) -> set[int]:
        """Return every point's number, without the marker's."""
        found: set[int] = set()
        after: Any = None
        while True:
            with self._told():
                page, after = self._client.scroll(
                    name, limit=PAGE, offset=after, with_payload=False, with_vectors=False
                )
            found |= {int(point.id) for point in page}
            if after is None:
                return found - {MARKER}

    def collections(self, beginning: str) -> list[str]:
        with self._told():
            names = [item.name for item in self._client.get_collections().collections]
        return [name for name in names if name.startswith(beginning)]

    def drop(self, name: str) -> None:
        with self._told():
            self._client.delete_collection(name)

    def close(self) -> None:
        if not self._closed:
            with self._lock:
                self._closed = True
                if self._place.local:
                    _LOCAL.give_back(self._place.client["path"])
                else:
                    self._client.close()


def _marker(mark: Mark) -> models.PointStruct:
    payload = {"did": 0, FIELD: [BLANK], "version": mark.version, "token": mark.token.hex()}
    return models.PointStruct(id=MARKER, vector={}, payload=payload)  # without a vector it is near to nothing
