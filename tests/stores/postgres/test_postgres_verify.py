"""``verify`` compares words, counts, postings, vectors and graph with the documents; ``rebuild`` mends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import trivet
from servers import Postgres
from trivet.engine import Engine
from trivet.stores.indexes import graph_index
from trivet.stores.postgres import postings
from trivet.stores.postgres.tables import BY_DOCUMENT

from .conftest import rows


@pytest.fixture(params=["collections", "documents"])
def packed(request: pytest.FixtureRequest, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A store whose postings are made from 20 passages on, with some passages that were deleted later."""
    monkeypatch.setattr(postings, "PACK_FROM", 20)
    monkeypatch.setattr(graph_index, "TAIL_LIMIT", 10)
    with trivet.open(postgres.fresh(distribute=request.param), embedder="hashing:32") as memory:
        animals = ("heron", "otter", "lynx")
        memory.add(
            [
                {"id": f"d{n}", "title": f"Note {n}", "text": f"{animals[n % 3]} of Willow House, it's q{n}x q{n}x c++"}
                for n in range(120)
            ]
        )
        memory.wait()
        memory._collection.maintenance.update(graph=True)
        memory.delete(["d3", "d4"])
        memory.add("written later at Cedar House", id="late")
        memory.wait()
        yield memory
    postgres.sweep()


def change(memory: Engine, sql: str, *values: Any) -> None:
    """Run a statement that names the tables of this collection as ``{passages}``."""
    tables = memory._collection.rows.tables  # type: ignore[attr-defined]
    sql = sql.format(**{name: tables.name_of(name) for name in BY_DOCUMENT})
    with memory._store.database.write() as connection:  # type: ignore[attr-defined]
        connection.execute("SET LOCAL session_replication_role = replica")  # a damaged server keeps no foreign keys
        assert connection.execute(sql, values or None).rowcount


def test_a_sound_store_has_no_problems(packed: Engine) -> None:
    assert rows(packed, "SELECT count(*) FROM segments")[0][0]
    assert packed.verify().problems == ()


SOME = "(SELECT cid, pid FROM {passages} WHERE body LIKE '%q7x%')"
CASES: dict[str, tuple[str, str]] = {
    "lexicon": ("UPDATE lexicon SET passages = passages + 1 WHERE term = 'heron'", "lexicon: the counts of 'heron'"),
    "lexicon term missing": ("DELETE FROM lexicon WHERE term = 'q7x'", "lexicon: the counts of 'q7x'"),
    "posting missing": ("DELETE FROM {postings} WHERE term = 'q7x'", "postings: passages have other terms"),
    "postings of another word": (
        "UPDATE {postings} SET term = 'q7y' WHERE term = 'q7x'",
        "postings: passages have other terms than their words (document 'd7')",
    ),
    "entries wrong": (
        "UPDATE {postings} SET entries = set_byte(entries, 9, 7) WHERE term = 'q7x'",
        "postings: passages have other terms",
    ),
    "words of another text": (
        f"UPDATE {{passages}} SET words = '''other'':1'::tsvector WHERE (cid, pid) IN {SOME}",
        "lexical: passages have other terms than their text (document 'd7')",
    ),
    "length": (
        f"UPDATE {{passages}} SET length = length + 5 WHERE (cid, pid) IN {SOME}",
        "lexical: passages have other terms",
    ),
    "body": (
        f"UPDATE {{passages}} SET body = 'Note 7' || chr(10) || 'heron' WHERE (cid, pid) IN {SOME}",
        "lexical: passages have other terms than their text (document 'd7')",
    ),
    "every posting": ("DELETE FROM {postings}", "postings: passages have other terms than their words"),
    "postings of one passage": (
        "UPDATE {postings} SET entries = ''::bytea WHERE term = 'q7x'",
        "postings: passages have other terms than their words (document 'd7')",
    ),
    "terms in all": ("UPDATE heads SET terms = terms + 1", "terms: the count says"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_of_the_documents_is_told_and_mended(case: str, packed: Engine) -> None:
    told_and_mended(packed, *CASES[case])


@pytest.mark.usefixtures("one_server")  # the workers of a cluster keep the foreign keys
def test_a_vector_of_a_removed_passage_is_told_and_mended(packed: Engine) -> None:
    sql = f"UPDATE {{vectors}} SET pid = pid + 1000000 WHERE (cid, pid) IN {SOME}"
    told_and_mended(packed, sql, "vectors: 1 belong to no passage")


def told_and_mended(packed: Engine, sql: str, told: str) -> None:
    change(packed, sql)
    problems = packed.verify().problems
    assert any(told in problem and "run rebuild" in problem for problem in problems), problems
    packed.rebuild()
    packed.wait(timeout=20)  # for a vector that was deleted
    assert packed.verify().problems == ()
    assert packed.search("q7x", alpha=0.0)[0].id == "d7"


def test_documents_that_lost_their_passages_are_told_and_found_when_they_are_added_again(packed: Engine) -> None:
    """A node of a cluster that loses its share of a commit leaves documents that no word finds."""
    lost = [packed.get(f"d{n}") for n in (7, 8)]
    change(packed, "DELETE FROM {passages} WHERE did IN (SELECT did FROM {documents} WHERE id IN ('d7', 'd8'))")
    problems = packed.verify().problems
    assert any("documents: 2 have no passage and cannot be found" in problem for problem in problems), problems
    packed.rebuild()
    assert [problem.partition(";")[0] for problem in packed.verify().problems] == [
        "documents: 2 have no passage and cannot be found"
    ]
    packed.add([document for document in lost if document is not None])
    packed.wait(timeout=20)
    assert packed.verify().problems == () and packed.search("q7x", alpha=0.0)[0].id == "d7"


def test_the_graph_that_is_kept_here_is_compared(packed: Engine) -> None:
    index = packed._collection.graph.index()  # type: ignore[attr-defined]
    compare: Callable[[], Any] = index.compare
    assert compare().kinds == {}
    index._tail = index._tail.without({int(index._tail.dids[0])})
    problems = packed.verify().problems
    assert any("graph: documents name other concepts than their text (document" in told for told in problems), problems
    packed.rebuild()
    assert packed.verify().problems == ()
