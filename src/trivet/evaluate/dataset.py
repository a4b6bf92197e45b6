"""What is asked, and what is right?

A test collection in BEIR's layout, plain or gzipped: ``corpus.jsonl``, ``queries.jsonl`` and judgements, either
``qrels/SPLIT.tsv`` or ``qrels.tsv`` (the test split) beside ``qrels_SPLIT.tsv``. Two things go beyond BEIR:
``metadata.type`` of a query is its stratum, and ``metadata.scope`` or ``metadata.haystack`` of a query say which
documents it is about and become a Filter, which is how a memory is asked in earnest.

The rules for what does not fit are here and nowhere else. A broken line, an id given twice and a judgement of an
unknown id are errors that name the line. A query without a judgement is not asked, and counted in ``notes``; one that
says nothing answers it (``metadata.abstention``, or the type ``abstention`` or ``unanswerable``) is kept apart, to be
asked for what should not be found.
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

from trivet.errors import InputError, NotFoundError
from trivet.filters import Eq, Filter, In, flatten, parse_filter
from trivet.intake import check_id

DEMO = "demo"  # the name of the set that ships
TEST = "test"
UNANSWERABLE_TYPES = ("abstention", "unanswerable")
NO_STRATUM = "all"
MAX_GRADE = 1_000  # trec_eval counts by grade: a grade of a thousand million takes the memory, a larger one is misread
Qrels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Topic:
    """A query of a test collection: its id, its text, what it may see and when it is asked."""

    id: str
    text: str
    stratum: str = NO_STRATUM
    where: Filter | None = None
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Documents to be found, topics to find them for, and which are right."""

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
        """Stratum → how many topics, most first."""
        return dict(Counter(topic.stratum for topic in self.topics).most_common())

    @property
    def identity(self) -> str:
        """``name/split#digest``: what two results must share to be compared."""
        return f"{self.name}/{self.split}#{self.digest}"

    def only(self, strata: Iterable[str] = (), without: Iterable[str] = ()) -> Dataset:
        """The topics of these strata, or of all but those; a stratum nobody has is refused."""
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
            raise InputError(f"stratum: nothing of {self.name} is left; it has: {_listed(self.strata)}")
        return self._of(topics)

    def sample(self, ids: Iterable[str]) -> Dataset:
        """The same documents, only these topics."""
        wanted = set(ids)
        topics = tuple(topic for topic in self.topics if topic.id in wanted)
        if not topics:
            raise InputError(f"sample: none of these {len(wanted):,} ids is a topic of {self.identity}")
        return self._of(topics)

    def _of(self, topics: tuple[Topic, ...]) -> Dataset:
        """The same topics have the same identity, however they were chosen."""
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
    """The test collection in a folder, or the one that ships (``"demo"``).

    ``scoped=False`` ignores the topics' scopes and asks the whole collection; ``drop_unknown`` passes over judgements
    of ids that are not there, and says how many.
    """
    demo = str(source) == DEMO
    found = _demo(split, scoped) if demo else _Folder(Path(source), scoped, drop_unknown).load(split)
    return found.only(strata, without)


def splits(source: str | Path) -> list[str]:
    """The splits a folder has judgements for."""
    if str(source) == DEMO:
        return ["test", "train"]
    return sorted(_Folder(Path(source), True, False).judgements())


# --- a folder ---------------------------------------------------------------------------------------------------------


