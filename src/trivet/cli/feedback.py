"""``trivet feedback``: record which documents were good or bad hits for a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.table import Table
from rich.text import Text

from trivet import serialize
from trivet.cli import options, output, tables
from trivet.cli.options import argument, flag
from trivet.cli.output import one_line, plural
from trivet.cli.store import open_existing
from trivet.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.types import Feedback


def feedback(
    query: Annotated[str | None, argument("QUERY", "The query, exactly as it was searched for.")] = None,
    id: Annotated[str | None, argument("ID", "The document that was a good or a bad hit.")] = None,
    good: Annotated[bool | None, flag("--good/--bad", "Whether the hit was good or bad. Default: good.")] = None,
    list_: Annotated[bool, flag("--list -l", "List the feedback, oldest first.")] = False,
    forget: Annotated[
        bool, flag("--forget", "Remove the feedback on the query; with an ID, on that document only.")
    ] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Record that a document was a good or a bad hit for a query. `trivet tune` learns from it."""
    _check(query, id, good, list_, forget)
    with open_existing(store, collection) as engine:
        if list_:
            _list(engine.feedbacks(), json)
        elif forget:
            _forget(engine, str(query), id, json)
        else:
            _record(engine, str(query), str(id), good is not False, json)


def _check(query: str | None, id: str | None, good: bool | None, list_: bool, forget: bool) -> None:
    if list_ and (query is not None or good is not None or forget):
        raise InputError("feedback: --list takes no QUERY, --good, --bad or --forget; leave them out")
    if forget and good is not None:
        raise InputError("feedback: --forget removes good and bad feedback; leave out --good and --bad")
    if forget and query is None:
        raise InputError("feedback: --forget needs a QUERY, and an ID to remove the feedback on one document")
    if not (list_ or forget) and id is None:
        raise InputError("feedback: give a QUERY and an ID, or list the feedback with --list")


def _record(engine: Engine, query: str, id: str, good: bool, json: bool) -> None:
    given = engine.feedback(query, id, good)
    queries = _queries(engine)
    text = f"{_judgement(given)}: {one_line(given.id)} for {one_line(given.query)!r}\n{_status(queries)}"
    output.result({**serialize.plain(given), "questions": queries}, text, json)


def _forget(engine: Engine, query: str, id: str | None, json: bool) -> None:
    removed = engine.forget_feedback(query, id)
    if not removed:
        what = f"query {query!r}" if id is None else f"document {id!r} and query {query!r}"
        raise NotFoundError(f"feedback: there is none for {what}; `trivet feedback --list` shows all")
    queries = _queries(engine)
    text = f"removed {plural(removed, 'judgement')}\n{_status(queries)}"
    output.result({"forgotten": removed, "questions": queries}, text, json)


def _list(found: list[Feedback], json: bool) -> None:
    if json:
        output.print_json(found)
    elif found:
        output.show(_table(found))
    else:
        print("no feedback")


def _table(found: list[Feedback]) -> Table:
    table = tables.plain_table(gap=3)
    table.add_column("judgement", no_wrap=True)
    table.add_column("document", overflow="fold")
    table.add_column("query", overflow="fold")
    table.add_column("time", style="dim", no_wrap=True)
    for item in found:
        judgement = Text(_judgement(item), style="green" if item.good else "red")
        table.add_row(judgement, Text(one_line(item.id)), Text(one_line(item.query)), item.at.isoformat(" ", "seconds"))
    return table


def _judgement(item: Feedback) -> str:
    return "good" if item.good else "bad"


def _queries(engine: Engine) -> int:
    return len({item.query for item in engine.feedbacks()})


def _status(queries: int) -> str:
    from trivet.evaluate.significance import FEW

    count = plural(queries, "judged query", "judged queries")
    return f"{count}; `trivet tune` needs about {FEW} to be useful"
