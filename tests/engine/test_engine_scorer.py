"""A search with a scorer succeeds whatever the scorer does."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trivet
from trivet.engine import Engine
from trivet.errors import InputError, StoreError

OpenStore = Callable[..., Engine]

NOTES = {
    "door": "The side door sticks in wet weather and has to be lifted.",
    "key": "The key of the side door hangs behind the red shelf.",
    "paint": "The side door was painted in May, two coats of green.",
    "bell": "The bell at the side door has had no battery since the winter, so please knock instead of ringing it.",
}
READ = [{"name": "cross_encoder", "weight": 1.0, "head": 0, "budget_ms": 20_000.0}]


class Liking:
    """A scorer that likes passages with one word, counts what it is asked, and can be made to misbehave."""

    spec = id = "liking"
    batch = 2

    def __init__(self, word: str) -> None:
        self.word = word
        self.asked: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.fail: Exception | None = None

    def scores(self, query: str, passages: list[str]) -> list[float]:
        self.asked.append(passages)
        assert self.gate.wait(60), "the test never opened the gate"
        if self.fail is not None:
            raise self.fail
        return [float(self.word in passage) + 0.001 * len(passage) for passage in passages]


@pytest.fixture
def liking() -> Liking:
    return Liking("battery")


@pytest.fixture
def engine(open_store: OpenStore, liking: Liking) -> Engine:
    made = open_store(scorer=liking)
    made.add([{"id": id, "text": text} for id, text in NOTES.items()])
    return made


def degraded(found: trivet.Results) -> dict[str, str]:
    return {item.part: item.reason for item in found.degraded}


def test_the_pool_is_read_before_the_page_is_cut(engine: Engine, liking: Liking) -> None:
    """One hit is wanted, and the fused order does not have it first; a scorer after the cut could not bring it in."""
    assert engine.search("side door", k=1).hits[0].id != "bell"
    found = engine.search("side door", k=1, rerankers=READ)
    assert [hit.id for hit in found] == ["bell"]
    assert sum(map(len, liking.asked)) == 4
    (change,) = found[0].adjustments
    assert (change.reranker, change.after) == ("cross_encoder", found[0].score)
    assert change.reason.startswith("model score 1.")
    stage = next(stage for stage in found.trace if stage.name == "rerank")
    assert stage.detail == "cross_encoder (4 of 4 scored)"


def test_pages_agree_and_the_second_asks_nothing(engine: Engine, liking: Liking) -> None:
    whole = [hit.id for hit in engine.search("side door", k=4, rerankers=READ)]
    asked = len(liking.asked)
    pages = [engine.search("side door", k=2, offset=offset, rerankers=READ) for offset in (0, 2)]
    assert [hit.id for page in pages for hit in page] == whole
    assert len(liking.asked) == asked, "all of it is remembered"
    assert "4 of them from the cache" in next(stage.detail for stage in pages[1].trace if stage.name == "rerank")


def test_a_changed_passage_is_read_again(engine: Engine, liking: Liking) -> None:
    engine.search("side door", rerankers=READ)
    before = sum(map(len, liking.asked))
    engine.patch("key", text="The key of the side door is lost; the battery is fine.")
    assert engine.search("side door", rerankers=READ)[0].id in ("key", "bell")
    assert sum(map(len, liking.asked)) == before + 1


def test_explain_shows_what_the_scorer_did(engine: Engine) -> None:
    told = engine.explain("side door", "bell", rerankers=READ)
    assert told.rank == 1
    assert told.hit is not None
    assert [change.reranker for change in told.hit.adjustments] == ["cross_encoder"]


def test_a_failing_scorer_never_fails_a_search(engine: Engine, liking: Liking) -> None:
    plain = [hit.id for hit in engine.search("side door")]
    liking.fail = RuntimeError("no memory left")
    found = engine.search("side door", rerankers=READ)
    assert [hit.id for hit in found] == plain
    assert degraded(found)["cross_encoder"] == "the fused order is kept: no memory left"
    liking.fail = None
    assert engine.search("side door", rerankers=READ)[0].id == "bell", "and is asked again the next time"


def test_a_hanging_scorer_costs_its_budget_and_no_more(engine: Engine, liking: Liking) -> None:
    plain = [hit.id for hit in engine.search("side door")]
    liking.gate.clear()
    found = engine.search("side door", rerankers=[{"name": "cross_encoder", "budget_ms": 30}])
    liking.gate.set()
    assert [hit.id for hit in found] == plain
    assert "the time limit of 30 ms is over; raise budget_ms" in degraded(found)["cross_encoder"]


def test_a_store_closes_while_its_scorer_hangs(open_store: OpenStore, liking: Liking) -> None:
    made = open_store("other.db", scorer=liking)
    made.add([{"id": id, "text": text} for id, text in NOTES.items()])
    liking.gate.clear()
    found = made.search("side door", rerankers=[{"name": "cross_encoder", "budget_ms": 30}])
    assert "cross_encoder" in degraded(found)
    made.close()
    with pytest.raises(StoreError, match="closed"):
        made.search("side door")
    liking.gate.set()


def test_without_a_scorer_the_way_out_is_said(words: Engine) -> None:
    words.add([{"id": id, "text": text} for id, text in NOTES.items()])
    found = words.search("side door", rerankers=["cross_encoder"])
    assert len(found) == 4
    assert degraded(found)["cross_encoder"].startswith("no scorer is set, so the fused order is kept; set one")
    assert words.stats().scorer is None


def test_the_gate_is_in_the_trace(engine: Engine, liking: Liking) -> None:
    engine.add({"id": "sure", "text": "Zebra crossing."})
    found = engine.search("zebra crossing", rerankers=[{"name": "cross_encoder", "gate": 0.0}])
    assert len(found) == 1 or "skipped" in next(stage.detail for stage in found.trace if stage.name == "rerank")
    found = engine.search("side door battery", rerankers=[{"name": "cross_encoder", "gate": 0.01}])
    assert "skipped: the first is" in next(stage.detail for stage in found.trace if stage.name == "rerank")
    assert liking.asked == []


def test_it_works_beside_the_other_rerankers(engine: Engine) -> None:
    engine.add({"id": "copy", "text": NOTES["bell"], "importance": 1.0})
    found = engine.search("side door", rerankers=["exact", *READ, "dedup"])
    assert {"bell", "copy"} & {hit.id for hit in found} == {found[0].id}


def test_all_collections_of_a_store_share_it(engine: Engine) -> None:
    other = engine.collection("other", embedder="none")
    other.add([{"id": id, "text": text} for id, text in NOTES.items()])
    assert other.search("side door", rerankers=READ)[0].id == "bell"
    assert engine.stats().scorer == other.stats().scorer == "liking"


def test_a_scorer_nobody_knows_is_refused_before_a_store_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="scorer 'nonsense' is neither a known form"):
        trivet.open(tmp_path / "new.db", embedder="none", scorer="nonsense")


def test_many_threads_ask_at_once(engine: Engine) -> None:
    found: list[str] = []

    def ask(number: int) -> None:
        found.append(engine.search(f"side door {number % 3}", k=1, rerankers=READ)[0].id)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == ["bell"] * 12


# --- over real HTTP ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    script = Path(__file__).parents[1] / "models" / "scorers" / "server.py"
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.terminate()


def asked(open_store: OpenStore, scorer: str, **options: Any) -> trivet.Results:
    made = open_store(scorer=scorer)
    made.add([{"id": "short", "text": "side door"}, {"id": "long", "text": "a word more about the side door"}])
    return made.search("side door", rerankers=[{**READ[0], **options}])


@pytest.mark.parametrize("path", ["/a/rerank", "/a/v1/rerank#m", "/a/v2/rerank#m", "llm"])
def test_a_server_orders_the_hits(open_store: OpenStore, server: str, path: str) -> None:
    spec = f"llm:{server}/a/v1#m" if path == "llm" else f"{server}{path}"
    found = asked(open_store, spec)
    assert [hit.id for hit in found] == ["long", "short"], "the server likes words"
    assert "cross_encoder" not in degraded(found)


@pytest.mark.parametrize("manner", ["down", "page", "nan", "short", "refused", "closed", "huge"])
def test_a_server_that_misbehaves_leaves_the_fused_order(open_store: OpenStore, server: str, manner: str) -> None:
    found = asked(open_store, f"{server}/{manner}/rerank?timeout=2")
    assert [hit.id for hit in found] == ["short", "long"]
    assert degraded(found)["cross_encoder"].startswith("the fused order is kept: scorer '")


def test_a_server_that_hangs_is_left_alone(open_store: OpenStore, server: str) -> None:
    found = asked(open_store, f"{server}/slow/rerank", budget_ms=50.0)
    assert [hit.id for hit in found] == ["short", "long"]
    assert "the time limit of 50 ms is over" in degraded(found)["cross_encoder"]


def test_no_server_at_all(open_store: OpenStore) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    found = asked(open_store, f"http://127.0.0.1:{port}/rerank?timeout=1")
    assert [hit.id for hit in found] == ["short", "long"]
    assert "could not be reached" in degraded(found)["cross_encoder"]
