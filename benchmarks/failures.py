"""Where is what it does not find? (`make failures`)

For a set, each topic's loss (1 − nDCG@10 of the default) is put down to where its best right document stands and which
leg saw it: the classes that an improvement would have to come from, with their share of the whole loss.
`--show` prints topics of each class with the titles involved, to be read on this machine: the sets are not ours to copy
into a page, so the examples in `docs/FAILURES.md` are told in our words, by the topic's number.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ranking import WITHOUT
from trivet.evaluate import Lab, load, score
from trivet.evaluate.evaluation import made
from trivet.profile import PROFILES

PAGE = Path(__file__).parents[1] / "docs" / "FAILURES.md"
MAIN, POOL = "nDCG@10", 100
SHOWN = 5
SETS = ("scifact", "locomo")
HEAD = """# What it does not find, and why

Made by `make failures` (`benchmarks/failures.py`); do not edit. Loss: 1 − nDCG@10 of the default, a mean over topics;
each topic is put down to where its best right document stands, and which leg had it among its first {depth}. Test
splits, looked at after every choice was made, and nothing was chosen by them. Commit `{commit}`.
"""
EXAMPLES = {
    "scifact": """The issue asked for 0.755; 0.0014 are missing. Read topic by topic (the numbers are the set's), those
whose right abstract is not among the ten fall into four kinds:

- **The claim is common knowledge, the abstract mentions it in passing** (1, 13, 437, 502, 560, 870, 975, 1110, 1213).
  437 is about a disease of the blood and its animal models; the abstract called right is about glioma cells. Words and
  meaning agree on abstracts that are about the claim, and nobody judged those.
- **One word decides, and the model does not know it** (128, 1362, 1363, 303, 887). Words have the right abstract at 1
  to 7, meaning not among its hundred: the vector is of the abstract's subject, scaffolds in the heart, not of the
  vessels measured in it. The weighing trusts words more here, and not enough; giving the missing leg a score of its own
  was measured and lost 0.005 on the mean over the sets (ADR 22).
- **Short forms and spellings of biology** (132 PGE2, 198 CCL19, 431 FoxO3a, 715 and 716 miR7a, 783 EAM). Expanding
  acronyms within the collection was built and measured: SciFact −0.03, for fields share short forms; so it is
  off (ADR 22).
- **The opposite of the claim, or a near twin, stands first** (239, 508, 913, 1221). A line over word evidence cannot
  tell support from mention. That is a cross-encoder's work: none can be shipped (ADR 19), one's own can be loaded
  ([RERANKING](RERANKING.md)).
""",
    "locomo": """Nearly half of the loss is order among the ten. Below them: questions that only an inference answers
(conv-26/q50, conv-41/q8: somebody's politics or means, out of an anecdote), turns that answer the turn before and
repeat no word of it (conv-26/q105, conv-30/q74), questions about a shared photo (conv-30/q43), and lists, of which one
item is found and the others are not (conv-26/q61). `neighbours` shows the turns around a hit, which helps with
the second kind without ranking a terse turn first.
""",
}


@dataclass(frozen=True, slots=True)
class Topic:
    """One that lost something: how much, where its best right document stands, and who had it."""

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
    """The largest loss first."""
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
    parser.add_argument("--docs", action="store_true", help="write docs/FAILURES.md")
    given = parser.parse_args()
    if not given.data.is_dir():
        raise SystemExit(f"{given.data} is not here: the sets are not shipped (most licences forbid it)")
    lines = [HEAD.format(depth=POOL, commit=made()["commit"])]
    for name in given.only:
        found, asked, identity = read(given.data / name, given.cache)
        kinds = classes(found)
        lines += [f"## `{identity}`: {1 - sum(item.loss for item in found) / asked:.4f}\n", table(kinds, asked), ""]
        lines += [EXAMPLES[name]] if name in EXAMPLES else []
        print(identity, table(kinds, asked), sep="\n")
        for kind, topics in kinds.items() if given.show else ():
            print(f"\n{kind}")
            for topic in topics[:SHOWN]:
                print(f"  {topic.id}: {topic.text}\n     right, at {topic.place}: {topic.right}")
                print(f"     first: {topic.first}")
    if given.docs:
        PAGE.write_text("\n".join(lines), encoding="utf-8")
        print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
