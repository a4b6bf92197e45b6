"""The functions that read text or data from outside, for the fuzzer.

One function an entry, told bytes. Each may refuse with a documented error and may do nothing else.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from trivet.engine import validation
from trivet.errors import TrivetError
from trivet.files import markdown
from trivet.files.encoding import decode
from trivet.files.formats import UnreadableError
from trivet.files.jsonl import Line, looks_like_jsonl, parse_lines
from trivet.filters import Filter, matches, parse_filter
from trivet.http import request_models
from trivet.memory.redaction import redact, redact_values
from trivet.profile import Profile
from trivet.stores.sqlite.filter_sql import compile_filter
from trivet.text.analysis import Analyzer
from trivet.text.concepts import concepts, subjects
from trivet.text.passages import cut
from trivet.text.query import understand
from trivet.text.trigrams import trigrams
from trivet.types import Document

ALLOWED = (TrivetError, ValidationError)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANALYZERS = [Analyzer(language) for language in ("en", "de", "none")]
KNOWN = Document("d1", "the side door sticks", "doors", meta={"floor": 1, "tags": ["wet"]}, created=NOON, updated=NOON)
MODELS = [kind for kind in vars(request_models).values() if isinstance(kind, type) and BaseModel in kind.__mro__[1:]]


def text_of(data: bytes) -> str:
    """Any text, lone surrogates and all."""
    return data.decode("utf-8", "surrogateescape")


def value_of(data: bytes) -> Any:
    """JSON where it is, else a value made of the bytes: lists in mappings in lists, odd numbers, names that mean
    something."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return _made(bytearray(data), 0)


NAMES = (
    *("$and", "$or", "$not", "eq", "ne", "in", "nin", "exists", "gt", "lte", "kind", "created", "floor", "meta.floor"),
    *("text", "id", "title", "meta", "links", "vector", "importance", "valid_from", "triples", "target", "weight"),
    *("weights", "depths", "gates", "fusion", "rerankers", "name", "k", "pool", "rrf_k", "alpha", "lexical", "dense"),
    *("query", "where", "profile", "limit", "offset", "documents", "settings", "as_of", "exclude", "dense_weight"),
)


def _made(data: bytearray, depth: int) -> Any:
    what = data.pop() % 10 if data else 9
    if what < 3 and depth < 40:
        size = data.pop() % 5 if data else 0
        if what:
            return {_name(data): _made(data, depth + 1) for _ in range(size)}
        return [_made(data, depth + 1) for _ in range(size)]
    if what < 5:
        size = data.pop() % 24 if data else 0
        return text_of(bytes(data.pop() for _ in range(min(size, len(data)))))
    if what == 5 and len(data) >= 8:
        return struct.unpack("<d", bytes(data.pop() for _ in range(8)))[0]
    if what == 6:
        return (1 << (data.pop() % 80 if data else 0)) * (1 if len(data) % 2 else -1)
    return (None, True, False, 0, "")[what % 5]


def _name(data: bytearray) -> Any:
    chosen = data.pop() if data else 0
    return NAMES[chosen % len(NAMES)] if chosen < 220 else _made(data, 50)


def query(data: bytes) -> None:
    text = text_of(data)
    analyzer = ANALYZERS[len(data) % len(ANALYZERS)]
    analyzer.query(text)
    analyzer.keywords(text)


def question(data: bytes) -> None:
    understand(text_of(data), lambda: ("floor", "tags"), lambda _: True, NOON)


def filter_text(data: bytes) -> None:
    _filter(parse_filter(text_of(data)))


def filter_value(data: bytes) -> None:
    _filter(parse_filter(value_of(data)))


def _filter(where: Filter | None) -> None:
    if where is not None:
        matches(where, KNOWN)
        compile_filter(where, 1)
        if parse_filter(where) != where:
            raise AssertionError(f"read again it is another: {where}")


def profile_text(data: bytes) -> None:
    read = Profile.from_json if data[:1] == b"{" else Profile.from_toml
    profile = read(text_of(data))
    if Profile.from_toml(profile.to_toml()) != profile or Profile.from_json(profile.to_json()) != profile:
        raise AssertionError("written and read again it is another")


def profile_value(data: bytes) -> None:
    value = value_of(data)
    if isinstance(value, dict):
        Profile().with_changes(value)


def import_lines(data: bytes) -> None:
    looks_like_jsonl(data)
    with suppress(UnreadableError):
        decode(data)
    for part in parse_lines(data.splitlines(keepends=True), "import.jsonl"):
        if isinstance(part, Line):
            _prepared(part.document)


def document(data: bytes) -> None:
    _prepared(value_of(data))


def _prepared(value: Any) -> None:
    for item in validation.documents(value, {}):
        validation.prepare(*item, cut, 3)


def front_matter(data: bytes) -> None:
    text = text_of(data)
    _prepared(markdown.document(text, lambda name: name if len(name) % 2 else None))


def redaction(data: bytes) -> None:
    text = text_of(data)
    once, _ = redact(text)
    redact_values(value_of(data))
    if redact(once)[0] != once:
        raise AssertionError("redacted twice it is another")


def passages(data: bytes) -> None:
    text = text_of(data)
    found = cut(text, size=8 + len(data) % 60)
    if any(text[part.start : part.end] != part.text for part in found):
        raise AssertionError("a passage is not where it says")


def words(data: bytes) -> None:
    text = text_of(data)
    trigrams(text)
    concepts(text)
    subjects(text)


def body(data: bytes) -> None:
    value = value_of(data)
    for model in MODELS:
        try:
            model.model_validate(value)
        except ValidationError as error:
            error.errors(include_url=False)


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        *(query, question, filter_text, filter_value, profile_text, profile_value),
        *(import_lines, document, front_matter, redaction, passages, words, body),
    )
}
#: What a fuzzer begins with: some of what is right, and what others stumbled over.
SEEDS = (
    *(b"kind=note", b"created>=2024-01-01", b"tags=a,b", b"year!=7", b'{"kind": {"in": ["a"]}, "$or": [{"floor": 1}]}'),
    *(b'"exact words" -not these tag:wet last week', b"retry_backoff_ms fooBar a.b.c", "写真と会議の記録".encode()),
    *(b'{"weights": {"dense": 2}, "k": 5, "rerankers": ["dedup"]}', b"k = 5\n[weights]\ndense = 2.0\n"),
    *(b'{"trivet": 1, "settings": {}}\n{"text": "one", "id": "a", "meta": {"n": 1}}\n', b'{"feedback": 1}'),
    *(b"---\ntitle: x\ntags: [a, b]\n---\n# Heading\n[[link]]\n", b"key AKIAIOSFODNN7EXAMPLE password=hunter2hunter2"),
    *(b"[" * 3000, b'{"a":' * 3000, b'{"k": ' + b"9" * 5000 + b"}", b"k = " + b"9" * 5000, b"a = " + b"[" * 3000),
    *(b"k=" + b"9" * 5000, b"k=" + b"9" * 400, b"\xff\xfe\x00\xd8", b"a" * 5000, b"(" * 3000, b"\x00" * 50),
    *(b"---\n" + b"- " * 500 + b"\n---\n", b"---\na: !!python/object:os.system x\nb: &a [*a]\n---\n"),
)
