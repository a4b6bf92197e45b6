"""Importing many documents, so that one broken document does not stop the others.

Documents are written in batches, each durable before the next begins. An import that was interrupted continues there
when it is run again, because ids are stable and unchanged documents are skipped. A batch that the store refuses is
written one document at a time, to find the one at fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.engine.transfer import is_settled
from trivet.errors import InputError
from trivet.files import jsonl, markdown, reader
from trivet.files.names import Names
from trivet.memory.redaction import redact
from trivet.profile import Profile
from trivet.types import Degraded, Feedback

if TYPE_CHECKING:
    from trivet.chat.extraction import Extractor
    from trivet.engine import Engine

BATCH_DOCUMENTS, BATCH_CHARACTERS = 200, 2_000_000  # one transaction: the most that an interruption can lose


@dataclass(slots=True)
class Tally:
    """How many documents were added, changed, skipped and refused."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    repeated: int = 0  # ids that occurred twice; the later document counts
    feedback: int = 0  # new judgements
    redacted: Counter[str] = field(default_factory=Counter)  # kind of secret → how many were removed
    skipped: list[reader.Skipped] = field(default_factory=list)
    notes: list[reader.Skipped] = field(default_factory=list)  # files that were read, but not well
    broken: list[jsonl.Broken] = field(default_factory=list)

    def reasons(self) -> dict[str, list[str]]:
        """Return the skipped paths by reason, the most frequent reason first."""
        return _by_reason(self.skipped)

    def remarks(self) -> dict[str, list[str]]:
        """Return the paths that were not read well, by what is wrong."""
        return _by_reason(self.notes)


