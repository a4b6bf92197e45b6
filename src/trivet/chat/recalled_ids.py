"""The ids of the documents that were recalled in a session, kept in a file, so that no process recalls one twice."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from filelock import FileLock, Timeout

from trivet.errors import StoreError

KEPT_IDS = 2_000  # of one session; a session that recalls five at a time has 400 prompts before one may come again
KEPT_SESSIONS = 200  # the latest; a file takes about 100 kB at most
LOCK_SECONDS = 10.0  # a file is written within milliseconds


class RecalledIds:
    """The ids that one session has seen of one collection, in a folder with those of other sessions."""

    def __init__(self, folder: Path, collection: str, session: str) -> None:
        name = blake2b(json.dumps([collection, session]).encode(), digest_size=16).hexdigest()
        self.folder, self.path = folder, folder / f"{name}.json"

    def read(self) -> list[str]:
        """Return the ids, the oldest first."""
        try:
            ids: list[str] = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path}: cannot be read ({error}); delete it, and the session begins anew") from None
        return ids

    def claim(self, ids: Iterable[str]) -> set[str]:
        """Record the ids and return those that were new, each to one of several processes only."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / "lock", timeout=LOCK_SECONDS):
                known = self.read()
                new = [id for id in dict.fromkeys(ids) if id not in known]
                self._write([*known, *new][-KEPT_IDS:])
                self._drop_old_sessions()
                return set(new)
        except (OSError, Timeout) as error:
            raise StoreError(f"{self.folder}: cannot be written ({error}), and holds what was recalled") from None

    def _write(self, ids: list[str]) -> None:
        temporary = self.path.with_suffix(".new")
        temporary.write_text(json.dumps(ids, ensure_ascii=False), encoding="utf-8")
        temporary.replace(self.path)  # a process that is killed leaves the old file

    def _drop_old_sessions(self) -> None:
        files = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in files[KEPT_SESSIONS:]:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
