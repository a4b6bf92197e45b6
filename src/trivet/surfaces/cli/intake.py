"""How do many documents get in, without one bad one spoiling the others?

Written in pieces, each durable when the next begins: an import that is stopped goes on from there, because ids are
stable and what has not changed is passed over. Where a piece is refused it is written one by one, to name the
document at fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError
from trivet.memory.redaction import redact
from trivet.profile import Profile
from trivet.surfaces import markdown
from trivet.surfaces.cli import files, lines
from trivet.surfaces.cli.names import Names
from trivet.transfer import is_settled
from trivet.types import Degraded, Feedback

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.graph.extraction import Extractor

PIECE_DOCUMENTS, PIECE_CHARACTERS = 200, 2_000_000  # one transaction: what an interruption can cost


@dataclass(slots=True)
class Tally:
    """What became of everything that was read."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    repeated: int = 0  # ids that came twice: the later one won
    feedback: int = 0  # verdicts that were news
    redacted: Counter[str] = field(default_factory=Counter)  # kinds of secrets that were taken out
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
    """Takes documents in; call ``finish`` at the end, ``close`` in any case."""

    def __init__(
        self,
        engine: Engine,
        done: Callable[[int], None],
        names: Names | None = None,
        redact: bool = False,
        extractor: Extractor | None = None,
    ) -> None:
        self._engine, self._done, self._redact, self._extractor = engine, done, redact, extractor
        self._names = Names() if names is None else names
        self._piece: list[tuple[str, bool, dict[str, Any]]] = []  # place, is it a line, document
        self._characters = 0
        self._judged: list[Feedback] = []
        self._sources: dict[str, Path] = {}
        self._ids: set[str] = set()
        self._load = engine.loading()
        self._key = ""  # of an import that is given once and whole
        #: Would the same import, made again at once, change nothing?
        self.settled = True
        self.tally = Tally()

    def is_known(self, key: str) -> bool:
        """Is this very import in the store as it was, by its receipt? Then the tally is as if it were read again."""
        found = self._load.begin(key)
        if found is None:
            self._key = key
            return False
        self.tally.unchanged = int(found["documents"])
        self.tally.skipped = [files.Skipped(*item) for item in found["skipped"]]
        self.tally.redacted.update(found["redacted"])
        return True

    def finish(self) -> tuple[Degraded, ...]:
        """Write what is left and bring the indexes up to date."""
        self.flush()
        return self._load.finish()

    def keep(self) -> None:
        """Leave a receipt, where the import can be known by one. When everything is embedded, or it is soon void."""
        if self._key and self.settled and not self.tally.broken:
            skipped = [(item.path, item.reason) for item in self.tally.skipped]
            told = {"documents": len(self._ids), "skipped": skipped, "redacted": dict(self.tally.redacted)}
            self._load.keep(self._key, told)

    def close(self) -> None:
        self._load.close()

    def take_file(self, file: files.File) -> None:
        other = self._sources.setdefault(file.id, file.path)
        if other != file.path:
            self._skip(
                files.Skipped(str(file.path), f"{other} has the same id; import the folders apart, with --prefix")
            )
        elif self._is_unchanged(file):
            self._note({"id": file.id})
            self.tally.unchanged += 1
            self._done(1)
        else:
            self._read(file)

    def _read(self, file: files.File) -> None:
        try:
            found = files.read(file, self._names.resolve)
        except InputError as error:
            line = f" line {error.line}" if isinstance(error, markdown.FrontMatterError) else ""
            self.tally.broken.append(lines.Broken(f"{file.name}{line}", str(error)))
            self._done(1)
            return
        if isinstance(found, files.Skipped):
            self._skip(found)
        else:  # what is wrong with its front matter is its writer's to mend, as with a line
            self._put(file.name, "links" in found, found)

    def take_lines(self, parsed: Iterator[lines.Parsed]) -> None:
        keeps_vectors = True
        for item in parsed:
            if isinstance(item, lines.Broken):
                self.tally.broken.append(item)
            elif isinstance(item, lines.Header):
                keeps_vectors = self._begin_export(item)
            elif isinstance(item, lines.Judged):
                self.settled = False  # what was forgotten since would be said again
                self._judged.append(self._clean(item.feedback))
            else:
                if not keeps_vectors:
                    item.document.pop("vector", None)
                self._put(item.place, True, item.document)

    def _clean(self, given: Feedback) -> Feedback:
        """A question may hold a secret as well as an answer."""
        if not self._redact:
            return given
        query, kinds = redact(given.query)
        self.tally.redacted.update(kinds)
        return replace(given, query=query)

    def take_text(self, document: dict[str, Any], place: str = "stdin") -> None:
        self._put(place, True, document)

    def take_markdown(self, text: str, id: str | None, place: str) -> None:
        """One document, whose ``[[links]]`` name documents of the store; its front matter's id goes before ``id``."""
        try:
            found = markdown.document(text, markdown.known_to(self._engine))
        except markdown.FrontMatterError as error:
            self.tally.broken.append(lines.Broken(f"{place} line {error.line}", str(error)))
        except InputError as error:
            self.tally.broken.append(lines.Broken(place, str(error)))
        else:
            self.take_text({"id": id, "kind": "markdown", **found}, place)

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
        if header.settings is not None and self._engine.bound is None and not stats.documents:
            try:
                self._engine.update_settings(Profile.from_dict(header.settings))
            except InputError as error:
                self.tally.broken.append(lines.Broken(header.place, str(error)))
            if self._key:
                self._load.begin(self._key)  # the settings are no document
        same: bool = header.model == stats.model
        return same

    def _is_unchanged(self, file: files.File) -> bool:
        """Known with the same size and time of change: not read again, unless it names other files or came in before
        anyone asked for its secrets to be taken out."""
        if self._redact or self._names.links(file):
            return False
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
        if self._extractor is not None:
            if self._redact:  # before the endpoint is shown it
                shown = {name: redact(document[name])[0] for name in ("text", "title") if document.get(name)}
                document = {**document, **shown}
            document = self._extractor.tell(document)
        self._note(document)
        self._piece.append((place, is_line, document))
        self._characters += len(document["text"]) if isinstance(document.get("text"), str) else 0
        if len(self._piece) >= PIECE_DOCUMENTS or self._characters >= PIECE_CHARACTERS:
            self.flush()

    def _note(self, document: dict[str, Any]) -> None:
        """Of two with the same id the later one wins, each time."""
        if not self._key:
            return
        id = str(document.get("id"))
        if id in self._ids or not is_settled(document):
            self.settled = False
        if self.settled:
            self._ids.add(id)

    def _add(self, documents: list[dict[str, Any]]) -> None:
        added = self._load.add(documents, redact=self._redact)
        self.tally.added += added.added
        self.tally.updated += added.updated
        self.tally.unchanged += added.unchanged
        self.tally.repeated += added.duplicates
        self.tally.redacted.update(added.redacted)

    def _add_one(self, place: str, is_line: bool, document: dict[str, Any]) -> None:
        try:
            self._add([document])
        except InputError as error:
            reason = str(error).removeprefix("document 0: ").removeprefix(f"document {document.get('id')!r}: ")
            if is_line:
                self.tally.broken.append(lines.Broken(place, reason))
            else:
                self.tally.skipped.append(files.Skipped(place, reason))

    def _skip(self, item: files.Skipped) -> None:
        self.tally.skipped.append(item)
        self._done(1)
