"""Does a count go up by one an access, and never down?"""

from __future__ import annotations

import trivet
from trivet.stores.sqlite import access
from trivet.stores.sqlite.shelf import Shelf


def counts(shelf: Shelf) -> dict[int, int]:
    return dict(shelf._all("SELECT did, count FROM access", ()))


def test_a_count_that_comes_with_a_document_is_a_least(engine: trivet.Engine, shelf: Shelf) -> None:
    engine.add("fox", id="a", accesses=4)
    (did,) = shelf.dids(["a"]).values()
    assert counts(shelf) == {did: 4}
    with shelf.changing() as connection:
        access.at_least(connection, [(did, shelf.cid, 2)])
        assert access.touch(connection, shelf.cid, ["a", "gone"], 0.0) == 1
    assert counts(shelf) == {did: 5}
    engine.delete("a")
    assert counts(shelf) == {}


def test_the_same_id_in_another_collection_is_another_document(engine: trivet.Engine, shelf: Shelf) -> None:
    engine.add("fox", id="a")
    other = engine.collection("other", embedder="none")
    other.add("fox", id="a")
    other.touch("a")
    assert [item.accesses for item in engine.documents()] == [0]
    other.drop()
    assert counts(shelf) == {}
