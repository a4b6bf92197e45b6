"""Write docs/evidence/embedding.md from one result file of ``embedding.py``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs/evidence/embedding.md"
KINDS = ("short", "medium", "long")


def alone(results: dict[str, Any]) -> list[str]:
    lines = ["| precision | threads | " + " | ".join(KINDS) + " |", "|---|---|---|---|---|"]
    for precision, by_threads in results["alone"].items():
        for threads, row in by_threads.items():
            cells = (
                f"{row[kind]['p50_ms']:.2f} / {row[kind]['p95_ms']:.2f} ({row[kind]['cpu_ms']:.2f})" for kind in KINDS
            )
            lines.append(f"| {precision} | {threads} | {' | '.join(cells)} |")
    return lines


def parts(results: dict[str, Any]) -> list[str]:
    lines = [
        "| query | tokens | tokenise | the model's run | whole call | not the model |",
        "|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        row = results["parts"][kind]
        rest = f"{(1 - row['run'] / row['whole']) * 100:.0f} %" if row["whole"] > row["run"] else "within the noise"
        steps = (row["tokens"], row["run"], row["whole"])
        lines.append(f"| {kind} | {row['mean_tokens']:g} | {' | '.join(f'{step:.3f}' for step in steps)} | {rest} |")
    return lines


def together(results: dict[str, Any]) -> list[str]:
    lines = ["| how | queries a second | CPU ms a query | least cosine to one by one |", "|---|---|---|---|"]
    for name, row in results["together"].items():
        if name != "tokens":
            same = row.get("cosine to one by one")
            shown = "the same" if same is None else f"{same:.4f}"
            lines.append(f"| {name} | {row['questions_per_s']:,} | {row['cpu_ms']:.2f} | {shown} |")
    return lines


def gain(results: dict[str, Any]) -> float:
    """Return the queries per second of the best batch size, relative to one by one."""
    rows = {name: row["questions_per_s"] for name, row in results["together"].items() if name != "tokens"}
    single = [rows.pop(name) for name in list(rows) if name.startswith("one by one")]
    return float(max(rows.values()) / max(single))


def page(results: dict[str, Any], name: str) -> str:
    machine, first, again, agreed = (results[part] for part in ("machine", "first", "again", "agreement"))
    lines = [
        "# Embedding a query",
        "",
        "Made by `make bench-embedding` (`benchmarks/embedding.py --docs`); do not edit. Compare within a run.",
        "",
        f"The built-in model (granite-embedding-30m-english, 384 dimensions). Commit `{machine['commit']}`, "
        f"{machine['when'][:10]}: {machine['cpu']}, {machine['cores']} cores, load before {machine['load_before']}, "
        f"Python {machine['python']}. All numbers: `benchmarks/results/{name}`.",
        "",
        "## One query at a time",
        "",
        "p50 / p95 in ms, mean CPU time in brackets; forty different queries of each kind, five times.",
        "",
        *alone(results),
        "",
        f"int8 is what is used: its vectors have a mean cosine of {agreed['mean']:.4f} (least {agreed['least']:.4f}) "
        "to float32 of the same weights, and SciFact, dense leg alone, is .7119 against .7123. The package has the "
        "weights in int8 only; float32 here is those, converted. One text is embedded by one thread. On idle cores a "
        "second thread saves time and costs CPU (above); when another process needs the core, it spins and waits: "
        "beside other work the p95 of a medium query was 9.7 ms with two threads and 6.4 with one (c636a29). "
        "Several texts go to several threads.",
        "",
        f"First call of a process (libraries, hash of the weights, graph, session): {first['wall_ms']:,} ms, of which "
        f"{first['cpu_ms']:,} ms CPU.",
        "",
        "## Where the time of one call goes",
        "",
        "p50 in ms, int8, one thread, through `embed_passages` (which has no cache).",
        "",
        *parts(results),
        "",
        "## The same query again",
        "",
        "The vectors of the last 1,024 queries are cached (`query_cache.py`): paging, retries and comparing profiles "
        f"do not embed again. p50 {again['p50_ms'] * 1000:.0f} µs.",
        "",
        "## Eight queries at once",
        "",
        f"{results['together']['tokens']} tokens each, int8. Several of one length in one run is the best case: "
        "different lengths have to be padded and masked.",
        "",
        *together(results),
        "",
        f"Several in a run give {gain(results):.2f} × the queries a second of one by one on {machine['cores']} "
        "cores. It is not built in: a query would wait for others, and its int8 vector would depend on them (one "
        "activation scale for the whole run), so the same query could give different results from one moment to "
        "the next.",
    ]
    return "\n".join(lines) + "\n"


def write(result: Path) -> None:
    PAGE.write_text(page(json.loads(result.read_text()), result.name), encoding="utf-8")
