"""Export to JSONL, and import from it.

A header line, then one line for each document (with its links, and its vectors if asked for), then one for each
feedback. JSONL files of documents from elsewhere are read too. The history of the settings is not exported: it says
who changed this store.
"""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.engine import validation
from trivet.errors import InputError, StoreError
from trivet.profile import Profile
from trivet.stores.import_log import content as content
from trivet.stores.import_log import fingerprint as fingerprint
from trivet.stores.import_log import stamp as stamp
from trivet.types import Added, Document, Feedback, Progress

if TYPE_CHECKING:
    from trivet.engine.engine import Engine
    from trivet.engine.ingest import Load
    from trivet.stores.contract import Collection

FORMAT = 1


def plain(record: Document | Feedback) -> dict[str, Any]:
    """Return a document or feedback as JSON values; times in ISO 8601."""
    found: dict[str, Any] = {}
    for name in type(record).__dataclass_fields__:
        value = getattr(record, name)
        if value is not None and (name != "accesses" or value):  # left out where it is 0, as mostly
            found[name] = value.isoformat() if isinstance(value, datetime) else value
    return found


def lines(collection: Collection, vectors: bool = False) -> Iterator[str]:
    """Yield the lines of an export."""
    state = collection.state()
    model = state.model
    header = {
        "trivet": FORMAT,
        "collection": collection.name,
        "config": collection.config,
        "settings": _settings(state.settings, collection.name),
    }
    header["model"] = model.id if model else None
    header["documents"] = collection.documents.counts().documents
    yield json.dumps(header, ensure_ascii=False)
    links: dict[str, list[dict[str, Any]]] = {}
    for link in collection.links.of():
        links.setdefault(link.source, []).append({"target": link.target, "type": link.type, "weight": link.weight})
    for document in collection.documents.scan():
        line = plain(document)
        if document.id in links:
            line["links"] = links[document.id]
        if vectors and model and (vector := _vector(collection, model.mid, document.id)):
            line["vector"] = vector
        yield json.dumps(line, ensure_ascii=False)
    for given in collection.feedback.read():
        yield json.dumps({"feedback": plain(given)}, ensure_ascii=False)


def _vector(collection: Collection, mid: int, id: str) -> str | dict[str, str]:
    """Return the vector of a document of one passage; of another one those of its passages, by hash."""
    dids = list(collection.documents.numbers([id]).values())
    for data in collection.vectors.of_documents(mid, dids).values():
        return _packed(data)
    found = collection.vectors.by_hash(mid, dids)
    return {digest.hex(): _packed(data) for did in dids for digest, data in sorted(found.get(did, {}).items())}


def _packed(vector: bytes) -> str:
    return base64.b64encode(vector).decode()


def _settings(stored: str, name: str) -> Any:
    try:
        return json.loads(stored)
    except ValueError as error:  # damaged; the documents can still be exported after a repair
        mend = "`trivet settings --profile default` sets them anew"
        raise StoreError(f"store: the settings of collection {name!r} are damaged ({error}); {mend}") from error


def export(collection: Collection, target: Path, vectors: bool, progress: Progress | None) -> int:
    """Write an export; first to a temporary file beside it, so that the target is never half written."""
    target = target.resolve()  # of a symbolic link, what it points to is written
    _check_target(collection, target)
    special = target.exists() and not target.is_file()  # a device or a pipe is written to, never replaced
    draft = target if special else target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    total, count = collection.documents.counts().documents, -1
    try:
        with draft.open("w", encoding="utf-8") as out:
            for line in lines(collection, vectors):
                out.write(line + "\n")
                if line.startswith('{"feedback": '):  # only documents are counted
                    continue
                count += 1
                if progress and count % 200 == 0:
                    progress(count, total)
        if not special:
            draft.replace(target)
    except OSError as error:
        if isinstance(error, StoreError):  # an OSError too, with a message of its own
            raise
        raise StoreError(f"export: cannot write {str(target)!r}: {error.strerror or error}") from error
    finally:  # whatever ended it, a deadline or Ctrl-C too
        if not special:
            draft.unlink(missing_ok=True)
    if progress:
        progress(count, total)
    return count


def _check_target(collection: Collection, target: Path) -> None:
    """Refuse to overwrite a store."""
    own = collection.store.files()
    if target in own or own & set(target.parents):
        raise InputError(f"export: {str(target)!r} belongs to the store itself; choose another file")
    if target.is_dir():
        raise InputError(f"export: {str(target)!r} is a folder; name a file in it")
    if target.is_file():
        with contextlib.suppress(OSError), target.open("rb") as file:
            if file.read(16) == b"SQLite format 3\0":
                raise InputError(f"export: {str(target)!r} is a database; choose another file")


