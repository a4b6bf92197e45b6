"""How well questions in six languages find their documents (`make languages`; needs the extra `multilingual`).

The documents and questions are those of `benchmarks/languages/`. The page is `docs/evidence/languages.md`.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import trivet
from trivet.evaluate.evaluation import made

HERE = Path(__file__).parent
SET, RESULTS, PAGE = HERE / "languages", HERE / "results", HERE.parent / "docs/evidence/languages.md"
LANGUAGES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish", "zh": "Chinese", "ja": "Japanese"}
FORMS, CROSS = "forms", "cross"
SETS = LANGUAGES | {FORMS: "German, other forms", CROSS: "across languages"}
#: Way -> the embedder, the language if not that of the documents, and settings.
WAYS: Mapping[str, tuple[str, str | None, Mapping[str, Any]]] = {
    "words, `language` left at `en`": ("none", "en", {}),
    "words as written": ("none", None, {"understanding": "plain"}),
    "words": ("none", None, {}),
    "built-in": ("builtin", None, {}),
    "multilingual": ("multilingual", None, {}),
    "multilingual, `alpha=0.8`": ("multilingual", None, {"alpha": 0.8}),
}

HEAD = """# Languages

Made by `make languages` (`benchmarks/languages.py`); do not edit. Commit `{commit}`, `benchmarks/results/{file}`.

Six languages with 8 documents and 6 questions each, 12 German queries in other forms than the documents', and 6
questions in another language than the document, asked of all 48. All are our own (`benchmarks/languages/README.md`). A
cell has the mean reciprocal rank of the right document in the default profile, and how many questions have it first.
The sets are tiny: one question of six is .17.

| | {ways} |
|---|{lines}
"""
FOOT = """
*Words as written* replaces no word that no document has; *words* replaces it by a similar word, in German also by
another form or by the parts of a compound. *Built-in* and *multilingual* are words and meaning together. Collections
have the language of their documents, across languages `none`. There, words find texts in the language of the question
only and push the right one down: `alpha=0.8` gives meaning most of the weight. It was chosen after .8 and 1 had
been tried on these six questions, so expect less elsewhere.
"""


def read(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of the set."""
    with (SET / f"{name}.tsv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def collection_of(name: str) -> tuple[str, list[dict[str, str]]]:
    """Return the language and the documents that the questions of a set are asked of."""
    if name == CROSS:
        return "none", read("documents")
    language = "de" if name == FORMS else name
    return language, [row for row in read("documents") if row["language"] == language]


def ranks(name: str, way: str) -> list[int]:
    """Return the rank of the right document for each question of a set; 0 where it is not found."""
    embedder, language, settings = WAYS[way]
    own, documents = collection_of(name)
    with trivet.open(":memory:", embedder=embedder, language=language or own) as memory:
        memory.add([{"id": row["id"], "text": row["text"]} for row in documents])
        memory.wait()
        asked = [row for row in read("questions") if row["set"] == name]
        return [rank([hit.id for hit in memory.search(row["question"], **settings)], row["document"]) for row in asked]


def rank(found: Sequence[str], wanted: str) -> int:
    """Return the rank of a document from 1; 0 where it is not among them."""
    return found.index(wanted) + 1 if wanted in found else 0


def cell(found: Sequence[int]) -> str:
    """Return the mean reciprocal rank, and how many are first."""
    mean = sum(1 / place for place in found if place) / len(found)
    return f"{mean:.2f} ({found.count(1)} of {len(found)})"


def page(found: dict[str, Any], file: str) -> str:
    """Return the page."""
    head = HEAD.format(commit=found["made"]["commit"], file=file, ways=" | ".join(WAYS), lines="---|" * len(WAYS))
    rows = (
        f"| {SETS[name]} | {' | '.join(cell(ranks[way]) for way in WAYS)} |" for name, ranks in found["ranks"].items()
    )
    return head + "\n".join(rows) + "\n" + FOOT


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    report = {"made": made(), "ranks": {name: {way: ranks(name, way) for way in WAYS} for name in SETS}}
    for old in RESULTS.glob("languages-*.json"):
        old.unlink()
    target = RESULTS / f"languages-{report['made']['commit'].rstrip('+')}.json"
    target.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(report, target.name), encoding="utf-8")
    print(page(report, target.name))


if __name__ == "__main__":
    main()
