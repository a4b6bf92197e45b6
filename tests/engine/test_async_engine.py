"""The engine for asyncio: every method of ``Engine``, in threads of its own, and what cancelling and closing do."""

from __future__ import annotations

import asyncio
import gc
import inspect
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mypy import api

import trivet
from trivet.concurrency import deadline, threads
from trivet.engine import Engine
from trivet.errors import DeadlineError, InputError, NotAllowedError, NotFoundError, StoreError

T = TypeVar("T")

LONG = 60.0  # seconds: as good as for ever

#: Every public name of ``Engine``, by what it is for asyncio.
AWAITED = {
    "add", "backup", "close", "collection", "collections", "compact", "delete", "drop", "embed", "explain", "export",
    "facets", "feedback", "feedbacks", "forget", "forget_feedback", "get", "import_", "link", "links", "page", "patch",
    "prepare", "rebuild", "redundant", "reembed", "remember", "restore_feedback", "revert_settings", "search",
    "settings_history", "space", "stats", "sweep", "timeline", "touch", "unlink", "update_settings", "verify", "wait",
}  # fmt: skip
READ_BY_A_METHOD = {"settings", "careful"}  # properties of ``Engine`` that read the store
ITERATED = {"documents", "lines"}
AT_ONCE = {"bound", "language", "name", "path", "url", "within"}  # they read nothing
LEFT_OUT = {
    "loading": "a context manager: use it inside `run`",
    "pipeline_over": "for the evaluation lab, which is synchronous",
    "standing": "deprecated",
}


def public(of: type) -> set[str]:
    return {name for name in vars(of) if not name.startswith("_")}


def ended(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end."""
    return asyncio.run(asyncio.wait_for(work, LONG))


@asynccontextmanager
async def opened(path: Path | str = ":memory:", **options: Any) -> AsyncIterator[trivet.AsyncEngine]:
    async with trivet.open_async(path, **{"embedder": "hashing:16", **options}) as memory:
        yield memory


async def happened(event: threading.Event) -> None:
    """Wait for what happens in a thread, without stopping the loop."""
    assert await asyncio.to_thread(event.wait, LONG)


@pytest.fixture
def ours() -> Callable[[], list[str]]:
    """The names of the threads for asyncio that were started since."""
    before = set(threading.enumerate())
    return lambda: [
        each.name for each in threading.enumerate() if each.name.startswith("trivet-async") and each not in before
    ]


class Gate:
    """Work that stops in its thread until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go, self.done = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, _: Engine) -> str:
        self.begun.set()
        assert self.go.wait(LONG)
        self.done.set()
        return "done"


