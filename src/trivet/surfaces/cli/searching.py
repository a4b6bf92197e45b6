"""What answers this question? (``trivet search``)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trivet.surfaces.cli import flags, opening, options, screen

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.profile import Profile

_KNOBS = "How to rank (this question only; `trivet settings` changes it for good)"


def _knob(*names: str, help: str, metavar: str) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=_KNOBS, show_default=False)


def search(
    query: Annotated[str, typer.Argument(help="The question, in any words. Nothing in it is syntax but \"a phrase\".")],
    k: Annotated[int | None, typer.Option("-k", metavar="N", help="How many hits. [default: the settings']", show_default=False)] = None,
    offset: Annotated[int, typer.Option("--offset", metavar="N", help="Leave out the first N hits: the next page.")] = 0,
    where: options.Where = None,
    exclude: Annotated[list[str] | None, typer.Option("--exclude", metavar="ID", help="Not this document. Repeat for more.", show_default=False)] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Every number behind every hit, and what each stage took.")] = False,
    explain_id: Annotated[str | None, typer.Option("--explain-id", metavar="ID", help="Why is this document found, or why not?", show_default=False)] = None,
    profile: Annotated[str | None, _knob("--profile", "-p", metavar="NAME|FILE", help="A shipped profile (`trivet profiles`) or a .toml/.json file.")] = None,
    alpha: Annotated[float | None, _knob("--alpha", metavar="0–1", help="0: words alone, 1: meaning alone.")] = None,
    weight: Annotated[list[str] | None, _knob("--weight", metavar="LEG=N", help="One leg's weight; 0 turns it off. Repeat for more.")] = None,
    fusion: Annotated[str | None, _knob("--fusion", metavar="NAME", help="rrf, convex, comb_sum, comb_mnz, isr.")] = None,
    rrf_k: Annotated[float | None, _knob("--rrf-k", metavar="N", help="RRF's constant.")] = None,
    normalize: Annotated[str | None, _knob("--normalize", metavar="NAME", help="How scores are made comparable: minmax, …")] = None,
    min_relevance: Annotated[float | None, _knob("--min-relevance", metavar="0–1", help="Weaker hits are no answer.")] = None,
    set_: Annotated[list[str] | None, _knob("--set", metavar="NAME=VALUE", help="Any other setting: depths.dense=200, rerankers=exact,dedup.")] = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    json: options.Json = False,
) -> None:
    """Ask a question: the best hits by words and by meaning, each with what each leg gave."""
    asked = flags.changes(
        set_ or (), weight or (), k=k, alpha=alpha, fusion=fusion, rrf_k=rrf_k, normalize=normalize, min_relevance=min_relevance
    )
    start = flags.profile(profile)
    with opening.existing(store, collection, model=True) as engine:
        chosen = (start or engine.settings).with_changes(asked)
        if explain_id is not None:
            _explain(engine, query, explain_id, where, chosen, exclude or [], json)
        else:
            _answer(engine, query, where, chosen, exclude or [], offset, explain, json)


def _answer(
    engine: Engine, query: str, where: Any, profile: Profile, exclude: list[str], offset: int, explain: bool, json: bool
) -> None:
    found = engine.search(query, where=where, profile=profile, exclude=exclude, offset=offset)
    if json:
        from trivet.surfaces import wire

        screen.print_json(wire.results(found))
        return
    from trivet.surfaces.cli import render

    place = screen.stdout()
    place.show(render.results(found, place, engine.stats().language, explain))


def _explain(
    engine: Engine, query: str, id: str, where: Any, profile: Profile, exclude: list[str], json: bool
) -> None:
    found = engine.explain(query, id, where=where, profile=profile, exclude=exclude)
    if json:
        from trivet.surfaces import wire

        screen.print_json(wire.plain(found))
        return
    from trivet.surfaces.cli import account

    place = screen.stdout()
    place.show(account.verdict(found, place))
