"""Background jobs: work that takes longer than a request, with its progress and its result.

A job has its own thread and one file beside the indexes, so that every worker can report its progress; like an index,
the file may be deleted at any time. The job holds a lock while it runs. So a collection has one job of a kind at a
time, and a job whose worker was killed does not look as if it still ran.
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

from trivet.engine import on_server
from trivet.errors import StoreError, TrivetError
from trivet.http import logs, problem_details
from trivet.http.json_response import to_bytes
from trivet.types import StepProgress

Work = Callable[[StepProgress], dict[str, Any]]

WRITE_SECONDS = 0.3  # between two writes of the progress: fast enough for a person
LOCK_SECONDS = 2.0  # for a job that just ended, or a reader, to release the lock
SHUTDOWN_SECONDS = 10.0  # for a job to stop at shutdown


class _Stopped(Exception):  # noqa: N818 - not a failure
    pass


class Jobs:
    """The jobs of one store."""

    def __init__(self, store: str) -> None:
        # of a server the workers of this machine share a temporary folder
        shared = Path(tempfile.gettempdir(), f"trivet-{_digest(store)}")
        place = shared if on_server(store) else Path(f"{store}.index")
        self._folder = place / "jobs"
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, collection: str, kind: str, by: str, work: Work) -> dict[str, Any]:
        """Start a job and return its state; refuse it if one of its kind is running."""
        file = self._file(collection, kind)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(f"{file}.lock", thread_local=False)  # acquired here, released by the thread
            lock.acquire(timeout=LOCK_SECONDS, poll_interval=0.02)
        except Timeout:
            raise problem_details.Refused(
                "conflict", f"kind: a {kind!r} job is already running; wait for it, or stop it"
            ) from None
        except OSError as error:
            raise StoreError(f"jobs: cannot write beside the store ({error.strerror or error})") from None
        self._stop_file(file).unlink(missing_ok=True)
        job = {"kind": kind, "by": by, "state": "running", "started": _now(), "step": "", "done": 0, "total": 0}
        _write(file, job)
        thread = threading.Thread(target=self._run, args=(file, lock, dict(job), work), name="trivet-job", daemon=True)
        self._threads = [known for known in self._threads if known.is_alive()] + [thread]
        thread.start()
        return job

    def _run(self, file: Path, lock: FileLock, job: dict[str, Any], work: Work) -> None:
        written = 0.0

        def progress(step: str, done: int, total: int) -> None:
            nonlocal written
            if self._closing.is_set():
                raise _Stopped
            if time.monotonic() - written < WRITE_SECONDS:
                return
            written = time.monotonic()
            if self._stop_file(file).exists():
                raise _Stopped
            job.update(step=step, done=done, total=total)
            _write(file, job)

        try:
            ended: dict[str, Any] = {"state": "done", "result": work(progress)}
        except _Stopped:
            ended = {"state": "stopped"}
        except TrivetError as error:
            logs.event("job failed", error=error)
            ended = {"state": "failed", "error": problem_details.of(error).detail}
        except Exception as error:
            logs.event("job failed", error=error)
            ended = {"state": "failed", "error": "an unexpected error; see the log"}
        with contextlib.suppress(StoreError):  # the store is gone, and nobody can read the state
            _write(file, {**job, **ended, "finished": _now()})
        lock.release()

    def of(self, collection: str) -> list[dict[str, Any]]:
        """Return the last job of each kind."""
        found = (self._read(file) for file in sorted(self._folder.glob(f"{_digest(collection)}-*.json")))
        return [job for job in found if job is not None]

    def last(self, collection: str, kind: str) -> dict[str, Any] | None:
        return self._read(self._file(collection, kind))

    def stop(self, collection: str, kind: str) -> None:
        """Tell the worker that runs the job to stop; it stops at its next step."""
        self._stop_file(self._file(collection, kind)).touch()

    def forget(self, collection: str) -> None:
        """Delete the jobs of a collection that was dropped; a new one may get the same name."""
        for file in self._folder.glob(f"{_digest(collection)}-*"):
            file.unlink(missing_ok=True)

    def close(self) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join(SHUTDOWN_SECONDS)

    def _read(self, file: Path) -> dict[str, Any] | None:
        try:
            job: dict[str, Any] = json.loads(file.read_bytes())
        except (OSError, ValueError):  # none yet, or being deleted
            return None
        if job["state"] == "running":
            with contextlib.suppress(Timeout), FileLock(f"{file}.lock", timeout=0):
                fresh: dict[str, Any] = json.loads(file.read_bytes())  # it may have ended since
                lost = {"state": "failed", "error": "the worker that ran the job has ended"}
                return {**fresh, **lost} if fresh["state"] == "running" else fresh
        return job

    def _file(self, collection: str, kind: str) -> Path:
        return self._folder / f"{_digest(collection)}-{kind}.json"

    @staticmethod
    def _stop_file(file: Path) -> Path:
        return file.with_suffix(".stop")


def _write(file: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Replace the file atomically, because another worker may be reading it."""
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as handle:
            handle.write(to_bytes(job))
        os.replace(handle.name, file)  # noqa: PTH105 - atomic, and the file may exist
    except OSError as error:
        raise StoreError(f"jobs: cannot write beside the store ({error.strerror or error})") from None
    return job


def _digest(collection: str) -> str:
    """Return a file name for a collection, whose name may contain any character."""
    return hashlib.sha256(collection.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
