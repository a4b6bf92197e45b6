"""Where do results go?

Every file is checked before the work that fills it begins: an hour's run must not end at a folder that cannot be
written to.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trivet.errors import InputError, StoreError
from trivet.surfaces.cli.options import option
from trivet.surfaces.cli.screen import say

if TYPE_CHECKING:
    from trivet.evaluate import Comparison, Dataset, Evaluation, Headroom, Sweep

PLACE = "Where it goes"
SLOT = "{profile}"

Report = Annotated[Path | None, option("--report", "FILE", "An HTML page with plots; it needs no other file.", PLACE)]


def folder(path: Path, flag: str) -> None:
    """A folder that can be written to, made if it is new."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{flag}: {str(path)!r} cannot be made ({error.strerror})") from None
    if not os.access(path, os.W_OK):
        raise StoreError(f"{flag}: {str(path)!r} cannot be written to; name another folder")


def file(path: Path | None, flag: str) -> None:
    """A file that can be written, if one is asked for."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{flag}: {str(path)!r} is a folder; name a file")
    folder(path.parent, flag)


def runs(target: str | None, names: Sequence[str]) -> dict[str, Path]:
    """Name → TREC file. Several runs need a folder, or ``{profile}`` in the file's name."""
    if target is None:
        return {}
    if Path(target).is_dir() or target.endswith(("/", os.sep)):
        target = str(Path(target) / f"{SLOT}.trec")
    if len(names) > 1 and SLOT not in target:
        raise InputError(
            f"--run-out: {len(names)} runs do not go into one file; name a folder such as runs/, "
            f"or write {SLOT} in the file's name"
        )
    found = {name: Path(target.replace(SLOT, name.replace("#", "-").replace("/", "-"))) for name in names}
    for path in found.values():
        file(path, "--run-out")
    return found


def fits_trec(dataset: Dataset) -> None:
    """TREC's format is split at blanks: refuse ids with one before they are asked for."""
    ids = (*(topic.id for topic in dataset.topics), *(str(document["id"]) for document in dataset.documents))
    for id in ids:
        if id.split() != [id]:
            raise InputError(f"--run-out: the id {id!r} has a blank in it, which TREC's format cannot hold; use --json")


def report(
    path: Path | None,
    title: str,
    evaluations: Sequence[Evaluation],
    comparisons: Sequence[Comparison] = (),
    sweeps: Sequence[Sweep] = (),
    headroom: Headroom | None = None,
) -> None:
    """The HTML page, if one is asked for."""
    if path is None:
        return
    from trivet.evaluate.report import Material, write

    headrooms = {evaluations[0].dataset: headroom} if headroom else {}
    wrote(write(Material(title, evaluations, comparisons, sweeps, headrooms), path))


def wrote(path: Path) -> None:
    say(f"wrote {path}", "dim")


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    wrote(path)
