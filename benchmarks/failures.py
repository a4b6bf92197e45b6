"""Classify what the default profile does not find (`make failures`).

Each topic's loss (1 − nDCG@10) is assigned to the position of its best relevant document and to the leg that found it.
The classes, with their shares of the loss, show where an improvement could come from. `--show` prints topics of each
class with the titles involved. The sets must not be copied into a page, so the examples in
`docs/evidence/failures.md` are in our own words, by the topic's number.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from relevance import WITHOUT
from trivet.evaluate import Lab, load, score
from trivet.evaluate.evaluation import made
from trivet.profile import PROFILES

PAGE = Path(__file__).parents[1] / "docs/evidence/failures.md"
MAIN, POOL = "nDCG@10", 100
SHOWN = 5
SETS = ("scifact", "locomo")
HEAD = """# Failures

Made by `make failures` (`benchmarks/failures.py`); do not edit. Loss: 1 − nDCG@10 of the default, a mean over topics;
each topic is counted by the rank of its best right document, and by the leg that had it among its first {depth}. Test
splits, read after every choice was made; nothing was chosen by them. Commit `{commit}`.
"""
EXAMPLES = {
    "scifact": """The target was 0.755; 0.0014 are missing. The topics (by their number in the set) whose right
abstract is not among the first ten are of four kinds:

- **The claim is common knowledge, the abstract mentions it in passing** (1, 13, 437, 502, 560, 870, 975, 1110, 1213).
  437 is about a disease of the blood and its animal models; the abstract called right is about glioma cells. Both
  legs agree on abstracts that are about the claim, and those are not judged.
- **One word decides, and the model does not know it** (128, 1362, 1363, 303, 887). The lexical leg
  has the right abstract at rank 1 to 7, the dense leg not among its hundred: the vector represents the subject of the
  abstract, scaffolds in the heart, not the vessels measured in it. The weights lean to the lexical leg here, but not
  enough; imputing the missing score was measured and lost 0.005 on the mean over the sets (ADR 22).
- **Short forms and spellings of biology** (132 PGE2, 198 CCL19, 431 FoxO3a, 715 and 716 miR7a, 783 EAM). Expanding
  acronyms within the collection was built and measured: SciFact −0.03, because fields share short forms; so it
  is off (ADR 22).
- **The opposite of the claim, or a near-duplicate, is first** (239, 508, 913, 1221). A linear reranker over terms
  cannot tell support from mention. A cross-encoder can: none can be shipped (ADR 19), you can load your own
  ([Rerank with a model](../how-to/rerank-with-a-model.md)).
""",
    "locomo": """Nearly half of the loss is the order among the ten. Below them: queries that need an inference
(conv-26/q50, conv-41/q8: somebody's politics or income, from an anecdote), turns that answer the turn before and
repeat no word of it (conv-26/q105, conv-30/q74), queries about a shared photo (conv-30/q43), and lists, of which one
item is found and the others are not (conv-26/q61). `neighbours` shows the turns around a hit, which helps with
the second kind without ranking a terse turn first.
""",
}


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with a loss: how much, the position of its best relevant document, and the legs that found it."""

    id: str
    text: str
    loss: float
    place: int | None  # among the first POOL of the fused order, from 1
    legs: tuple[str, ...]  # those that have it
    right: str
    first: str

    @property
    def kind(self) -> str:
        if self.place is None or self.place > 10:
            if not self.legs:
                return "no leg has it"
            return f"below the tenth, only {self.legs[0]} has it" if len(self.legs) == 1 else "below the tenth"
        if self.place > 3:
            return "fourth to tenth"
        return "second or third" if self.place > 1 else "first, but not the others"


def read(path: Path, cache: str | None) -> tuple[list[Topic], int, str]:
    dataset = load(path, without=WITHOUT.get(path.name, ()))
    default = PROFILES["default"]
    titles = {item["id"]: str(item.get("title") or item["text"])[:100] for item in dataset.documents}
    found = []
    with Lab.fill(dataset, cache=cache) as lab:
        values = score(lab.rerun(default), dataset.qrels, (MAIN,))[MAIN]
        order = lab.rerun(default.with_changes({"k": POOL})).answers
        rankings = lab.rankings(default)
        for topic in dataset.topics:
            if values[topic.id] > 1 - 1e-9:
                continue
            ids = order[topic.id].ids
            right = [id for id, grade in dataset.qrels[topic.id].items() if grade > 0]
            best = min(right, key=lambda id: ids.index(id) if id in ids else POOL)
            key = lab.seen(default, topic, 1_000)[2].order.get(best)
            found.append(
                Topic(
                    topic.id,
                    topic.text,
                    1 - values[topic.id],
                    ids.index(best) + 1 if best in ids else None,
                    tuple(sorted(ranking.leg for ranking in rankings[topic.id] if key in ranking.keys)),
                    titles.get(best, "(not in the set)"),
                    titles[ids[0]] if ids else "(nothing)",
                )
            )
    return found, len(dataset.topics), dataset.identity


def classes(topics: list[Topic]) -> dict[str, list[Topic]]:
    """Return the classes, the largest loss first."""
    found = defaultdict(list)
    for topic in topics:
        found[topic.kind].append(topic)
    return dict(sorted(found.items(), key=lambda item: -sum(topic.loss for topic in item[1])))


def table(kinds: Mapping[str, list[Topic]], asked: int) -> str:
    whole = sum(topic.loss for topics in kinds.values() for topic in topics)
    rows = ["| best right document | topics | loss | of all loss |", "|---|---|---|---|"]
    for kind, topics in kinds.items():
        loss = sum(topic.loss for topic in topics)
        rows.append(f"| {kind} | {len(topics)} | {loss / asked:.4f} | {loss / whole:.0%} |")
    return "\n".join([*rows, f"| all of {asked:,} topics | {sum(map(len, kinds.values()))} | {whole / asked:.4f} | |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder of sets in BEIR layout")
    parser.add_argument("--only", nargs="*", default=SETS, help="names of sets")
    parser.add_argument("--cache", help="folder with embeddings made before")
    parser.add_argument("--show", action="store_true", help="print topics of each class, to be read here")
    parser.add_argument("--docs", action="store_true", help="write docs/evidence/failures.md")
    args = parser.parse_args()
    if not args.data.is_dir():
        raise SystemExit(f"{args.data} is not here: the sets are not shipped (most licences forbid it)")
    lines = [HEAD.format(depth=POOL, commit=made()["commit"])]
    for name in args.only:
        found, asked, identity = read(args.data / name, args.cache)
        kinds = classes(found)
        lines += [f"## `{identity}`: {1 - sum(item.loss for item in found) / asked:.4f}\n", table(kinds, asked), ""]
        lines += [EXAMPLES[name]] if name in EXAMPLES else []
        print(identity, table(kinds, asked), sep="\n")
        for kind, topics in kinds.items() if args.show else ():
            print(f"\n{kind}")
            for topic in topics[:SHOWN]:
                print(f"  {topic.id}: {topic.text}\n     right, at {topic.place}: {topic.right}")
                print(f"     first: {topic.first}")
    if args.docs:
        PAGE.write_text("\n".join(lines), encoding="utf-8")
        print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
