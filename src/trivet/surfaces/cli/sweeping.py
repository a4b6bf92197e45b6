"""What does each setting do? (``trivet sweep``)"""

from __future__ import annotations

import json as json_
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any

from trivet.errors import InputError
from trivet.surfaces.cli import flags, options, outputs, screen, sources
from trivet.surfaces.cli.contenders import Contender
from trivet.surfaces.cli.options import option, spread
from trivet.surfaces.cli.sources import Source

EXAMPLE = "alpha=0:1:0.1"


@spread
def sweep(
    dataset: sources.Name,
    over: Annotated[
        list[str],
        option("--over", "NAME=VALUES", "A range with both ends (0:1:0.1) or a list (2,5,60). Repeat for a grid."),
    ],
    contender: Contender,
    source: Source,
    measure: sources.Measure = "nDCG@10",
    report: outputs.Report = None,
    json: options.Json = False,
) -> None:
    """Try every combination of some settings and draw what each scores; the legs answer once, fusion is done anew."""
    from trivet.evaluate import evaluate
    from trivet.evaluate import sweep as tried

    measure = sources.checked([measure])[0]
    swept = axes(over)
    profile = contender.one()
    outputs.file(report, "--report")
    asked = source.load(dataset)
    with sources.steps() as told, source.lab(asked, told) as lab:
        found = tried(lab, profile, swept, measure, told)
        # the profile as it is, by the same path: a sweep of one point
        base = tried(lab, profile, {"k": (profile.k,)}, measure).points[0]
        if report:
            evaluations = [evaluate(lab, profile, measures=[measure], progress=told)]
            outputs.report(report, f"trivet sweep {dataset}", evaluations, sweeps=[found])
    notes = [*asked.notes, *sources.shallow([measure], profile.k, profile.name)]
    if json:
        told_base = {"profile": base.profile.identity, **{name: round(getattr(base, name), 4) for name in _NUMBERS}}
        best = found.to_dict()["points"][found.points.index(found.best)]
        screen.print_json({**found.to_dict(), "as_it_is": told_base, "highest": best, "notes": notes})
        return
    from trivet.surfaces.cli import curves

    place = screen.stdout()
    place.show(curves.shown(found, base, len(asked.topics), notes, place))


_NUMBERS = ("mean", "low", "high")


def axes(given: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Setting → its values; ``weights.dense`` is the profile's ``dense_weight``."""
    found: dict[str, tuple[Any, ...]] = {}
    for item in given:
        name, said = flags.pair(item, "--over", EXAMPLE)
        table, dot, leg = name.partition(".")
        name = f"{leg}_{table.removesuffix('s')}" if dot else name
        if name in found:
            raise InputError(f"--over: {name} was given twice; write all its values in one list")
        found[name] = _values(said, item)
    return found


def _values(said: str, item: str) -> tuple[Any, ...]:
    if ":" in said and "{" not in said:
        return _range(said, item)
    try:
        values = json_.loads(f"[{said}]")
    except json_.JSONDecodeError:
        values = [flags.value(part.strip()) for part in said.split(",") if part.strip()]
    if not values:
        raise InputError(f"--over: {item!r} has no value; write --over {EXAMPLE}")
    return tuple(values)


def _range(said: str, item: str) -> tuple[Any, ...]:
    """Both ends included, counted in decimals: 0:1:0.1 ends at 1 and holds 0.3, not 0.30000000000000004."""
    from trivet.evaluate.sweeps import MAX_POINTS

    try:
        start, stop, step = map(Decimal, said.split(":"))
        count = math.floor((stop - start) / step) + 1
    except (ArithmeticError, ValueError):
        raise InputError(f"--over: {item!r} is not start:stop:step; write --over {EXAMPLE}") from None
    if not 1 <= count <= MAX_POINTS:
        raise InputError(f"--over: {item!r} has {max(count, 0):,} values; allowed: 1 to {MAX_POINTS:,}")
    whole = all(part == part.to_integral_value() for part in (start, step))
    return tuple((int if whole else float)(start + step * at) for at in range(count))
