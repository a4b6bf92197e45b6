"""``trivet redistribute``: divide a collection between the workers of a Citus cluster."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated

from trivet.cli import options, output
from trivet.cli.options import option
from trivet.cli.output import plural
from trivet.cli.store import check_exists


def redistribute(
    by: Annotated[
        str,
        option("--by", "WHAT", "`documents`: over all workers; `collections`: the whole collection on one worker."),
    ] = "documents",
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Distribute a collection on a Citus cluster by its documents, for one that outgrows a worker, or undo that.

    Writers wait until it is done. Restart other processes that have the collection open.
    """
    from trivet.engine.redistribute import redistribute as move

    check_exists(store, collection)
    started = time.monotonic()
    with output.progress("indexing", "passages") as report:
        done = move(store, collection, by, report)
    seconds = time.monotonic() - started
    size = f"{plural(done.documents, 'document')}, {plural(done.passages, 'passage')}"
    moved = f"{done.collection} is distributed by {by} now: {size}, in {seconds:.1f} s"
    text = moved if done.moved else f"{done.collection} was distributed by {by} already: {size}"
    output.result({**asdict(done), "seconds": round(seconds, 3)}, text, json)
