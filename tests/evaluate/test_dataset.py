from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hand_sets import CORPUS, QRELS, QUERIES, WriteSet

from trivet.errors import InputError, NotFoundError
from trivet.evaluate import Dataset, load, splits
from trivet.filters import And, Eq, In

TSV = "query-id\tcorpus-id\tscore\n"


def told(folder: Path, error: type[Exception] = InputError, **options: Any) -> str:
    """What loading it is refused with."""
    with pytest.raises(error) as refused:
        load(folder, **options)
    return str(refused.value)


# ---- the layouts


def test_a_folder_in_beir_layout(write_set: WriteSet) -> None:
    found = load(write_set())
    assert (found.name, found.split, found.notes) == ("kitchen", "test", ())
    assert [document["id"] for document in found.documents] == ["d1", "d2", "d3"]
    assert found.documents[0]["title"] == "Kettle" and found.documents[2]["title"] == ""
    assert [(topic.id, topic.text, topic.stratum) for topic in found.topics] == [
        ("q1", "when does the kettle boil", "all"),
        ("q2", "who mends the gate", "all"),
    ]
    assert found.qrels == {"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 1}}
    assert found.identity == f"kitchen/test#{found.digest}"


def test_gzipped_is_the_same_set_with_the_same_digest(write_set: WriteSet) -> None:
    plain, zipped = load(write_set("a")), load(write_set("b", zipped=True))
    assert plain.digest == zipped.digest
    assert (plain.documents, plain.topics, plain.qrels) == (zipped.documents, zipped.topics, zipped.qrels)


@pytest.mark.parametrize("zipped", [False, True])
def test_flat_judgements(write_set: WriteSet, zipped: bool) -> None:
    more = {"qrels.tsv": QRELS, "qrels_dev.tsv": f"{TSV}q2\td1\t1\n"}
    folder = write_set(qrels=None, more=more, zipped=zipped)
    assert splits(folder) == ["dev", "test"]
    assert load(folder).qrels["q1"] == {"d1": 2, "d2": 1}
    dev = load(folder, "dev")
    assert (dev.qrels, dev.split) == ({"q2": {"d1": 1}}, "dev")
    assert dev.notes == ("queries without a judgement above 0 in 'dev', left out: 1 of 2",)


def test_a_folder_of_judgements_has_a_file_a_split(write_set: WriteSet) -> None:
    folder = write_set(more={"qrels/train.tsv": f"{TSV}q2\td2\t1\n"})
    assert splits(folder) == ["test", "train"]
    assert load(folder, "train").qrels == {"q2": {"d2": 1}}


def test_only_judgements_are_taken_for_judgements(write_set: WriteSet) -> None:
    strange = {"qrels/test.tsv.bak": "x", "qrels/dev.tsv~": "x", "qrelsdev.tsv": "x", "qrels.tsv.old": "x"}
    assert splits(write_set(more=strange)) == ["test"]


def test_of_a_plain_and_a_gzipped_file_the_plain_one_is_read(write_set: WriteSet) -> None:
    folder = write_set()
    other = gzip.compress(f"{TSV}q1\td3\t1\n".encode())
    (folder / "qrels" / "test.tsv.gz").write_bytes(other)
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(b"{}"))
    assert load(folder).qrels["q1"] == {"d1": 2, "d2": 1}


@pytest.mark.parametrize(
    "qrels",
    [
        "q1\td1\t2\nq1\td2\t1\nq2\td3\t1\n",  # no header
        "q1 0 d1 2\nq1 0 d2 1\nq2 0 d3 1\n",  # TREC
        "q1\t0\td1\t2\nq1\tQ0\td2\t1\nq2\t0\td3\t1\n",  # TREC with tabs
        QRELS.replace("\n", "\r\n"),
        "\ufeff" + QRELS,
        "\n\n" + QRELS.replace("\n", "\n\n") + "  \n",
        QRELS.replace("\t2\n", "\t2.0\n"),
        QRELS.replace("score", "Relevance"),
        QRELS.rstrip("\n"),
    ],
    ids=["no header", "trec", "trec tabs", "crlf", "bom", "blank lines", "2.0", "other header", "no last newline"],
)
def test_every_way_to_write_judgements(write_set: WriteSet, qrels: str) -> None:
    assert load(write_set(qrels=qrels)).qrels == {"q1": {"d1": 2, "d2": 1}, "q2": {"d3": 1}}


