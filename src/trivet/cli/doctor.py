"""``trivet doctor``: check the environment, the store and its models, and name the command that repairs a problem."""

from __future__ import annotations

import platform
import shlex
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import typer
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from trivet.cli import options, output
from trivet.cli.output import plural
from trivet.cli.store import open_existing, scorer_or_default
from trivet.errors import EmbedderError, TrivetError

if TYPE_CHECKING:
    from trivet.engine import Engine

PACKAGES = ("trivet", "numpy", "tantivy", "faiss-cpu", "onnxruntime", "PyStemmer", "typer", "rich")
EMBEDDING_SECONDS = 3.0  # time limit for pending passages, before they are reported
TEST_QUERY = "is anybody there"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check; ``mend`` is the command that repairs a problem. The names are those of the JSON."""

    name: str
    ok: bool
    said: str
    mend: str = ""


def doctor(
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    scorer: options.Scorer = None,
    json: options.Json = False,
) -> None:
    """Check the environment, the store, its indexes, its model and the scorer. The exit code is 1 if one fails."""
    compared: dict[str, int] = {}
    checks = [*_environment(), *_store(store, collection, compared), _scorer(scorer_or_default(scorer))]
    ok = all(check.ok for check in checks)
    if json:
        output.print_json({"ok": ok, "checks": checks, "compared": compared})
    else:
        output.show(_table(checks))
    if not ok:
        raise typer.Exit(1)


def _environment() -> Iterator[Check]:
    yield Check("python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Check("sqlite", True, sqlite3.sqlite_version)
    for name in PACKAGES:
        try:
            yield Check(name, True, version(name))
        except PackageNotFoundError:
            yield Check(name, False, "not installed", f"pip install {name}")


def _store(store: str, collection: str, compared: dict[str, int]) -> Iterator[Check]:
    """Check everything in the store; fill ``compared`` with how many rows of each kind were compared."""
    from trivet.engine import is_store, shown

    place = f"-s {shlex.quote(shown(store))} -c {shlex.quote(collection)}"
    try:
        with open_existing(store, collection, model=True) as engine:
            yield Check("store", True, f"{engine.path} ({engine.name})")
            yield from _verify(engine, place, compared)
            yield _index(engine)
            yield from _model(engine, place)
    except TrivetError as error:
        yield Check("store", False, str(error), "" if is_store(store) else f"trivet import {place} FOLDER")


def _verify(engine: Engine, place: str, compared: dict[str, int]) -> Iterator[Check]:
    with output.steps("checking the store", "passages") as progress:
        report = engine.verify(progress)
    compared.update(report.checked)
    for problem in report.problems:
        # the problem says whether the records have what it takes to repair it
        mend = (
            f"trivet rebuild {place}"
            if "run rebuild" in problem
            else f"restore a backup; or trivet export {place} rescued.jsonl, then import it into a new store"
        )
        yield Check("verify", False, problem, mend)
    if report.ok:
        counts = (plural(count, name.removesuffix("s")) for name, count in report.checked.items())
        yield Check("verify", True, ", ".join(counts))


def _index(engine: Engine) -> Check:
    from trivet.engine import on_server

    size = engine.stats().bytes_index
    if on_server(engine.url):
        return Check("index", True, f"on the server ({decimal(size)})")
    state = decimal(size) if size else "not built: a small collection needs none"
    return Check("index", True, f"{engine.path}.index ({state})")


def _model(engine: Engine, place: str) -> Iterator[Check]:
    """Check that the model loads and answers, and that every passage is embedded."""
    stats = engine.stats()
    if stats.model is None:
        yield Check("model", True, "none: search by words only")
        return
    problem = ""
    try:
        engine.wait(timeout=EMBEDDING_SECONDS)
    except EmbedderError as error:
        problem = str(error)
    # with alpha 0.5 the lexical leg answers too: a failing model is reported as degraded, not raised
    found = engine.search(TEST_QUERY, k=1, alpha=0.5)
    failures = [item.reason for item in found.degraded if item.part == "dense" and not item.pending]
    milliseconds = next((stage.ms for stage in found.trace if stage.name == "dense"), 0.0)
    if failures and not stats.model.startswith("vectors"):
        yield Check("model", False, f"{stats.model}: {failures[0]}", f"trivet reembed {place} --embedder SPEC")
    else:
        yield Check("model", True, f"{stats.model} works ({milliseconds:.0f} ms)")
    pending = engine.stats().pending
    state = f"{plural(pending, 'passage')} pending" if pending else f"{plural(stats.passages, 'passage')}, none pending"
    yield Check("embedded", not pending, problem or state, f"trivet reembed {place}" if pending else "")


def _scorer(spec: str | None) -> Check:
    """Check that the scorer loads and answers."""
    from trivet.models.scorers import load_scorer
    from trivet.models.scorers.cached import checked

    try:
        scorer = load_scorer(spec)
        if scorer is None:
            return Check("scorer", True, "none: the reranker cross_encoder is off")
        started = time.perf_counter()
        checked(scorer.scores(TEST_QUERY, [TEST_QUERY, "nobody"]), 2, scorer.id)
        return Check("scorer", True, f"{scorer.id} works ({(time.perf_counter() - started) * 1000:.0f} ms)")
    except TrivetError as error:
        return Check("scorer", False, str(error), "name another with --scorer or TRIVET_SCORER")


def _table(checks: list[Check]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(2):
        grid.add_column(no_wrap=True)
    grid.add_column()
    for check in checks:
        mark = Text("ok", style="green") if check.ok else Text("FAILED", style="bold red")
        result = Text(output.clean(check.said), style="" if check.ok else "red")
        if check.mend:
            result.append("\n→ ", style="dim").append(check.mend, style="bold")
        grid.add_row(mark, check.name, result)
    return grid
