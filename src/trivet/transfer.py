"""How does a collection leave the store and come back?

JSONL: a header line, then one line a document (with its links, and its vectors when asked for), then one line a
feedback. A plain JSONL file of documents, made by anyone, is read too. Access counts and validity go along with their
document; the history of the settings stays: it tells who changed this store, and a copy starts its own.
"""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet import intake, receipts
from trivet.errors import InputError, StoreError
from trivet.profile import Profile
from trivet.types import Added, Document, Feedback

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.loading import Load
    from trivet.stores.contract import Shelf

FORMAT = 1
Progress = Callable[[int, int], None]


def plain(record: Document | Feedback) -> dict[str, Any]:
    """A document or a feedback as JSON-ready data; times in ISO 8601."""
    found: dict[str, Any] = {}
    for name in type(record).__dataclass_fields__:
        value = getattr(record, name)
        if value is not None and (name != "accesses" or value):  # most documents were never recalled
            found[name] = value.isoformat() if isinstance(value, datetime) else value
    return found


def lines(shelf: Shelf, vectors: bool = False) -> Iterator[str]:
    """The collection, a line at a time."""
    state = shelf.state()
    model = state.model
    header = {
        "trivet": FORMAT,
        "collection": shelf.name,
        "config": shelf.config,
        "settings": _settings(state.settings, shelf.name),
    }
    header["model"] = model.id if model else None
    header["documents"] = shelf.counts().documents
    yield json.dumps(header, ensure_ascii=False)
    links: dict[str, list[dict[str, Any]]] = {}
    for link in shelf.links_of():
        links.setdefault(link.source, []).append({"target": link.target, "type": link.type, "weight": link.weight})
    for document in shelf.documents():
        line = plain(document)
        if document.id in links:
            line["links"] = links[document.id]
        if vectors and model:
            dids = shelf.dids([document.id])
            for data in shelf.sole_vectors(model.mid, list(dids.values())).values():
                line["vector"] = base64.b64encode(data).decode()
        yield json.dumps(line, ensure_ascii=False)
    for given in shelf.feedbacks():
        yield json.dumps({"feedback": plain(given)}, ensure_ascii=False)


def _settings(stored: str, name: str) -> Any:
    try:
        return json.loads(stored)
    except ValueError as error:  # bytes that are not the ones that were written; the documents can still be saved
        mend = "`trivet settings --profile default` (update_settings) sets them anew"
        raise StoreError(f"store: the settings of collection {name!r} are damaged ({error}); {mend}") from error


def export(shelf: Shelf, target: Path, vectors: bool, progress: Progress | None) -> int:
    """Write to a neighbour file first, so that a half-written export never has the target's name."""
    target = target.resolve()  # a link stays a link: what it points to is written
    _check_target(shelf, target)
    special = target.exists() and not target.is_file()  # a device or a pipe is written to, never replaced
    draft = target if special else target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    total, count = shelf.counts().documents, -1
    try:
        with draft.open("w", encoding="utf-8") as out:
            for line in lines(shelf, vectors):
                out.write(line + "\n")
                if line.startswith('{"feedback": '):  # documents are what is counted
                    continue
                count += 1
                if progress and count % 200 == 0:
                    progress(count, total)
        if not special:
            draft.replace(target)
    except OSError as error:  # a StoreError is one too, and tells its own story
        if not special:
            draft.unlink(missing_ok=True)
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"export: cannot write {str(target)!r}: {error.strerror or error}") from error
    if progress:
        progress(count, total)
    return count


def _check_target(shelf: Shelf, target: Path) -> None:
    """An export must not take the place of a store, least of all of its own."""
    own = shelf.store.files()
    if target in own or own & set(target.parents):
        raise InputError(f"export: {str(target)!r} belongs to the store itself; choose another file")
    if target.is_dir():
        raise InputError(f"export: {str(target)!r} is a folder; name a file in it")
    if target.is_file():
        with contextlib.suppress(OSError), target.open("rb") as file:
            if file.read(16) == b"SQLite format 3\0":
                raise InputError(f"export: {str(target)!r} is a database; choose another file")


def read(source: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The documents and the feedback of a JSONL file, each with its line; a broken line is named by its number."""
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
    if isinstance(item.get("vector"), str):
        import numpy as np

        try:
            item["vector"] = np.frombuffer(base64.b64decode(item["vector"], validate=True), dtype="<f4")
        except ValueError as error:
            raise InputError(f"{name}: vector is not base64 of float32 numbers ({error})") from None
    return item


def header(source: Path) -> dict[str, Any]:
    """The header of an export, or nothing for plain JSONL."""
    try:
        with source.open(encoding="utf-8-sig") as file:
            first = file.readline()
    except UnicodeDecodeError:  # told by ``read``, with its place
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
    """The line's feedback; a second key beside it is nothing we wrote."""
    if strange := [key for key in item if key != "feedback"]:
        raise InputError(f"feedback: unknown field {strange[0]!r} beside it; a line holds one feedback or one document")
    return intake.feedback(item["feedback"])


def is_settled(item: dict[str, Any]) -> bool:
    """Would this line change nothing while the collection's version is the same? Not one without an id, which is a new
    document every time; nor what is no news to a version: recalls and feedback."""
    return bool(item.get("id")) and item.get("accessed") is None and item.get("accesses") is None


def import_(engine: Engine, source: Path, progress: Progress | None) -> Added:
    """Settings come along into a collection that is still empty; vectors only when the model is the same."""
    try:
        head = header(source)
    except OSError as error:
        raise InputError(f"import: cannot read {str(source)!r}: {error.strerror or error}") from error
    if "settings" in head and engine.bound is None and not engine.stats().documents:
        engine.update_settings(Profile.from_json(json.dumps(head["settings"])), by="import")
    with engine.loading() as load:
        try:
            key = receipts.key(receipts.content(source))
        except OSError as error:
            raise InputError(f"import: cannot read {str(source)!r}: {error.strerror or error}") from error
        known = load.begin(key)
        if known is not None:
            return Added(tuple(known["ids"]), unchanged=len(known["ids"]), pending=engine.stats().pending)
        added, settled = _take_in(engine, load, source, head, progress)
        added = replace(added, degraded=(*added.degraded, *load.finish()))
        if settled and len(set(added.ids)) == len(added.ids) and not added.duplicates:
            load.keep(key, {"ids": added.ids})
    return added


def _take_in(
    engine: Engine, load: Load, source: Path, head: dict[str, Any], progress: Progress | None
) -> tuple[Added, bool]:
    """What became of it; and would the same file, taken in again, change nothing?"""
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