def test_crlf_bom_and_blank_lines_in_the_records(write_set: WriteSet) -> None:
    def odd(records: tuple[dict[str, str], ...]) -> str:
        return "\ufeff" + "\r\n\r\n".join(json.dumps(record) for record in records) + "\r\n"

    found = load(write_set(corpus=odd(CORPUS), queries=odd(QUERIES)))
    assert [document["text"] for document in found.documents] == [record["text"] for record in CORPUS]
    assert [topic.text for topic in found.topics] == [record["text"] for record in QUERIES]


def test_ids_may_hold_blanks_where_tabs_part_the_fields(write_set: WriteSet) -> None:
    corpus = [{"_id": "Theodred II (Bishop)", "text": "a bishop"}]
    folder = write_set(corpus=corpus, queries=QUERIES[:1], qrels="q1\tTheodred II (Bishop)\t1\n")
    assert load(folder).qrels == {"q1": {"Theodred II (Bishop)": 1}}


def test_whole_numbers_are_ids_too(write_set: WriteSet) -> None:
    folder = write_set(corpus=[{"_id": 7, "text": "x"}], queries=[{"id": 1, "text": "y"}], qrels="1\t7\t1\n")
    found = load(folder)
    assert (found.documents[0]["id"], found.topics[0].id, found.qrels) == ("7", "1", {"1": {"7": 1}})


def test_u2028_is_no_line_end(write_set: WriteSet) -> None:
    corpus = '{"_id": "d1", "text": "one\u2028two\x85three"}\n{"_id": "d2", "text": "x"}\n{"_id": "d3", "text": "x"}\n'
    assert load(write_set(corpus=corpus)).documents[0]["text"] == "one\u2028two\x85three"


# ---- strata, scopes, moments


def in_rooms(write_set: WriteSet, *queries: dict[str, Any], **options: Any) -> Dataset:
    corpus = [
        {"_id": "d1", "text": "one", "metadata": {"scope": "red", "timestamp": "2024-05-01T10:00:00Z"}},
        {"_id": "d2", "text": "two", "metadata": {"scope": ["blue", 7]}},
        {"_id": "d3", "text": "three", "metadata": {"timestamp": "last spring"}},
    ]
    asked = [{"_id": f"q{at}", "text": f"question {at}", "metadata": meta} for at, meta in enumerate(queries)]
    qrels = "".join(f"q{at}\td1\t1\n" for at in range(len(queries)))
    return load(write_set(corpus=corpus, queries=asked, qrels=qrels), **options)


def test_a_scope_becomes_a_filter(write_set: WriteSet) -> None:
    found = in_rooms(write_set, {"scope": "red"}, {"scope": "blue"}, {"scope": 7}, {})
    assert [topic.where for topic in found.topics] == [Eq("scope", "red"), Eq("scope", "blue"), Eq("scope", 7), None]


def test_a_haystack_becomes_a_filter_on_ids(write_set: WriteSet) -> None:
    found = in_rooms(write_set, {"haystack": ["d2", "d1", "d2", "gone"]})
    assert found.topics[0].where == In("id", ("d1", "d2", "gone"))


