"""One target, many inputs. ``fuzzer.py TARGET INPUTS SEED FOLDER``: by atheris, which is led by what the code does;
where it is not installed, by chance, from the same seeds."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

try:
    import atheris
except ImportError:
    atheris = None

if atheris is not None:
    with atheris.instrument_imports(include=["trivet"]):
        from robust import targets
else:
    from robust import targets
from robust.watch import Watch

LENGTH = 512  # bytes


def main(target: str, inputs: int, seed: int, folder: Path) -> None:
    corpus = folder / f"corpus-{target}"
    corpus.mkdir()
    for number, data in enumerate(targets.SEEDS):
        (corpus / str(number)).write_bytes(data)
    watch = Watch(target, folder / f"{target}.faults", targets.ALLOWED)
    run = targets.TARGETS[target]
    for data in targets.SEEDS:  # the longest are longer than what follows
        with watch.input(data):
            run(data)

    def one(data: bytes) -> None:
        with watch.input(data):
            run(data)
        if watch.inputs % 200 == 0 or watch.inputs >= inputs:
            watch.summary()

    if atheris is None:
        _by_chance(one, inputs - len(targets.SEEDS), random.Random(seed))
    else:
        flags = [f"-runs={inputs - len(targets.SEEDS)}", f"-seed={seed}", f"-max_len={LENGTH}", "-rss_limit_mb=4096"]
        atheris.Setup([sys.argv[0], *flags, "-timeout=120", "-verbosity=0", str(corpus)], one)
        atheris.Fuzz()


def _by_chance(one: Any, inputs: int, rng: random.Random) -> None:
    for _ in range(inputs):
        data = bytearray(rng.choice(targets.SEEDS)[:LENGTH])
        for _ in range(rng.randrange(8)):
            at = rng.randrange(len(data) + 1)
            part = (
                rng.choice(targets.SEEDS)[: rng.randrange(20)]
                if rng.random() < 0.5
                else rng.randbytes(rng.randrange(4))
            )
            data[at : at + rng.randrange(4)] = part
        one(bytes(data))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
