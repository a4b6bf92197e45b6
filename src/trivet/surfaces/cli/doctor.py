"""Is everything sound, and if not, which command mends it? (``trivet doctor``)"""

from __future__ import annotations

import platform
import shlex
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from trivet.errors import EmbedderError, TrivetError
from trivet.surfaces.cli import opening, options, screen

if TYPE_CHECKING:
    from trivet.engine import Engine

PACKAGES = ("trivet", "numpy", "tantivy", "faiss-cpu", "onnxruntime", "tokenizers", "PyStemmer", "typer", "rich")
PATIENCE = 3.0  # seconds that waiting passages get, before they are reported
PROBE = "is anybody there"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    said: str
    mend: str = ""  # the command that mends it


def doctor(
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    scorer: options.Scorer = None,
    json: options.Json = False,
) -> None:
    """Check the environment, the store, its indexes, its model and the scorer; exit 1 if something is wrong."""
    checked: dict[str, int] = {}
    checks = [*environment(), *_checked(store, collection, checked), _scorer(opening.scorer_of(scorer))]
    if json:
        from trivet.surfaces import wire

        ok = all(check.ok for check in checks)
        screen.print_json({"ok": ok, "checks": wire.plain(checks), "compared": checked})
    else:
        screen.stdout().show(_table(checks))
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def environment() -> Iterator[Check]:
    from importlib.metadata import PackageNotFoundError, version

    yield Check("python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Check("sqlite", True, sqlite3.sqlite_version)
    for name in PACKAGES:
        try:
            yield Check(name, True, version(name))
        except PackageNotFoundError:
            yield Check(name, False, "is not installed", f"pip install {name}")


def _checked(store: Path, collection: str, checked: dict[str, int]) -> Iterator[Check]:
    """``checked`` is filled with how many of each kind were compared."""
    from trivet.engine import is_store

    place = f"-s {shlex.quote(str(store))} -c {shlex.quote(collection)}"
    try:
        with opening.existing(store, collection, model=True) as engine:
            yield Check("store", True, f"{engine.path} ({engine.name})")
            yield from _verified(engine, place, checked)
            yield from _index(engine)
            yield from _model(engine, place)
    except TrivetError as error:
        mend = "" if is_store(store) else f"trivet import {place} FOLDER"
        yield Check("store", False, str(error), mend)


def _verified(engine: Engine, place: str, checked: dict[str, int]) -> Iterator[Check]:
    with screen.steps("checking the store", "passages") as progress:
        report = engine.verify(progress)
    checked.update(report.checked)
    for problem in report.problems:
        # counts and indexes come right from the rows; a damaged file does not
        mend = (
            f"trivet rebuild {place}"
            if "run rebuild" in problem
            else f"restore a backup; or trivet export {place} rescued.jsonl, then import it into a new store"
        )
        yield Check("verify", False, problem, mend)
    if report.ok:
        yield Check("verify", True, ", ".join(f"{count:,} {name}" for name, count in report.checked.items()))


def _index(engine: Engine) -> Iterator[Check]:
    from trivet.engine import on_server
    from trivet.surfaces.cli.care import size

    bytes_index = engine.stats().bytes_index
    if on_server(engine.url):
        yield Check("index", True, f"on the server ({size(bytes_index)})")
        return
    folder = Path(f"{engine.path}.index")
    state = size(bytes_index) if bytes_index else "nothing built yet: a small collection needs none"
    yield Check("index", True, f"{folder} ({state})")


def _model(engine: Engine, place: str) -> Iterator[Check]:
    """Does it load, does it answer, and has it done its work?"""
    found = engine.stats()
    if found.model is None:
        yield Check("model", True, "none: found by words alone")
        return
    try:
        engine.wait(timeout=PATIENCE)
        trouble = ""
    except EmbedderError as error:
        trouble = str(error)
    answer = engine.search(PROBE, k=1, alpha=0.5)  # words answer too, so a model that does not is told, not raised
    lost = [item.reason for item in answer.degraded if item.part == "dense" and "not embedded" not in item.reason]
    asked = next((stage.ms for stage in answer.trace if stage.name == "dense"), 0.0)
    if lost and not found.model.startswith("vectors"):
        yield Check("model", False, f"{found.model}: {lost[0]}", f"trivet reembed {place} --embedder SPEC")
    else:
        yield Check("model", True, f"{found.model} answers ({asked:.0f} ms)")
    left = engine.stats().pending
    yield Check(
        "embedded",
        not left,
        trouble or (f"{left:,} passages wait" if left else f"{found.passages:,} passages, none wait"),
        f"trivet reembed {place}" if left else "",
    )


def _scorer(spec: str | None) -> Check:
    """Does it load, and does it answer?"""
    from trivet.scorers import load_scorer
    from trivet.scorers.panel import checked

    try:
        found = load_scorer(spec)
        if found is None:
            return Check("scorer", True, "none: the reranker cross_encoder has nobody to ask")
        begun = time.perf_counter()
        checked(found.scores(PROBE, [PROBE, "nobody"]), 2, found.id)
        return Check("scorer", True, f"{found.id} answers ({(time.perf_counter() - begun) * 1000:.0f} ms)")
    except TrivetError as error:
        return Check("scorer", False, str(error), "name another with --scorer or TRIVET_SCORER")


def _table(checks: list[Check]) -> Any:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(2):
        grid.add_column(no_wrap=True)
    grid.add_column()
    for check in checks:
        mark = Text("ok", style="green") if check.ok else Text("NO", style="bold red")
        said = Text(screen.clean(check.said), style="" if check.ok else "red")
        if check.mend:
            said.append("\n→ ", style="dim").append(check.mend, style="bold")
        grid.add_row(mark, check.name, said)
    return grid
