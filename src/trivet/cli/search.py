"""``trivet search``: run a query."""

from __future__ import annotations

import os
from typing import Annotated

from trivet import serialize
from trivet.cli import options, output
from trivet.cli.options import RANKING_PANEL, argument, flag, option
from trivet.cli.store import catch_up_command, open_existing, scorer_or_default
from trivet.errors import InputError
from trivet.profile import READER
from trivet.text.languages import NOT_READ


def search(
    query: Annotated[str, argument("QUERY", 'The query, in your own words. "Quotes" search for a phrase.')],
    k: Annotated[int | None, option("-k", "N", "Number of hits. Default: the collection's setting.")] = None,
    offset: Annotated[int, option("--offset", "N", "Skip the first N hits, to get the next page.")] = 0,
    where: options.Where = None,
    exclude: Annotated[list[str] | None, option("--exclude", "ID", "Leave this document out. Repeat for more.")] = None,
    explain: Annotated[bool, flag("--explain", "Show every number behind every hit, and the time of each stage.")] = (
        False
    ),
    explain_id: Annotated[
        str | None, option("--explain-id", "ID", "Show why this document is among the hits, or why it is not.")
    ] = None,
    profile: Annotated[
        str | None,
        option("--profile -p", "NAME|FILE", "A profile of `trivet profiles`, or a .toml/.json file.", RANKING_PANEL),
    ] = None,
    careful: Annotated[
        bool, flag("--careful", "Let the built-in reader read the first hits, and rank by that too.", RANKING_PANEL)
    ] = False,
    alpha: options.Alpha = None,
    weight: options.Weights = None,
    fusion: Annotated[
        str | None, option("--fusion", "NAME", "The fusion, such as convex or rrf.", RANKING_PANEL)
    ] = None,
    rrf_k: Annotated[float | None, option("--rrf-k", "N", "The constant of RRF.", RANKING_PANEL)] = None,
    normalize: Annotated[
        str | None,
        option("--normalize", "NAME", "The normalisation of the scores, such as minmax or zscore.", RANKING_PANEL),
    ] = None,
    min_relevance: Annotated[
        float | None, option("--min-relevance", "0–1", "Drop hits with a lower relevance.", RANKING_PANEL)
    ] = None,
    set_: options.Settings = None,
    store: options.Store = options.DEFAULT_STORE,
    collection: options.Collection = options.DEFAULT_COLLECTION,
    scorer: options.Scorer = None,
    json: options.Json = False,
    full: Annotated[bool, flag("--full", "With --json: the whole text of each document, too.")] = False,
    fields: Annotated[
        str | None, option("--fields", "NAMES", "With --json: only these keys of a hit, such as id,relevance,text.")
    ] = None,
) -> None:
    """Search by words and by meaning, and show how much each leg contributed to a hit.

    The ranking options apply to this query only; `trivet settings` changes them permanently.
    """
    changes = options.parse_changes(
        set_ or (),
        weight or (),
        k=k,
        alpha=alpha,
        fusion=fusion,
        rrf_k=rrf_k,
        normalize=normalize,
        min_relevance=min_relevance,
    )
    if careful and profile is not None:
        raise InputError("search: --careful is a profile of its own; leave out --profile, or name 'careful' there")
    if (full or fields) and not json:
        raise InputError("search: --full and --fields choose what --json prints; add --json")
    keys = serialize.check_keys([name.strip() for name in fields.split(",")] if fields else ())
    start = options.read_profile(profile)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads: 30 ms for nothing
    with open_existing(store, collection, model=True, scorer=scorer_or_default(scorer)) as engine:
        if careful and READER not in engine.careful.rerankers:
            raise InputError(
                f"search: --careful is for the default settings, and this collection has {engine.settings.name!r}; "
                "write --profile careful"
            )
        chosen = (start or (engine.careful if careful else engine.settings)).with_changes(changes)
        from trivet.cli import hits

        screen = output.stdout()
        if explain_id is not None:
            explanation = engine.explain(
                query, explain_id, where=where, profile=chosen, exclude=exclude or [], offset=offset
            )
            if json:
                output.print_json(explanation)
            else:
                screen.show(hits.explanation(explanation, screen))
            return
        results = engine.search(query, where=where, profile=chosen, exclude=exclude or [], offset=offset)
        if json:
            output.print_json(serialize.results(results, full, keys))
        else:
            screen.show(hits.results(results, screen, engine.language, explain))
        if not results.hits and not engine.stats().documents:
            output.message(
                f"the collection {collection!r} is empty; fill it with `trivet add` or `trivet import`", "yellow"
            )
        if any(NOT_READ in stage.detail for stage in results.trace):
            way_out = "`trivet reembed --embedder multilingual` (docs/how-to/languages.md)"
            output.message(f"{NOT_READ} the language of this query; for another model: {way_out}", "yellow")
        if any(item.pending for item in results.degraded):  # this process ends before it is done
            output.message(f"`{catch_up_command(store, collection)}` finishes it now", "yellow")
