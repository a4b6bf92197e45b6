"""Two nodes of a Ray cluster on this machine: an import, while a worker and then a whole node are killed.

``make test-ray`` runs it where Ray is installed and, on Linux, in a network namespace: Ray listens on every address.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

import trivet

psutil = pytest.importorskip("psutil")
pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="the extra `ray` is not installed: `make test-ray`")

PORT, CLIENTS = 26379, 26001
ADDRESS = f"ray://127.0.0.1:{CLIENTS}?workers=4"
PASSAGES = 4_000
TEXTS = [f"The heron number {n} stands in the river {n % 97} and waits for fish {n % 31}." for n in range(PASSAGES)]
PATIENCE = 240.0  # seconds
NO_PAGE = "--include-dashboard=false"


@dataclass(frozen=True)
class Node:
    """The processes of one Ray node."""

    process: subprocess.Popen[bytes]
    folder: Path

    @classmethod
    def started(cls, folder: Path, *arguments: str) -> Node:
        folder.mkdir()
        command = [str(Path(sys.executable).parent / "ray"), "start", "--block", "--disable-usage-stats"]
        limits = ["--num-cpus=2", "--object-store-memory=100000000", "--node-ip-address=127.0.0.1"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*command, *limits, f"--temp-dir={folder / 'temp'}", *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        node = cls(process, folder)
        wait(lambda: b"will now block" in (folder / "log").read_bytes() or process.poll() is not None)
        assert process.poll() is None, (folder / "log").read_text()
        return node

    def all(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            own = psutil.Process(self.process.pid)
            return [own, *own.children(recursive=True)]
        return []

    def embedding(self) -> list[int]:
        """The processes that embed a share at this moment."""
        found = []
        for each in self.all():
            with contextlib.suppress(psutil.Error):
                if each.cmdline()[0].startswith("ray::embed_share"):
                    found.append(each.pid)
        return found

    def kill(self) -> None:
        """End all processes of the node as a loss of power does."""
        for each in self.all():
            with contextlib.suppress(psutil.Error):
                each.kill()
        self.process.wait()


def wait(done: Callable[[], object], running: subprocess.Popen[str] | None = None) -> None:
    until = time.monotonic() + PATIENCE
    while not done():
        assert running is None or running.poll() is None, f"the import has ended: {running.communicate()[0]}"
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.05)


def takes_clients() -> bool:
    """Whether the head node serves a client, which it does some seconds after it says that it runs."""
    program = f"import ray; ray.init({ADDRESS.partition('?')[0]!r}); assert ray.cluster_resources()['CPU'] == 4"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Node, Node]]:
    folder = tmp_path_factory.mktemp("r")  # short: the paths of sockets are limited
    (folder / "token").write_text(secrets.token_hex(32))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # whoever reaches the ports could run code
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(folder / "token"))
    monkeypatch.setenv("RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S", "120")  # a busy machine starts processes slowly
    nodes = [Node.started(folder / "a", "--head", f"--port={PORT}", f"--ray-client-server-port={CLIENTS}", NO_PAGE)]
    try:
        nodes.append(Node.started(folder / "b", f"--address=127.0.0.1:{PORT}"))
        wait(takes_clients)
        yield nodes[0], nodes[1]
    finally:
        for node in reversed(nodes):
            node.kill()


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(TEXTS)))
    return path


def import_of(texts: Path, store: Path, workers: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "trivet", "import", str(texts), "--store", str(store), "--workers", workers]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def vectors(store: Path) -> dict[str, bytes]:
    """Return the committed vectors by document, without opening the store."""
    sql = "SELECT d.id, v.data FROM vectors v JOIN passages p USING (pid) JOIN documents d USING (did)"
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        return dict(connection.execute(sql))


def embedded(store: Path) -> int:
    with contextlib.suppress(sqlite3.OperationalError):  # there is no store or no table yet
        return len(vectors(store))
    return 0


def assert_complete(store: Path, texts: Path) -> None:
    """The store is whole, and its vectors are those of an import without Ray."""
    plain = store.with_name("plain.db")
    process = import_of(texts, plain, "1")
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out
    assert len(vectors(store)) == PASSAGES and vectors(store) == vectors(plain)
    with trivet.open(store) as memory:
        found = memory.stats()
        assert (found.documents, found.embedded, found.pending) == (PASSAGES, PASSAGES, 0)
        assert memory.verify().ok


@pytest.mark.timeout(600)
def test_a_killed_worker_and_a_killed_node_lose_nothing(
    cluster: tuple[Node, Node], texts: Path, tmp_path: Path
) -> None:
    head, other = cluster
    store = tmp_path / "m.db"
    process = import_of(texts, store, ADDRESS)
    wait(head.embedding, process)
    wait(other.embedding, process)
    wait(lambda: embedded(store), process)
    workers: list[int] = []
    wait(lambda: workers.extend(other.embedding()) or workers, process)
    psutil.Process(workers[0]).kill()
    before = embedded(store)
    wait(lambda: embedded(store) > before, process)
    other.kill()
    left = PASSAGES - embedded(store)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out
    assert left > 0 and f"{PASSAGES:,}" in out
    print(f"a worker killed after {before}, a node {left} before the end")
    assert_complete(store, texts)


@pytest.mark.timeout(600)
def test_an_import_whose_head_node_is_killed_is_finished_by_the_next_one(
    cluster: tuple[Node, Node], texts: Path, tmp_path: Path
) -> None:
    store = tmp_path / "m.db"
    process = import_of(texts, store, ADDRESS)
    wait(lambda: embedded(store), process)
    cluster[0].kill()
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode not in (0, None) and "Ray" in out and "Traceback" not in out, out
    assert 0 < embedded(store) < PASSAGES
    again = import_of(texts, store, "1")
    out, _ = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, out
    assert_complete(store, texts)