class _Folder:
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
            if not answered and not _says_nothing_answers(meta):
                unjudged += 1
                continue
            topic = self._topic(id, query["text"], meta)
            (topics if answered else unanswerable).append(topic)
        if not topics:
            raise InputError(f"dataset: no query of {self._path} has a judgement above 0 in the split {split!r}")
        if unjudged:
            self._notes.append(
                f"{unjudged:,} of {len(queries):,} queries have no judgement above 0 in {split!r}: not asked"
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
                document["created"] = document["updated"] = created  # nobody touched it since
            documents.append(document)
            self._known.add(id)
            self._scopes.update(value for key, value in flatten({"scope": meta.get("scope")}) if key == "scope")
        if not documents:
            raise InputError(f"{file.name}: it has no document")
        if self._empty:
            self._notes.append(
                f"{len(self._empty):,} documents have no text: nothing can find them, they count as missed"
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
            raise InputError(f"{file.name}: it has no query")
        return queries

    def _topic(self, id: str, text: str, meta: Mapping[str, Any]) -> Topic:
        where = self._where(id, meta) if self._scoped else None
        return Topic(id, text, str(meta.get("type") or NO_STRATUM), where, _moment(meta.get("timestamp")))

    def _where(self, id: str, meta: Mapping[str, Any]) -> Filter | None:
        """What the query may see; a scope or haystack in which there is nothing is a mistake in the set."""
        if (scope := meta.get("scope")) is not None:
            if not isinstance(scope, str | int | float) or scope not in self._scopes:
                raise InputError(f"queries: {id!r} asks in the scope {scope!r}, and no document has that scope")
            return Eq("scope", scope)
        if (haystack := meta.get("haystack")) is not None:
            if not isinstance(haystack, list):
                raise InputError(f"queries: the haystack of {id!r} is not a list of document ids")
            ids = tuple(sorted(set(map(str, haystack))))
            if self._known.isdisjoint(ids):
                raise InputError(f"queries: {id!r} asks in a haystack of {len(ids):,} ids, and no document has one")
            return In("id", ids)
        return None

    def judgements(self) -> dict[str, Path]:
        """Split → file."""
        if not self._path.is_dir():
            raise NotFoundError(f"dataset: there is no folder {str(self._path)!r}; give one in BEIR layout, or 'demo'")
        found: dict[str, Path] = {}
        for ending in (".tsv", ".tsv.gz"):  # as with the other files, the plain one is taken where there are both
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
            query, document, said = (part.strip() for part in fields)
            grade = _grade(said, file, number)
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
            told = f"{file.name}: {len(unknown):,} judgements are of ids that are not in the set ({unknown[0]})"
            if not self._drop_unknown:
                raise InputError(f"{told}; mend the file, or pass over them with --drop-unknown")
            self._notes.append(f"{told}: passed over")
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
            except (ValueError, RecursionError) as error:  # a number of 5,000 digits is the one, a deep list the other
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


def _grade(said: str, file: Path, number: int) -> int:
    try:
        grade = float(said)
    except ValueError:
        grade = math.nan
    if not math.isfinite(grade) or grade != int(grade):
        raise InputError(f"{file.name}, line {number}: the grade {said!r} is not a whole number")
    if abs(grade) > MAX_GRADE:
        raise InputError(
            f"{file.name}, line {number}: the grade {said!r} is out of range; allowed: up to {MAX_GRADE:,}"
        )
    return int(grade)


def _moment(said: Any) -> str | None:
    """A time the engine understands; anything else in that field is only metadata."""
    try:
        return datetime.fromisoformat(said).isoformat() if isinstance(said, str) else None
    except ValueError:
        return None


def _says_nothing_answers(meta: Mapping[str, Any]) -> bool:
    return meta.get("abstention") is True or meta.get("type") in UNANSWERABLE_TYPES


# --- the set that ships -----------------------------------------------------------------------------------------------


def _demo(split: str, scoped: bool) -> Dataset:
    from trivet.data import notes, questions

    documents, asked = notes(), [item for item in questions() if item["split"] == split]
    if not asked:
        raise NotFoundError(f"split: demo has no {split!r}; it has: test, train")
    topics = {
        item["id"]: Topic(item["id"], item["text"], item["type"], parse_filter(item.get("where")) if scoped else None)
        for item in asked
    }
    qrels = {item["id"]: item["relevant"] for item in asked if item["relevant"]}
    return Dataset(
        name=DEMO,
        split=split,
        documents=documents,
        topics=tuple(topics[id] for id in qrels),
        qrels=qrels,
        digest=_digest(json.dumps([documents, asked, scoped], sort_keys=True)),
        unanswerable=tuple(topic for id, topic in topics.items() if id not in qrels),
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
