"""Does relevance mean what it says, and from which relevance on is a hit worth showing? (`make calibration`)

Fits the numbers of ``trivet.fusion.relevance`` to the hits that the default profile shows, and says what they are
worth on topics, and on sets, they were not fitted to. Training and judging as in ``ranking.py``: the train split of
SciFact, the dev split of CoSQA, and elsewhere the topics whose id has an even hash; at most 1,000 topics a set. Topics
that nothing answers take part: whatever is shown for them is wrong. memdaily_zh does not: the built-in model does not
read Chinese. Every set counts the same. What nobody judged counts as wrong, so that relevance errs on the low side.

`--collect` reads one set after the other into a folder (minutes each); the rest is arithmetic on what lies there, which
can be had again without the sets.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranking import MOST, TRAIN, WITHOUT
from trivet.evaluate import Lab, load
from trivet.evaluate.dataset import Dataset, Topic
from trivet.evaluate.evaluation import made
from trivet.fusion import relevance
from trivet.fusion.relevance import Standing, probability, standings
from trivet.fusion.weighing import WEIGHINGS
from trivet.profile import PROFILES, Profile

RESULTS = Path(__file__).parent / "results"
LEFT_OUT = ("memdaily_zh",)
# every hit, and each as itself: none in another's place
SHOWN: Profile = PROFILES["default"].with_changes({"min_relevance": 0.0, "follow_links": False})
POOL = 1_000  # more than is ever fused
FEATURES = tuple(item.name for item in fields(Standing))
HEARD = [FEATURES.index(name) for name in ("strength", "way")]  # with neither, no leg has a word for a document
NAMES = ("INTERCEPT", *(name.upper() for name in FEATURES))
SHIPPED = np.array([getattr(relevance, name) for name in NAMES])
BINS = 10
STEPS, SETTLED = 100, 1e-10  # of Newton's method
RIDGE = 1e-6  # keeps a line finite where a handful of topics would let it grow without end; of no weight otherwise
THRESHOLDS = tuple(round(0.01 * step, 2) for step in range(100))
TOLD = THRESHOLDS[::5]
#: The rule for the threshold: on the training topics, over the sets, no more than this share of the topics that have a
#: right hit may lose all their right hits.
MOST_LOST = 0.05

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """One topic: what the legs say of each hit shown, whether it is right, and whether any document is."""

    standings: Floats  # hits × FEATURES
    right: Floats
    answerable: bool

    @property
    def heard(self) -> NDArray[np.bool_]:
        return np.asarray((self.standings[:, HEARD] > 0).any(axis=1))

    def relevances(self, line: Floats) -> Floats:
        """As ``probability`` has it: what no leg has a word for is no answer."""
        odds = line[0] + self.standings @ line[1:]
        return np.where(self.heard, 1.0 / (1.0 + np.exp(-np.clip(odds, -500, 500))), 0.0)


@dataclass(frozen=True)
class Part:
    """Some topics of one set."""

    name: str
    topics: Sequence[Asked]

    @property
    def hits(self) -> tuple[Floats, Floats]:
        rows = [item.standings for item in self.topics] or [np.zeros((0, len(FEATURES)))]
        return np.concatenate(rows), np.concatenate([item.right for item in self.topics] or [np.zeros(0)])

    def of(self, answerable: bool) -> list[Asked]:
        return [item for item in self.topics if item.answerable == answerable]


# --- what is read of a set --------------------------------------------------------------------------------------------


def read(dataset: Dataset, cache: str | None) -> dict[str, Any]:
    """Topic → its hits, as plain data. Stops where a relevance shown is not the one worked out here."""
    asked = _sample(dataset.topics)
    every = (*asked, *_sample(dataset.unanswerable))
    with Lab.fill(replace(dataset, topics=every), cache=cache) as lab:
        rankings = lab.rankings(SHOWN)
        answers = lab.rerun(SHOWN, every).answers
        found = {}
        for topic in every:
            query, _, tools = lab.seen(SHOWN, topic, POOL)
            heard = rankings[topic.id]
            standing = standings(heard, WEIGHINGS[SHOWN.weighing](query.text, heard, SHOWN.weights))
            shown = answers[topic.id]
            told = [standing(tools.order[id]) for id in shown.ids]
            for id, here, there in zip(shown.ids, told, shown.relevances, strict=True):
                if abs(probability(here) - there) > 1e-9:
                    raise SystemExit(f"{dataset.name}, {topic.id}: {id} is shown with relevance {there}, not {here}")
            judged = dataset.qrels.get(topic.id, {})
            found[topic.id] = {
                "standings": [astuple(item) for item in told],
                "right": [int(judged.get(id, 0) > 0) for id in shown.ids],
                "answerable": topic.id in dataset.qrels,
            }
    return found


def _sample(topics: Sequence[Topic]) -> list[Topic]:
    return sorted(topics, key=lambda topic: blake2b(topic.id.encode()).digest())[:MOST]


def collect(data: Path, folder: Path, cache: str | None, only: Sequence[str]) -> None:
    for path in sorted(each for each in data.iterdir() if list(each.glob("qrels*"))):
        if path.name in LEFT_OUT or (only and path.name not in only):
            continue
        for split in ("test", *([TRAIN[path.name]] if path.name in TRAIN else [])):
            kept = folder / f"{path.name}.{split}.json"
            if kept.exists():
                continue
            dataset = load(path, split, without=WITHOUT.get(path.name, ()))
            found = {"set": path.name, "split": split, "identity": dataset.identity, "commit": made()["commit"]}
            found["topics"] = read(dataset, cache)
            folder.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(found), encoding="utf-8")
            print(f"{dataset.identity}: {len(found['topics']):,} topics", flush=True)


def halves(folder: Path) -> tuple[list[Part], list[Part], dict[str, str]]:
    """For learning, for judging, and which sets they are of."""
    learnt: dict[str, list[Asked]] = {}
    unseen: dict[str, list[Asked]] = {}
    identities = {}
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        name, split = kept["set"], kept["split"]
        identities[kept["identity"]] = kept["commit"]
        for topic, item in kept["topics"].items():
            rows = np.array(item["standings"], dtype=float).reshape(-1, len(FEATURES))
            asked = Asked(rows, np.array(item["right"], dtype=float), item["answerable"])
            (learnt if for_learning(name, split, topic) else unseen).setdefault(name, []).append(asked)
    return (
        [Part(name, topics) for name, topics in learnt.items()],
        [Part(name, topics) for name, topics in unseen.items()],
        identities,
    )


def for_learning(name: str, split: str, topic: str) -> bool:
    """The rule of ``ranking.py``."""
    if name in TRAIN:
        return split == TRAIN[name]
    return blake2b(topic.encode(), digest_size=1).digest()[0] % 2 == 0


# --- the fit ----------------------------------------------------------------------------------------------------------


def fit(parts: Sequence[Part]) -> Floats:
    """Newton's method on the log loss, every set counting the same; convex, so that where it begins does not matter."""
    rows, right, counts = _together(parts)
    heard = Asked(rows, right, True).heard  # of the others it is known without a line
    rows, right, counts = rows[heard], right[heard], counts[heard]
    if not right.any() or right.all():
        raise SystemExit("calibration: the training topics have no right hit, or no wrong one; collect more sets")
    seen = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    line, penalty = np.zeros(seen.shape[1]), np.array([0.0, *(RIDGE for _ in FEATURES)])
    for _ in range(STEPS):
        told = 1.0 / (1.0 + np.exp(-np.clip(seen @ line, -500, 500)))
        slope = seen.T @ (counts * (told - right)) + penalty * line
        bend = (seen * (counts * told * (1.0 - told))[:, None]).T @ seen + np.diag(penalty)
        step = np.linalg.lstsq(bend, slope, rcond=None)[0]
        length = float(np.abs(step).max())
        line = line - step / max(1.0, length)  # a long step is cut: far out, the curve is not a parabola
        if length < SETTLED:
            break
    return np.asarray(line)


