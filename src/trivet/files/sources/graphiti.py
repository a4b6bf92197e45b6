"""Graphiti: episodes, entities and facts of a graph, as its classes write themselves to JSON.

A record is recognised by its fields: ``content`` is an episode, ``fact`` an edge between two entities, ``name`` an
entity or a community; an edge without a fact is a mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trivet.errors import InputError
from trivet.files.jsonl import Broken
from trivet.files.sources import exports
from trivet.text.conversation import SESSION

SOURCE = "graphiti"
MESSAGE = "message"
#: How a line of an episode of messages begins: ``user: …``.
_ACTOR = re.compile(r"^([^\s:][^:\n]{0,39}): ", re.MULTILINE)

Mentions = Mapping[Any, list[str]]


def read(path: Path) -> Iterator[dict[str, Any] | Broken]:
    for name, found in exports.load(path, "*.json"):
        lists = {"": found} if isinstance(found, list) else exports.mapping(found)
        if not any(isinstance(records, list) for records in lists.values()):
            raise InputError(f"import: {name}: no list of episodes, entities or edges; is it an export of a graph")
        yield from documents(lists, name, SOURCE)


def documents(lists: Mapping[str, Any], name: str, source: str) -> Iterator[exports.Item]:
    """Yield the documents of the lists of an export; its other values say something of the export itself."""
    given = {key: records for key, records in lists.items() if isinstance(records, list)}
    mentions: dict[str, list[str]] = {}
    for record in (exports.mapping(each) for records in given.values() for each in records):
        if "fact" not in record and isinstance(origin := record.get("source_node_uuid"), str):
            mentions.setdefault(origin, []).append(str(record.get("target_node_uuid")))

    def convert(found: dict[str, Any], place: str) -> Iterator[exports.Item]:
        if not isinstance(found.get("uuid"), str):
            yield Broken(place, "a record without a `uuid`")
        elif "content" in found:
            yield _episode(found, place, source, mentions)
        elif "fact" in found:
            yield fact(found, place, source)
        elif "source_node_uuid" not in found:
            yield _entity(found, place, source, mentions)

    for key, records in given.items():
        yield from exports.each(records, f"{name} {key}".rstrip(), convert)


def _episode(found: dict[str, Any], place: str, source: str, mentions: Mentions) -> exports.Item:
    text, group = found["content"], found.get("group_id")
    if not isinstance(text, str) or not text.strip():
        return Broken(place, "an episode without a text in `content`")
    is_message = found.get("source") == MESSAGE
    actors = _ACTOR.findall(text) if is_message else []
    if len(actors) == 1 and text.startswith(f"{actors[0]}: "):  # of several the text says who says what
        text = text.removeprefix(f"{actors[0]}: ")
    else:
        actors = []
    meta = {
        SESSION: group if is_message else None,
        "speaker": actors[0] if actors else None,
        "group": group,
        "description": found.get("source_description"),
    }
    created = found.get("valid_at") or found.get("created_at")
    kind = MESSAGE if is_message else "episode"
    return _document(found, source, kind, text, created, meta, _links(source, "mentions", mentions.get(found["uuid"])))


def _entity(found: dict[str, Any], place: str, source: str, mentions: Mentions) -> exports.Item:
    if not isinstance(found.get("name"), str):
        return Broken(place, "not a record of a graph: it has none of `content`, `fact` and `name`")
    labels = found.get("labels")
    meta = {
        **exports.mapping(found.get("attributes")),
        "labels": [label for label in labels if label != "Entity"] if isinstance(labels, list) else labels,
        "group": found.get("group_id"),
    }
    text = exports.texts(found.get("summary"))
    links = _links(source, "mentions", mentions.get(found["uuid"]))
    return _document(found, source, "entity", text, found.get("created_at"), meta, links)


def fact(found: dict[str, Any], place: str, source: str) -> exports.Item:
    """Return a fact with the time in which it holds; ``uuid`` is checked."""
    text = found.get("fact") or found.get("content")  # the name of it in Zep
    if not isinstance(text, str) or not text.strip():
        return Broken(place, "a fact without a text in `fact`")
    meta = {
        **exports.mapping(found.get("attributes")),
        "relation": found.get("name"),
        "subject": found.get("source_node_name"),
        "object": found.get("target_node_name"),
        "rating": found.get("rating"),
        "group": found.get("group_id"),
    }
    links = [
        *_links(source, "subject", [found.get("source_node_uuid")]),
        *_links(source, "object", [found.get("target_node_uuid")]),
        *_links(source, "stated-in", found.get("episodes")),
    ]
    untitled = {**found, "name": ""}
    document = _document(untitled, source, "fact", text, found.get("created_at"), meta, links)
    end = found.get("invalid_at") or found.get("expired_at")
    bounds = {"valid_from": exports.moment(found.get("valid_at")), "valid_to": exports.moment(end)}
    return {**document, **{name: bound for name, bound in bounds.items() if bound is not None}}


def _document(
    found: dict[str, Any], source: str, kind: str, text: str, created: Any, meta: dict[str, Any], links: list[Any]
) -> dict[str, Any]:
    known = {name: value for name, value in {**meta, "source": source}.items() if value not in (None, "", [])}
    return {
        "id": f"{source}-{found['uuid']}",
        "text": text,
        "title": found["name"] if isinstance(found.get("name"), str) else "",
        "kind": kind,
        "created": exports.moment(created),
        "meta": known,
        "links": links,
    }


def _links(source: str, type: str, uuids: Any) -> list[dict[str, str]]:
    given = uuids if isinstance(uuids, list) else []
    return [{"target": f"{source}-{uuid}", "type": type} for uuid in given if isinstance(uuid, str) and uuid]
