"""How do many documents get in, without one bad one spoiling the others?

Written in pieces, each durable when the next begins: an import that is stopped goes on from there, because ids are
stable and what has not changed is passed over. Where a piece is refused it is written one by one, to name the
document at fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError
from trivet.profile import Profile
from trivet.surfaces.cli import files, lines
from trivet.types import Feedback

if TYPE_CHECKING:
    from trivet.engine import Engine

PIECE_DOCUMENTS, PIECE_CHARACTERS = 200, 2_000_000  # one transaction: what an interruption can cost


@dataclass(slots=True)
class Tally:
    """What became of everything that was read."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    repeated: int = 0  # ids that came twice: the later one won
    feedback: int = 0  # verdicts that were news
    skipped: list[files.Skipped] = field(default_factory=list)
    broken: list[lines.Broken] = field(default_factory=list)

    def reasons(self) -> dict[str, list[str]]:
        """Reason → the paths it holds for."""
        found: dict[str, list[str]] = {}
        for item in self.skipped:
            found.setdefault(item.reason.partition(" (")[0], []).append(item.path)
        counted = Counter({reason: len(paths) for reason, paths in found.items()})
        return {reason: found[reason] for reason, _ in counted.most_common()}


class Intake:
    """Takes documents in; call ``flush`` at the end."""

    def __init__(self, engine: Engine, done: Callable[[int], None]) -> None:
        self._engine, self._done = engine, done
        self._piece: list[tuple[str, bool, dict[str, Any]]] = []  # place, is it a line, document
        self._characters = 0
        self._judged: list[Feedback] = []
        self._sources: dict[str, Path] = {}
        self.tally = Tally()

    def take_file(self, file: files.File) -> None:
        other = self._sources.setdefault(file.id, file.path)
        if other != file.path:
            self._skip(
                files.Skipped(str(file.path), f"{other} has the same id; import the folders apart, with --prefix")
            )
        elif self._is_unchanged(file):
            self.tally.unchanged += 1
            self._done(1)
        else:
            found = files.read(file)
            if isinstance(found, files.Skipped):
                self._skip(found)
            else:
                self._put(file.id, False, found)

    def take_lines(self, parsed: Iterator[lines.Parsed]) -> None:
        keeps_vectors = True
        for item in parsed:
            if isinstance(item, lines.Broken):
                self.tally.broken.append(item)
            elif isinstance(item, lines.Header):
                keeps_vectors = self._begin_export(item)
            elif isinstance(item, lines.Judged):
                self._judged.append(item.feedback)
            else:
                if not keeps_vectors:
                    item.document.pop("vector", None)
                self._put(item.place, True, item.document)

    def take_text(self, document: dict[str, Any]) -> None:
        self._put("stdin", True, document)

    def flush(self) -> None:
        judged, self._judged = self._judged, []
        self.tally.feedback += self._engine.restore_feedback(judged)
        piece, self._piece, self._characters = self._piece, [], 0
        if not piece:
            return
        try:
            self._add([document for _, _, document in piece])
        except InputError:
            for place, is_line, document in piece:
                self._add_one(place, is_line, document)
        self._done(len(piece))

    def _begin_export(self, header: lines.Header) -> bool:
        """Settings come along into a collection that is still empty, vectors only where the model is the same."""
        self.flush()
        stats = self._engine.stats()
        if header.settings is not None and not stats.documents:
            try:
                self._engine.update_settings(Profile.from_dict(header.settings))
            except InputError as error:
                self.tally.broken.append(lines.Broken(header.place, str(error)))
        same: bool = header.model == stats.model
        return same

    def _is_unchanged(self, file: files.File) -> bool:
        """Known with the same size and time of change: not read again."""
        try:
            size, modified = file.stamp()
            known = self._engine.get(file.id)
        except (OSError, InputError):  # reading it will say what is wrong
            return False
        if known is None or known.created is None or modified is None:
            return False
        # a millisecond: the store keeps times as floats
        return bool(known.meta.get("bytes") == size and abs((known.created - modified).total_seconds()) < 0.001)

    def _put(self, place: str, is_line: bool, document: dict[str, Any]) -> None:
        self._piece.append((place, is_line, document))
        self._characters += len(document["text"]) if isinstance(document.get("text"), str) else 0
        if len(self._piece) >= PIECE_DOCUMENTS or self._characters >= PIECE_CHARACTERS:
            self.flush()

    def _add(self, documents: list[dict[str, Any]]) -> None:
        added = self._engine.add(documents)
        self.tally.added += added.added
        self.tally.updated += added.updated
        self.tally.unchanged += added.unchanged
        self.tally.repeated += added.duplicates

    def _add_one(self, place: str, is_line: bool, document: dict[str, Any]) -> None:
        try:
            self._add([document])
        except InputError as error:
            reason = str(error).removeprefix("document 0: ")
            if is_line:
                self.tally.broken.append(lines.Broken(place, reason))
            else:
                self.tally.skipped.append(files.Skipped(place, reason))

    def _skip(self, item: files.Skipped) -> None:
        self.tally.skipped.append(item)
        self._done(1)