def _together(parts: Sequence[Part]) -> tuple[Floats, Floats, Floats]:
    """Hits, whether each is right, and what it counts: 1 in all for every set."""
    found = [(rows, right) for rows, right in (part.hits for part in parts) if len(rows)]
    counts = [np.full(len(rows), 1.0 / len(rows) / len(found)) for rows, _ in found]
    return (
        np.concatenate([rows for rows, _ in found]),
        np.concatenate([right for _, right in found]),
        np.concatenate(counts),
    )


# --- what it is worth -------------------------------------------------------------------------------------------------


def judged(parts: Sequence[Part], line: Floats) -> dict[str, Any]:
    """On these topics: log loss, the same if all hits had the mean, the calibration error, and the ten bins."""
    rows, right, counts = _together(parts)
    told = Asked(rows, right, True).relevances(line)
    bins = reliability(told, right, counts)
    base = float(counts @ right)
    return {
        "hits": len(rows),
        "right": round(base, 4),
        "log_loss": round(_log_loss(told, right, counts), 4),
        "log_loss_of_the_mean": round(_log_loss(np.full(len(right), base), right, counts), 4),
        "calibration_error": round(sum(item["share"] * abs(item["told"] - item["right"]) for item in bins), 4),
        "bins": [{key: round(value, 4) for key, value in item.items()} for item in bins],
    }


