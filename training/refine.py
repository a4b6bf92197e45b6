"""Trains the shipped reader further on questions that were written for it (``written.py``), on the GPU machine.

The teacher tells what a passage is about; the written questions tell whether it answers. Every step reads the
candidates of some questions, and pairs of the distillation with the teacher's scores, so that what was learnt stays.

    python3 training/refine.py B:epochs=4,rate=5e-5

The weights of a variant are written before anything is measured: a call that is cut off must not lose them.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from dataclasses import asdict, dataclass
from hashlib import blake2b

import numpy as np
import torch
from device import KINDS, OUT, STATE, WINDOW, WORK, Set, beginning, squared_error, tokenised
from export import SCALES, quantised
from network import CrossEncoder, Texts, assemble, assemble_padded, batches, scores_of, to_checkpoint
from torch import Tensor
from torch.nn import functional

SEED = 16
#: Tokens of a step: of the written questions and of the distillation.
WRITTEN_TOKENS, OTHER_TOKENS = 32_768, 32_768
USUAL_TOKENS, WARMUP = 90, 60  # of a pair; steps
#: One question in so many is kept for validation, by the hash of its best candidate: no passage is in both parts.
HELD_OUT = 15
POOL_WINDOW = 512


class Written:
    """The written questions with their candidates on the GPU; the first ``right`` candidates of each answer."""

    def __init__(self) -> None:
        rows = []
        with lzma.open(WORK / "pairs" / "written.jsonl.xz", "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        texts = {text: place for place, text in enumerate(dict.fromkeys(text for row in rows for text in row["texts"]))}
        self.queries = Texts(*tokenised([row["query"] for row in rows]))
        self.passages = Texts(*tokenised(list(texts)))
        self.kinds = [row["kind"] for row in rows]
        self.right = [row["right"] for row in rows]
        self.pairs = [torch.tensor([[at, texts[text]] for text in row["texts"]]).cuda() for at, row in enumerate(rows)]
        self.held = [_drawn(row["texts"][0]) % HELD_OUT == 0 for row in rows]

    def steps(self, seed: int) -> list[list[int]]:
        """Return the questions of each step of an epoch."""
        free = [at for at in range(len(self.held)) if not self.held[at]]
        np.random.default_rng(seed).shuffle(free)
        found: list[list[int]] = [[]]
        size = 0
        for at in free:
            tokens = len(self.pairs[at]) * USUAL_TOKENS
            if size + tokens > WRITTEN_TOKENS:
                found.append([])
                size = 0
            found[-1].append(at)
            size += tokens
        return found

    def scores(self, model: CrossEncoder, chosen: list[int]) -> list[Tensor]:
        """Return the model's scores of the candidates of these questions."""
        pairs = torch.cat([self.pairs[at] for at in chosen])
        ids, types, mask = assemble_padded(self.queries, self.passages, pairs, WINDOW)
        given = model(ids, types, mask=mask)[0]
        return list(given.split([len(self.pairs[at]) for at in chosen]))

    def loss(self, model: CrossEncoder, chosen: list[int], pointwise: float) -> Tensor:
        """Return how far the answering candidates are from standing above the others, and above nothing."""
        listwise, single = [], []
        for at, given in zip(chosen, self.scores(model, chosen), strict=True):
            right = self.right[at]
            wanted = torch.zeros_like(given)
            wanted[:right] = 1.0
            each = functional.binary_cross_entropy_with_logits(given, wanted, reduction="none")
            wrong = each[right:].topk(min(4, len(given) - right)).values.mean()
            single.append((each[:right].mean() + wrong) / 2 if right else wrong)
            for place in range(right):
                rest = torch.cat([given[place : place + 1], given[right:]])
                listwise.append(-functional.log_softmax(rest, 0)[0] / right)
        base = torch.stack(listwise).mean() if listwise else torch.zeros((), device="cuda")
        return base + pointwise * torch.stack(single).mean()

    @torch.inference_mode()
    def validated(self, model: CrossEncoder) -> dict[str, dict[str, float]]:
        """Return of the held-out questions how often the best candidate answers, and what silence would cost."""
        rows: dict[str, list[tuple[bool, float, bool]]] = {}
        held = [at for at in range(len(self.held)) if self.held[at]]
        for at in held:
            with torch.autocast("cuda", torch.bfloat16):
                (given,) = self.scores(model, [at])
            best = int(given.argmax())
            rows.setdefault(self.kinds[at], []).append((best < self.right[at], float(given.max()), self.right[at] > 0))
        found = {}
        for kind, items in rows.items():
            known, silent = [item for item in items if item[2]], [item[1] for item in items if not item[2]]
            limit = np.quantile(silent, 0.9)
            found[kind] = {
                "first_answers": round(float(np.mean([item[0] for item in known])), 4),
                "kept_at_10": round(float(np.mean([item[0] and item[1] > limit for item in known])), 4),
                "above_silent": round(float(np.mean([[item[1] > other for other in silent] for item in known])), 4),
                "questions": len(items),
            }
        return found


