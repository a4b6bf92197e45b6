"""What takes longer than a request, how far is it, and what came of it?

A job has a thread of its own and one file beside the indexes, so that every worker can tell how it goes; like an
index, the file may be deleted at any time. A lock is held for as long as the job runs: one of a kind in a collection,
and a worker that was killed does not leave one that runs for ever.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from trivet.errors import StoreError, TrivetError
from trivet.surfaces.http import logs, problems
from trivet.surfaces.http.replies import payload

Tell = Callable[[str, int, int], None]  # the step's name, how far, how far it goes (0: nobody knows)
Work = Callable[[Tell], dict[str, Any]]

EVERY = 0.3  # seconds between two looks at the disk: progress is for eyes
GRACE = 2.0  # seconds for one that has ended to let go of its lock, or for a look at it to be over
PATIENCE = 10.0  # seconds a job is given to end at shutdown


class _Stopped(Exception):  # noqa: N818 - it is a wish, not a fault
    pass


class Jobs:
    """The jobs of one store."""

    def __init__(self, store: str) -> None:
        remote = "://" in store  # a server's address: the workers of this machine meet in its temporary folder
        place = Path(tempfile.gettempdir(), f"trivet-{_digest(store)}") if remote else Path(f"{store}.index")
        self._folder = place / "jobs"
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, collection: str, kind: str, by: str, work: Work) -> dict[str, Any]:
        """Start it, unless one of its kind runs here already."""
        file = self._file(collection, kind)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(f"{file}.lock", thread_local=False)  # taken here, let go by the thread
            lock.acquire(timeout=GRACE, poll_interval=0.02)
        except Timeout:
            raise problems.Refused("conflict", f"kind: a {kind} is running already; wait for it, or stop it") from None
        except OSError as error:
            raise StoreError(f"jobs: cannot be written beside the store ({error.strerror or error})") from None
        self._wish(file).unlink(missing_ok=True)
        begun = {"kind": kind, "by": by, "state": "running", "started": _now(), "step": "", "done": 0, "total": 0}
        job = _write(file, begun)
        thread = threading.Thread(target=self._run, args=(file, lock, begun, work), name="trivet-job", daemon=True)
        self._threads = [known for known in self._threads if known.is_alive()] + [thread]
        thread.start()
        return job

    def _run(self, file: Path, lock: FileLock, job: dict[str, Any], work: Work) -> None:
        looked = 0.0

        def tell(step: str, done: int, total: int) -> None:
            nonlocal looked
            if self._closing.is_set():
                raise _Stopped
            if time.monotonic() - looked < EVERY:
                return
            looked = time.monotonic()
            if self._wish(file).exists():
                raise _Stopped
            job.update(step=step, done=done, total=total)
            _write(file, job)

        try:
            ended: dict[str, Any] = {"state": "done", "result": work(tell)}
        except _Stopped:
            ended = {"state": "stopped"}
        except TrivetError as error:
            logs.event("job failed", error=error)
            ended = {"state": "failed", "error": problems.of(error).detail}
        except Exception as error:
            logs.event("job failed", error=error)
            ended = {"state": "failed", "error": "an unexpected error; the log tells more"}
        with contextlib.suppress(StoreError):  # nobody is left to be told
            _write(file, {**job, **ended, "finished": _now()})
        lock.release()

    def of(self, collection: str) -> list[dict[str, Any]]:
        """The last of each kind."""
        found = (self._read(file) for file in sorted(self._folder.glob(f"{_digest(collection)}-*.json")))
        return [job for job in found if job is not None]

    def last(self, collection: str, kind: str) -> dict[str, Any] | None:
        return self._read(self._file(collection, kind))

    def stop(self, collection: str, kind: str) -> None:
        """Asked of whichever worker runs it; it ends with its next step."""
        self._wish(self._file(collection, kind)).touch()

    def forget(self, collection: str) -> None:
        """The collection is gone: one of the same name is another."""
        for file in self._folder.glob(f"{_digest(collection)}-*"):
            file.unlink(missing_ok=True)

    def close(self) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _read(self, file: Path) -> dict[str, Any] | None:
        try:
            job: dict[str, Any] = json.loads(file.read_bytes())
        except (OSError, ValueError):  # not there, or being thrown away
            return None
        if job["state"] == "running":
            with contextlib.suppress(Timeout), FileLock(f"{file}.lock", timeout=0):
                fresh: dict[str, Any] = json.loads(file.read_bytes())  # it may have ended in between
                lost = {"state": "failed", "error": "the worker that ran it has ended"}
                return {**fresh, **lost} if fresh["state"] == "running" else fresh
        return job

    def _file(self, collection: str, kind: str) -> Path:
        return self._folder / f"{_digest(collection)}-{kind}.json"

    @staticmethod
    def _wish(file: Path) -> Path:
        return file.with_suffix(".stop")


def _write(file: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Whole or not at all: another worker may be reading."""
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as handle:
            handle.write(payload(job))
        os.replace(handle.name, file)  # noqa: PTH105 - atomic, and it may be there
    except OSError as error:
        raise StoreError(f"jobs: cannot be written beside the store ({error.strerror or error})") from None
    return job


def _digest(collection: str) -> str:
    """A collection's name may hold anything, a path included."""
    return hashlib.sha256(collection.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
