"""Test collections that do not fit are refused in one line by every evaluation command."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Beir = Callable[..., Path]

DOCUMENTS = [{"_id": "a", "text": "the alarms stayed silent"}, {"_id": "b", "text": "the bells rang"}]
QUERIES = [{"_id": "1", "text": "silent alarms"}, {"_id": "2", "text": "ringing bells"}]
QRELS = ["1\ta\t1", "2\tb\t1"]

COMMANDS = {
    "eval": ["--fast"],
    "compare": ["--alpha", "0"],
    "sweep": ["--over", "alpha=0,1"],
    "gate": ["--against", "x.json", "--write"],
    "tune": [],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("documents", "queries", "qrels", "flags", "told"),
    [
        (DOCUMENTS, QUERIES, [*QRELS, "1\tz\t1"], [], "test.tsv: judgements of unknown ids: 1 "
         "(line 4 names the document 'z'); correct the file, or leave them out with --drop-unknown"),
        (DOCUMENTS, QUERIES, [*QRELS, "9\ta\t1"], [], "(line 4 names the query '9')"),
        (DOCUMENTS, QUERIES, QRELS, ["--stratum", "nope"], "stratum: tiny has no topic of 'nope'; it has: 'all'"),
        (DOCUMENTS, QUERIES, QRELS, ["--without", "all"], "stratum: no topic of tiny is left"),
        ([*DOCUMENTS, DOCUMENTS[0]], QUERIES, QRELS, [], "corpus.jsonl, line 3: the id 'a' was given in line 1"),
        (DOCUMENTS, [*QUERIES, QUERIES[0]], QRELS, [], "queries.jsonl, line 3: the id '1' was given in line 1"),
        ([*DOCUMENTS, "{broken"], QUERIES, QRELS, [], "corpus.jsonl, line 3: not JSON"),
        (DOCUMENTS, [QUERIES[0], "[1]", QUERIES[1]], QRELS, [], "queries.jsonl, line 2: expected an object"),
        (DOCUMENTS, QUERIES, ["1\ta\t1", "2\tb"], [], "test.tsv, line 3: expected query, document and grade"),
        (DOCUMENTS, QUERIES, ["1\ta\tvery"], [], "test.tsv, line 2: the grade 'very' is not a whole number"),
        (DOCUMENTS, QUERIES, [*QRELS, "1\ta\t0"], [], "test.tsv, line 4: '1' and 'a'"),
        (DOCUMENTS, QUERIES, ["1\ta\t0"], [], "has a judgement above 0 in the split 'test'"),
        ([], QUERIES, QRELS, [], "corpus.jsonl: the file has no document"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_in_one_line(
    cli, beir: Beir, command: str, documents: list[Any], queries: list[Any], qrels: list[str], flags: list[str],
    told: str,
) -> None:  # fmt: skip
    ran = cli(command, beir(documents, queries, qrels), *COMMANDS[command], *flags)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.startswith("trivet: ")
    assert ran.err.count("\n") == 1


def test_unknown_ids_are_passed_over_on_request(cli, beir: Beir) -> None:
    ran = cli("eval", beir(DOCUMENTS, QUERIES, [*QRELS, "1\tz\t1"]), "--drop-unknown")
    assert ran.code == 0
    assert "note: test.tsv: judgements of unknown ids: 1" in ran.out
    assert "left out" in ran.out


def test_a_query_without_judgements_is_not_asked_and_told(cli, beir: Beir) -> None:
    folder = beir(DOCUMENTS, [*QUERIES, {"_id": "3", "text": "what else"}], QRELS)
    ran = cli("eval", folder)
    assert ran.code == 0
    assert "2 topics, 2 documents" in ran.out
    note = "note: queries without a judgement above 0 in 'test', left out: 1 of 3"
    assert note in ran.out
    (found,) = cli("eval", folder, "--json").json["evaluations"]
    assert set(found["scores"]["nDCG@10"]) == {"1", "2"}
    assert (
        "note: queries without a judgement above 0 in 'test', left out: 1 of 3"
        in cli("sweep", folder, "--over", "alpha=0,1").out
    )
    assert (
        "note: queries without a judgement above 0 in 'test', left out: 1 of 3"
        in cli("compare", folder, "--alpha", "0").out
    )


def test_what_nothing_answers_is_asked_apart(cli, beir: Beir) -> None:
    nothing = {"_id": "3", "text": "silent bells", "metadata": {"type": "unanswerable"}}
    folder = beir(DOCUMENTS, [*QUERIES, nothing], QRELS)
    ran = cli("eval", folder)
    (line,) = (line for line in ran.out.splitlines() if "though nothing is relevant" in line)
    assert line.split()[-3:] == ["1", "of", "1"]
    strict = cli("eval", folder, "--set", "min_relevance=1.0", "-m", "nDCG@10").out
    (line,) = (line for line in strict.splitlines() if "though nothing is relevant" in line)
    assert line.split()[-3:] == ["0", "of", "1"]


def test_a_gzipped_set_and_its_splits(cli, beir: Beir) -> None:
    folder = beir(DOCUMENTS, QUERIES, QRELS[:1], split="train")
    for file in ("corpus", "queries"):
        path = folder / f"{file}.jsonl"
        (folder / f"{file}.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    ran = cli("eval", folder)
    assert ran.code == 1
    assert "has no judgements for 'test'; it has: 'train'" in ran.err
    ran = cli("eval", folder, "--split", "train")
    assert "tiny/train#" in ran.out
    assert "1 topic, 2 documents" in ran.out


def test_scopes(cli, beir: Beir) -> None:
    documents = [{**item, "metadata": {"scope": name}} for item, name in zip(DOCUMENTS, "xy", strict=True)]
    queries = [{**item, "metadata": {"scope": name}} for item, name in zip(QUERIES, "xy", strict=True)]
    folder = beir(documents, queries, QRELS)
    scoped, free = (cli("eval", folder, "--json", *flag).json for flag in ((), ("--unscoped",)))
    assert scoped["dataset"] != free["dataset"]
    assert [len(item["ids"]) for item in scoped["evaluations"][0]["answers"]] == [1, 1]
    assert max(len(item["ids"]) for item in free["evaluations"][0]["answers"]) == 2


def test_vectors_are_made_once(cli, beir: Beir, clean_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trivet.models.embedders.hashing import Hashing

    folder = beir(DOCUMENTS, QUERIES, QRELS)
    asked = ("eval", folder, "--cache", "mine", "--fast")
    assert cli(*asked).code == 0
    assert (clean_place / "mine" / "vectors.db").exists()

    def never(self: object, texts: list[str]) -> None:
        raise AssertionError(texts)

    monkeypatch.setattr(Hashing, "embed_passages", never)
    monkeypatch.setattr(Hashing, "embed_queries", never)
    assert cli(*asked).code == 0


def test_a_cache_that_cannot_be_used(cli, beir: Beir, clean_place: Path) -> None:
    (clean_place / "file").write_text("")
    ran = cli("eval", beir(DOCUMENTS, QUERIES, QRELS), "--cache", "file")
    assert (ran.code, ran.out) == (1, "")
    assert "cache: file cannot be used" in ran.err
    assert ran.err.count("\n") == 1
