"""Checks of what callers give: texts, mappings and Documents become ``Prepared`` records, cut and hashed.

Every error names the document, the field, the value and the way out. Lone surrogates, which no file can hold, become
U+FFFD; everything else is kept as given.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError
from trivet.filters import TIME_FIELDS, Filter, epoch, plain_value
from trivet.stores.contract import Prepared
from trivet.stores.scoped import filled
from trivet.text.tokens import clean, is_valid
from trivet.types import Document, Feedback, Link, Passage

if TYPE_CHECKING:
    from trivet.types import Vector

MAX_TEXT = 64_000_000  # characters in one document
MAX_QUERY = 10_000  # characters; a longer query is cut
MAX_ID = 512  # characters
MAX_META = 1_000_000  # characters of JSON
MAX_DEPTH = 32  # of nested metadata
MAX_PAGE = 1_000  # documents of one page
UNIT = 2.0**-11  # distance from 1 of a unit vector's length: the largest relative change of a number kept in 16 bits

_encoded = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True
).encode  # built once: building it costs more than encoding
_FIELDS = tuple(field.name for field in fields(Document))
KNOWN = (*_FIELDS, "links", "vector", "triples")
_OWN = ("text", "title", "kind", "meta", "importance", "created", "valid_from", "valid_to", "expires")
_PATCHABLE = (*_OWN, "links", "vector", "triples")


def documents(
    items: Any, given: Mapping[str, Any], within: Filter | None = None
) -> Iterator[tuple[Document, tuple[Link, ...] | None, Any]]:
    """Yield (document, links, vector) for each item; ``given`` are the keywords of a call with one text.

    ``within`` is the filter of a bound caller: fields that it fixes are set where they are absent.
    """
    for plain, name in _plain_documents(items, given):
        yield _document(plain if within is None else filled(plain, within), name)


def _plain_documents(items: Any, given: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each item as the fields of a document, with its name for error messages."""
    if isinstance(items, str):
        yield {"text": items, **given}, "document"
        return
    if isinstance(items, Mapping | Document):
        yield {**_plain(items, "document"), **given}, "document"
        return
    if given:
        raise InputError(f"{next(iter(given))}: only with one document; give many documents their own fields")
    if isinstance(items, bytes | bytearray):
        raise InputError("document: bytes are not text; decode them first")
    if not isinstance(items, Iterable):
        raise InputError(f"document: {type(items).__name__} is not text, a mapping, a Document or an iterable of those")
    for number, item in enumerate(items):
        name = f"document {number}"
        yield {"text": item} if isinstance(item, str) else _plain(item, name), name


def _plain(item: Any, name: str) -> dict[str, Any]:
    if isinstance(item, Document):
        return {field: getattr(item, field) for field in _FIELDS}
    if not isinstance(item, Mapping):
        raise InputError(f"{name}: {type(item).__name__} is not text, a mapping or a Document")
    return dict(item)


