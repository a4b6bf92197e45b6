"""One step of one engine, run by that engine's Python: `python -m peers.worker`, a JSON object in, one out.

Every step is a process of its own, so that memory and first times are that step's. A step prints its result as the
last line; output of the engine comes before it. Of trivet it needs the corpus only, and numpy.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from corpus import ASKED, FILTERS, OTHERS, Corpus, Floats, allowed, corpus, shelved

K = 20
DEPTH = 50  # of the exact answers that are compared
WRITES = 30  # single documents written and looked for
PATIENCE = 30.0  # seconds a step of many like calls may take before it makes do with fewer
LEAST = 10  # calls that are measured at the least, however long they take
MIXED = 10.0  # seconds of reading and writing on two threads
READS = 9  # searches to a write there


def memory() -> dict[str, float]:
    """Return resident memory now, the part not backed by a file, and the peak; MB, with children."""
    resident = anonymous = 0
    for process in (str(os.getpid()), *_children()):
        for line in _lines(f"/proc/{process}/smaps_rollup"):
            name, *rest = line.split()
            resident += int(rest[0]) if name == "Rss:" else 0
            anonymous += int(rest[0]) if name == "Anonymous:" else 0
    # not getrusage: what a process's parent had when it was started would count
    most = next(int(line.split()[1]) for line in _lines("/proc/self/status") if line.startswith("VmHWM:"))
    return {key: round(kb / 1024, 1) for key, kb in (("now", resident), ("anonymous", anonymous), ("peak", most))}


def _children() -> list[str]:
    found: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        found += " ".join(_lines(str(task / "children"))).split()
    return found


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:  # it has ended meanwhile
        return []


def bytes_of(folder: Path) -> int:
    """Return the bytes allocated on disk; a sparse file counts by its blocks."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def timed(call: Callable[[int], Any], count: int, others: int) -> dict[str, Any]:
    """Return p50, p95 and the mean CPU time (all threads) in ms over ``count`` queries after a warm-up; fewer of both
    where it takes too long.
    """
    started = time.perf_counter()
    for at in range(count, count + others):
        call(at)
        if time.perf_counter() - started > PATIENCE / 2 and at - count + 1 >= LEAST:
            break
    taken: list[float] = []
    worked = time.process_time()
    for at in range(count):
        before = time.perf_counter()
        call(at)
        taken.append((time.perf_counter() - before) * 1000)
        if sum(taken) > PATIENCE * 1000 and at + 1 >= LEAST:
            break
    worked = (time.process_time() - worked) * 1000 / len(taken)
    return {**percentiles(taken), "cpu_ms": round(worked, 3), "asked": len(taken)}


def percentiles(taken: list[float]) -> dict[str, float]:
    return {f"p{at}_ms": round(float(np.percentile(taken, at)), 3) for at in (50, 95)}


