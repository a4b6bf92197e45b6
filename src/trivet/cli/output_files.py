"""The files that the evaluation commands write.

Every path is checked before the work starts: an hour's run must not fail at a folder that cannot be written to.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from trivet.cli.options import option
from trivet.cli.output import message
from trivet.errors import InputError, StoreError

if TYPE_CHECKING:
    from trivet.evaluate import Comparison, Dataset, Evaluation, Headroom, Sweep

PANEL = "Output files"
PROFILE_SLOT = "{profile}"

Report = Annotated[Path | None, option("--report", "FILE", "Write an HTML page with plots, in one file.", PANEL)]


def check_folder(path: Path, flag: str) -> None:
    """Create the folder if it is new; raise StoreError where it cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{flag}: {str(path)!r} cannot be created ({error.strerror})") from None
    if not os.access(path, os.W_OK):
        raise StoreError(f"{flag}: {str(path)!r} cannot be written to; name another folder")


def check_file(path: Path | None, flag: str) -> None:
    """Raise an error where a file was named that cannot be written."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"{flag}: {str(path)!r} is a folder; name a file")
    check_folder(path.parent, flag)


def trec_files(target: str | None, names: Sequence[str]) -> dict[str, Path]:
    """Return the TREC file of each run. Several runs need a folder, or ``{profile}`` in the file's name."""
    if target is None:
        return {}
    if Path(target).is_dir() or target.endswith(("/", os.sep)):
        target = str(Path(target) / f"{PROFILE_SLOT}.trec")
    if len(names) > 1 and PROFILE_SLOT not in target:
        raise InputError(
            f"--run-out: {len(names)} runs do not fit into one file; name a folder such as runs/, "
            f"or write {PROFILE_SLOT} in the file's name"
        )
    files = {name: Path(target.replace(PROFILE_SLOT, name.replace("#", "-").replace("/", "-"))) for name in names}
    for path in files.values():
        check_file(path, "--run-out")
    return files


def check_trec_ids(dataset: Dataset) -> None:
    """Raise InputError where an id contains a blank: TREC's format separates its columns by blanks."""
    for id in (*(topic.id for topic in dataset.topics), *(str(document["id"]) for document in dataset.documents)):
        if id.split() != [id]:
            raise InputError(f"--run-out: the id {id!r} contains a blank, which TREC's format cannot hold; use --json")


def write_report(
    path: Path | None,
    title: str,
    evaluations: Sequence[Evaluation],
    comparisons: Sequence[Comparison] = (),
    sweeps: Sequence[Sweep] = (),
    headroom: Headroom | None = None,
) -> None:
    """Write the HTML page of ``--report``, if one was named."""
    if path is None:
        return
    from trivet.evaluate.report import Material, write

    headrooms = {evaluations[0].dataset: headroom} if headroom else {}
    announce(write(Material(title, evaluations, comparisons, sweeps, headrooms), path))


def write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    announce(path)


def announce(path: Path) -> None:
    message(f"wrote {path}", "dim")
