"""How good were the answers? (``feedback``)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from trivet.errors import InputError, NotFoundError
from trivet.surfaces.cli import opening, options, screen
from trivet.surfaces.cli.options import argument, flag

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.types import Feedback

TUNE_FROM = 30  # judged questions; with fewer, single questions decide


def feedback(
    query: Annotated[str | None, argument("QUERY", "The question, word for word as it was searched for.")] = None,
    id: Annotated[str | None, argument("ID", "The document that was a good or a bad answer to it.")] = None,
    good: Annotated[bool | None, flag("--good/--bad", "Which of the two it was; good if neither is said.")] = None,
    list_: Annotated[bool, flag("--list -l", "Show what was said, in order of time, instead.")] = False,
    forget: Annotated[
        bool, flag("--forget", "Take back what was said of the question instead; with an ID, of that document alone.")
    ] = False,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Say that a document was a good (or bad) answer to a question, for `trivet tune` to learn from."""
    _check(query, id, good, list_, forget)
    with opening.existing(store, collection) as engine:
        if list_:
            _show(engine.feedbacks(), json)
        elif forget:
            _forget(engine, str(query), id, json)
        else:
            _record(engine, str(query), str(id), good is not False, json)


def _check(query: str | None, id: str | None, good: bool | None, list_: bool, forget: bool) -> None:
    if list_ and (query is not None or good is not None or forget):
        raise InputError("feedback: --list stands alone; leave out the question, --good, --bad and --forget")
    if forget and good is not None:
        raise InputError("feedback: --forget takes back a verdict of either kind; leave out --good and --bad")
    if forget and query is None:
        raise InputError("feedback: --forget what? Name the question, and the document's id for one verdict alone")
    if not (list_ or forget) and id is None:
        raise InputError("feedback: name the question and the document's id, or show what was said with --list")


def _record(engine: Engine, query: str, id: str, good: bool, json: bool) -> None:
    given = engine.feedback(query, id, good)
    count = _questions(engine.feedbacks())
    if json:
        from trivet.surfaces import wire

        screen.print_json({**wire.plain(given), "questions": count})
    else:
        print(f"{_verdict(given)}: {_line(given.id)} for {_line(given.query)!r}\n{_told(count)}")


def _forget(engine: Engine, query: str, id: str | None, json: bool) -> None:
    gone = engine.forget_feedback(query, id)
    if not gone:
        which = f"{query!r}" if id is None else f"{id!r} and {query!r}"
        raise NotFoundError(f"feedback: there is none for {which}; `trivet feedback --list` shows what there is")
    count = _questions(engine.feedbacks())
    if json:
        screen.print_json({"forgotten": gone, "questions": count})
    else:
        print(f"forgot {gone:,} {'verdict' if gone == 1 else 'verdicts'}\n{_told(count)}")


def _show(found: list[Feedback], json: bool) -> None:
    if json:
        from trivet.surfaces import wire

        screen.print_json(wire.plain(found))
    elif found:
        screen.stdout().show(_table(found))
    else:
        print("no feedback")


def _table(found: list[Feedback]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("verdict", no_wrap=True)
    table.add_column("document", overflow="fold")
    table.add_column("question", overflow="fold")
    table.add_column("said", style="dim", no_wrap=True)
    for item in found:
        verdict = Text(_verdict(item), style="green" if item.good else "red")
        table.add_row(verdict, Text(_line(item.id)), Text(_line(item.query)), item.at.isoformat(timespec="seconds"))
    return table


def _verdict(item: Feedback) -> str:
    return "good" if item.good else "bad"


def _line(text: str) -> str:
    """On one line, whatever is in it."""
    return " ".join(screen.clean(text).split())


def _questions(found: list[Feedback]) -> int:
    return len({item.query for item in found})


def _told(count: int) -> str:
    return f"{count:,} {'question' if count == 1 else 'questions'} judged; `trivet tune` is useful from {TUNE_FROM}"
