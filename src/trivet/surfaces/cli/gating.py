"""Did it get worse? (``trivet gate``)"""

from __future__ import annotations

import json as json_
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trivet.errors import NotFoundError, TrivetError
from trivet.surfaces.cli import options, outputs, screen, sources, verdicts
from trivet.surfaces.cli.contenders import Contender
from trivet.surfaces.cli.options import flag, option, spread
from trivet.surfaces.cli.sources import Source
from trivet.surfaces.cli.trials import Trial

if TYPE_CHECKING:
    from trivet.evaluate import Evaluation
    from trivet.profile import Profile


@spread
def gate(
    dataset: sources.Name,
    against: Annotated[Path, option("--against", "FILE", "The stored result: a promise.")],
    contender: Contender,
    source: Source,
    measure: sources.Measure = "nDCG@10",
    margin: Annotated[float, option("--margin", "0–1", "How far it may fall.", default=True)] = 0.01,
    write: Annotated[bool, flag("--write", "Store this result in the file instead, whatever it is.")] = False,
    json: options.Json = False,
) -> None:
    """Fail (exit code 1) where a ranking scores less than it once did, by more than a margin. Made for CI.

    Without -p the profile is the stored result's, by its name: as it ships now.
    """
    from trivet.evaluate import MEASURES
    from trivet.evaluate import gate as judged

    measure = sources.checked([measure])[0]
    stored = _stored(against, write)
    asked = source.load(dataset)
    if stored is not None and not write:  # what can be refused is refused before anything is asked
        judged(stored, replace(stored, dataset=asked.identity), measure, margin)
    outputs.file(against, "--against")
    profile = contender.one(_promised(stored))
    measures = list(dict.fromkeys((measure, *MEASURES))) if write else [measure]
    (current,), _ = Trial(asked, source, {profile.name: profile}, measures).evaluate()
    alike = stored is not None and stored.dataset == current.dataset and measure in stored.scores
    verdict = judged(stored, current, measure, margin) if stored is not None and alike else None
    if write:
        outputs.write(against, json_.dumps(current.to_dict(answers=False), ensure_ascii=False, indent=1) + "\n")
    gated = verdicts.Gated(measure, current, stored, verdict, write)
    place = screen.stdout()
    if json:
        screen.print_json(gated.to_dict())
    else:
        place.show(verdicts.shown(gated, place))
    if not write and verdict is not None and not verdict.passed:
        raise typer.Exit(1)


def _stored(path: Path, write: bool) -> Evaluation | None:
    """The promise; where a new one is made the old need not be there, nor be readable."""
    from trivet.evaluate import read_evaluation

    try:
        return read_evaluation(path)
    except NotFoundError:
        if write:
            return None
        raise NotFoundError(f"--against: there is no file {str(path)!r}; make it with --write") from None
    except TrivetError:
        if write:
            return None
        raise


def _promised(stored: Evaluation | None) -> Profile | None:
    """A shipped profile as it is now, so that a change of it is noticed; another one as it was stored."""
    from trivet.profile import PROFILES

    if stored is None or stored.profile is None:
        return None
    return PROFILES.get(stored.profile.name, stored.profile)