def reliability(told: Floats, right: Floats, counts: Floats) -> list[dict[str, float]]:
    """Ten bins of relevance: how many hits, what share of all (by what they count), what was told, what was right."""
    place = np.minimum((told * BINS).astype(int), BINS - 1)
    found = []
    for number in range(BINS):
        here = place == number
        if here.any():
            share = float(counts[here].sum())
            mean = {
                name: float(counts[here] @ values[here]) / share for name, values in (("told", told), ("right", right))
            }
            found.append({"from": number / BINS, "hits": int(here.sum()), "share": share, **mean})
    return found


def _log_loss(told: Floats, right: Floats, counts: Floats) -> float:
    kept = np.clip(told, 1e-6, 1 - 1e-6)
    return float(-(counts @ (right * np.log(kept) + (1.0 - right) * np.log(1.0 - kept))))


def abstention(parts: Sequence[Part], line: Floats, thresholds: Sequence[float]) -> list[dict[str, Any]]:
    """Threshold → topics still answered rightly and questions answered that have no answer: every set, and the mean."""
    rows = []
    for threshold in thresholds:
        answered = {part.name: _answered(part, line, threshold) for part in parts if part.of(True)}
        kept = {
            part.name: answered[part.name] / first
            for part in parts
            if part.name in answered and (first := _answered(part, line, 0.0))
        }
        false = {
            part.name: float(np.mean([(item.relevances(line) >= threshold).any() for item in silent]))
            for part in parts
            if (silent := part.of(False))
        }
        row: dict[str, Any] = {"threshold": threshold, "answered": _mean(answered), "kept": _mean(kept)}
        row |= {"false_answers": _mean(false) if false else None, "kept_by_set": kept, "false_by_set": false}
        rows.append(row)
    return rows


def _answered(part: Part, line: Floats, threshold: float) -> float:
    """The share of the answerable topics with a right hit of that relevance."""
    return float(np.mean([((item.relevances(line) >= threshold) & (item.right > 0)).any() for item in part.of(True)]))


def chosen(parts: Sequence[Part], line: Floats) -> float:
    """The highest threshold that the rule allows, on these topics."""
    allowed = [row["threshold"] for row in abstention(parts, line, THRESHOLDS) if row["kept"] >= 1.0 - MOST_LOST]
    return float(max(allowed))


def _mean(values: Mapping[str, float]) -> float:
    return sum(values.values()) / len(values)


