"""Run a Citus cluster on this machine: a coordinator and workers from installed PostgreSQL, citus and pgvector.

`start` makes the nodes in a folder of their own on free ports of 127.0.0.1 and prints the address of the coordinator,
for `TRIVET_TEST_POSTGRES`; `add` adds a worker, `stop` ends the nodes and keeps their data, `delete` removes both. As
root the servers run as a plain user. It is for tests and measurements: anyone on this machine may connect, and without
`--durable` a loss of power loses data.
"""

from __future__ import annotations

import argparse
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

EXTENSIONS = ("citus", "vector", "pg_trgm", "btree_gin")
#: Both ends are on this machine: no TLS. Moving shards without a pause takes logical replication.
SETTINGS = {
    "listen_addresses": "'127.0.0.1'",
    "unix_socket_directories": "''",
    "shared_preload_libraries": "'citus'",
    "citus.node_conninfo": "'sslmode=disable'",
    "wal_level": "logical",
    "max_connections": "300",
    "max_prepared_transactions": "600",
    "shared_buffers": "'128MB'",
}
UNSAFE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
CLUSTER = "cluster.json"  # the nodes, in the folder of a cluster


class ClusterError(Exception):
    """Something that the caller can put right."""


@dataclass(frozen=True, slots=True)
class Node:
    """One PostgreSQL server of a cluster."""

    name: str  # also its folder
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes in one folder; the first is the coordinator."""

    folder: Path
    programs: Path  # of PostgreSQL
    user: str | None  # who runs the servers; None: the caller
    nodes: tuple[Node, ...] = ()

    @classmethod
    def open(cls, folder: Path, programs: Path, user: str | None) -> Cluster:
        """Return the cluster that was made in a folder."""
        if not (folder / CLUSTER).exists():
            raise ClusterError(f"--folder: there is no cluster in {folder}; make one with `start`")
        kept = json.loads((folder / CLUSTER).read_text())
        return cls(folder, programs, user, tuple(Node(**node) for node in kept))

    @property
    def coordinator(self) -> Node:
        return self.nodes[0]

    def make(self, workers: int, settings: dict[str, str]) -> Cluster:
        """Make and start the nodes, and return the cluster."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.user is not None:
            shutil.chown(self.folder, self.user)
        made = self.add("coordinator", settings)
        for number in range(1, workers + 1):
            made = made.add(f"worker{number}", settings)
        return made

    def add(self, name: str, settings: dict[str, str]) -> Cluster:
        """Make and start a node, and make it known to the coordinator."""
        node = Node(name, free_port())
        self.run(node, "initdb", "--auth=trust", "--encoding=utf8", "--locale=C.UTF-8", "-U", "postgres", "--no-sync")
        with (self.folder / name / "postgresql.conf").open("a") as file:
            file.writelines(f"{key} = {value}\n" for key, value in {**settings, "port": str(node.port)}.items())
        grown = Cluster(self.folder, self.programs, self.user, (*self.nodes, node))
        (self.folder / CLUSTER).write_text(json.dumps([{"name": each.name, "port": each.port} for each in grown.nodes]))
        self.launch(node)
        for extension in EXTENSIONS:
            self.sql(node, f"CREATE EXTENSION {extension}")
        if self.nodes:
            self.sql(self.coordinator, f"SELECT citus_add_node('127.0.0.1', {node.port})")
        else:
            self.sql(node, f"SELECT citus_set_coordinator_host('127.0.0.1', {node.port})")
        return grown

    def start(self) -> None:
        """Start the nodes that do not run."""
        for node in self.nodes:
            if not self.runs(node):
                self.launch(node)

    def stop(self, mode: str = "fast") -> None:
        """End all nodes, the coordinator first."""
        for node in self.nodes:
            if self.runs(node):
                self.run(node, "pg_ctl", "-w", "-m", mode, "stop")

    def delete(self) -> None:
        """End all nodes and delete their data."""
        self.stop("immediate")
        shutil.rmtree(self.folder)

    def launch(self, node: Node) -> None:
        """Start the server of a node."""
        self.run(node, "pg_ctl", "-w", "-l", str(self.folder / node.name / "log"), "start")

    def runs(self, node: Node) -> bool:
        """Tell whether the server of a node runs."""
        return self._done(self._command(node, "pg_ctl", "status")).returncode == 0

    def run(self, node: Node, name: str, *arguments: str) -> None:
        """Run a program of PostgreSQL on the data of a node."""
        done = self._done(self._command(node, name, *arguments))
        if done.returncode:
            log = self.folder / node.name / "log"
            raise ClusterError(f"{node.name}: {name} failed: {done.stdout} {log.read_text() if log.exists() else ''}")

    def sql(self, node: Node, statement: str) -> str:
        """Run a statement on a node, and return what it answers."""
        done = self._done([str(self.programs / "psql"), "-qAt", "-v", "ON_ERROR_STOP=1", "-c", statement, node.url])
        if done.returncode:
            raise ClusterError(f"{node.name}: {statement}: {done.stdout}")
        return done.stdout.strip()

    def _command(self, node: Node, name: str, *arguments: str) -> list[str]:
        return [str(self.programs / name), "-D", str(self.folder / node.name), *arguments]

    def _done(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        pipe, both = subprocess.PIPE, subprocess.STDOUT
        return subprocess.run(command, user=self.user, cwd="/", check=False, stdout=pipe, stderr=both, text=True)


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def programs(named: Path | None = None) -> Path:
    """Return the folder of a PostgreSQL that has every extension; ``ClusterError`` says what is missing where."""
    folders = [named] if named is not None else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    missing = {folder: _missing(folder) for folder in folders}
    found = next((folder for folder in folders if not missing[folder]), None)
    if found is None:
        told = "; ".join(f"{folder} lacks {', '.join(names)}" for folder, names in missing.items())
        raise ClusterError(f"--programs: no PostgreSQL here has what a cluster needs ({told or 'none is installed'})")
    return found


def _missing(folder: Path) -> list[str]:
    if not (folder / "initdb").exists():
        return ["initdb"]
    command = [str(folder / "pg_config"), "--sharedir"]
    shared = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return [name for name in EXTENSIONS if not (Path(shared) / "extension" / f"{name}.control").exists()]


def plain_user(named: str) -> str | None:
    """Return the user that runs the servers: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(named).pw_name
    except KeyError:
        raise ClusterError(f"--user: there is no user {named!r} here; name one that is not root") from None


def settings(durable: bool, given: list[str]) -> dict[str, str]:
    """Return the settings of every node, with those that were given as NAME=VALUE."""
    for pair in given:
        if "=" not in pair:
            raise ClusterError(f"--set: {pair!r} is not NAME=VALUE")
    return {**SETTINGS, **({} if durable else UNSAFE), **dict(pair.split("=", 1) for pair in given)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("start", "add", "stop", "delete", "url"))
    parser.add_argument("--folder", type=Path, default=Path("/tmp/trivet-cluster"), help="of the nodes (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="of a new cluster (%(default)s)")
    parser.add_argument("--user", default="postgres", help="who runs the servers, for root (%(default)s)")
    parser.add_argument("--programs", type=Path, help="the folder of initdb and pg_ctl; else the newest that fits")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="of a new node")
    parser.add_argument("--durable", action="store_true", help="wait for the disk, as a server with data has to")
    given = parser.parse_args(arguments)
    try:
        print(run(given))
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def run(given: argparse.Namespace) -> str:
    """Run a command, and return what it prints."""
    found, user, folder = programs(given.programs), plain_user(given.user), given.folder.resolve()
    if given.command == "start" and not (folder / CLUSTER).exists():
        made = Cluster(folder, found, user).make(given.workers, settings(given.durable, given.set))
        return made.coordinator.url
    cluster = Cluster.open(folder, found, user)
    if given.command == "start":
        cluster.start()
    if given.command == "add":
        cluster.add(f"worker{len(cluster.nodes)}", settings(given.durable, given.set))
    if given.command == "stop":
        cluster.stop()
    if given.command == "delete":
        cluster.delete()
    return cluster.coordinator.url if given.command in ("start", "add", "url") else f"{folder}: {given.command} done"


if __name__ == "__main__":
    sys.exit(main())
