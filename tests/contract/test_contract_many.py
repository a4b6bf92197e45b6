"""Many threads and processes share a store, and nothing is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import trivet
from trivet.engine import Engine
from trivet.errors import StoreError

Open = Callable[..., Engine]

WRITER = """
import sys, trivet
url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with trivet.open(url, embedder="hashing:32") as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        memory.add({"id": f"{name}-{number}", "text": f"heron of {name} number {number}", "meta": {"by": name}})
        memory.remember("the same thing, told by everyone")
        print(number, flush=True)
"""


def start(url: str, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", WRITER, url, name, str(count)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    ready = child.stdout.readline().strip()
    assert ready == "ready", child.stderr.read() if child.stderr else ""
    return child


def test_threads_write_and_search_at_once(open_at: Open) -> None:
    memory = open_at(embedder="hashing:32")

    def work(number: int) -> int:
        for step in range(5):
            memory.add({"id": f"{number}-{step}", "text": f"heron {number} {step}"})
            memory.search("heron")
        return len(memory.search(f"heron {number}", match="all", k=50))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    memory.wait()
    assert memory.stats().documents == memory.stats().embedded == 30 and memory.verify().ok


def test_two_engines_of_one_store_see_each_others_writes(open_at: Open) -> None:
    one, two = open_at(embedder="hashing:32"), open_at(embedder=None)
    one.add("heron", id="a")
    assert [hit.id for hit in two.search("heron")] == ["a"]
    two.add("fox", id="a")
    assert [hit.id for hit in one.search("fox")] == ["a"] and one.get("a") == two.get("a")
    two.delete("a")
    assert len(one.search("fox")) == 0


def test_two_who_change_different_fields_at_once_both_do(open_at: Open) -> None:
    engines = [open_at(), open_at()]
    engines[0].add("heron", id="a")
    together = threading.Barrier(2)

    def change(at: int) -> None:
        together.wait()
        for _ in range(5):
            engines[at].patch("a", meta={f"by{at}": at})

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(change, range(2)))
    found = engines[0].get("a")
    assert found is not None and found.meta == {"by0": 0, "by1": 1}


@pytest.mark.needs("processes")
def test_processes_write_at_once_and_what_is_told_twice_is_stored_once(open_at: Open) -> None:
    memory = open_at(embedder="hashing:32")
    children = [start(memory.url, name, 8) for name in ("one", "two")]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        _, complaints = child.communicate(timeout=120)
        assert child.returncode == 0, complaints
    memory.wait()
    assert memory.stats().documents == 17 and memory.verify().ok
    assert len(memory.search("heron", k=50, where={"by": "one"})) == 8


@pytest.mark.needs("processes")
def test_a_killed_writer_loses_nothing_it_was_told_is_stored(open_at: Open) -> None:
    memory = open_at(embedder="hashing:32")
    child = start(memory.url, "killed", 10_000)
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write("go\n")
    child.stdin.flush()
    told = [int(child.stdout.readline()) for _ in range(6)][-1]
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert child.stderr is not None
    child.stdin.close(), child.stdout.close(), child.stderr.close()
    memory.wait()
    here = {document.id for document in memory.documents()}
    assert {f"killed-{number}" for number in range(told + 1)} <= here
    assert memory.verify().ok and memory.stats().pending == 0


def test_a_closed_store_says_so(open_at: Open) -> None:
    memory = open_at()
    memory.add("heron", id="a")
    memory.close()
    for call in (lambda: memory.search("heron"), lambda: memory.add("fox"), lambda: memory.get("a")):
        with pytest.raises(StoreError, match="closed"):
            call()
    with trivet.open(memory.url, embedder="none") as again:
        assert again.get("a") is not None


def test_what_it_says_of_itself_holds_no_password(open_at: Open) -> None:
    memory = open_at()
    said = json.dumps([memory.path, repr(memory), memory.stats().path])
    assert memory.path in said and ":secret" not in said


def test_opening_what_is_not_there_makes_nothing(address: Callable[[str], str]) -> None:
    with pytest.raises(trivet.errors.NotFoundError, match="does not exist"):
        trivet.open(address("fresh"), create=False)
    from trivet.engine import collections_in, is_store

    assert collections_in(address("fresh")) == [] and not is_store(address("fresh"))