def _document(plain: dict[str, Any], name: str) -> tuple[Document, tuple[Link, ...] | None, Any]:
    for key in plain:
        if key not in KNOWN:
            close = get_close_matches(str(key), KNOWN, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "put fields of your own under 'meta'."
            raise InputError(f"{name}: unknown field {key!r}; {hint} Known: {', '.join(KNOWN)}")
    plain = {key: value if key == "vector" else plain_value(value) for key, value in plain.items()}
    identifier = _identifier(plain.get("id"), name)
    if plain.get("id") is not None:  # a generated id would mean nothing to the caller
        name = f"document {identifier!r}"
    title = _text(plain.get("title") or "", f"{name}: title")
    if "text" not in plain:
        meta = plain.get("meta")
        fields = [*plain, *(meta if isinstance(meta, Mapping) else ())]
        others = ", ".join(repr(field) for field in fields if field not in ("id", "meta"))
        among = f" among {others}" if others else ""
        raise InputError(f"{name}: text: missing{among}; give one, or rename the field or column that holds it")
    text = _text(plain["text"], f"{name}: text")
    if not text.strip() and not title.strip():
        raise InputError(f"{name}: text is empty; give it some text or a title")
    document = Document(
        id=identifier,
        text=text,
        title=title,
        kind=_kind(plain.get("kind"), name),
        meta={**_meta(plain.get("meta"), name), **_triples(plain.get("triples"), name)},
        importance=_importance(plain.get("importance"), name),
        accesses=_accesses(plain.get("accesses"), name),
        **{
            field: _moment(_after_now(plain[field]) if field == "expires" else plain[field], f"{name}: {field}")
            for field in TIME_FIELDS
            if plain.get(field) is not None
        },
    )
    if document.valid_from and document.valid_to and document.valid_from > document.valid_to:
        raise InputError(f"{name}: valid_from {plain['valid_from']} is after valid_to {plain['valid_to']}")
    links = None if plain.get("links") is None else tuple(_links(identifier, plain["links"], name))
    return document, links, plain.get("vector")


def _identifier(value: Any, name: str) -> str:
    if value is None:
        return secrets.token_hex(8)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{name}: id: {value!r} is not an id; give a non-empty text, or leave it out to have one made")
    return check_id(value, f"{name}: id")


def check_id(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{name}: {value!r} is not an id; give a non-empty text")
    if len(value) > MAX_ID:
        raise InputError(f"{name}: {len(value)} characters; at most {MAX_ID}")
    if "\0" in value or not is_valid(value):
        raise InputError(f"{name}: {value!r} holds a NUL or a lone surrogate; use plain text")
    return value


def check_passage_size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"passage_size: {value!r} is not a whole number of tokens from 0 (never cut) up")
    return value


def check_limit(value: Any, most: int, name: str = "limit") -> int:
    value = plain_value(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InputError(f"{name}: {value!r} is not a whole number from 1 to {most:,}")
    return value


def check_choice(value: Any, name: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise InputError(f"{name}: {value!r} is unknown; known: {', '.join(known)}")
    return str(value)


def check_cursor(value: Any) -> int:
    """Return the number that the page before ended at; 0 for the first page."""
    if value is None:
        return 0
    if not isinstance(value, str) or not (value.isascii() and value.isdigit()) or len(value) > 18:
        raise InputError(f"after: {value!r} is not the `next` of a page; leave it out to begin at the first")
    return int(value)


def check_by(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_ID:
        raise InputError(
            f"by: {value!r} is not a text of at most {MAX_ID} characters that names who changes the settings"
        )
    return clean(value).replace("\0", "")


def patched(known: Document, changes: Mapping[str, Any]) -> tuple[Document, tuple[Link, ...] | None, Any]:
    """Return the document with some fields changed, as (document, links, vector)."""
    for name in changes:
        if name not in _PATCHABLE:
            close = get_close_matches(name, _PATCHABLE, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise InputError(f"{name}: a patch cannot change it; {hint}Known: {', '.join(_PATCHABLE)}")
    if isinstance(changes.get("vector"), Mapping):
        raise InputError("vector: a patch takes the vector of a document of one passage, a list of numbers")
    plain = {**_plain(known, "document"), "updated": None, **changes}
    if plain["text"] is None:
        plain["text"] = ""
    if isinstance(changes.get("meta"), Mapping):
        plain["meta"] = _merged(known.meta, changes["meta"], 0)
    document, links, vector = _document(plain, f"document {known.id!r}")
    if "expires" in changes and document.expires is not None and document.expires <= datetime.now(UTC):
        passed = f"document {known.id!r}: expires {changes['expires']} has passed"
        raise InputError(f"{passed}; give a later time, or forget the document to erase it")
    return document, links, vector


def _merged(known: Any, changes: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Merge as RFC 7396 says: mappings are merged, None removes a key, everything else replaces."""
    if depth > MAX_DEPTH:
        raise InputError(f"meta: nested more than {MAX_DEPTH} levels deep")
    merged = dict(known) if isinstance(known, Mapping) else {}
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value, depth + 1) if isinstance(value, Mapping) else value
    return merged


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name}: {type(value).__name__} is not text; decode bytes and join lists first")
    if len(value) > MAX_TEXT:
        raise InputError(f"{name}: {len(value):,} characters; at most {MAX_TEXT:,}, split it into several documents")
    return clean(value)


def _kind(value: Any, name: str) -> str:
    if value is None:
        return "note"
    if not isinstance(value, str) or not value.strip() or len(value) > 64 or not is_valid(value):
        raise InputError(f"{name}: kind {value!r} is not a text of at most 64 characters such as 'note' or 'episode'")
    return value


def _importance(value: Any, name: str) -> float:
    if value is None:
        return 0.5
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InputError(f"{name}: importance {value!r} is not a number from 0 to 1")
    return float(value)


def _accesses(value: Any, name: str) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InputError(f"{name}: accesses {value!r} is not a whole number from 0 up")
    return value


def _moment(value: Any, name: str) -> datetime | None:
    if value is None:
        return None
    return datetime.fromtimestamp(epoch(value, name), UTC)


def _after_now(value: Any) -> Any:
    """Turn a duration into the time at which it ends; return any other value as it is."""
    if not isinstance(value, timedelta):
        return value
    try:
        return datetime.now(UTC) + value
    except OverflowError:
        raise InputError(f"expires: {value!r} from now is outside of the calendar; leave it out for never") from None


def _meta(value: Any, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{name}: meta {value!r} is not a mapping such as {{'project': 'heron'}}")
    return {key: _checked(item, key, f"{name}: meta", 0) for key, item in value.items()}


def _triples(value: Any, name: str) -> dict[str, Any]:
    """Check triples of (subject, relation, object); they are kept in the metadata and move with the document."""
    if value is None:
        return {}
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{name}: triples {value!r} is not a list of (subject, relation, object)")
    kept = []
    for item in value:
        parts = tuple(item) if isinstance(item, list | tuple) else ()
        if len(parts) != 3 or not all(isinstance(part, str) and part.strip() for part in parts):
            raise InputError(f"{name}: triple {item!r} is not (subject, relation, object), three texts")
        kept.append([clean(part.strip()) for part in parts])
    return {"triples": kept}


def _checked(value: Any, key: Any, name: str, depth: int) -> Any:
    """Allow JSON values only, so that what comes back is what was given."""
    name = f"{name}.{key}"
    if not isinstance(key, str) or not key or "\0" in key or not is_valid(key):
        raise InputError(f"{name}: {key!r} is not a metadata key; give a non-empty text without NUL")
    if depth > MAX_DEPTH:
        raise InputError(f"{name}: nested more than {MAX_DEPTH} levels deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InputError(f"{name}: {value} does not fit 64 bits; store it as text")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{name}: {value} is not a finite number")
        return value
    if (plain := plain_value(value)) is not value:
        return _checked(plain, key, name.removesuffix(f".{key}"), depth)
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    if isinstance(value, Mapping):
        return {inner: _checked(item, inner, name, depth + 1) for inner, item in value.items()}
    if isinstance(value, list | tuple):
        return [_checked(item, str(at), name, depth + 1) for at, item in enumerate(value)]
    raise InputError(f"{name}: {type(value).__name__} is not JSON; use text, numbers, true/false, lists or mappings")


def _links(source: str, value: Any, name: str) -> Iterator[Link]:
    if value is None:
        return
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{name}: links {value!r} is not a list of targets or {{'target': …, 'type': …}}")
    for item in value:
        if isinstance(item, Link):
            yield check_link(replace(item, source=source), name)
        elif isinstance(item, str):
            yield check_link(Link(source, item), name)
        elif isinstance(item, Mapping) and "target" in item and set(item) <= {"target", "type", "weight"}:
            yield check_link(Link(source, item["target"], item.get("type", "see-also"), item.get("weight", 1.0)), name)
        else:
            raise InputError(f"{name}: link {item!r} is not a target id or {{'target': …, 'type': …, 'weight': …}}")


def check_link(link: Link, name: str = "link") -> Link:
    for side in ("source", "target"):
        check_id(getattr(link, side), f"{name}: link {side}")
    if not isinstance(link.type, str) or not link.type.strip() or len(link.type) > 64 or not is_valid(link.type):
        raise InputError(f"{name}: link type {link.type!r} is not a text of at most 64 characters such as 'see-also'")
    weight = link.weight
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1e100:
        raise InputError(f"{name}: link weight {link.weight!r} is not a number from 0 up")
    return replace(link, weight=float(weight))


def check_query(value: Any, name: str = "query") -> str:
    """Return a judged query as ``search`` reads it, so that the same query is always the same row."""
    if not isinstance(value, str):
        raise InputError(f"{name}: {type(value).__name__} is not text")
    if not value.strip():
        raise InputError(f"{name}: it is empty; give the query that was searched for")
    return clean(value)[:MAX_QUERY]


def check_feedback(query: Any, id: Any, good: Any, at: Any = None, name: str = "") -> Feedback:
    """Check feedback; ``name`` says where it came from, and without ``at`` its time is now."""
    if not isinstance(good, bool):
        raise InputError(f"{name}good: {good!r} is not True (a good answer) or False (a bad one)")
    checked, identifier = check_query(query, f"{name}query"), check_id(id, f"{name}id")
    return Feedback(checked, identifier, good, _moment(at, f"{name}at") or datetime.now(UTC))


def feedback(item: Any, name: str = "feedback") -> Feedback:
    """Check feedback that was read from an export or given as a mapping."""
    if isinstance(item, Feedback):
        item = {field.name: getattr(item, field.name) for field in fields(Feedback)}
    if not isinstance(item, Mapping):
        raise InputError(f"{name}: {type(item).__name__} is not a mapping or a Feedback")
    known = [field.name for field in fields(Feedback)]
    if strange := [key for key in item if key not in known]:
        raise InputError(f"{name}: unknown field {strange[0]!r}; known: {', '.join(known)}")
    return check_feedback(item.get("query"), item.get("id"), item.get("good"), item.get("at"), f"{name}: ")


def unit_vector(value: Any, dim: int, name: str) -> Vector:
    """Return a caller's vector as float32 of unit length (or all zero).

    One that has it up to the rounding of a store is kept as it is: so an export is imported without a change.
    """
    import numpy as np

    try:
        vector = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}: not a list of numbers; give {dim}") from None
    if vector.shape != (dim,):
        raise InputError(f"{name}: the shape is {vector.shape}, the collection's model has {dim} dimensions")
    largest = max(vector.max(initial=0.0), -vector.min(initial=0.0))
    if not largest < math.inf or np.isnan(vector).any():
        raise InputError(f"{name}: it holds NaN or infinity; give finite numbers")
    scaled = vector / (largest or 1.0)  # first, because the squares of huge values overflow
    length = math.sqrt(scaled.dot(scaled))
    if abs(length * largest - 1.0) <= UNIT:
        return vector.astype(np.float32)
    return (scaled / (length or 1.0)).astype(np.float32)


def prepare(
    document: Document,
    links: tuple[Link, ...] | None,
    vector: Any,
    cut: Callable[[str], list[Passage]],
    dim: int | None,
) -> Prepared:
    """Cut, hash and serialise a document; one with a vector of its own is one passage."""
    data, vectors = None, {}
    if vector is not None and dim is None:
        raise InputError(
            f"document {document.id!r}: vector given, but the collection has no model; "
            "create it with the embedder vectors:DIM to bring your own"
        )
    if isinstance(vector, Mapping):  # of an export: those of several passages, by hash
        vectors = {key: _bytes(item, dim, document.id) for key, item in vector.items()}
    elif vector is not None:
        data = _bytes(vector, dim, document.id)
    passages = [Passage(0, 0, len(document.text), document.text)] if data is not None else cut(document.text)
    meta = _encoded(document.meta)
    if len(meta) > MAX_META:
        raise InputError(f"document {document.id!r}: meta is {len(meta):,} characters of JSON; at most {MAX_META:,}")
    whole = _digest(document.title, document.text)  # most documents are one passage: hashed once
    return Prepared(
        document=document,
        hash=whole,
        passages=tuple(
            (p.ordinal, p.start, p.end, whole if p.text == document.text else _digest(document.title, p.text))
            for p in passages
        ),
        meta=meta,
        links=links,
        vector=data,
        vectors=vectors,
    )


def _bytes(vector: Any, dim: int | None, id: str) -> bytes:
    found: bytes = unit_vector(vector, dim or 0, f"document {id!r}: vector").astype("<f4").tobytes()
    return found


def _digest(title: str, text: str) -> bytes:
    return hashlib.blake2b(f"{title}\0{text}".encode(), digest_size=16).digest()