def test_unscoped_asks_everything_and_is_another_set(write_set: WriteSet) -> None:
    scoped = in_rooms(write_set, {"scope": "red"}, {"haystack": ["d1"]})
    unscoped = in_rooms(write_set, {"scope": "red"}, {"haystack": ["d1"]}, scoped=False)
    assert [topic.where for topic in unscoped.topics] == [None, None]
    assert scoped.digest != unscoped.digest


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        ({"scope": "green"}, "'q0' has the scope 'green', and no document has that scope"),
        ({"scope": "7"}, "no document has that scope"),  # the document's is a number
        ({"scope": ["red"]}, "no document has that scope"),
        ({"haystack": "d1"}, "the haystack of 'q0' is not a list of document ids"),
        ({"haystack": {}}, "the haystack of 'q0' is not a list of document ids"),
        ({"haystack": []}, r"the haystack of 'q0' \(ids in it: 0\)"),
        ({"haystack": ["x", "y"]}, r"the haystack of 'q0' \(ids in it: 2\)"),
    ],
)
def test_a_scope_with_nothing_in_it(write_set: WriteSet, meta: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        in_rooms(write_set, meta)
    assert in_rooms(write_set, meta, scoped=False).topics[0].where is None


def test_strata_are_the_queries_types(write_set: WriteSet) -> None:
    found = in_rooms(write_set, {"type": "hop"}, {"type": "date"}, {}, {"type": "hop"}, {"type": 3})
    assert found.strata == {"hop": 2, "date": 1, "all": 1, "3": 1}
    assert next(iter(found.strata)) == "hop"
    assert [topic.id for topic in found.only(["hop"]).topics] == ["q0", "q3"]
    assert [topic.id for topic in found.only(without=["hop", "all"]).topics] == ["q1", "q4"]
    assert set(found.only(["date"]).qrels) == {"q1"}
    assert found.only() is found


def test_strata_are_chosen_while_loading(write_set: WriteSet) -> None:
    found = in_rooms(write_set, {"type": "hop"}, {"type": "date"}, strata=["date"])
    assert [topic.id for topic in found.topics] == ["q1"]


@pytest.mark.parametrize("choice", [{"strata": ["hopp"]}, {"without": ["hopp"]}])
def test_an_unknown_stratum_is_refused_with_those_there_are(write_set: WriteSet, choice: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"has no topic of 'hopp'; it has: 'hop', 'date'"):
        in_rooms(write_set, {"type": "hop"}, {"type": "date"}, **choice)


def test_nothing_left_is_refused(write_set: WriteSet) -> None:
    found = in_rooms(write_set, {"type": "hop"}, {"type": "date"})
    with pytest.raises(InputError, match="no topic of kitchen is left"):
        found.only(["hop"], without=["hop"])
    with pytest.raises(InputError, match="none of these 2 ids is a topic of kitchen/test#"):
        found.sample(["x", "y"])


def test_the_same_topics_are_the_same_set_however_chosen(write_set: WriteSet) -> None:
    found = in_rooms(write_set, {"type": "hop"}, {"type": "date"}, {"type": "list"})
    chosen = [
        found.only(["hop", "date"]),
        found.only(["date", "hop"]),
        found.only(without=["list"]),
        found.sample(["q1", "q0"]),
        found.sample(["q0", "q1", "not there"]),
    ]
    assert {each.identity for each in chosen} == {chosen[0].identity}
    assert chosen[0].identity != found.identity
    assert found.only(["hop"]).identity != found.only(["date"]).identity
    assert found.sample(["q0", "q1", "q2"]) is found
    assert [topic.id for topic in found.sample(["q2", "q0"]).topics] == ["q0", "q2"]


def test_a_moment_is_taken_where_it_is_one(write_set: WriteSet) -> None:
    found = in_rooms(write_set, {"timestamp": "2024-06-01T08:00:00"}, {"timestamp": "soon"}, {"timestamp": 5})
    assert [topic.at for topic in found.topics] == ["2024-06-01T08:00:00", None, None]
    assert [document.get("created") for document in found.documents] == ["2024-05-01T10:00:00+00:00", None, None]
    assert found.documents[2]["meta"] == {"timestamp": "last spring"}


# ---- judgements


@pytest.mark.parametrize("meta", [{"abstention": True}, {"type": "abstention"}, {"type": "unanswerable"}])
def test_what_nothing_answers_is_kept_apart(write_set: WriteSet, meta: dict[str, Any]) -> None:
    queries = [*QUERIES, {"_id": "q3", "text": "who is the king", "metadata": meta}]
    found = load(write_set(queries=queries))
    assert [topic.id for topic in found.unanswerable] == ["q3"]
    assert {topic.id for topic in found.topics} == set(found.qrels) == {"q1", "q2"}
    assert found.notes == ()


def test_one_that_is_judged_to_have_an_answer_has_one(write_set: WriteSet) -> None:
    queries = [{**QUERIES[0], "metadata": {"abstention": True}}, QUERIES[1]]
    found = load(write_set(queries=queries))
    assert found.unanswerable == () and len(found.topics) == 2


def test_a_query_without_a_judgement_is_not_asked_and_counted(write_set: WriteSet) -> None:
    found = load(write_set(queries=[*QUERIES, {"_id": "q3", "text": "idle", "metadata": {"abstention": False}}]))
    assert {topic.id for topic in found.topics} == {"q1", "q2"} and found.unanswerable == ()
    assert found.notes == ("queries without a judgement above 0 in 'test', left out: 1 of 3",)


def test_grades_of_0_and_below_are_judgements_and_no_answers(write_set: WriteSet) -> None:
    found = load(write_set(qrels="q1\td1\t3\nq1\td2\t0\nq1\td3\t-1\nq2\td3\t0\nq2\td1\t-2\n"))
    assert found.qrels == {"q1": {"d1": 3, "d2": 0, "d3": -1}}
    assert found.notes == ("queries without a judgement above 0 in 'test', left out: 1 of 2",)


def test_nothing_but_grades_of_0(write_set: WriteSet) -> None:
    assert "no query of" in (reason := told(write_set(qrels="q1\td1\t0\nq2\td2\t0\n")))
    assert reason.endswith("has a judgement above 0 in the split 'test'")


def test_documents_without_text_count_as_missed(write_set: WriteSet) -> None:
    corpus = [*CORPUS[:2], {"_id": "d3", "text": " \n"}, {"_id": "d4", "text": "", "title": "titled"}]
    found = load(write_set(corpus=corpus))
    assert [document["id"] for document in found.documents] == ["d1", "d2", "d4"]
    assert found.qrels["q2"] == {"d3": 1}
    assert found.notes == ("documents without text, which no search can find and which count as missed: 1",)


UNKNOWN = "q1\td1\t1\nq9\td1\t1\nq1\td9\t1\nq2\td3\t1\n"


def test_judgements_of_unknown_ids_are_refused_with_the_first_line(write_set: WriteSet) -> None:
    reason = told(write_set(qrels=UNKNOWN))
    assert reason.startswith("test.tsv: judgements of unknown ids: 2 (line 2 names the query 'q9')")
    assert "line 1 names the document 'd9'" in told(write_set("b", qrels="q1\td9\t1\n"))


def test_or_passed_over_and_noted(write_set: WriteSet) -> None:
    found = load(write_set(qrels=UNKNOWN), drop_unknown=True)
    assert found.qrels == {"q1": {"d1": 1}, "q2": {"d3": 1}}
    assert [note for note in found.notes if "unknown ids: 2" in note and note.endswith("left out")]


# ---- what does not fit


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (
            {"corpus": [CORPUS[0], CORPUS[1], CORPUS[0]]},
            "corpus.jsonl, line 3: the id 'd1' was given in line 1 already",
        ),
        ({"corpus": [{"_id": 1, "text": "x"}, {"_id": "1", "text": "y"}]}, "line 2: the id '1' was given in line 1"),
        ({"queries": [*QUERIES, QUERIES[1]]}, "queries.jsonl, line 3: the id 'q2' was given in line 2 already"),
        (
            {"qrels": "q1\td1\t1\nq2\td3\t1\n\nq1\td1\t2\n"},
            "test.tsv, line 4: 'q1' and 'd1' were judged in line 1 already",
        ),
        ({"corpus": '{"_id": "d1", "text": "x"}\n\n{"_id": "d2", \n'}, "corpus.jsonl, line 3: not JSON"),
        ({"corpus": b'{"_id": "d1", "text": "x"}\n{"_id": "d2", "text": "\xff"}\n'}, "corpus.jsonl, line 2: not UTF-8"),
        ({"corpus": "[1]\n"}, "corpus.jsonl, line 1: expected an object with _id and text"),
        ({"corpus": "[" * 100_000}, "corpus.jsonl, line 1: not JSON"),
        ({"corpus": f'{{"_id": {"1" * 5_000}}}'}, "corpus.jsonl, line 1: not JSON"),
        ({"corpus": [{"text": "x"}]}, "corpus.jsonl, line 1: no _id"),
        ({"corpus": [{"_id": "", "text": "x"}]}, "corpus.jsonl, line 1: no _id"),
        ({"corpus": [{"_id": True, "text": "x"}]}, "corpus.jsonl, line 1: no _id"),
        ({"corpus": [{"_id": " ", "text": "x"}]}, "corpus.jsonl, line 1: _id: ' ' is not an id"),
        ({"corpus": [CORPUS[0], {"_id": "x" * 600, "text": "x"}]}, "corpus.jsonl, line 2: _id: 600 characters"),
        ({"queries": [QUERIES[0], {"_id": "a\0b", "text": "x"}]}, "queries.jsonl, line 2: _id: 'a"),
        ({"corpus": [{"_id": "d1"}]}, "corpus.jsonl, line 1: text is NoneType, not a string"),
        ({"corpus": [{"_id": "d1", "text": ["x"]}]}, "corpus.jsonl, line 1: text is list, not a string"),
        ({"corpus": [{"_id": "d1", "text": "x", "title": 5}]}, "corpus.jsonl, line 1: title is int, not a string"),
        ({"corpus": [{"_id": "d1", "text": "x", "metadata": [1]}]}, "corpus.jsonl, line 1: metadata is not an object"),
        ({"queries": [{"_id": "q1", "text": " "}]}, "queries.jsonl, line 1: query 'q1' is empty"),
        ({"corpus": ""}, "corpus.jsonl: the file has no document"),
        ({"corpus": [{"_id": "d1", "text": ""}]}, "corpus.jsonl: the file has no document"),
        ({"queries": "\n"}, "queries.jsonl: the file has no query"),
        ({"qrels": "q1\td1\n"}, "test.tsv, line 1: expected query, document and grade, got 'q1.td1'"),
        ({"qrels": f"{TSV}q1 d1 yes no maybe\n"}, "test.tsv, line 2: expected query, document and grade"),
        ({"qrels": f"{TSV}q1\td1\thigh\n"}, "test.tsv, line 2: the grade 'high' is not a whole number"),
        ({"qrels": f"{TSV}q1\td1\t0.5\n"}, "test.tsv, line 2: the grade '0.5' is not a whole number"),
        ({"qrels": f"{TSV}q1\td1\tnan\n"}, "test.tsv, line 2: the grade 'nan' is not a whole number"),
        ({"qrels": f"{TSV}q1\td1\t3000000000\n"}, "test.tsv, line 2: the grade '3000000000' is out of range"),
        ({"qrels": f"{TSV}q1\td1\t-1e9\n"}, "test.tsv, line 2: the grade '-1e9' is out of range"),
        ({"qrels": f"{TSV}q1\td1\t1\n{TSV}"}, "test.tsv, line 3: the grade 'score' is not a whole number"),
        ({"qrels": TSV}, "has a judgement above 0 in the split 'test'"),
    ],
)
def test_a_broken_set_is_refused_by_the_line(write_set: WriteSet, files: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        load(write_set(**files))


@pytest.mark.parametrize("gone", ["corpus", "queries"])
def test_a_missing_file_is_named(write_set: WriteSet, gone: str) -> None:
    folder = write_set(**{gone: None})
    assert told(folder, NotFoundError) == f"dataset: {folder} has neither {gone}.jsonl nor {gone}.jsonl.gz"


def test_a_missing_folder(tmp_path: Path) -> None:
    assert "there is no folder" in told(tmp_path / "nowhere", NotFoundError)
    with pytest.raises(NotFoundError, match="there is no folder"):
        splits(tmp_path / "nowhere")


def test_a_missing_split_lists_what_there_is(write_set: WriteSet) -> None:
    folder = write_set(more={"qrels/train.tsv": QRELS})
    assert told(folder, NotFoundError, split="dev").endswith("has no judgements for 'dev'; it has: 'test', 'train'")
    assert told(write_set("b", qrels=None), NotFoundError).endswith("has no judgements for 'test'; it has: nothing")
    assert "demo has no 'dev'; it has: test, train" in told(Path("demo"), NotFoundError, split="dev")


@pytest.mark.parametrize("harm", ["cut", "garbage", "flipped"])
def test_a_damaged_gzip(write_set: WriteSet, harm: str) -> None:
    folder = write_set(zipped=True, corpus=[{"_id": f"d{at}", "text": f"text {at * 7919}"} for at in range(500)])
    file = folder / "corpus.jsonl.gz"
    whole = file.read_bytes()
    broken = {"cut": whole[: len(whole) // 2], "garbage": b"not gzip at all", "flipped": whole[:30] + b"\xff" * 60}
    file.write_bytes(broken[harm])
    assert told(folder).startswith("corpus.jsonl.gz: cannot be read (")


def test_the_digest_follows_the_content(write_set: WriteSet) -> None:
    queries = [{**QUERIES[0], "text": "when does the kettle boil?"}, QUERIES[1]]
    changed = [
        write_set("b", corpus=[*CORPUS, {"_id": "d4", "text": "more"}]),
        write_set("c", queries=queries),
        write_set("d", qrels=QRELS.replace("\t2\n", "\t3\n")),
        write_set("e", queries=QUERIES[::-1]),
    ]
    digests = {load(folder).digest for folder in [write_set(), *changed]}
    assert len(digests) == 5
    assert load(write_set()).digest == load(write_set("copy")).digest


# ---- the set that ships


def test_the_demo_loads_both_splits() -> None:
    assert splits("demo") == ["test", "train"]
    test, train = load("demo"), load("demo", "train")
    assert (test.name, test.split, train.split) == ("demo", "test", "train")
    assert test.identity != train.identity
    assert test.documents == train.documents
    ids = {document["id"] for document in test.documents}
    for each in (test, train):
        assert each.topics and each.unanswerable and each.notes == ()
        assert {topic.id for topic in each.topics} == set(each.qrels)
        assert all(set(grades) <= ids and max(grades.values()) > 0 for grades in each.qrels.values())
        assert not {topic.id for topic in each.unanswerable} & set(each.qrels)


def test_the_demos_splits_are_disjoint() -> None:
    asked = [
        {(topic.id, topic.text) for topic in (*each.topics, *each.unanswerable)}
        for each in (load("demo"), load("demo", "train"))
    ]
    for part in (0, 1):
        assert not {pair[part] for pair in asked[0]} & {pair[part] for pair in asked[1]}


def test_the_demos_scopes_are_filters() -> None:
    scoped = [topic for topic in load("demo").topics if topic.where is not None]
    assert scoped and all(isinstance(topic.where, Eq | And) for topic in scoped)
    unscoped = load("demo", scoped=False)
    assert all(topic.where is None for topic in unscoped.topics)
    assert unscoped.digest != load("demo").digest


def test_the_demo_by_stratum() -> None:
    found = load("demo", strata=["exact", "typo"])
    assert set(found.strata) == {"exact", "typo"}
    assert sum(found.strata.values()) == len(found.topics) == len(found.qrels)