def _named(line: Floats) -> dict[str, float]:
    return {name: round(float(value), 2) for name, value in zip(NAMES, line, strict=True)}


def report(learnt: Sequence[Part], unseen: Sequence[Part]) -> dict[str, Any]:
    # what is judged is what would ship: two places
    line = np.round(fit(learnt), 2)
    threshold = chosen(learnt, line)
    told: dict[str, Any] = {
        "line": _named(line),
        "shipped": _named(SHIPPED),
        "judged": judged(unseen, line),
        "judged_shipped": judged(unseen, SHIPPED),
        "rule": f"highest threshold at which at most {MOST_LOST:.0%} of the training topics lose all their right hits",
        "threshold": threshold,
        "at_threshold": _rounded(abstention(unseen, line, [threshold])[0]),
        "abstention": [_rounded(row) for row in abstention(unseen, line, TOLD)],
        "sets": {},
    }
    for part in unseen:
        others = [other for other in learnt if other.name != part.name]
        found = {"all": judged([part], line)}
        if others:
            found["left_out"] = judged([part], left := np.round(fit(others), 2)) | {"line": _named(left)}
        told["sets"][part.name] = found
    return told


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: {name: round(each, 4) for name, each in value.items()}
        if isinstance(value, dict)
        else value
        if value is None
        else round(value, 4)
        for key, value in row.items()
    }


def tell(told: Mapping[str, Any]) -> None:
    """The report for whoever waits for it."""
    print(f"line {told['line']}, ships {told['shipped']}")
    for name in ("judged", "judged_shipped"):
        found = told[name]
        print(
            f"{name:16} {found['hits']:,} unseen hits, {found['right']:.3f} right: log loss {found['log_loss']:.4f} "
            f"(the mean: {found['log_loss_of_the_mean']:.4f}), calibration error {found['calibration_error']:.4f}"
        )
    print("\nrelevance   hits   told  right   (unseen topics)")
    for item in told["judged"]["bins"]:
        print(f"from {item['from']:.1f} {item['hits']:8,}  {item['told']:.3f}  {item['right']:.3f}")
    print("\nset                          hits  log loss / left out   calibration error / left out")
    for name, found in told["sets"].items():
        left = found.get("left_out", {})
        print(
            f"{name:26} {found['all']['hits']:6,}  {found['all']['log_loss']:.4f} / {left.get('log_loss', 0):.4f}"
            f"       {found['all']['calibration_error']:.4f} / {left.get('calibration_error', 0):.4f}"
        )
    print("\nthreshold  answered rightly  of those before  false answers   (unseen topics)")
    for row in (*told["abstention"], told["at_threshold"]):
        false = "–" if row["false_answers"] is None else f"{row['false_answers']:.3f}"
        print(f"{row['threshold']:9.2f}  {row['answered']:16.3f}  {row['kept']:15.3f}  {false}")
    print(f"\nthe last row is the threshold chosen: {told['rule']}")
    print(f"false answers there: {told['at_threshold']['false_by_set'] or 'no set has unanswerable topics'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "data", type=Path, nargs="?", help="a folder of sets in BEIR layout; without it nothing is read"
    )
    parser.add_argument("--parts", type=Path, default=Path("build/calibration"), help="where what was read is kept")
    parser.add_argument("--collect", nargs="*", metavar="SET", help="read these sets (all, if none is named) and stop")
    parser.add_argument("--cache", help="folder with embeddings made before")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.data is not None:
        if not given.data.is_dir():
            raise SystemExit(f"{given.data} is not here: the sets are not shipped (most licences forbid it)")
        collect(given.data, given.parts, given.cache, given.collect or ())
    if given.collect is not None:
        return
    learnt, unseen, identities = halves(given.parts)
    told = {**made(), "profile": SHOWN.identity, "read": identities, **report(learnt, unseen)}
    tell(told)
    out = given.out or RESULTS / f"calibration-{told['commit']}.json"
    out.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written: {out}")


if __name__ == "__main__":
    main()
