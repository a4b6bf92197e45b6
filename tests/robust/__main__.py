"""Run the robust suite: faults, load and hostile input. ``PYTHONPATH=tests python -m robust [--short] [--only PART …]``

Every part prints its progress to stderr; the last line, on stdout, holds the figures. Exit code 1 if any of what is
promised to be zero is not.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from robust import (
    backups,
    clocks,
    crowd,
    damage,
    erasure,
    fuzz,
    hostile,
    kills,
    leaks,
    migration,
    places,
    tenants,
    timelines,
)
from robust.account import FULL, SHORT, TINY, Account, Scale

Part = Callable[[Account, Scale, Path, random.Random], None]

PARTS: dict[str, Part] = {
    "migration": migration.run,
    "clocks": clocks.run,
    "places": places.run,
    "backups": backups.run,
    "timelines": timelines.run,
    "tenants": tenants.run,
    "erasure": erasure.run,
    "damage": damage.run,
    "kills": kills.run,
    "fuzz": fuzz.run,
    "hostile": hostile.run,
    "leaks": leaks.run,
    "crowd": crowd.run,
}
SCALES = {scale.name: scale for scale in (FULL, SHORT, TINY)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="robust", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--short", dest="scale", action="store_const", const="short", help="five minutes, for CI")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args(arguments)
    return run(SCALES[chosen.scale], chosen.only, chosen.seed)


def run(scale: Scale, parts: list[str], seed: int) -> int:
    account = Account()
    # the processes it starts find the suite's modules, and the trivet that this one has
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, sys.path)])
    folder = Path(tempfile.mkdtemp(prefix="trivet-robust-"))
    account.tell(f"{scale.name} form, seed {seed}, in {folder}")
    for name in parts:
        account.tell(f"{name}: {(sys.modules[PARTS[name].__module__].__doc__ or '').splitlines()[0]}")
        place = folder / name
        place.mkdir()
        try:
            PARTS[name](account, scale, place, random.Random(f"{seed}/{name}"))
        except Exception as error:  # the other parts are still worth running
            account.fault("crashed", f"the part {name} itself: {type(error).__name__}: {error}")
        if account.ok:
            shutil.rmtree(place, ignore_errors=True)
    if account.ok:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        account.tell(f"what was found is left in {folder} (seed {seed})")
    print(account.last_line(scale.name), flush=True)
    return 0 if account.ok else 1


if __name__ == "__main__":
    sys.exit(main())
