"""A cache of the turns before and after documents in their sessions, kept until the next write."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trivet.stores.contract import Adjacent

MOST_KEPT = 65_536  # documents whose neighbours are kept, some ten megabytes
ALONE = (None, None)


class KnownTurns:
    """The neighbours of the documents that a store has looked up in one version."""

    def __init__(
        self, keys_in_use: Callable[[], Sequence[str]], read: Callable[[Sequence[str], Sequence[int]], Adjacent]
    ) -> None:
        """``keys_in_use`` returns the session keys that any document has; ``read`` looks up every given document."""
        self._keys_in_use, self._read = keys_in_use, read
        self.drop()

    def drop(self) -> None:
        """Forget everything."""
        self._known: tuple[int, Sequence[str], Adjacent] = (-1, (), {})

    def adjacent(self, dids: Sequence[int], version: int) -> Adjacent | None:
        """Return the neighbours of the documents that have any; None if no document is in a session."""
        known, keys, found = self._known
        if known != version or len(found) > MOST_KEPT:
            keys, found = self._keys_in_use(), {}
            self._known = (version, keys, found)
        if not keys:
            return None
        if missing := [did for did in dids if did not in found]:
            found.update(self._read(keys, missing))
        return {did: around for did in dids if (around := found[did]) != ALONE}
