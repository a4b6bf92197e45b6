"""Compare queries embedded with their own weights and with those of the passages (ADR 54).

python benchmarks/query_encoder.py DATA --cache CACHE     prints nDCG@10 by set, at most 300 topics each

The dense leg alone, z-score fusion with words, and the `default` profile; ± is the standard error of the difference.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from profiles import BARE, MAIN, SETS
from recorded import sampled
from trivet.evaluate import Lab, load, score
from trivet.profile import PROFILES

PROFILES_COMPARED = {
    "dense": BARE.with_changes({"weights": {"lexical": 0, "dense": 1}}),
    "z-score α=0.5": BARE,
    "default": PROFILES["default"],
}
MEASURES = (MAIN, "Success@5", "Success@10")
TOPICS = 300


def compared(folder: Path, cache: str | None) -> dict[str, tuple[float, float, float, float]]:
    """Return by profile: the mean with the weights of the passages, that with their own, the difference, its error."""
    without, scoped = SETS[folder.name]
    dataset = sampled(load(folder, without=without, scoped=scoped), TOPICS)
    texts = list({topic.text for topic in dataset.topics})
    found = {}
    with Lab.fill(dataset, cache=cache) as lab:
        assert lab._cached is not None
        own = {name: score(lab.run(profile), dataset.qrels, MEASURES) for name, profile in PROFILES_COMPARED.items()}
        lab._cached._queries.update(zip(texts, lab._cached.inner.embed_passages(texts), strict=True))
        for name, profile in PROFILES_COMPARED.items():
            plain = score(lab.run(profile), dataset.qrels, MEASURES)
            gain = np.array([own[name][MAIN][topic] - value for topic, value in plain[MAIN].items()])
            before, after = (float(np.mean(list(scores[MAIN].values()))) for scores in (plain, own[name]))
            found[name] = before, after, float(gain.mean()), float(gain.std(ddof=1) / math.sqrt(len(gain)))
            shares = (np.mean(list(scores[each].values())) for scores in (plain, own[name]) for each in MEASURES[1:])
            print(
                f"{folder.name:24} {name:14} {before:.4f} -> {after:.4f} ({found[name][2]:+.4f} ± {found[name][3]:.4f})"
                "  Success@5, @10: {:.3f} {:.3f} -> {:.3f} {:.3f}".format(*shares),
                flush=True,
            )
    return found


def main() -> None:
    """Compare every set, and print the means over sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the evaluation sets")
    parser.add_argument("--cache", help="folder of the cached vectors")
    options = parser.parse_args()
    rows = [compared(options.data / name, options.cache) for name in SETS]
    for name in PROFILES_COMPARED:
        before, after = (float(np.mean([row[name][place] for row in rows])) for place in (0, 1))
        print(f"mean of {len(rows)} sets     {name:14} {before:.4f} -> {after:.4f}")


if __name__ == "__main__":
    main()
