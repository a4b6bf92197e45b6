"""The BERT cross-encoder in plain PyTorch, and how batches of equal length are put together on the GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

CLS, SEP, HEADS, HIDDEN, INNER = 101, 102, 12, 384, 1536
QUERY_TOKENS = 72  # tokens kept of a query; the rest of the window is the passage's


class Layer(nn.Module):
    """One transformer layer with layer normalisation after each part."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.ao = nn.Linear(HIDDEN, HIDDEN)
        self.aln = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.f1 = nn.Linear(HIDDEN, INNER)
        self.f2 = nn.Linear(INNER, HIDDEN)
        self.fln = nn.LayerNorm(HIDDEN, eps=1e-12)

    def forward(self, state: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the states of the next layer; a batch of rows of one length needs no mask."""
        rows, length, _ = state.shape
        qkv = self.qkv(state).view(rows, length, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        heard = functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], mask)
        state = self.aln(state + self.ao(heard.transpose(1, 2).reshape(rows, length, HIDDEN)))
        return self.fln(state + self.f2(functional.gelu(self.f1(state))))


class CrossEncoder(nn.Module):
    """Embeddings, ``layers`` transformer layers, pooler and one score."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.word = nn.Embedding(30522, HIDDEN)
        self.position = nn.Embedding(512, HIDDEN)
        self.segment = nn.Embedding(2, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.pooler = nn.Linear(HIDDEN, HIDDEN)
        self.classifier = nn.Linear(HIDDEN, 1)

    def forward(
        self, ids: Tensor, types: Tensor, states: bool = False, mask: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the scores and, where asked for, the states behind every layer."""
        places = torch.arange(ids.shape[1], device=ids.device)
        state = self.norm(self.word(ids) + self.position(places) + self.segment(types))
        kept = []
        for layer in self.layers:
            state = layer(state, mask)
            if states:
                kept.append(state)
        with torch.autocast("cuda", enabled=False):  # in bfloat16 a score of 10 is off by up to .03
            score = self.classifier(torch.tanh(self.pooler(state[:, 0].float()))).squeeze(-1)
        return score, kept


#: our name → the checkpoint's
NAMES = {
    "word.weight": "bert.embeddings.word_embeddings.weight",
    "position.weight": "bert.embeddings.position_embeddings.weight",
    "segment.weight": "bert.embeddings.token_type_embeddings.weight",
    "norm": "bert.embeddings.LayerNorm",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "f1": "intermediate.dense",
    "f2": "output.dense",
    "fln": "output.LayerNorm",
}


def read_teacher(file: str) -> dict[str, np.ndarray]:
    """Return the teacher's tensors as float32 under the checkpoint's names."""
    stored = np.load(file)
    found = {}
    for name in stored.files:
        if not name.endswith("#scale"):
            values = stored[name].astype(np.float32)
            if f"{name}#scale" in stored.files:
                scale, zero = stored[f"{name}#scale"]
                values = (values - zero) * scale
            found[name] = values
    return found


def from_checkpoint(tensors: Mapping[str, np.ndarray], chosen: Sequence[int]) -> CrossEncoder:
    """Build a model of the ``chosen`` layers of a checkpoint."""
    model = CrossEncoder(len(chosen))
    state = {name: tensors[NAMES[name]] for name in ("word.weight", "position.weight", "segment.weight")}
    for part in ("weight", "bias"):
        state[f"norm.{part}"] = tensors[f"{NAMES['norm']}.{part}"]
        state[f"pooler.{part}"] = tensors[f"bert.pooler.dense.{part}"]
        state[f"classifier.{part}"] = tensors[f"classifier.{part}"]
        for place, number in enumerate(chosen):
            before = f"bert.encoder.layer.{number}."
            three = [tensors[f"{before}attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            state[f"layers.{place}.qkv.{part}"] = np.concatenate(three)
            for short in ("ao", "aln", "f1", "f2", "fln"):
                state[f"layers.{place}.{short}.{part}"] = tensors[f"{before}{NAMES[short]}.{part}"]
    model.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in state.items()})
    return model


def to_checkpoint(model: CrossEncoder) -> dict[str, np.ndarray]:
    """Return the model's tensors as float32 under the checkpoint's names."""
    state = {name: value.detach().float().cpu().numpy() for name, value in model.state_dict().items()}
    found = {NAMES[name]: state[name] for name in ("word.weight", "position.weight", "segment.weight")}
    for part in ("weight", "bias"):
        found[f"{NAMES['norm']}.{part}"] = state[f"norm.{part}"]
        found[f"bert.pooler.dense.{part}"] = state[f"pooler.{part}"]
        found[f"classifier.{part}"] = state[f"classifier.{part}"]
        for place in range(len(model.layers)):
            before = f"bert.encoder.layer.{place}."
            three = np.split(state[f"layers.{place}.qkv.{part}"], 3)
            for name, value in zip(("query", "key", "value"), three, strict=True):
                found[f"{before}attention.self.{name}.{part}"] = value
            for short in ("ao", "aln", "f1", "f2", "fln"):
                found[f"{before}{NAMES[short]}.{part}"] = state[f"layers.{place}.{short}.{part}"]
    return found


class Texts:
    """Token ids of many texts in one row on the GPU."""

    def __init__(self, lengths: np.ndarray, ids: np.ndarray, device: str = "cuda") -> None:
        self.lengths = torch.from_numpy(lengths.astype(np.int64)).to(device)
        self.starts = torch.cumsum(self.lengths, 0) - self.lengths
        self.ids = torch.from_numpy(np.append(ids, 0).astype(np.int32)).to(device)

    def at(self, places: Tensor) -> Tensor:
        """Return the ids at places of the row; places beyond its end read as 0."""
        return self.ids[places.clamp(0, len(self.ids) - 1)].long()


def lengths_of(queries: Texts, passages: Texts, pairs: Tensor, most: int) -> Tensor:
    """Return the tokens of each pair, the three marks included, cut to ``most``."""
    asked = queries.lengths[pairs[:, 0]].clamp(max=QUERY_TOKENS)
    return (asked + passages.lengths[pairs[:, 1]] + 3).clamp(max=most)


def assemble(queries: Texts, passages: Texts, pairs: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Return token ids and types of pairs that all have ``length`` tokens: [CLS] query [SEP] passage [SEP]."""
    place = torch.arange(length, device=pairs.device)[None]
    asked = queries.lengths[pairs[:, 0]].clamp(max=QUERY_TOKENS)[:, None]
    of_query = queries.at(queries.starts[pairs[:, 0]][:, None] + place - 1)
    of_passage = passages.at(passages.starts[pairs[:, 1]][:, None] + place - asked - 2)
    ids = torch.where(place <= asked, of_query, of_passage)
    ids = torch.where((place == asked + 1) | (place == length - 1), SEP, ids)
    ids = torch.where(place == 0, CLS, ids)
    return ids, (place >= asked + 2).long()


def assemble_padded(queries: Texts, passages: Texts, pairs: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return token ids, types and attention mask of pairs of any length, each cut to ``most`` tokens.

    The rectangle is a multiple of 16 wide: kernels for other widths are slower, and are chosen anew for each.
    """
    lengths = lengths_of(queries, passages, pairs, most)
    length = -(-int(lengths.max()) // 16) * 16
    ids, types = assemble(queries, passages, pairs, length)
    place = torch.arange(length, device=pairs.device)[None]
    last = lengths[:, None] - 1
    ids = torch.where(place == last, SEP, torch.where(place > last, 0, ids))
    return ids, torch.where(place > last, 0, types), (place <= last)[:, None, None, :]


def batches(lengths: Tensor, tokens: int, seed: int | None = None) -> list[tuple[int, Tensor]]:
    """Return (length, pairs) batches of equal length and about ``tokens`` tokens; shuffled where there is a seed."""
    generator = torch.Generator(device=lengths.device).manual_seed(seed or 0)
    order = torch.randperm(len(lengths), generator=generator, device=lengths.device) if seed is not None else None
    places = torch.arange(len(lengths), device=lengths.device) if order is None else order
    by_length = places[torch.argsort(lengths[places], stable=True)]
    counts = torch.bincount(lengths).tolist()
    found, start = [], 0
    for length, count in enumerate(counts):
        size = max(1, tokens // max(length, 1))
        for at in range(start, start + count, size):
            chosen = by_length[at : min(at + size, start + count)]
            if seed is None or len(chosen) >= size / 4:  # a step on a few pairs is mostly noise
                found.append((length, chosen))
        start += count
    if seed is not None:
        mixed = np.random.default_rng(seed).permutation(len(found))
        found = [found[at] for at in mixed]
    return found


@torch.inference_mode()
def scores_of(model: CrossEncoder, queries: Texts, passages: Texts, pairs: Tensor, most: int) -> Tensor:
    """Score every pair, longest window ``most`` tokens."""
    lengths = lengths_of(queries, passages, pairs, most)
    found = torch.empty(len(pairs), device=pairs.device)
    for length, chosen in batches(lengths, 262_144):
        ids, types = assemble(queries, passages, pairs[chosen], length)
        with torch.autocast("cuda", torch.bfloat16):
            found[chosen] = model(ids, types)[0]
    return found
