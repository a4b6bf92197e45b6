"""Reads the sources, drops what touches an evaluation set, and packs passages and queries for the GPU machine."""

from __future__ import annotations

import argparse
import json
import lzma
import random
import time
from contextlib import ExitStack
from pathlib import Path

from contamination import Windows, plain
from readers import NO_GOLD, READERS, Material
from repository import Repository
from sources import SOURCES

SEED = 15
WORK = Path(__file__).parent / "work"
#: Bytes of one packed file, so that a call of the GPU tool carries it beside the working tree.
QUERY_CHARS = 300


def filtered(material: Material, windows: Windows) -> tuple[Material, int]:
    """Return the material without passages and queries of the evaluation sets, and how many passages were dropped."""
    shared = windows.shared(material.passages)
    kept = Material()
    places = [NO_GOLD] * (len(shared) + 1)
    for at, (passage, group) in enumerate(zip(material.passages, material.groups, strict=True)):
        if not shared[at]:
            places[at] = len(kept.passages)
            kept.passages.append(passage)
            kept.groups.append(group)
    seen = set()
    for query, gold in material.queries:
        place = places[gold]
        if (gold != NO_GOLD and place == NO_GOLD) or plain(query) in windows.queries or (query, place) in seen:
            continue
        seen.add((query, place))
        kept.queries.append((query[:QUERY_CHARS], place))
    return kept, sum(shared)


def main() -> None:
    """Write ``work/pairs/KIND.jsonl.xz`` and ``work/pairs.json`` with the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", type=Path, required=True, help="folder of the fetched repositories")
    parser.add_argument("--data", type=Path, required=True, help="folder of the evaluation sets")
    options = parser.parse_args()
    begun = time.perf_counter()
    windows = Windows(options.data, WORK)
    print(f"{len(windows):,} windows of the evaluation sets, {time.perf_counter() - begun:.0f} s", flush=True)
    counts = []
    folder = WORK / "pairs"
    folder.mkdir(parents=True, exist_ok=True)
    kinds = sorted({source.kind for source in SOURCES})
    with ExitStack() as opened:
        files = {
            kind: opened.enter_context(lzma.open(folder / f"{kind}.jsonl.xz", "wt", encoding="utf-8", preset=1))
            for kind in kinds
        }
        for source in SOURCES:
            begun = time.perf_counter()
            repository = Repository(options.mirror, source.repository, source.commit)
            rng = random.Random(f"{SEED} {source.name}")
            material = READERS[source.reader](repository, source.argument, rng)
            kept, dropped = filtered(material, windows)
            row = {"source": source.name, "passages": kept.passages, "groups": kept.groups, "queries": kept.queries}
            files[source.kind].write(json.dumps(row, ensure_ascii=False) + "\n")
            counts.append(
                {
                    "source": source.name,
                    "repository": f"{source.repository} @ {source.commit[:10]}",
                    "licence": source.licence,
                    "kind": source.kind,
                    "passages": len(kept.passages),
                    "queries": len(kept.queries),
                    "dropped": dropped,
                }
            )
            print(json.dumps(counts[-1]), f"{time.perf_counter() - begun:.0f} s", flush=True)
    (WORK / "pairs.json").write_text(json.dumps(counts, indent=1) + "\n")


if __name__ == "__main__":
    main()