class Step:
    """One engine, one corpus, one folder."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.corpus: Corpus = corpus(order["corpus"])
        started = time.perf_counter()
        module = importlib.import_module(f"peers.{order['module']}")
        self.import_s = time.perf_counter() - started
        self.folder = Path(order["folder"])
        self.engine = module.Engine(self.folder, order["setting"])

    def build(self) -> dict[str, Any]:
        self.folder.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        self.engine.build(self.corpus)
        first = self._search(0, {})
        took = time.perf_counter() - started
        assert first, "nothing was found after the build"
        self.engine.close()
        return {
            "s": round(took, 2),
            "memory_mb": memory(),
            "disk_mb": round(bytes_of(self.folder) / 1e6, 1),
            "versions": {name: version(name) for name in self.order["packages"]},
        }

    def ask(self) -> dict[str, Any]:
        self.engine.open()
        found: dict[str, Any] = {}
        for name, where in FILTERS.items():
            broken = few = 0

            def call(at: int, where: dict[str, str] = where) -> None:
                nonlocal broken, few
                hits = self._search(at, where)
                broken += sum(not allowed(shelved(id), where) for id, _ in hits)
                few += len(hits) < K

            found[name] = {**timed(call, ASKED, OTHERS), "not_allowed": broken, "under_k": few}
        found["memory_mb"] = memory()
        found["degraded"] = getattr(self.engine, "degraded", 0)
        for name, where in FILTERS.items():
            found[name]["dense"] = self._dense(name, where)
        self.engine.close()
        return found

    def _dense(self, name: str, where: dict[str, str]) -> dict[str, Any] | None:
        """Measure recall against the exact best by the dense leg alone, and its time."""
        exact = self.corpus.answers[name]
        shares: dict[int, float] = {}

        def call(at: int) -> None:
            ids = self.engine.dense(self.corpus.asked[at], where, DEPTH)
            if at < ASKED:
                wanted = set(exact[at][:DEPTH])
                shares[at] = len(wanted & set(ids)) / max(1, len(wanted))

        return {**timed(call, 100, 20), "recall": round(float(np.mean(list(shares.values()))), 4)}

    def write(self) -> dict[str, Any]:
        """Measure one write at a time, until a hybrid search returns the document."""
        self.engine.open()
        taken: list[float] = []
        missed = 0
        for number in range(-2, WRITES):  # the first two are not counted
            document, vector = self._fresh("w", number + 2)
            started = time.perf_counter()
            self.engine.write(document, vector)
            while True:
                hits = self.engine.search(document["text"], vector, {}, K)
                if any(id == document["id"] for id, _ in hits):
                    break
                if time.perf_counter() - started > 10:
                    missed += 1
                    break
            if number >= 0:
                taken.append((time.perf_counter() - started) * 1000)
            if sum(taken) > PATIENCE * 1000 or missed > 2:
                break
        self.engine.close()
        return {**(percentiles(taken) if taken else {}), "written": len(taken), "not_found": missed}

    def mixed(self) -> dict[str, Any]:
        """Measure two threads for ten seconds, with nine searches to each write."""
        self.engine.open()
        self._search(0, {})
        counts = {"searches": 0, "writes": 0}
        errors: list[str] = []
        until = time.perf_counter() + MIXED
        lock = threading.Lock()
        turn = threading.Lock() if getattr(self.engine, "turns", False) else contextlib.nullcontext()

        def work(thread: int) -> None:
            try:
                engine = self.engine.handle()
                number = 0
                while time.perf_counter() < until:
                    for at in range(READS):
                        asked = (thread * 151 + number * READS + at) % ASKED
                        text = self.corpus.questions[asked]["text"]
                        with turn:
                            engine.search(text, self.corpus.asked[asked], {}, K)
                        with lock:
                            counts["searches"] += 1
                        if time.perf_counter() >= until:
                            return
                    with turn:
                        engine.write(*self._fresh(f"m{thread}-", number))
                    with lock:
                        counts["writes"] += 1
                    number += 1
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}"[:300])

        started = time.perf_counter()
        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - started
        told = {f"{name}_per_s": round(count / took, 1) for name, count in counts.items()}
        return {**told, "turns": bool(getattr(self.engine, "turns", False)), "errors": errors}

    def cold(self) -> dict[str, Any]:
        """Measure a new process with the files in the page cache: import, then open until the first result."""
        text, vector = self.corpus.questions[ASKED]["text"], self.corpus.asked[ASKED]
        started = time.perf_counter()
        self.engine.open()
        assert self.engine.search(text, vector, {}, K), "nothing was found"
        took = time.perf_counter() - started
        self.engine.close()
        return {"import_ms": round(self.import_s * 1000, 1), "open_to_answer_ms": round(took * 1000, 1)}

    def judged(self) -> dict[str, Any]:
        """Return the hits of its hybrid search for every query of a judged set."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.engine.build(self.corpus)
        questions = zip(self.corpus.questions, self.corpus.asked, strict=True)
        found = {
            item["id"]: [id for id, _ in self.engine.search(item["text"], vector, {}, K)][:10]
            for item, vector in questions
        }
        self.engine.close()
        return {"run": found}

    def _search(self, at: int, where: dict[str, str]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = self.engine.search(
            self.corpus.questions[at]["text"], self.corpus.asked[at], where, K
        )
        return found

    def _fresh(self, mark: str, number: int) -> tuple[dict[str, Any], Floats]:
        """Return a new document with a unique word and vector."""
        id = f"fresh:{mark}{number}:{os.getpid()}"
        word = "zq" + blake2b(id.encode(), digest_size=5).hexdigest().translate(
            str.maketrans("0123456789", "ghijklmnop")
        )
        text = f"{self.corpus.questions[number % ASKED]['text']} {word} noted for the benchmark"
        vector = self.corpus.asked[number % ASKED] + 0.02 * np.random.default_rng(number).standard_normal(
            len(self.corpus.asked[0]), dtype=np.float32
        )
        meta = {"site": "fresh", "kind": "note", **shelved(id)}
        return {"id": id, "title": "", "text": text, "meta": meta}, vector / np.linalg.norm(vector)


STEPS = ("build", "ask", "cold", "write", "mixed", "judged")


def main() -> int:
    order = json.loads(sys.argv[1])
    result = getattr(Step(order), order["step"])()
    sys.stdout.flush()
    print(json.dumps(result), flush=True)
    os._exit(0)  # an engine's threads may not end by themselves; what it wrote is closed


if __name__ == "__main__":
    main()
