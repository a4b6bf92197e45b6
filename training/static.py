"""Trains one vector for each token of the reader's tokenizer, on the GPU machine after ``device.py label``.

A text is the weighted mean of its tokens, so thousands are embedded in a second: meant for passages that wait for their
embedding. It is taught the order that the reader gives to the candidates of a query, and the written questions. What
it is worth is measured by ``benchmarks/static_vectors.py``; it is not shipped (ADR 50).

    python3 training/static.py --seconds 60
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
import time

import numpy as np
import torch
from device import KINDS, OUT, STATE, WORK, beginning, packed, tokenised
from network import Texts
from torch import Tensor, nn
from torch.nn import functional

SEED = 17
PART, PART_SEED = 0.3, 17  # of the queries, as ``prepare`` was called
CANDIDATES = 14
DIMENSIONS, BATCH, RATE, SCALE = 256, 2048, 3e-3, 15.0
#: How often a query of each kind is drawn.
SHARES = {"turn": 0.3, "written": 0.15, "prose": 0.25, "abstract": 0.1, "docs": 0.1, "code": 0.1}
SHARPNESS = 2.0  # logits of the reader by which a candidate is e times as likely
SURE = 2.0  # logit from which the best candidate is also told from the other queries' best
AMONG = 0.3  # weight of that
ANSWERS, OTHERS, NONE = 6.0, -2.0, -99.0  # logits given to written candidates, and to an empty seat
UNNAMED = 0.4  # part of the turns that are shown without the name of the speaker
_SPOKEN = re.compile(r"^[^\s:]{1,20}(?: [^\s:]{1,20})?: ")


def bare(passage: str, rng: random.Random) -> str:
    """Return the last line of a shown turn, as a store has it; some of the turns without the name of the speaker."""
    text = passage.rsplit("\n", 1)[-1]
    if text.startswith(("user: ", "assistant: ")) or rng.random() < UNNAMED:
        text = _SPOKEN.sub("", text)
    return text


class Queries:
    """Queries with ``CANDIDATES`` candidates each, and the reader's scores of these."""

    def __init__(self) -> None:
        self._rng = random.Random(SEED)
        self._queries: list[str] = []
        self._passages: list[str] = []
        self._rows: list[Tensor] = []
        self._scores: list[Tensor] = []
        kinds: list[str] = []
        for kind in KINDS:
            if (STATE / f"{kind}.pt").exists():
                kinds += [kind] * self._add_scored(kind)
        kinds += ["written"] * self._add_written()
        self.rows, self.scores = torch.cat(self._rows).cuda(), torch.cat(self._scores).float().cuda()
        self.asked, self.read = Texts(*tokenised(self._queries)), Texts(*tokenised(self._passages))
        self._places = {
            kind: torch.tensor([at for at, own in enumerate(kinds) if own == kind]).cuda()
            for kind in dict.fromkeys(kinds)
        }

    def _add_scored(self, kind: str) -> int:
        stored = torch.load(STATE / f"{kind}.pt", weights_only=False)
        texts, _, asked, *_ = packed(kind, PART, PART_SEED)
        base, first = len(self._passages), len(self._queries)
        self._passages += [bare(text, self._rng) for text in texts] if kind == "turn" else texts
        self._queries += asked
        order = torch.argsort(stored["pairs"][:, 0], stable=True)
        pairs, given = stored["pairs"][order], torch.load(STATE / f"{kind}-scores.pt")[order]
        counts = torch.bincount(pairs[:, 0], minlength=len(asked))
        seats = torch.arange(CANDIDATES)[None]
        places = seats % counts[:, None].clamp(min=1) + (torch.cumsum(counts, 0) - counts)[:, None]
        self._rows.append(torch.cat([torch.arange(first, first + len(asked))[:, None], pairs[places, 1] + base], 1))
        self._scores.append(given[places].masked_fill(seats >= counts[:, None], NONE))
        return len(asked)

    def _add_written(self) -> int:
        before = len(self._queries)
        with lzma.open(WORK / "pairs" / "written.jsonl.xz", "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if not row["right"]:
                    continue
                texts = row["texts"] if row["kind"] == "prose" else [bare(text, self._rng) for text in row["texts"]]
                chosen = [texts[0], *texts[row["right"] :][: CANDIDATES - 1]]
                empty, base = CANDIDATES - len(chosen), len(self._passages)
                self._rows.append(
                    torch.tensor([[len(self._queries), *range(base, base + len(chosen)), *[base] * empty]])
                )
                self._scores.append(torch.tensor([[ANSWERS, *[OTHERS] * (len(chosen) - 1), *[NONE] * empty]]))
                self._passages += chosen
                self._queries.append(row["query"])
        return len(self._queries) - before

    def drawn(self, generator: torch.Generator) -> Tensor:
        """Return the query numbers of a step, in the shares of the kinds."""
        found = []
        for kind, places in self._places.items():
            size = int(BATCH * SHARES[kind])
            found.append(places[torch.randint(len(places), (size,), generator=generator, device="cuda")])
        return torch.cat(found)


class Static(nn.Module):
    """A vector and a weight for each token; a text is the weighted sum, as a unit vector."""

    def __init__(self, table: Tensor, weight: Tensor) -> None:
        super().__init__()
        self.table, self.weight = nn.Parameter(table), nn.Parameter(weight)

    def forward(self, texts: Texts, places: Tensor) -> Tensor:
        lengths = texts.lengths[places]
        offsets = torch.cumsum(lengths, 0) - lengths
        inside = torch.arange(int(lengths.sum()), device="cuda") - torch.repeat_interleave(offsets, lengths)
        ids = texts.at(torch.repeat_interleave(texts.starts[places], lengths) + inside)
        weights = functional.softplus(self.weight)[ids]
        summed = functional.embedding_bag(ids, self.table, offsets, mode="sum", per_sample_weights=weights)
        return functional.normalize(summed, dim=1)


def begun(read: Texts) -> Static:
    """Return the model before training: principal components of the reader's word vectors, rare tokens weigh more."""
    words = beginning(True).word.weight.detach().float().cuda()
    words = words - words.mean(0)
    table = words @ torch.pca_lowrank(words, q=DIMENSIONS, center=False)[2]
    count = torch.bincount(read.ids[:-1].long(), minlength=len(table)).float() + 1
    rarity = torch.log(count.sum() / count)
    weight = torch.log(torch.expm1((rarity / rarity.mean()).clamp(min=0.05)))
    return Static(table / table.norm(dim=1).mean(), weight).cuda()


def loss_of(asked: Tensor, candidates: Tensor, wanted: Tensor, scale: Tensor) -> Tensor:
    """Return the divergence from the reader's order, and how badly the best is told from the other queries' best."""
    cosine = torch.einsum("qd,qcd->qc", asked, candidates)
    goal = torch.softmax(wanted / SHARPNESS, 1)
    given = torch.log_softmax((scale * cosine).masked_fill(wanted <= NONE, -1e4), 1)
    order = (goal * (torch.log(goal + 1e-9) - given)).sum(1).mean()
    own = torch.arange(len(asked), device="cuda")
    best, sure = candidates[own, wanted.argmax(1)], wanted.max(1).values > SURE
    among = functional.cross_entropy(scale * asked @ best.T, own, reduction="none")
    return order + AMONG * (among * sure).sum() / sure.sum().clamp(min=1)


def main() -> None:
    """Train for some seconds and write the weighted table, ``static.npz``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    seconds = parser.parse_args().seconds
    torch.manual_seed(SEED)
    queries = Queries()
    model, scale = begun(queries.read), nn.Parameter(torch.tensor(SCALE, device="cuda"))
    optimizer = torch.optim.Adam(
        [{"params": model.parameters(), "lr": RATE}, {"params": [scale], "lr": 0.02}], fused=True
    )
    generator = torch.Generator(device="cuda").manual_seed(SEED)
    start, step = time.perf_counter(), 0
    while (done := (time.perf_counter() - start) / seconds) < 1:
        optimizer.param_groups[0]["lr"] = RATE * min(1.0, (step + 1) / 50) * (1 - done)
        rows = queries.rows[chosen := queries.drawn(generator)]
        candidates = model(queries.read, rows[:, 1:].flatten()).view(len(rows), CANDIDATES, -1)
        loss = loss_of(model(queries.asked, rows[:, 0]), candidates, queries.scores[chosen], scale)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        if step % 200 == 0:
            print(json.dumps({"step": step, "loss": round(float(loss.detach()), 4)}), flush=True)
    OUT.mkdir(parents=True, exist_ok=True)
    table = (model.table * functional.softplus(model.weight)[:, None]).detach()
    np.savez_compressed(OUT / "static.npz", table=table.half().cpu().numpy())


if __name__ == "__main__":
    main()
