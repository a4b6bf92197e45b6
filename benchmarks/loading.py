"""Measure how fast many documents are loaded, stage by stage and in all.

    python benchmarks/loading.py --data ../shared/data

Every part runs in its own process, so that the memory is that part's. *Cores* are CPU seconds by wall seconds, of the
process and its children. Importing again and the start of the command line are measured as commands.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import loading_page
from corpus import SIZES, Corpus, corpus
from speed import machine

HERE = Path(__file__).parent
EMBEDDED = 3_000  # documents that the built-in model embeds
FILES = 20_000  # of the folder that is imported twice
SETTLED = 2.5  # seconds until the times of new files can be trusted


def spent() -> float:
    """Return the CPU seconds of this process and of its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used)


def peaks() -> dict[str, int]:
    """Return the peak memory of this process and of its largest child (MB)."""
    mine, other = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {"peak_mb": round(mine / 1024), "second_peak_mb": round(other / 1024)}


def timed(count: int, work: Callable[[], Any]) -> dict[str, float]:
    started, before = time.perf_counter(), spent()
    work()
    wall, cpu = time.perf_counter() - started, spent() - before
    return {
        "documents": count,
        "documents_per_s": round(count / wall),
        "wall_s": round(wall, 2),
        "cpu_s": round(cpu, 2),
        "cores": round(cpu / wall, 2),
    }


def given(made: Corpus) -> Iterator[dict[str, Any]]:
    for documents, vectors in made.batches():
        for document, vector in zip(documents, vectors, strict=True):
            yield {**document, "vector": vector}


# --- the parts, each run as `ingest.py --part NAME` ------------------------------------------------------------------


def part_stages(made: Corpus, work: Path) -> dict[str, Any]:
    """Measure each stage alone, one after another in one process."""
    import trivet
    from trivet.engine import validation
    from trivet.text.analysis import Analyzer
    from trivet.text.passages import cut

    count = len(made)
    items: list[Any] = []
    prepared: list[Any] = []
    found = {"read": timed(count, lambda: items.extend(given(made)))}

    def check() -> None:
        prepared.extend(
            validation.prepare(*item, cut, made.vectors.shape[1]) for item in validation.documents(iter(items), {})
        )

    found["check, cut, hash"] = timed(count, check)
    halves = Analyzer().halves

    def analyse() -> None:
        for item in items:
            halves(item["title"])
            halves(item["text"])

    found["analyse"] = timed(count, analyse)
    del items[:]
    with trivet.open(work / "stages.db", embedder=f"vectors:{made.vectors.shape[1]}") as engine:
        shelf: Any = engine._collection
        mid = shelf.state().model.mid

        def write() -> None:
            for start in range(0, count, 1_000):
                shelf.documents.write(prepared[start : start + 1_000], mid)

        found["write the truth"] = timed(count, write)
        del prepared[:]
        found["index words (with analysis)"] = timed(count, shelf.maintenance.update_lexical)
        found["snapshot of vectors"] = timed(count, shelf.maintenance.update_vectors)
        found["graph"] = timed(count, lambda: shelf.maintenance.update(graph=True))
    return found


def part_embed(made: Corpus, work: Path) -> dict[str, Any]:
    """Measure storing and embedding with the built-in model."""
    import trivet

    few = [item for item, _ in zip(made.documents(), range(EMBEDDED), strict=False)]
    with trivet.open(work / "embed.db") as engine:
        engine._models.embedder.embed_passages(["warm"])  # type: ignore[union-attr]

        def load() -> None:
            engine.add(iter(few))
            engine.wait()

        return {**timed(len(few), load), **peaks()}


def part_whole(made: Corpus, work: Path) -> dict[str, Any]:
    """Measure the whole load, from the file to every index but the graph, with given vectors."""
    import trivet

    with trivet.open(work / "whole.db", embedder=f"vectors:{made.vectors.shape[1]}") as engine:
        engine.update_settings(weights={"graph": 0})
        found = timed(len(made), lambda: engine.add(given(made)))
        assert engine.stats().documents == len(made)
    return {**found, **peaks()}


def part_alone(made: Corpus, work: Path) -> dict[str, Any]:
    """Measure the same without the second process."""
    from trivet.engine import ingest

    ingest.INDEXER_FROM = 1 << 62
    return part_whole(made, work)


def part_again(made: Corpus, work: Path) -> dict[str, Any]:
    """Measure `trivet import` twice: a file of lines and a folder without vectors, and a small file with embedding."""
    lines, few, folder = work / "all.jsonl", work / "few.jsonl", work / "folder"
    with lines.open("w") as every, few.open("w") as some:
        for at, document in enumerate(made.documents()):
            line = json.dumps(document) + "\n"
            every.write(line)
            if at < EMBEDDED:
                some.write(line)
            if at < FILES:
                (folder / f"{at % 100:02d}").mkdir(parents=True, exist_ok=True)
                text = f"# {document['title']}\n\n{document['text']}\n"
                (folder / f"{at % 100:02d}" / f"{at}.md").write_text(text)
    time.sleep(SETTLED)
    return {
        "a file, by words": _twice(lines, work / "lines.db", len(made), "--embedder", "none"),
        "a folder, by words": _twice(folder, work / "folder.db", min(FILES, len(made)), "--embedder", "none"),
        "a file, embedded": _twice(few, work / "few.db", min(EMBEDDED, len(made))),
    }


def _twice(source: Path, store: Path, count: int, *options: str) -> dict[str, Any]:
    """Run the same import twice, and a command that only starts, to know the share of starting."""
    told: list[dict[str, Any]] = []

    def load() -> None:
        told.append(json.loads(_run("import", str(source), "-s", str(store), "--json", *options)))

    first, again = timed(count, load), timed(count, load)
    start = timed(1, lambda: _run("stats", "-s", str(store)))["wall_s"]
    assert [told[0]["added"], told[1]["unchanged"]] == [count, count], told
    return {"first": first, "again": again, "start_s": start}


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "trivet", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


PARTS = {"stages": part_stages, "embed": part_embed, "whole": part_whole, "alone": part_alone, "again": part_again}


def run(made: Corpus, data: Path) -> dict[str, Any]:
    results: dict[str, Any] = {"machine": machine(), "corpus": made.name}
    for name in PARTS:
        work = Path(tempfile.mkdtemp(prefix="trivet-load-"))
        command = [sys.executable, __file__, "--part", name, "--data", str(data), "--size", made.name]
        try:
            done = subprocess.run([*command, "--work", str(work)], stdout=subprocess.PIPE, text=True, check=True)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        results[name] = json.loads(done.stdout.splitlines()[-1])
        print(f"{name}: {json.dumps(results[name])}", file=sys.stderr)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with docs_snippets")
    parser.add_argument("--size", choices=SIZES, default="89k", help="how many documents")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="where the JSON goes")
    parser.add_argument("--docs", action="store_true", help="write docs/evidence/loading.md")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not (args.data / "docs_snippets" / "corpus.jsonl.gz").exists():
        print(f"skipped: there is no docs_snippets in {args.data}; give its folder with --data", file=sys.stderr)
        return 0
    made = corpus(args.size, args.data)
    if args.part:
        print(json.dumps(PARTS[args.part](made, args.work)))
        return 0
    results = run(made, args.data)
    target = args.out / f"loading-{results['machine']['commit']}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(results, indent=2) + "\n")
    if args.docs:
        loading_page.PAGE.write_text(loading_page.page(results, target.name))
    print("\n".join(loading_page.targets(results)))
    return 0 if loading_page.met(results) else 1


if __name__ == "__main__":
    sys.exit(main())