class TestMethods:
    def test_every_public_name_of_an_engine_has_its_counterpart(self) -> None:
        there = AWAITED | READ_BY_A_METHOD | ITERATED | AT_ONCE
        assert public(Engine) == there | set(LEFT_OUT), "add it to AsyncEngine and to a table above"
        assert public(trivet.AsyncEngine) == there | {"run"}

    @pytest.mark.parametrize("name", sorted(AWAITED - {"close"} | ITERATED))
    def test_it_takes_the_same_arguments(self, name: str) -> None:
        ours, theirs = getattr(trivet.AsyncEngine, name), getattr(Engine, name)
        assert inspect.signature(ours) == inspect.signature(theirs)
        assert ours.__doc__ == theirs.__doc__
        assert inspect.iscoroutinefunction(ours) is (name in AWAITED)
        assert inspect.isasyncgenfunction(ours) is (name in ITERATED)

    def test_a_table_says_what_each_is(self) -> None:
        for name in READ_BY_A_METHOD:
            assert isinstance(vars(Engine)[name], property)
            assert inspect.iscoroutinefunction(vars(trivet.AsyncEngine)[name])
        for name in AT_ONCE - {"within"}:
            assert isinstance(vars(trivet.AsyncEngine)[name], property)

    def test_it_opens_writes_searches_and_closes(self, tmp_path: Path) -> None:
        async def work() -> None:
            async with opened(tmp_path / "m.db", language="de") as memory:
                assert (memory.name, memory.language, memory.bound) == ("default", "de", None)
                assert memory.path == memory.url == str(tmp_path / "m.db")
                assert repr(memory) == f"<trivet async {tmp_path / 'm.db'} collection='default'>"
                await memory.add("Die Tür klemmt.", id="door")
                await memory.wait()
                assert (await memory.search("Tür", k=1)).hits[0].id == "door"
                await memory.update_settings(k=3)
                assert (await memory.settings()).k == 3
                assert (await memory.careful()).k == 3
                assert await memory.run(lambda engine: engine.name) == "default"
            with pytest.raises(StoreError, match="is closed; open it again"):
                await memory.get("door")
            with pytest.raises(StoreError, match="is closed; open it again"):
                memory.engine.get("door")

        ended(work())
        with trivet.open(tmp_path / "m.db") as memory:
            assert memory.get("door") is not None

    def test_it_is_opened_by_await_too(self, tmp_path: Path) -> None:
        async def work() -> int:
            memory = await trivet.open_async(tmp_path / "m.db", embedder="none")
            async with memory:
                await memory.add("a note")
            async with await trivet.open_async(tmp_path / "m.db", create=False) as memory:
                return (await memory.stats()).documents

        assert ended(work()) == 1

    def test_other_engines_of_the_store_share_its_threads(self) -> None:
        async def work() -> None:
            async with opened() as memory:
                alice, other = memory.within({"tenant": "alice"}), await memory.collection("other")
                await asyncio.gather(alice.add("of alice", id="a"), other.add("of all", id="o"))
                assert alice._pool is other._pool is memory._pool
                assert str(alice.bound) == str(memory.engine.within({"tenant": "alice"}).bound)
                assert [each.id async for each in memory.documents()] == ["a"]
                assert await memory.collections() == ["default", "other"]
                with pytest.raises(NotAllowedError, match="bound to a filter"):
                    await alice.settings_history()
                await other.close()
                with pytest.raises(StoreError, match="is closed"):
                    await memory.stats()

        ended(work())

    @pytest.mark.parametrize(
        ("call", "kind", "message"),
        [
            (lambda memory: memory.search(""), InputError, "query"),
            (lambda memory: memory.patch("none", title="x"), NotFoundError, "none"),
            (lambda memory: memory.documents("(").__anext__(), InputError, "where"),
            (lambda memory: memory.run(lambda _: 1 / 0), ZeroDivisionError, "division"),
        ],
    )
    def test_an_error_keeps_its_type_and_message(self, call: Any, kind: type[Exception], message: str) -> None:
        async def work() -> None:
            async with opened() as memory:
                with pytest.raises(kind, match=message):
                    await call(memory)

        ended(work())

    def test_a_store_that_cannot_be_opened_is_an_error(self, tmp_path: Path) -> None:
        async def work() -> None:
            with pytest.raises(NotFoundError, match="the store does not exist"):
                await trivet.open_async(tmp_path / "none.db", create=False)

        ended(work())
        assert not (tmp_path / "none.db").exists()

    def test_context_variables_reach_the_thread(self) -> None:
        user: ContextVar[str] = ContextVar("user")

        async def named(memory: trivet.AsyncEngine, name: str) -> str:
            user.set(name)
            return await memory.run(lambda _: user.get())

        async def work() -> list[str]:
            async with opened() as memory:
                return await asyncio.gather(*(named(memory, f"user {number}") for number in range(20)))

        assert ended(work()) == [f"user {number}" for number in range(20)]

    @pytest.mark.slow
    def test_a_type_checker_knows_arguments_and_results(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("MYPYPATH", str(Path(trivet.__file__).parent.parent))
        script = tmp_path / "script.py"
        script.write_text(
            "import trivet\n"
            "async def work() -> None:\n"
            "    async with trivet.open_async('m.db', embedder='none') as memory:\n"
            "        found: trivet.Results = await memory.search('x', k=3, alpha=0.3)\n"
            "        other: trivet.AsyncEngine = await memory.collection('other')\n"
            "        texts: list[str] = [each.text async for each in other.documents()]\n"
            "        await memory.search('x', alhpa=0.3)\n"
            "        note: trivet.Added = await memory.get('x')\n"
            "        trivet.open_async('m.db', embeder='none')\n"
        )
        options = ["--strict", "--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
        printed, _, _ = api.run([*options, f"--cache-dir={tmp_path}", str(script)])
        errors = [line for line in printed.splitlines() if ": error: " in line]
        assert [line.split(":")[1] for line in errors] == ["7", "8", "9"], printed
        parts = ('"alhpa"', 'type "Document | None", variable has type "Added"', '"embeder"')
        assert [part in line for part, line in zip(parts, errors, strict=True)] == [True] * 3, printed


class TestConcurrency:
    def test_many_search_and_write_at_the_same_time(self, tmp_path: Path) -> None:
        async def one(memory: trivet.AsyncEngine, number: int) -> list[str]:
            await memory.add(f"otter {number} of the river", id=f"n{number}")
            return [hit.id for hit in await memory.search(f"otter {number}", k=50)]

        async def work() -> None:
            async with opened(tmp_path / "m.db") as memory:
                found = await asyncio.gather(*(one(memory, number) for number in range(60)))
                assert all(f"n{number}" in ids for number, ids in enumerate(found))
                assert (await memory.stats()).documents == 60
                assert (await memory.verify()).problems == ()

        ended(work())

    def test_the_loop_goes_on_while_a_call_runs(self) -> None:
        async def work() -> None:
            gate = Gate()
            async with opened() as memory:
                running = asyncio.create_task(memory.run(gate))
                await happened(gate.begun)
                asyncio.get_running_loop().call_soon(gate.go.set)  # only a loop that runs calls it
                assert await running == "done"

        ended(work())

    def test_no_more_threads_than_it_was_given(self, ours: Callable[[], list[str]]) -> None:
        async def work() -> None:
            async with trivet.AsyncEngine(trivet.open(":memory:", embedder="none"), threads=2) as memory:
                gates = [Gate() for _ in range(3)]
                running = [asyncio.create_task(memory.run(gate)) for gate in gates]
                await happened(gates[0].begun)
                await happened(gates[1].begun)
                assert not gates[2].begun.is_set()
                for gate in gates:
                    gate.go.set()
                assert await asyncio.gather(*running) == ["done"] * 3
                assert len(ours()) == 2

        ended(work())

    def test_a_list_is_read_in_batches_while_others_write(self, tmp_path: Path) -> None:
        async def work() -> None:
            async with opened(tmp_path / "m.db", embedder="none") as memory:
                await memory.add({"id": f"n{number}", "text": f"note {number}"} for number in range(1_200))
                seen = []
                async for document in memory.documents():
                    seen.append(document.id)
                    if len(seen) == 10:
                        await asyncio.gather(memory.add("late", id="late"), memory.delete("n1100"))
                assert seen == [f"n{number}" for number in range(1_200) if number != 1_100] + ["late"]
                lines = [line async for line in memory.lines()]
                assert len(lines) == 1 + 1_200  # with the header

        ended(work())


class TestCancelling:
    def test_a_search_ends_its_work(self, taught: Any) -> None:
        """The thread is in a leg, and its next check ends the search."""

        async def work() -> None:
            model, ends = taught("otter"), []
            begun, let_go = threading.Event(), threading.Event()

            def ask(texts: list[str]) -> Any:
                begun.set()
                assert let_go.wait(LONG)
                try:
                    deadline.check()
                except DeadlineError as error:
                    ends.append(error)
                    raise
                return model.embed_passages(texts)

            async with opened(embedder=model) as memory:
                await memory.add("an otter", id="otter")
                model.embed_queries = ask
                searching = asyncio.create_task(memory.search("otter", dense_timeout=1000 * LONG))
                await happened(begun)
                searching.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await searching
                let_go.set()
                assert [hit.id for hit in await memory.search("otter", alpha=0)] == ["otter"]
            assert len(ends) == 1

        ended(work())

    def test_a_read_that_waits_for_its_turn_is_not_begun(self) -> None:
        async def work() -> None:
            async with trivet.AsyncEngine(trivet.open(":memory:", embedder="none"), threads=1) as memory:
                first, second = Gate(), Gate()
                running = asyncio.create_task(memory.run(first))
                await happened(first.begun)
                waiting = asyncio.create_task(memory.run(second))
                await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                first.go.set()
                assert await running == "done"
                assert await memory.collections() == ["default"]
                assert not second.begun.is_set()

        ended(work())

    def test_a_wait_gives_its_thread_back(self, taught: Any) -> None:
        async def work() -> None:
            model = taught("otter")
            model.gate.clear()
            async with trivet.AsyncEngine(trivet.open(":memory:", embedder=model), threads=1) as memory:
                await memory.add([f"otter {number}" for number in range(200)])
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await memory.wait()
                assert (await memory.stats()).pending == 200  # the only thread is free, and the model is stuck
                model.gate.set()
                await memory.wait()
                assert (await memory.stats()).pending == 0

        ended(work())

    def test_a_write_that_has_begun_is_finished(self, tmp_path: Path) -> None:
        async def work() -> None:
            gate = Gate()

            def notes() -> Iterator[str]:
                for number in range(2_500):
                    if number == 1_500:  # one batch is stored, and the second is not
                        gate(memory.engine)
                    yield f"note {number}"

            async with opened(tmp_path / "m.db") as memory:
                adding = asyncio.create_task(memory.add(notes()))
                await happened(gate.begun)
                adding.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await adding
                gate.go.set()
                await happened(gate.done)
            with trivet.open(tmp_path / "m.db") as engine:  # closing had waited for the write
                assert engine.stats().documents == 2_500
                assert engine.verify().problems == ()

        ended(work())

    def test_what_run_calls_is_finished(self) -> None:
        async def work() -> None:
            gate, added = Gate(), threading.Event()

            def write(engine: Engine) -> None:
                gate(engine)
                engine.add("a note", id="note")
                added.set()

            async with opened() as memory:
                running = asyncio.create_task(memory.run(write))
                await happened(gate.begun)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
                gate.go.set()
                await happened(added)
                assert await memory.get("note") is not None

        ended(work())

    def test_at_any_moment_it_damages_nothing(self, tmp_path: Path) -> None:
        calls: list[Callable[[trivet.AsyncEngine, int], Coroutine[Any, Any, Any]]] = [
            lambda memory, n: memory.add([{"id": f"a{n}.{part}", "text": f"otter {n} {part}"} for part in range(5)]),
            lambda memory, n: memory.remember(f"beaver {n} of the river", id=f"b{n}"),
            lambda memory, n: memory.search(f"otter {n}", trigram_weight=0.2, graph_weight=0.2, touch=True),
            lambda memory, n: memory.patch("first", meta={f"n{n}": n}),
            lambda memory, n: memory.forget([f"a{n - 4}.1"]),
            lambda memory, _: memory.rebuild(),
            lambda memory, _: memory.compact(),
            lambda memory, _: memory.verify(),
            lambda memory, n: memory.backup(tmp_path / f"backup {n}.db"),
            lambda memory, n: memory.export(tmp_path / f"export {n}.jsonl"),
            lambda memory, _: memory.reembed("hashing:8"),
        ]

        async def cancelled(memory: trivet.AsyncEngine, numbers: range) -> None:
            for number in numbers:
                task = asyncio.create_task(calls[number % len(calls)](memory, number))
                await asyncio.sleep(number % 7 / 200)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        async def work() -> None:
            async with opened(tmp_path / "m.db") as memory:
                await memory.add([{"id": "first", "text": "the first"}, *(f"note {number}" for number in range(300))])
                await asyncio.gather(*(cancelled(memory, range(start, 176, 4)) for start in range(4)))

        ended(work())
        assert list(tmp_path.glob(".*.part")) == []
        with trivet.open(tmp_path / "m.db") as engine:
            engine.wait()
            assert engine.verify().problems == ()
            assert engine.search("first", k=1).hits[0].id == "first"
            stored = Counter(each.id.split(".")[0] for each in engine.documents() if "." in each.id)
            assert {5} <= set(stored.values()) <= {4, 5}, "all of what was added, less what was forgotten"


class TestClosing:
    def test_its_threads_are_gone(self, ours: Callable[[], list[str]]) -> None:
        async def work() -> list[str]:
            async with opened() as memory:
                await asyncio.gather(*(memory.stats() for _ in range(20)))
                return ours()

        assert ended(work())
        assert ours() == []

    def test_calls_that_wait_for_their_turn_fail_and_no_task_is_cancelled(self) -> None:
        async def work() -> None:
            memory, gate = trivet.AsyncEngine(trivet.open(":memory:", embedder="none"), threads=1), Gate()
            running = asyncio.create_task(memory.run(gate))
            await happened(gate.begun)
            waiting = [asyncio.create_task(memory.stats()) for _ in range(3)]
            await asyncio.sleep(0)
            closing = asyncio.create_task(memory.close())
            errors = await asyncio.gather(*waiting, return_exceptions=True)
            assert [(type(error), str(error).endswith("is closed; open it again")) for error in errors] == [
                (StoreError, True)
            ] * 3
            assert not closing.done()
            gate.go.set()
            assert await running == "done"
            await closing
            await memory.close()

        ended(work())

    def test_a_call_that_hangs_does_not_hold_it_up(
        self, monkeypatch: pytest.MonkeyPatch, ours: Callable[[], list[str]]
    ) -> None:
        monkeypatch.setattr(threads, "CLOSE_TIMEOUT", 0.05)

        async def work() -> None:
            gate = Gate()
            async with opened() as memory:
                running = asyncio.create_task(memory.run(gate))
                await happened(gate.begun)
            assert len(ours()) == 1, "it hangs, and the close came back"
            gate.go.set()
            assert await running == "done"

        ended(work())

    def test_searches_and_writes_beside_it_end(self, tmp_path: Path) -> None:
        async def work() -> None:
            memory = await trivet.open_async(tmp_path / "m.db", embedder="hashing:16")
            await memory.add("an otter", id="otter")
            busy = [asyncio.create_task(memory.search(f"otter {number}")) for number in range(40)]
            busy += [asyncio.create_task(memory.add(f"otter {number}")) for number in range(40)]
            await busy[0]
            await memory.close()
            for error in await asyncio.gather(*busy, return_exceptions=True):
                assert isinstance(error, trivet.Results | trivet.Added | StoreError), error

        ended(work())
        with trivet.open(tmp_path / "m.db") as engine:
            assert engine.verify().problems == ()

    def test_one_that_nobody_closed_is_closed_with_its_threads(
        self, tmp_path: Path, ours: Callable[[], list[str]]
    ) -> None:
        async def work() -> Any:
            memory = await trivet.open_async(tmp_path / "m.db", embedder="none")
            await memory.add("a note")
            return memory.engine._store

        store = ended(work())
        gc.collect()
        assert store.database.closed
        for thread in threading.enumerate():
            if thread.name.startswith("trivet-async"):
                thread.join(LONG)
        assert ours() == []

    @pytest.mark.parametrize(
        "last", ["await memory.wait()", "asyncio.create_task(memory.wait()); await asyncio.sleep(0)"]
    )
    def test_an_interpreter_ends_with_one_that_is_open(self, tmp_path: Path, last: str) -> None:
        script = (
            "import asyncio\nfrom trivet import open_async\n"
            "async def work():\n"
            "    global memory\n"
            f"    memory = await open_async({str(tmp_path / 'm.db')!r}, embedder='hashing:16')\n"
            "    await memory.add([f'note {number}' for number in range(500)])\n"
            f"    {last}\n"
            "asyncio.run(work())\n"
        )
        command = [sys.executable, "-W", "error", "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        with trivet.open(tmp_path / "m.db") as engine:
            assert engine.stats().documents == 500
