"""Datasets: documents, topics and judgements (qrels), read from a folder in BEIR's layout, plain or gzipped.

The files are ``corpus.jsonl``, ``queries.jsonl`` and judgements: either ``qrels/SPLIT.tsv``, or ``qrels.tsv`` (the test
split) and ``qrels_SPLIT.tsv``. Two things go beyond BEIR: ``metadata.type`` of a query is its stratum, and
``metadata.scope`` or ``metadata.haystack`` of a query say which documents it may find and become a filter.

A broken line, a repeated id and a judgement of an unknown id are errors that name the line. A query without a judgement
is left out and counted in ``notes``. An unanswerable query (``metadata.abstention``, or the type ``abstention`` or
``unanswerable``) is kept apart: a good search returns nothing for it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from trivet.engine.validation import check_id
from trivet.errors import InputError, NotFoundError
from trivet.filters import Eq, Filter, In, flatten, parse_filter

DEMO = "demo"  # the name of the dataset in the package
TEST = "test"
UNANSWERABLE_TYPES = ("abstention", "unanswerable")
NO_STRATUM = "all"
MAX_GRADE = 1_000  # trec_eval allocates memory by grade, and misreads a grade above 2 ** 31
Qrels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Topic:
    """A query of a test collection: its id, text, stratum, filter and timestamp."""

    id: str
    text: str
    stratum: str = NO_STRATUM
    where: Filter | None = None
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Documents, topics and the judgements of which document is relevant to which topic."""

    name: str
    split: str
    documents: Sequence[Mapping[str, Any]] = field(repr=False)
    topics: tuple[Topic, ...] = field(repr=False)
    qrels: Qrels = field(repr=False)
    digest: str
    unanswerable: tuple[Topic, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    @property
    def strata(self) -> dict[str, int]:
        """The number of topics of each stratum, most first."""
        return dict(Counter(topic.stratum for topic in self.topics).most_common())

    @property
    def identity(self) -> str:
        """``name/split#digest``; two evaluations are comparable where this is the same."""
        return f"{self.name}/{self.split}#{self.digest}"

    def only(self, strata: Iterable[str] = (), without: Iterable[str] = ()) -> Dataset:
        """Return the dataset with the topics of these strata only, or without some; raise for an unknown stratum."""
        kept, left_out = tuple(strata), tuple(without)
        for name in (*kept, *left_out):
            if name not in self.strata:
                raise InputError(f"stratum: {self.name} has no topic of {name!r}; it has: {_listed(self.strata)}")
        if not kept and not left_out:
            return self
        topics = tuple(
            topic for topic in self.topics if (not kept or topic.stratum in kept) and topic.stratum not in left_out
        )
        if not topics:
            raise InputError(f"stratum: no topic of {self.name} is left; its strata: {_listed(self.strata)}")
        return self._of(topics)

    def sample(self, ids: Iterable[str]) -> Dataset:
        """Return the dataset with these topics only."""
        wanted = set(ids)
        topics = tuple(topic for topic in self.topics if topic.id in wanted)
        if not topics:
            raise InputError(f"sample: none of these {len(wanted):,} ids is a topic of {self.identity}")
        return self._of(topics)

    def _of(self, topics: tuple[Topic, ...]) -> Dataset:
        """Return the dataset with these topics; the same topics give the same identity."""
        if len(topics) == len(self.topics):
            return self
        qrels = {topic.id: self.qrels[topic.id] for topic in topics}
        return replace(self, topics=topics, qrels=qrels, digest=_digest(self.digest, *sorted(qrels)))


def load(
    source: str | Path,
    split: str = TEST,
    *,
    strata: Iterable[str] = (),
    without: Iterable[str] = (),
    scoped: bool = True,
    drop_unknown: bool = False,
) -> Dataset:
    """Read the dataset in a folder, or the one in the package (``"demo"``).

    ``scoped=False`` ignores the filters of the topics; ``drop_unknown`` leaves out judgements of unknown ids, and
    ``notes`` says how many.
    """
    demo = str(source) == DEMO
    found = _demo(split, scoped) if demo else _Folder(Path(source), scoped, drop_unknown).load(split)
    return found.only(strata, without)


def splits(source: str | Path) -> list[str]:
    """Return the splits that a folder has judgements for."""
    if str(source) == DEMO:
        return ["test", "train"]
    return sorted(_Folder(Path(source), True, False).judgements())


# --- a folder ---------------------------------------------------------------------------------------------------------


class _Folder:
    """A reader of one folder."""

    def __init__(self, path: Path, scoped: bool, drop_unknown: bool) -> None:
        self._path, self._scoped, self._drop_unknown = path, scoped, drop_unknown
        self._notes: list[str] = []
        self._known: set[str] = set()  # ids of documents
        self._empty: set[str] = set()  # ids of documents without text
        self._scopes: set[Any] = set()  # a document may be in several
        self._hash = hashlib.sha256(b"" if scoped else b"unscoped")

    def load(self, split: str) -> Dataset:
        files = self.judgements()
        documents = self._documents()
        queries = self._queries()
        judged = self._qrels(files, split, queries)
        topics: list[Topic] = []
        unanswerable: list[Topic] = []
        unjudged = 0
        for id, query in queries.items():
            meta = query["metadata"]
            answered = any(grade > 0 for grade in judged.get(id, {}).values())
            if not answered and not _is_unanswerable(meta):
                unjudged += 1
                continue
            topic = self._topic(id, query["text"], meta)
            (topics if answered else unanswerable).append(topic)
        if not topics:
            raise InputError(f"dataset: no query of {self._path} has a judgement above 0 in the split {split!r}")
        if unjudged:
            self._notes.append(
                f"queries without a judgement above 0 in {split!r}, left out: {unjudged:,} of {len(queries):,}"
            )
        return Dataset(
            name=self._path.resolve().name,
            split=split,
            documents=documents,
            topics=tuple(topics),
            qrels={topic.id: judged[topic.id] for topic in topics},
            digest=self._hash.hexdigest()[:12],
            unanswerable=tuple(unanswerable),
            notes=tuple(self._notes),
        )

    def _documents(self) -> list[dict[str, Any]]:
        file = self._file("corpus.jsonl")
        first_seen: dict[str, int] = {}
        documents: list[dict[str, Any]] = []
        for number, record in self._records(file):
            id = _id(record, file, number, first_seen)
            meta = dict(record["metadata"])
            text, title = _text(record, file, number), record.get("title") or ""
            if not isinstance(title, str):
                raise InputError(f"{file.name}, line {number}: title is {type(title).__name__}, not a string")
            document = {"id": id, "text": text, "title": title, "meta": meta}
            if not text.strip() and not title.strip():
                self._empty.add(id)
                continue
            if created := _moment(meta.get("timestamp")):
                document["created"] = document["updated"] = created
            documents.append(document)
            self._known.add(id)
            self._scopes.update(value for key, value in flatten({"scope": meta.get("scope")}) if key == "scope")
        if not documents:
            raise InputError(f"{file.name}: the file has no document")
        if self._empty:
            self._notes.append(
                f"documents without text, which no search can find and which count as missed: {len(self._empty):,}"
            )
        return documents

    def _queries(self) -> dict[str, dict[str, Any]]:
        file = self._file("queries.jsonl")
        first_seen: dict[str, int] = {}
        queries: dict[str, dict[str, Any]] = {}
        for number, record in self._records(file):
            id = _id(record, file, number, first_seen)
            record["text"] = _text(record, file, number)
            if not record["text"].strip():
                raise InputError(f"{file.name}, line {number}: query {id!r} is empty")
            queries[id] = record
        if not queries:
            raise InputError(f"{file.name}: the file has no query")
        return queries

    def _topic(self, id: str, text: str, meta: Mapping[str, Any]) -> Topic:
        where = self._where(id, meta) if self._scoped else None
        return Topic(id, text, str(meta.get("type") or NO_STRATUM), where, _moment(meta.get("timestamp")))

    def _where(self, id: str, meta: Mapping[str, Any]) -> Filter | None:
        """Return the filter of a query; raise where its scope or haystack matches no document."""
        if (scope := meta.get("scope")) is not None:
            if not isinstance(scope, str | int | float) or scope not in self._scopes:
                raise InputError(f"queries: {id!r} has the scope {scope!r}, and no document has that scope")
            return Eq("scope", scope)
        if (haystack := meta.get("haystack")) is not None:
            if not isinstance(haystack, list):
                raise InputError(f"queries: the haystack of {id!r} is not a list of document ids")
            ids = tuple(sorted(set(map(str, haystack))))
            if self._known.isdisjoint(ids):
                raise InputError(f"queries: no document has an id of the haystack of {id!r} (ids in it: {len(ids):,})")
            return In("id", ids)
        return None

    def judgements(self) -> dict[str, Path]:
        """Return split → file."""
        if not self._path.is_dir():
            raise NotFoundError(f"dataset: there is no folder {str(self._path)!r}; give one in BEIR layout, or 'demo'")
        found: dict[str, Path] = {}
        for ending in (".tsv", ".tsv.gz"):  # as with the other files, the plain one wins where there are both
            for path in sorted(self._path.glob(f"qrels/*{ending}")):
                found.setdefault(path.name.removesuffix(ending), path)
        for ending in (".tsv", ".tsv.gz"):
            for path in sorted(self._path.glob(f"qrels*{ending}")):
                name = path.name.removesuffix(ending)
                if name == "qrels" or name.startswith("qrels_"):
                    found.setdefault(name.removeprefix("qrels").removeprefix("_") or TEST, path)
        return found

    def _qrels(self, files: Mapping[str, Path], split: str, queries: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        if split not in files:
            raise NotFoundError(f"split: {self._path} has no judgements for {split!r}; it has: {_listed(files)}")
        file = files[split]
        judged: dict[str, dict[str, int]] = {}
        first_seen: dict[tuple[str, str], int] = {}
        unknown: list[str] = []
        for place, (number, line) in enumerate(self._lines(file)):
            fields = line.strip().split("\t") if "\t" in line else line.split()
            if place == 0 and fields[-1].strip().lower() in ("score", "relevance", "rel"):
                continue
            if len(fields) == 4:  # TREC: topic, iteration, document, grade
                fields = [fields[0], *fields[2:]]
            if len(fields) != 3:
                raise InputError(f"{file.name}, line {number}: expected query, document and grade, got {line[:80]!r}")
            query, document, grade_text = (part.strip() for part in fields)
            grade = _grade(grade_text, file, number)
            if query not in queries or (document not in self._known and document not in self._empty):
                kind, id = ("query", query) if query not in queries else ("document", document)
                unknown.append(f"line {number} names the {kind} {id!r}")
                continue
            if (earlier := first_seen.setdefault((query, document), number)) != number:
                raise InputError(
                    f"{file.name}, line {number}: {query!r} and {document!r} were judged in line {earlier} already"
                )
            judged.setdefault(query, {})[document] = grade
        if unknown:
            message = f"{file.name}: judgements of unknown ids: {len(unknown):,} ({unknown[0]})"
            if not self._drop_unknown:
                raise InputError(f"{message}; correct the file, or leave them out with --drop-unknown")
            self._notes.append(f"{message}; left out")
        return judged

    def _file(self, name: str) -> Path:
        for path in (self._path / name, self._path / f"{name}.gz"):
            if path.is_file():
                return path
        raise NotFoundError(f"dataset: {self._path} has neither {name} nor {name}.gz")

    def _records(self, file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in self._lines(file):
            try:
                record = json.loads(line)
            except (
                ValueError,
                RecursionError,
            ) as error:  # a number of 5,000 digits; deeply nested lists
                raise InputError(
                    f"{file.name}, line {number}: not JSON ({getattr(error, 'msg', error)}): {line[:60]!r}"
                ) from None
            if not isinstance(record, dict):
                raise InputError(f"{file.name}, line {number}: expected an object with _id and text, got {line[:60]!r}")
            record["metadata"] = record.get("metadata") or {}
            if not isinstance(record["metadata"], dict):
                raise InputError(f"{file.name}, line {number}: metadata is not an object")
            yield number, record

    def _lines(self, file: Path) -> Iterator[tuple[int, str]]:
        self._hash.update(file.name.removesuffix(".gz").encode())
        opener: Any = gzip.open if file.suffix == ".gz" else open
        try:
            with opener(file, "rb") as lines:
                for number, raw in enumerate(lines, start=1):
                    self._hash.update(raw)
                    if raw.strip():
                        yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise InputError(f"{file.name}, line {number}: not UTF-8") from None
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{file.name}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def _id(record: Mapping[str, Any], file: Path, number: int, first_seen: dict[str, int]) -> str:
    id = record.get("_id", record.get("id"))
    if isinstance(id, bool) or not isinstance(id, str | int) or str(id) == "":
        raise InputError(f"{file.name}, line {number}: no _id")
    check_id(str(id), f"{file.name}, line {number}: _id")
    if (earlier := first_seen.setdefault(str(id), number)) != number:
        raise InputError(f"{file.name}, line {number}: the id {str(id)!r} was given in line {earlier} already")
    return str(id)


def _text(record: Mapping[str, Any], file: Path, number: int) -> str:
    text = record.get("text")
    if not isinstance(text, str):
        raise InputError(f"{file.name}, line {number}: text is {type(text).__name__}, not a string")
    return text


def _grade(text: str, file: Path, number: int) -> int:
    try:
        grade = float(text)
    except ValueError:
        grade = math.nan
    if not math.isfinite(grade) or grade != int(grade):
        raise InputError(f"{file.name}, line {number}: the grade {text!r} is not a whole number")
    if abs(grade) > MAX_GRADE:
        raise InputError(
            f"{file.name}, line {number}: the grade {text!r} is out of range; allowed: up to {MAX_GRADE:,}"
        )
    return int(grade)


def _moment(value: Any) -> str | None:
    """Return a timestamp that the engine reads; None for any other value, which is then plain metadata."""
    try:
        return datetime.fromisoformat(value).isoformat() if isinstance(value, str) else None
    except ValueError:
        return None


def _is_unanswerable(meta: Mapping[str, Any]) -> bool:
    return meta.get("abstention") is True or meta.get("type") in UNANSWERABLE_TYPES


# --- the demo ---------------------------------------------------------------------------------------------------------


def _demo(split: str, scoped: bool) -> Dataset:
    from trivet.data import notes, questions

    documents, queries = notes(), [item for item in questions() if item["split"] == split]
    if not queries:
        raise NotFoundError(f"split: demo has no {split!r}; it has: test, train")
    topics = {
        item["id"]: Topic(item["id"], item["text"], item["type"], parse_filter(item.get("where")) if scoped else None)
        for item in queries
    }
    qrels = {item["id"]: item["relevant"] for item in queries if item["relevant"]}
    return Dataset(
        name=DEMO,
        split=split,
        documents=documents,
        topics=tuple(topics[id] for id in qrels),
        qrels=qrels,
        digest=_digest(json.dumps([documents, queries, scoped], sort_keys=True)),
        unanswerable=tuple(topic for id, topic in topics.items() if id not in qrels),
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
