"""Write docs/evidence/generalisation.md from the results of ``generalisation.py``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "generalisation.md"
COLUMNS = {
    "former": "default before",
    "shipped": "default (visible)",
    "left_out": "default (left out)",
    "careful": "careful (visible)",
    "careful_left_out": "careful (left out)",
}

HEAD = """\
Made by `make generalisation`: at most 300 topics of a set, nDCG@10. All numbers: `benchmarks/results/{file}`. A gain
counts when it holds on sets that the fitting has not seen
([ADR 38](../adr/0038-fitted-parts-are-judged-on-sets-left-out.md)).

*Plain* is the z-score fusion of the lexical and the dense leg at 0.5 each. The other columns are differences to it,
± one standard error; ▼: below it by more than 1.96 of them. *Visible*: as shipped; the weights of the reranker
`learned` were fitted to all sets but the demo, by an earlier run (this one finds them within 15 %). *Left out*: these
weights, and how much the reader of `careful` counts, were fitted without the judged set. The reader itself was trained
on none of the sets, and has no time limit here. The queries of a set *as keywords* are cut to their three rarest words
and never fitted.{before}"""

STAGES = """\
What a stage adds to the mean of the sets, without the scores of neighbours in a session (ADR 36): query understanding
to the plain fusion, the graph to that, all others to the fusion with the graph at its weight. Weights per query (a
logistic model over the score curves of the legs, in the default until ADR 38) and the wording in every set are fitted
without the whole family of the judged set. Among messages the features are fitted without the judged set."""

STORES = """\
Stores of right documents and random others of five sets, without filters, and of our own notes, with queries that name
an identifier."""


def write(results: Mapping[str, Any], file: str) -> None:
    """Write the page."""
    PAGE.write_text(page(results, file), encoding="utf-8")
    print(f"written: {PAGE}")


def page(results: Mapping[str, Any], file: str) -> str:
    """Return the page as Markdown; ``file`` is the name of the result file."""
    columns = {name: title for name, title in COLUMNS.items() if name in results["summary"]}
    before = f" *Before* is the default of {results['former']}." if results["former"] else ""
    return "\n".join(
        [
            "# Generalisation",
            "",
            HEAD.format(file=file, before=before),
            "",
            *_sets(results, columns),
            "",
            "## Stages",
            "",
            STAGES,
            "",
            *_stages(results["stages"]),
            "",
            "## Small stores",
            "",
            STORES,
            "",
            *_stores(results["small_stores"], results.get("small_stores_former")),
            "",
        ]
    )


def _sets(results: Mapping[str, Any], columns: Mapping[str, str]) -> list[str]:
    lines = [f"| set | family | topics | plain | {' | '.join(columns.values())} |", "|---" * (4 + len(columns)) + "|"]
    for name, item in results["sets"].items():
        cells = [_difference(item[column]) for column in columns]
        lines.append(f"| {name} | {item['family']} | {item['topics']} | {item['plain']:.3f} | {' | '.join(cells)} |")
    for title, key in (("**mean of the sets**", "sets"), ("**mean of the keyword queries**", "keywords")):
        cells = [f"**{results['summary'][column][key]:+.4f}**" for column in columns]
        lines.append(f"| {title} | | | | {' | '.join(cells)} |")
    return lines


def _difference(cell: Mapping[str, Any]) -> str:
    return f"{cell['difference']:+.3f} ± {cell['error']:.3f}{' ▼' if cell['below'] else ''}"


def _stages(stages: Mapping[str, Any]) -> list[str]:
    lines = [
        "| stage | sets, visible | sets, left out | keywords, left out | then below plain on, left out |",
        "|---|---|---|---|---|",
    ]
    for name, item in stages.items():
        visible = f"{item['visible']['sets']:+.4f}" if "visible" in item else "nothing fitted"
        left_out = item["left_out"]
        below = ", ".join(left_out["below"]) or "none"
        lines.append(f"| {name} | {visible} | {left_out['sets']:+.4f} | {left_out['keywords']:+.4f} | {below} |")
    return lines


def _stores(found: Mapping[str, Any], former: Mapping[str, Any] | None) -> list[str]:
    before = " default before |" if former else ""
    lines = [
        f"| store | topics | nDCG@10 plain |{before} default | difference | careful "
        f"| Success@1 plain |{before} default | careful |",
        "|---|---|---|---|---|---|---|---|---|" + ("---|---|" if former else ""),
    ]
    for name, item in found.items():
        old = former and former[name]["default"]
        ndcg, success = [f" {old[measure]:.3f} |" if old else "" for measure in ("nDCG@10", "Success@1")]
        lines.append(
            f"| {name} | {item['topics']} | {item['plain']['nDCG@10']:.3f} |{ndcg} {item['default']['nDCG@10']:.3f} | "
            f"{item['difference']:+.3f} ± {item['error']:.3f} | {item['careful']['nDCG@10']:.3f} | "
            f"{item['plain']['Success@1']:.3f} |{success} {item['default']['Success@1']:.3f} | "
            f"{item['careful']['Success@1']:.3f} |"
        )
    return lines