def read(source: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the documents and feedback of a JSONL file with their line numbers; an error names the line."""
    try:
        with source.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                item = parse_line(line, f"{source.name} line {number}")
                if not is_header(item):
                    yield number, item
    except OSError as error:
        raise InputError(f"import: cannot read {str(source)!r}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"import: {str(source)!r} is not UTF-8 text ({error.reason} at byte {error.start})") from error


def parse_line(line: str, name: str) -> dict[str, Any]:
    try:
        item = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}: not JSON ({error.msg} at column {error.colno})") from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, a list in a list in a list…
        raise InputError(f"{name}: cannot be read ({error})") from None
    if not isinstance(item, dict):
        raise InputError(f"{name}: expected an object, got {type(item).__name__}")
    if isinstance(item.get("vector"), str | dict):
        try:
            item["vector"] = _unpacked(item["vector"])
        except (ValueError, TypeError) as error:
            raise InputError(f"{name}: vector is not base64 of float32 numbers ({error})") from None
    return item


def _unpacked(vector: Any) -> Any:
    """Return a vector of an export, or those of several passages by hash."""
    import numpy as np

    if isinstance(vector, dict):
        return {bytes.fromhex(digest): _unpacked(str(one)) for digest, one in vector.items()}
    return np.frombuffer(base64.b64decode(vector, validate=True), dtype="<f4")


def header(source: Path) -> dict[str, Any]:
    """Return the header of an export; empty for other JSONL."""
    try:
        with source.open(encoding="utf-8-sig") as file:
            first = file.readline()
    except UnicodeDecodeError:  # `read` reports it with the place
        return {}
    item = parse_line(first, f"{source.name} line 1") if first.strip() else {}
    if not is_header(item):
        return {}
    if item["trivet"] != FORMAT:
        raise InputError(f"{source.name}: export format {item['trivet']!r}; this trivet reads {FORMAT}")
    return item


def is_header(item: dict[str, Any]) -> bool:
    return "trivet" in item and "text" not in item


def is_feedback(item: dict[str, Any]) -> bool:
    return "feedback" in item and "text" not in item


def feedback_of(item: dict[str, Any]) -> Feedback:
    """Return the feedback of a line; refuse other keys beside it."""
    if strange := [key for key in item if key != "feedback"]:
        raise InputError(f"feedback: unknown field {strange[0]!r} beside it; a line holds one feedback or one document")
    return validation.feedback(item["feedback"])


def is_settled(item: dict[str, Any]) -> bool:
    """Tell whether importing this line again changes nothing while the collection's version is the same.

    A line without an id is a new document every time; accesses and feedback change without a new version.
    """
    return bool(item.get("id")) and item.get("accessed") is None and item.get("accesses") is None


def import_(engine: Engine, source: Path, progress: Progress | None) -> Added:
    """Import a JSONL file; settings only into an empty collection, vectors only if the model is the same."""
    try:
        head = header(source)
    except OSError as error:
        raise InputError(f"import: cannot read {str(source)!r}: {error.strerror or error}") from error
    if "settings" in head and engine.bound is None and not engine.stats().documents:
        engine.update_settings(Profile.from_json(json.dumps(head["settings"])), by="import")
    with engine.loading() as load:
        try:
            key = fingerprint(content(source))
        except OSError as error:
            raise InputError(f"import: cannot read {str(source)!r}: {error.strerror or error}") from error
        known = load.begin(key)
        if known is not None:
            return Added(tuple(known["ids"]), unchanged=len(known["ids"]), pending=engine.stats().pending)
        added, settled = _add_lines(engine, load, source, head, progress)
        added = replace(added, degraded=(*added.degraded, *load.finish()))
        if settled and len(set(added.ids)) == len(added.ids) and not added.duplicates:
            load.keep(key, {"ids": added.ids})
    return added


def _add_lines(
    engine: Engine, load: Load, source: Path, head: dict[str, Any], progress: Progress | None
) -> tuple[Added, bool]:
    """Add the documents and feedback of a file; also tell whether the same import again would change nothing."""
    line, settled = 0, True
    judged: list[Feedback] = []
    keep_vectors = bool(head) and head.get("model") == engine.stats().model

    def documents() -> Iterator[dict[str, Any]]:
        nonlocal line, settled
        for number, item in read(source):
            line = number
            settled = settled and is_settled(item)
            if is_feedback(item):
                judged.append(feedback_of(item))
                continue
            if not keep_vectors and head:
                item.pop("vector", None)
            yield item

    try:
        added = load.add(documents(), progress=progress)
    except InputError as error:
        if str(error).startswith(("import:", source.name)):
            raise
        raise InputError(f"{source.name} line {line}: {error}") from error
    engine.restore_feedback(judged)
    return added, settled
