"""What answers this question? (``trivet search``)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from trivet.surfaces.cli import flags, opening, options, screen
from trivet.surfaces.cli.options import argument, flag, option

if TYPE_CHECKING:
    from trivet.engine import Engine
    from trivet.profile import Profile

_KNOBS = "How to rank (this question only; `trivet settings` changes it for good)"


def search(
    query: Annotated[str, argument("QUERY", 'The question, in any words. Nothing in it is syntax but "a phrase".')],
    k: Annotated[int | None, option("-k", "N", "How many hits; else as the settings say.")] = None,
    offset: Annotated[int, option("--offset", "N", "Leave out the first N hits: the next page.")] = 0,
    where: options.Where = None,
    exclude: Annotated[list[str] | None, option("--exclude", "ID", "Not this document. Repeat for more.")] = None,
    explain: Annotated[bool, flag("--explain", "Every number behind every hit, and what each stage took.")] = False,
    explain_id: Annotated[str | None, option("--explain-id", "ID", "Why is this document found, or why not?")] = None,
    profile: Annotated[
        str | None, option("--profile -p", "NAME|FILE", "One of `trivet profiles` or a .toml/.json file.", _KNOBS)
    ] = None,
    alpha: Annotated[float | None, option("--alpha", "0–1", "0: words alone, 1: meaning alone.", _KNOBS)] = None,
    weight: Annotated[
        list[str] | None, option("--weight", "LEG=N", "One leg's weight; 0 turns it off. Repeat for more.", _KNOBS)
    ] = None,
    fusion: Annotated[str | None, option("--fusion", "NAME", "convex, rrf, comb_sum, comb_mnz, isr.", _KNOBS)] = None,
    rrf_k: Annotated[float | None, option("--rrf-k", "N", "RRF's constant.", _KNOBS)] = None,
    normalize: Annotated[
        str | None,
        option("--normalize", "NAME", "Of the legs' scores: minmax, tm2c2, zscore, dbsf, max, none.", _KNOBS),
    ] = None,
    min_relevance: Annotated[
        float | None, option("--min-relevance", "0–1", "A weaker hit is no answer.", _KNOBS)
    ] = None,
    set_: Annotated[
        list[str] | None,
        option("--set", "NAME=VALUE", "Any other setting: depths.dense=200, rerankers=exact,dedup.", _KNOBS),
    ] = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    scorer: options.Scorer = None,
    json: options.Json = False,
) -> None:
    """Ask a question: the best hits by words and by meaning, each with what each leg gave."""
    asked = flags.changes(
        set_ or (),
        weight or (),
        k=k,
        alpha=alpha,
        fusion=fusion,
        rrf_k=rrf_k,
        normalize=normalize,
        min_relevance=min_relevance,
    )
    start = flags.profile(profile)
    with opening.existing(store, collection, model=True, scorer=opening.scorer_of(scorer)) as engine:
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


def _explain(engine: Engine, query: str, id: str, where: Any, profile: Profile, exclude: list[str], json: bool) -> None:
    found = engine.explain(query, id, where=where, profile=profile, exclude=exclude)
    if json:
        from trivet.surfaces import wire

        screen.print_json(wire.plain(found))
        return
    from trivet.surfaces.cli import account

    place = screen.stdout()
    place.show(account.verdict(found, place))
