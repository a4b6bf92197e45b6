"""The corpus that trivet and the peers share: documents, vectors, queries and exact results.

    python benchmarks/corpus.py --data ../shared/data 10k 89k 1M scifact

``corpus("89k")`` is a folder under ``benchmarks/cache`` that is written once and read by every engine in its own
process and environment: this module needs only numpy to read it. ``10k`` and ``89k`` are real documentation snippets
with vectors of the built-in model; ``1M`` adds generated ones (``mixing.py``): its times and sizes are meaningful, its
hits are not. ``generated-200k`` and ``generated-1M`` have such texts with vectors that are drawn, so that no model
embeds anything. Every document has one of a hundred ``shelf`` values and one of two halves, by a hash of its id:
filters to 1 % and 50 % that do not depend on the content. The expected results are exact: the fifty best by inner
product over all vectors, without a filter and with either.

``scifact`` has titles, abstracts, vectors, real queries and judgements instead.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent))

Floats = npt.NDArray[np.float32]
Document = dict[str, Any]  # id, title, text, meta: {site, kind, shelf, half}, all strings

CACHE = Path(__file__).parent / "cache"
SIZES = {"10k": 10_000, "89k": 88_956, "1M": 1_000_000}
GENERATED = {"generated-200k": 200_000, "generated-1M": 1_000_000}  # with vectors of ``mixing.clustered``
FILTERS: dict[str, dict[str, str]] = {"none": {}, "one_percent": {"shelf": "07"}, "half": {"half": "a"}}
KNOWN = (*SIZES, *GENERATED, "scifact")
SEED = 20260301
DIM = 384
ASKED, OTHERS = 300, 300  # questions that are measured; questions that only warm the process
DEPTH = 50  # of the exact answers
BLOCK = 20_000  # rows that are multiplied, or written, at once


@dataclass(frozen=True)
class Corpus:
    """A folder with documents.jsonl, vectors.npy (float16, unit length), questions.json and answers.json."""

    folder: Path
    most: int | None = None  # only so many of the documents

    def first(self, count: int) -> Corpus:
        """Return the corpus of the first documents; its exact answers are computed once."""
        return self if count == len(self) else Corpus(self.folder, count)

    @property
    def name(self) -> str:
        return self.folder.name.removeprefix("corpus-")

    def __len__(self) -> int:
        return len(self.vectors)

    def documents(self) -> Iterator[Document]:
        with (self.folder / "documents.jsonl").open(encoding="utf-8") as lines:
            for line in islice(lines, self.most):
                yield json.loads(line)

    @cached_property
    def vectors(self) -> npt.NDArray[np.float16]:
        """The vectors, memory-mapped."""
        found: npt.NDArray[np.float16] = np.load(self.folder / "vectors.npy", mmap_mode="r")
        return found[: self.most]

    def batches(self, size: int = 1000) -> Iterator[tuple[list[Document], Floats]]:
        """Yield documents with their float32 vectors in batches."""
        batch: list[Document] = []
        at = 0
        for document in self.documents():
            batch.append(document)
            if len(batch) == size:
                yield batch, self.vectors[at : at + size].astype(np.float32)
                at, batch = at + size, []
        if batch:
            yield batch, self.vectors[at : at + len(batch)].astype(np.float32)

    @cached_property
    def questions(self) -> list[dict[str, Any]]:
        """Ids and texts of the queries; the first ``ASKED`` are measured (``scifact``: all), the others warm up."""
        found: list[dict[str, Any]] = json.loads((self.folder / "questions.json").read_text())
        return found

    @cached_property
    def asked(self) -> Floats:
        """The unit vectors of the queries."""
        found: Floats = np.load(self.folder / "asked.npy")
        return found

    @cached_property
    def answers(self) -> dict[str, Any]:
        """By filter, for each measured query, the ids of the exact best; for ``scifact`` the judgements."""
        kept = self.folder / ("answers.json" if self.most is None else f"answers-{self.most}.json")
        if self.most is not None and not kept.exists():
            kept.write_text(json.dumps(exact(self, self.asked[:ASKED])))
        found: dict[str, Any] = json.loads(kept.read_text())
        return found


def corpus(size: str, data: Path | None = None) -> Corpus:
    """Return the shared corpus of that name; build it where it is not in the cache (``data`` holds the datasets)."""
    made = Corpus(CACHE / f"corpus-{size}")
    if not made.folder.exists():
        if data is None:
            raise SystemExit(f"corpus: {size} is not made yet; run python benchmarks/corpus.py --data DATA {size}")
        _make(size, data, made.folder)
    return made


def whole(document: Document) -> str:
    """Return title and text as one, as it was embedded: for engines without titles."""
    return f"{document['title']}\n{document['text']}" if document["title"] else str(document["text"])


def shelved(id: str) -> dict[str, str]:
    """Return the shelf and the half of a document, by its id alone."""
    number = int.from_bytes(blake2b(id.encode(), digest_size=4).digest(), "big")
    return {"shelf": f"{number % 100:02d}", "half": "ab"[number // 100 % 2]}


def allowed(meta: dict[str, str], where: dict[str, str]) -> bool:
    return all(meta[field] == value for field, value in where.items())


# --- making it, once --------------------------------------------------------------------------------------------------


def _make(size: str, data: Path, folder: Path) -> None:
    """Build a corpus under a temporary name and rename it, so that it is complete or not there."""
    if size not in KNOWN:
        raise SystemExit(f"corpus: {size!r} is unknown; known: {', '.join(KNOWN)}")
    making = folder.with_name(f"{folder.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    if size == "scifact":
        _scifact(data / "scifact", making)
    elif size in GENERATED:
        _generated(GENERATED[size], data / "docs_snippets", making)
    else:
        _snippets(SIZES[size], data / "docs_snippets", making)
    making.rename(folder)


def _snippets(size: int, data: Path, folder: Path) -> None:
    import snippets

    real = [_placed(document) for document in snippets.documents(data)]
    rows = snippets.vectors(data)
    few = sorted(random.Random(SEED).sample(range(len(real)), SIZES["10k"]))
    if size < len(real):
        chosen = [real[at] for at in few]
        _write(folder, size, ((document, rows[at]) for document, at in zip(chosen, few, strict=True)))
    else:
        _write(folder, size, _with_more(real, rows, size))
    # out of the smallest one's documents: the same questions for every size
    texts = [text for _, text in _questions([real[at]["text"] for at in few], ASKED + OTHERS)]
    vectors = _embedded(texts)
    _ask(folder, [{"id": str(at), "text": text} for at, text in enumerate(texts)], vectors)
    made = Corpus(folder)
    (folder / "answers.json").write_text(json.dumps(exact(made, vectors[:ASKED])))


def _generated(size: int, data: Path, folder: Path) -> None:
    """Write the snippets with vectors that are drawn, and queries near to the vectors of some of them."""
    import snippets
    from mixing import clustered, moved

    real = [_placed(document) for document in snippets.documents(data)]
    sites = sorted({document["meta"]["site"] for document in real})
    groups = np.array([sites.index(document["meta"]["site"]) for document in real])
    rows = clustered(groups, [SEED, 0])
    _write(folder, size, _with_more(real, rows, size))
    asked = _questions([item["text"] for item in real], ASKED + OTHERS)
    vectors = moved(rows, np.array([origin for origin, _ in asked]), [SEED, 1])
    _ask(folder, [{"id": str(at), "text": text} for at, (_, text) in enumerate(asked)], vectors)
    (folder / "answers.json").write_text(json.dumps(exact(Corpus(folder), vectors[:ASKED])))


def _with_more(real: list[Document], rows: Floats, size: int) -> Iterator[tuple[Document, Floats]]:
    from mixing import Mixer, moved

    yield from zip(real, rows, strict=True)
    mixer = Mixer([item["text"] for item in real], [item["title"] for item in real], SEED)
    made = mixer.snippets(size - len(real))
    for at in range(len(real), size, BLOCK):
        batch = [next(made) for _ in range(min(BLOCK, size - at))]
        vectors = moved(rows, np.array([item.origin for item in batch]), [SEED, at])
        for offset, (item, vector) in enumerate(zip(batch, vectors, strict=True)):
            meta = real[item.origin]["meta"]
            document = {"id": f"made:{at + offset}", "title": item.title, "text": item.text, "meta": meta}
            yield _placed(document), vector


def _placed(document: Document) -> Document:
    """Return a document with flat metadata that every engine can store, its shelf and its half."""
    meta = {key: str(document["meta"].get(key) or "") for key in ("site", "kind")}
    return {**document, "meta": meta | shelved(document["id"])}


def _write(folder: Path, size: int, given: Iterator[tuple[Document, Floats]]) -> None:
    rows = np.lib.format.open_memmap(folder / "vectors.npy", mode="w+", dtype=np.float16, shape=(size, DIM))
    with (folder / "documents.jsonl").open("w", encoding="utf-8") as lines:
        for at, (document, vector) in enumerate(given):
            lines.write(json.dumps(document, ensure_ascii=False) + "\n")
            rows[at] = vector
    rows.flush()


def _questions(texts: list[str], count: int) -> list[tuple[int, str]]:
    """Return queries, each eight consecutive words of a random document, with the number of the document."""
    chance = random.Random(SEED)
    found: list[tuple[int, str]] = []
    while len(found) < count:
        origin = chance.choice(range(len(texts)))
        words = re.findall(r"[A-Za-z][A-Za-z'-]+", texts[origin])
        if len(words) >= 12:
            at = chance.randrange(len(words) - 8)
            found.append((origin, " ".join(words[at : at + 8])))
    return found


def _embedded(texts: list[str]) -> Floats:
    from trivet.models.embedders import load_embedder

    embedder = load_embedder("builtin")
    assert embedder is not None
    found: Floats = np.asarray(embedder.embed_queries(texts), dtype=np.float32)
    return found


def _ask(folder: Path, questions: list[dict[str, Any]], vectors: Floats) -> None:
    (folder / "questions.json").write_text(json.dumps(questions, ensure_ascii=False))
    np.save(folder / "asked.npy", vectors)


def exact(made: Corpus, asked: Floats, depth: int = DEPTH) -> dict[str, list[list[str]]]:
    """Return by filter, for each query, the ids of the ``depth`` best documents, by computing every product."""
    ids: list[str] = []
    permitted: dict[str, list[bool]] = {name: [] for name in FILTERS}
    for document in made.documents():
        ids.append(document["id"])
        for name, where in FILTERS.items():
            permitted[name].append(allowed(document["meta"], where))
    best = {name: (np.empty((len(asked), 0), np.float32), np.empty((len(asked), 0), np.int64)) for name in FILTERS}
    for start in range(0, len(made), BLOCK):
        products = asked @ made.vectors[start : start + BLOCK].astype(np.float32).T
        for name in FILTERS:
            within = np.flatnonzero(permitted[name][start : start + BLOCK])
            scores = np.concatenate([best[name][0], products[:, within]], axis=1)
            places = np.broadcast_to(within + start, (len(asked), len(within)))
            numbers = np.concatenate([best[name][1], places], axis=1)
            order = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
            best[name] = np.take_along_axis(scores, order, 1), np.take_along_axis(numbers, order, 1)
    return {name: [[ids[at] for at in row] for row in numbers.tolist()] for name, (_, numbers) in best.items()}


def _scifact(data: Path, folder: Path) -> None:
    from trivet.evaluate.vectors import CachedEmbedder
    from trivet.models.embedders import load_embedder

    inner = load_embedder("builtin")
    assert inner is not None
    embedder = CachedEmbedder(inner, CACHE)
    documents = [
        {"id": item["_id"], "title": item["title"], "text": item["text"], "meta": {}}
        for item in _lines(data / "corpus.jsonl.gz")
    ]
    rows = np.asarray(embedder.embed_passages([whole(item) for item in documents]), dtype=np.float32)
    _write(folder, len(documents), zip(map(_placed, documents), rows, strict=True))
    judged: dict[str, dict[str, int]] = {}
    with gzip.open(data / "qrels.tsv.gz", "rt", encoding="utf-8") as lines:
        for topic, document, grade in (line.split() for line in lines if line.rstrip()[-1:].isdigit()):
            judged.setdefault(topic, {})[document] = int(grade)
    questions = [
        {"id": item["_id"], "text": item["text"]} for item in _lines(data / "queries.jsonl.gz") if item["_id"] in judged
    ]
    _ask(folder, questions, np.asarray(embedder.embed_queries([item["text"] for item in questions]), np.float32))
    (folder / "answers.json").write_text(json.dumps({"judged": judged}))


def _lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def main(tell: Callable[[str], None] = print) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="+", choices=KNOWN, help="which to make")
    parser.add_argument("--data", type=Path, required=True, help="the folder with docs_snippets and scifact")
    args = parser.parse_args()
    for size in args.sizes:
        made = corpus(size, args.data)
        tell(f"{size}: {len(made):,} documents, {len(made.questions)} questions in {made.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
