"""What does each setting do?

Sweeps of the same axes and measure belong together: one picture a dataset, a line for each base profile. Over several
datasets a first picture shows what each setting loses against that dataset's best, which is where one setting for all
of them would be looked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from trivet.evaluate.report import curves, grids
from trivet.evaluate.report.axes import base_name, numeric, series
from trivet.evaluate.report.markup import Html, Section, folded, joined, legend, panels, tag
from trivet.evaluate.report.material import View
from trivet.evaluate.sweeps import Sweep

UNFOLDED = 9  # pictures of a setting


def section(view: View) -> Section | None:
    kinds: dict[tuple[str, ...], list[Sweep]] = {}
    for sweep in view.material.sweeps:
        if sweep.points and sweep.axes:
            kinds.setdefault((sweep.measure, *sweep.axes), []).append(sweep)
    if not kinds:
        return None
    if len({sweep.dataset for sweep in view.material.sweeps}) == 1:
        body = _together(view, list(kinds.values()))
    else:
        body = joined(
            joined((tag("h3", f"{' × '.join(axes)}, {measure}"), _keys(sweeps), _several(view, sweeps)))
            for (measure, *axes), sweeps in kinds.items()
        )
    return Section(
        "settings",
        "Settings",
        "What does each setting do?",
        "All else as in the base profile. An upright dashed line is the base's own value; a level one is what the base "
        "scores, where it is not itself on the curve. The band is the 95 % interval of each mean. The ring marks the "
        "highest mean on these very topics: it describes them and promises nothing for others.",
        body,
    )


def _together(view: View, kinds: Sequence[Sequence[Sweep]]) -> Html:
    """Of one dataset: all pictures in a row, each named by its setting."""
    keys = [_keys(sweeps) for sweeps in kinds]
    return joined((*keys, panels(picture for sweeps in kinds for picture in _pictures(view, sweeps, named=True))))


def _several(view: View, sweeps: Sequence[Sweep]) -> Html:
    """Of many datasets, each one's own pictures are folded away behind the one of all."""
    pictures = _pictures(view, sweeps)
    if len(pictures) <= UNFOLDED:
        return panels(pictures)
    overview = _overview(view, sweeps)
    each = folded(f"{len(pictures) - len(overview)} pictures, a dataset each", panels(pictures[len(overview) :]))
    return joined((panels(overview) if overview else "", each))


def _overview(view: View, sweeps: Sequence[Sweep]) -> list[Html]:
    """All datasets in one picture, where there are several and their values have an order."""
    axes = list(sweeps[0].axes)
    if len(axes) > 1 or len({sweep.dataset for sweep in sweeps}) < 2:
        return []
    picture = curves.losses(view, sweeps, axes[0]) if all(numeric(sweep, axes[0]) for sweep in sweeps) else None
    return [picture] if picture else []


def _pictures(view: View, sweeps: Sequence[Sweep], named: bool = False) -> list[Html]:
    """The overview first, where there is one."""
    axes = list(sweeps[0].axes)
    title = " × ".join(axes) if named else ""
    if len(axes) > 1:
        draw_one = grids.grid if len(axes) == 2 else grids.listed
        return [draw_one(view, sweep, title) for sweep in sweeps]
    by_dataset: dict[str, list[Sweep]] = {}
    for sweep in sweeps:
        by_dataset.setdefault(sweep.dataset, []).append(sweep)
    ordered = all(numeric(sweep, axes[0]) for sweep in sweeps)
    draw = curves.lines if ordered else curves.choices
    pictures = [draw(view, found, axes[0], title, _kinds(sweeps)) for found in by_dataset.values()]
    return [*_overview(view, sweeps), *pictures]


def _keys(sweeps: Sequence[Sweep]) -> Html:
    """Which line is of which base, where a picture has several."""
    names = {sweep.base.identity: base_name(sweep, sweeps) for sweep in sweeps}
    if len(names) < 2 or len(sweeps[0].axes) > 1:
        return Html("")
    return legend((f"line {kind}", names[base]) for base, kind in _kinds(sweeps).items())


def _kinds(sweeps: Sequence[Sweep]) -> dict[str, str]:
    """Base → the colour of its line, the same in every picture."""
    bases = dict.fromkeys(sweep.base.identity for sweep in sweeps)
    return {base: series(place) for place, base in enumerate(bases)}