def _drawn(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest())


@dataclass(frozen=True, slots=True)
class Settings:
    """How a variant is trained."""

    epochs: int = 4  # of the written questions
    rate: float = 5e-5
    gold: int = 0  # 1: the distillation teaches the known passage to stand above the others, in every kind
    pointwise: float = 1.0  # weight of the loss of single candidates, beside that of the list
    others: float = 1.0  # weight of the distillation

    @classmethod
    def read(cls, text: str) -> Settings:
        """Read ``epochs=4,rate=5e-5``."""
        given = dict(item.split("=") for item in text.split(",") if item)
        return cls(**{name: type(getattr(cls(), name))(value) for name, value in given.items()})


def refine(settings: Settings, written: Written, sets: list[Set]) -> CrossEncoder:
    """Train and return the reader."""
    torch.manual_seed(SEED)
    model = beginning(True).cuda()
    wanted = [material.targets(bool(settings.gold)) for material in sets]
    decayed = [value for value in model.parameters() if value.ndim > 1]
    plain = [value for value in model.parameters() if value.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
        lr=settings.rate,
        fused=True,
    )
    work = [step for epoch in range(settings.epochs) for step in written.steps(SEED * 100 + epoch)]
    other = []
    for number, material in enumerate(sets):
        free = (~material.held[material.pairs[:, 0]]).nonzero().squeeze(1)
        found = batches(material.lengths[free], OTHER_TOKENS, seed=SEED + number)
        other += [(number, length, free[chosen]) for length, chosen in found]
    order = np.random.default_rng(SEED).permutation(len(other))
    for step, chosen in enumerate(work):
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * min(1.0, (step + 1) / WARMUP) * (1 - step / len(work))
        with torch.autocast("cuda", torch.bfloat16):
            loss = written.loss(model, chosen, settings.pointwise)
        loss.backward()
        number, length, pairs = other[order[step % len(order)]]
        ids, types = assemble(sets[number].queries, sets[number].passages, sets[number].pairs[pairs], length)
        with torch.autocast("cuda", torch.bfloat16):
            kept = settings.others * squared_error(model(ids, types)[0], wanted[number][pairs]) / 10
        kept.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 200 == 0:
            row = {"step": step, "of": len(work), "loss": round(float(loss.detach()), 4)}
            print(json.dumps(row | {"kept": round(float(kept.detach()), 4)}), flush=True)
    return model.eval()


def sent(checkpoint: dict[str, np.ndarray], name: str) -> None:
    """Write the weights to ``$OUT`` as they will ship, in two files that may come back (16 MiB each)."""
    parts: list[dict[str, np.ndarray]] = [{}, {}]
    for place, (key, value) in enumerate(sorted(checkpoint.items(), key=lambda item: -item[1].size)):
        part = parts[place > 0 and value.ndim == 2]
        if value.ndim == 2 and key != "classifier.weight":
            part[key], part[key + SCALES] = quantised(value)
        else:
            part[key] = value
    for number, part in enumerate(parts):
        np.savez(OUT / f"{name}-{number}.npz", **part)


@torch.inference_mode()
def pool_scores(model: CrossEncoder) -> dict[str, np.ndarray]:
    """Return the scores of the hits of every evaluation pool."""
    found = {}
    with lzma.open(WORK / "pools.json.xz", "rt", encoding="utf-8") as stored:
        pools = json.load(stored)
    for name, pool in pools.items():
        queries, passages = Texts(*tokenised(pool["queries"])), Texts(*tokenised(pool["texts"]))
        given = scores_of(model, queries, passages, torch.tensor(pool["pairs"]).cuda(), POOL_WINDOW)
        found[name] = given.cpu().numpy().astype(np.float16)
    return found


def main() -> None:
    """Train the variants and write the weights and the scores of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="+", help="NAME:epochs=4,rate=5e-5,gold=0,pointwise=1,others=1")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    written = Written()
    sets = [Set(kind) for kind in KINDS if (STATE / f"{kind}-scores.pt").exists()]
    shipped = beginning(True).cuda().eval()
    results: dict[str, dict[str, object]] = {"shipped": {"held_out": written.validated(shipped)}}
    print("shipped", json.dumps(results["shipped"]), flush=True)
    scored = {f"shipped/{name}": row for name, row in pool_scores(shipped).items()}
    for variant in options.variants:
        begun = time.perf_counter()
        name, _, text = variant.partition(":")
        settings = Settings.read(text)
        model = refine(settings, written, sets)
        sent(to_checkpoint(model), name)
        took = round(time.perf_counter() - begun, 1)
        results[name] = {"settings": asdict(settings), "seconds": took, "held_out": written.validated(model)}
        print(name, json.dumps(results[name]), flush=True)
        scored |= {f"{name}/{key}": row for key, row in pool_scores(model).items()}
        np.savez_compressed(OUT / "pools.npz", **scored)
        (OUT / "refine.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