def _by_reason(items: list[reader.Skipped]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in items:
        found.setdefault(item.reason.partition(" (")[0], []).append(item.path)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


class Importer:
    """Writes documents to a store. Call ``finish`` at the end and ``close`` in any case."""

    def __init__(
        self,
        engine: Engine,
        progress: Callable[[int], None],
        names: Names | None = None,
        redact: bool = False,
        extractor: Extractor | None = None,
    ) -> None:
        """``progress`` is called with the number of documents that were just dealt with."""
        self._engine, self._progress, self._redact, self._extractor = engine, progress, redact, extractor
        self._names = Names() if names is None else names
        self._batch: list[tuple[str, bool, dict[str, Any]]] = []  # place, whether its writer must correct it, document
        self._characters = 0
        self._judgements: list[Feedback] = []
        self._sources: dict[str, Path] = {}
        self._ids: set[str] = set()
        self._load = engine.loading()
        self._key = ""  # of this import in the import log; empty where it is not logged
        self._repeatable = True  # whether the same import, run again, would change nothing
        self.tally = Tally()
        self.degraded: tuple[Degraded, ...] = ()

    def is_logged(self, key: str) -> bool:
        """Return whether this import is in the import log and the store did not change since.

        If so, the tally is filled as if everything were read again.
        """
        found = self._load.begin(key)
        if found is None:
            self._key = key
            return False
        self.tally.unchanged = int(found["documents"])
        self.tally.skipped = [reader.Skipped(*item) for item in found["skipped"]]
        self.tally.redacted.update(found["redacted"])
        return True

    def finish(self) -> None:
        """Write what is left and bring the indexes up to date."""
        self._flush()
        self.degraded = self._load.finish()

    def log(self) -> None:
        """Write the import to the import log, if running it again would change nothing.

        Call it after everything is embedded: embedding changes the store and would invalidate the entry.
        """
        if self._key and self._repeatable and not self.tally.broken:
            skipped = [(item.path, item.reason) for item in self.tally.skipped]
            entry = {"documents": len(self._ids), "skipped": skipped, "redacted": dict(self.tally.redacted)}
            self._load.keep(self._key, entry)

    def close(self) -> None:
        self._load.close()

    def add_file(self, file: reader.File) -> None:
        other = self._sources.setdefault(file.id, file.path)
        if other != file.path:
            reason = f"{other} has the same id; import the folders separately, with --prefix"
            self.skip(reader.Skipped(str(file.path), reason))
        elif self._is_unchanged(file):
            self._note_id({"id": file.id})
            self.tally.unchanged += 1
            self._progress(1)
        else:
            self._read_file(file)

    def skip(self, item: reader.Skipped) -> None:
        self.tally.skipped.append(item)
        self._progress(1)

    def add_lines(self, lines: Iterator[jsonl.Parsed]) -> None:
        keeps_vectors = True
        for item in lines:
            if isinstance(item, jsonl.Broken):
                self.tally.broken.append(item)
            elif isinstance(item, jsonl.Header):
                keeps_vectors = self._start_export(item)
            elif isinstance(item, jsonl.Judged):
                self._repeatable = False  # feedback that was removed since would come back
                self._judgements.append(self._redacted(item.feedback))
            else:
                if not keeps_vectors:
                    item.document.pop("vector", None)
                self._put(item.place, True, item.document)

    def add_text(self, document: dict[str, Any], place: str = "stdin") -> None:
        self._put(place, True, document)

    def add_documents(self, documents: Iterator[dict[str, Any] | jsonl.Broken], prefix: str, place: str) -> None:
        """Add the documents of a source, with ``prefix`` before their ids and those that they link to.

        Vectors are for a collection that takes them from outside; any other embeds the texts itself.
        """
        keeps_vectors = (self._engine.stats().model or "").startswith("vectors/")
        for item in documents:
            if isinstance(item, jsonl.Broken):
                self.tally.broken.append(item)
                continue
            document = {**item, "id": f"{prefix}{item['id']}"}
            if "links" in item:
                document["links"] = [{**link, "target": f"{prefix}{link['target']}"} for link in item["links"]]
            if not keeps_vectors:
                document.pop("vector", None)
            self._put(f"{place} {item['id']}", True, document)

    def add_content(self, content: bytes, name: str, id: str, modified: datetime | None) -> None:
        """Add the documents of a file that was sent."""
        file = reader.File(name, name, id, named=True)
        try:
            found = reader.documents(content, file, modified, markdown.resolve_ids(self._engine))
        except InputError as error:
            self._break(name, error)
            return
        if isinstance(found, reader.Skipped):
            self._refuse(replace(found, path=name))
        else:
            self._put_all(name, found)

    def add_markdown(self, text: str, id: str | None, place: str) -> None:
        """Add one document, whose ``[[links]]`` name stored documents; an id in its front matter overrides ``id``."""
        try:
            found = markdown.document(text, markdown.resolve_ids(self._engine))
        except InputError as error:
            self._break(place, error)
        else:
            self.add_text({"id": id, "kind": "markdown", **found}, place)

    def _read_file(self, file: reader.File) -> None:
        try:
            found = reader.read(file, self._names.resolve)
        except InputError as error:
            self._break(file.name, error)
            self._progress(1)
            return
        if not isinstance(found, reader.Skipped):
            self._put_all(file.name, found)
        elif file.named:
            self._refuse(found)
        else:
            self.skip(found)

    def _refuse(self, item: reader.Skipped) -> None:
        self.tally.broken.append(jsonl.Broken(item.path, item.reason))
        self._progress(1)

    def _put_all(self, place: str, found: reader.Documents) -> None:
        self.tally.notes += [reader.Skipped(place, note) for note in found.notes]
        for document in found.documents:  # a wrong link in front matter is the writer's to correct, like a wrong line
            self._put(place, "links" in document, document)

    def _break(self, place: str, error: InputError) -> None:
        line = f" line {error.line}" if isinstance(error, markdown.FrontMatterError) else ""
        self.tally.broken.append(jsonl.Broken(f"{place}{line}", str(error)))

    def _redacted(self, given: Feedback) -> Feedback:
        if not self._redact:
            return given
        query, kinds = redact(given.query)
        self.tally.redacted.update(kinds)
        return replace(given, query=query)

    def _start_export(self, header: jsonl.Header) -> bool:
        """Take the settings into an empty collection; return whether the vectors are of the collection's model."""
        self._flush()
        stats = self._engine.stats()
        if header.settings is not None and self._engine.bound is None and not stats.documents:
            try:
                self._engine.update_settings(Profile.from_dict(header.settings))
            except InputError as error:
                self.tally.broken.append(jsonl.Broken(header.place, str(error)))
            if self._key:
                self._load.begin(self._key)  # changed settings must not count as a change of the documents
        same: bool = header.model == stats.model
        return same

    def _is_unchanged(self, file: reader.File) -> bool:
        """Return whether the stored document has the size and the time of the file.

        A file with links is always read, because the ids of its targets may change; with ``--redact`` every file is,
        because it may have been imported without.
        """
        if self._redact or self._names.has_links(file):
            return False
        try:
            size, modified = file.stamp()
            known = self._engine.get(file.id)
        except (OSError, InputError):  # reported when the file is read
            return False
        if known is None or known.created is None or modified is None:
            return False
        # a tolerance of 1 ms: the store keeps times as floats
        return bool(known.meta.get("bytes") == size and abs((known.created - modified).total_seconds()) < 0.001)

    def _put(self, place: str, is_line: bool, document: dict[str, Any]) -> None:
        if self._extractor is not None:
            if self._redact:  # before the text is sent to the endpoint
                texts = {name: redact(document[name])[0] for name in ("text", "title") if document.get(name)}
                document = {**document, **texts}
            document = self._extractor.with_triples(document)
        self._note_id(document)
        self._batch.append((place, is_line, document))
        self._characters += len(document["text"]) if isinstance(document.get("text"), str) else 0
        if len(self._batch) >= BATCH_DOCUMENTS or self._characters >= BATCH_CHARACTERS:
            self._flush()

    def _note_id(self, document: dict[str, Any]) -> None:
        """Note the id for the import log; a repeated id changes the document on every run."""
        if not self._key:
            return
        id = str(document.get("id"))
        if id in self._ids or not is_settled(document):
            self._repeatable = False
        if self._repeatable:
            self._ids.add(id)

    def _flush(self) -> None:
        judgements, self._judgements = self._judgements, []
        self.tally.feedback += self._engine.restore_feedback(judgements)
        batch, self._batch, self._characters = self._batch, [], 0
        if not batch:
            return
        try:
            self._write([document for _, _, document in batch])
        except InputError:
            for place, is_line, document in batch:
                self._write_one(place, is_line, document)
        self._progress(len(batch))

    def _write(self, documents: list[dict[str, Any]]) -> None:
        added = self._load.add(documents, redact=self._redact)
        self.tally.added += added.added
        self.tally.updated += added.updated
        self.tally.unchanged += added.unchanged
        self.tally.repeated += added.duplicates
        self.tally.redacted.update(added.redacted)

    def _write_one(self, place: str, is_line: bool, document: dict[str, Any]) -> None:
        try:
            self._write([document])
        except InputError as error:
            reason = str(error).removeprefix("document 0: ").removeprefix(f"document {document.get('id')!r}: ")
            if is_line:
                self.tally.broken.append(jsonl.Broken(place, reason))
            else:
                self.tally.skipped.append(reader.Skipped(place, reason))
