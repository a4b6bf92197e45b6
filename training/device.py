"""What runs on the GPU machine: tokenise, find negatives, score with the teacher, train, score the evaluation pools.

    python3 training/device.py prepare|label|train|score

Each step leaves its files under ``/tmp/reader`` for the next; what has to come back is written to ``$OUT``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import time
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from export import SHIPPED, read_shipped
from network import (
    CrossEncoder,
    Texts,
    assemble,
    batches,
    from_checkpoint,
    lengths_of,
    read_teacher,
    scores_of,
    to_checkpoint,
)
from tokenizers import Tokenizer
from torch import Tensor

WORK = Path(__file__).parent / "work"
STATE = Path("/tmp/reader")
OUT = Path(os.environ.get("OUT", "/tmp/reader/out"))
KINDS = ("abstract", "code", "docs", "prose", "turn")
SEED = 15
WINDOW = 384  # tokens of a training pair; the model reads up to 512
POOL_WINDOW = 512
DEPTH = 60  # passages BM25 finds for a query
#: candidates per query: from the first ten of BM25, from the others, from the same group, from anywhere
NEAR, FAR, SAME, ANY = 6, 3, 2, 2
HELD_OUT = 100  # one query in so many is kept for validation
#: tokens of a step; AdamW's settings
STEP_TOKENS, RATE, DECAY, WARMUP = 49_152, 2e-4, 0.01, 500
#: Targets of gold pairs, of code or of every kind: at least GOLD, and MARGIN above every other candidate of the query.
GOLD, MARGIN = 4.0, 2.0
STUDENT_LAYERS = (1, 3, 5, 7, 9, 11)


def tokenised(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return lengths and joined token ids, without the marks."""
    tokenizer = Tokenizer.from_file(str(WORK / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(512)
    lengths, ids = [], []
    for at in range(0, len(texts), 50_000):
        for row in tokenizer.encode_batch_fast(texts[at : at + 50_000], add_special_tokens=False):
            lengths.append(len(row.ids))
            ids.append(np.array(row.ids, dtype=np.int32))
    return np.array(lengths, dtype=np.int64), np.concatenate(ids) if ids else np.zeros(0, np.int32)


def weights(passages: Texts, k1: float = 1.2, b: float = 0.75) -> tuple[Tensor, Tensor]:
    """Return BM25's weight of each token in each passage as a sparse matrix, and the rarity of the tokens."""
    count, vocabulary = len(passages.lengths), 30522
    rows = torch.repeat_interleave(torch.arange(count, device="cuda"), passages.lengths)
    keys, often = torch.unique(rows * vocabulary + passages.ids[:-1].long(), return_counts=True)
    row, token = keys // vocabulary, keys % vocabulary
    found_in = torch.bincount(token, minlength=vocabulary).float()
    rarity = torch.log1p((count - found_in + 0.5) / (found_in + 0.5))
    length = passages.lengths[row].float() / passages.lengths.float().mean()
    values = rarity[token] * often * (k1 + 1) / (often + k1 * (1 - b + b * length))
    matrix = torch.sparse_coo_tensor(torch.stack([row, token]), values, (count, vocabulary), is_coalesced=True)
    return matrix.to_sparse_csr(), rarity


def nearest(queries: Texts, passages: Texts) -> Tensor:
    """Return the first ``DEPTH`` passages of BM25 for each query."""
    matrix, _ = weights(passages)
    count, found = len(queries.lengths), []
    size = 256
    for start in range(0, count, size):
        stop = min(start + size, count)
        rows = torch.repeat_interleave(torch.arange(stop - start, device="cuda"), queries.lengths[start:stop])
        first = int(queries.starts[start])
        tokens = queries.ids[first : first + len(rows)].long()
        asked = torch.zeros(30522, size, device="cuda")
        asked[tokens, rows] = 1.0
        score = matrix @ asked
        found.append(score.T[: stop - start].contiguous().topk(DEPTH, dim=1).indices)
    return torch.cat(found)


def candidates(near: Tensor, gold: Tensor, groups: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Return the (query, passage) pairs to be scored and whether each is the gold one."""
    generator = torch.Generator(device="cuda").manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.rand(*shape, device="cuda", generator=generator)

    count, passages = len(near), len(groups)
    first = near[:, :10].gather(1, random(count, 10).argsort(1)[:, :NEAR])
    later = near[:, 10:].gather(1, random(count, near.shape[1] - 10).argsort(1)[:, :FAR])
    anywhere = (random(count, ANY) * passages).long()
    order = torch.argsort(groups, stable=True)
    sizes = torch.unique_consecutive(groups[order], return_counts=True)
    starts = torch.cumsum(sizes[1], 0) - sizes[1]
    seat = gold.clamp(min=0)
    which = torch.searchsorted(sizes[0], groups[seat])
    inside = starts[which][:, None] + (random(count, SAME) * sizes[1][which][:, None]).long()
    same = order[inside]
    same[gold < 0] = near[gold < 0][:, :SAME]
    passage = torch.cat([torch.where(gold >= 0, gold, near[:, 0])[:, None], first, later, same, anywhere], 1)
    query = torch.arange(count, device="cuda")[:, None].expand_as(passage)
    keys = torch.unique((query * passages + passage).flatten())
    pairs = torch.stack([keys // passages, keys % passages], 1)
    return pairs, pairs[:, 1] == gold[pairs[:, 0]]


def packed(
    kind: str, part: float, seed: int
) -> tuple[list[str], list[int], list[str], list[int], list[int], list[str]]:
    """Read the packed sources of a kind: passages, their groups, a part of the queries, gold passages, sources."""
    passages, groups, queries, gold, origin, names = [], [], [], [], [], []
    with lzma.open(WORK / "pairs" / f"{kind}.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            base = len(passages)
            passages += row["passages"]
            groups += [len(names) * 1_000_000 + group % 1_000_000 if group >= 0 else -1 for group in row["groups"]]
            asked = [item for item in row["queries"] if drawn(item[0], seed) < part]
            queries += [query for query, _ in asked]
            gold += [base + place if place >= 0 else -1 for _, place in asked]
            origin += [len(names)] * len(asked)
            names.append(row["source"])
    return passages, groups, queries, gold, origin, names


def prepare(kinds: list[str], part: float, seed: int) -> None:
    """Tokenise the packed sources of these kinds and choose the candidates of a part of the queries."""
    STATE.mkdir(exist_ok=True)
    for number, kind in enumerate(KINDS):
        if kind not in kinds:
            continue
        begun = time.perf_counter()
        passages, groups, queries, gold, origin, names = packed(kind, part, seed)
        held = [int.from_bytes(blake2b(query.encode(), digest_size=4).digest()) % HELD_OUT == 0 for query in queries]
        tokens, read = Texts(*tokenised(queries)), Texts(*tokenised(passages))
        near = nearest(tokens, read)
        pairs, right = candidates(near, torch.tensor(gold).cuda(), torch.tensor(groups).cuda(), seed + number)
        torch.save(
            {
                "queries": (tokens.lengths.cpu().numpy(), tokens.ids[:-1].cpu().numpy()),
                "passages": (read.lengths.cpu().numpy(), read.ids[:-1].cpu().numpy()),
                "pairs": pairs.cpu(),
                "gold": right.cpu(),
                "held": torch.tensor(held),
                "origin": torch.tensor(origin),
                "names": names,
            },
            STATE / f"{kind}.pt",
        )
        took = time.perf_counter() - begun
        print(
            f"{kind}: {len(passages):,} passages, {len(queries):,} queries, {len(pairs):,} pairs, {took:.0f} s",
            flush=True,
        )


def drawn(query: str, seed: int) -> float:
    """Return a number from 0 to 1 that depends on the query and the seed only."""
    return int.from_bytes(blake2b(f"{seed} {query}".encode(), digest_size=4).digest()) / 2**32


class Set:
    """The prepared pairs of one kind on the GPU, with the teacher's scores once they are there."""

    def __init__(self, kind: str) -> None:
        stored = torch.load(STATE / f"{kind}.pt", weights_only=False)
        self.kind = kind
        self.queries, self.passages = Texts(*stored["queries"]), Texts(*stored["passages"])
        self.pairs, self.gold = stored["pairs"].cuda(), stored["gold"].cuda()
        self.held, self.origin, self.names = stored["held"].cuda(), stored["origin"].cuda(), stored["names"]
        self.lengths = lengths_of(self.queries, self.passages, self.pairs, WINDOW)
        file = STATE / f"{kind}-scores.pt"
        self.scores = torch.load(file).cuda() if file.exists() else None

    def targets(self, gold: bool = False) -> Tensor:
        """Return what the student is taught: the teacher's scores, with the gold pair of code above the others.

        With ``gold`` that is so for every kind.
        """
        assert self.scores is not None
        if self.kind != "code" and not gold:
            return self.scores
        asked = self.pairs[:, 0]
        wanted = torch.where(self.gold, self.scores.clamp(min=GOLD), self.scores)
        top = torch.full((len(self.queries.lengths),), 20.0, device="cuda")
        top.scatter_(0, asked[self.gold], wanted[self.gold])
        return torch.where(self.gold, wanted, torch.minimum(wanted, top[asked] - MARGIN))


def teacher() -> CrossEncoder:
    """Return the teacher on the GPU."""
    return from_checkpoint(read_teacher(str(WORK / "teacher.npz")), range(12)).cuda().eval().requires_grad_(False)


def label(compiled: bool, shipped: bool) -> None:
    """Score every pair with the teacher, or with the shipped reader, and write how many pairs each source has."""
    model, counts = beginning(True).cuda().eval() if shipped else teacher(), []
    if compiled:
        for layer in model.layers:
            layer.compile(dynamic=True)
    for kind in KINDS:
        if not (STATE / f"{kind}.pt").exists():
            continue
        begun, material = time.perf_counter(), Set(kind)
        scores = scores_of(model, material.queries, material.passages, material.pairs, WINDOW)
        torch.cuda.synchronize()
        took = time.perf_counter() - begun
        torch.save(scores.cpu(), STATE / f"{kind}-scores.pt")
        per_source = torch.bincount(material.origin[material.pairs[:, 0]], minlength=len(material.names)).tolist()
        right = float(scores[material.gold].mean()) if material.gold.any() else 0.0
        counts += [
            {"source": name, "kind": kind, "pairs": count}
            for name, count in zip(material.names, per_source, strict=True)
        ]
        tokens = int(material.lengths.sum())
        print(
            f"{kind}: {len(scores):,} pairs, {tokens / len(scores):.0f} tokens each, {took:.1f} s; "
            f"mean score {scores.mean():.2f}, of gold pairs {right:.2f}",
            flush=True,
        )
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "pairs.json").write_text(json.dumps(counts, indent=1) + "\n")


def schedule(done: float) -> float:
    """Return the part of the learning rate at a point of the training from 0 to 1: linear to zero."""
    return max(0.0, 1.0 - done)


def beginning(shipped: bool) -> CrossEncoder:
    """Return the student before training: layers of the teacher, or the model that ``src/trivet`` has."""
    if shipped:
        return from_checkpoint(read_shipped(SHIPPED), range(len(STUDENT_LAYERS)))
    return from_checkpoint(read_teacher(str(WORK / "teacher.npz")), STUDENT_LAYERS)


def train(seconds: float, total: float, hidden: float, compiled: bool, shipped: bool, rate: float) -> None:
    """Train the student for ``seconds`` of the ``total``, from where an earlier call stopped.

    For the first part ``hidden`` of the total its states follow the teacher's too. ``shipped`` goes on from the
    weights in ``src/trivet``, at a lower first learning rate ``rate``.
    """
    torch.manual_seed(SEED)
    torch.backends.cuda.matmul.allow_tf32 = True
    begun = time.perf_counter()
    sets = [Set(kind) for kind in KINDS if (STATE / f"{kind}-scores.pt").exists()]
    targets = [material.targets() for material in sets]
    model = beginning(shipped).cuda()
    above = teacher() if hidden > 0 else None
    if compiled:
        for network in (model, above) if above else (model,):
            for layer in network.layers:
                layer.compile(dynamic=True)
    decayed = [value for value in model.parameters() if value.ndim > 1]
    plain = [value for value in model.parameters() if value.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": DECAY}, {"params": plain, "weight_decay": 0.0}], lr=rate, fused=True
    )
    curve, seen, step, epoch, before = [], 0, 0, 0, 0.0
    if (STATE / "resume.pt").exists():
        stored = torch.load(STATE / "resume.pt", weights_only=False)
        model.load_state_dict(stored["model"])
        optimizer.load_state_dict(stored["optimizer"])
        curve, seen, step, epoch, before = (stored[name] for name in ("curve", "seen", "step", "epoch", "before"))
    running = {"score": 0.0, "hidden": 0.0}
    over = False
    while not over:
        work = []
        for number, material in enumerate(sets):
            free = (~material.held[material.pairs[:, 0]]).nonzero().squeeze(1)
            for length, chosen in batches(material.lengths[free], STEP_TOKENS, seed=SEED * 1000 + epoch * 10 + number):
                work.append((number, length, free[chosen]))
        for place in np.random.default_rng(SEED + epoch).permutation(len(work)):
            number, length, chosen = work[place]
            material = sets[number]
            elapsed = time.perf_counter() - begun
            done = (before + elapsed) / total
            if done >= 1.0 or elapsed >= seconds:
                over = True
                break
            with_states = above is not None and done < hidden
            for group in optimizer.param_groups:
                group["lr"] = rate * min(1.0, (step + 1) / WARMUP) * schedule(done)
            ids, types = assemble(material.queries, material.passages, material.pairs[chosen], length)
            with torch.autocast("cuda", torch.bfloat16):
                score, states = model(ids, types, with_states)
                loss = squared_error(score, targets[number][chosen]) / 10
                if above is not None and with_states:
                    with torch.no_grad():
                        _, wanted = above(ids, types, True)
                    pairs = zip(states, STUDENT_LAYERS, strict=True)
                    follow = torch.stack([squared_error(state, wanted[layer]) for state, layer in pairs]).mean()
                    running["hidden"] += float(follow.detach()) if step % 50 == 0 else 0.0
                    objective = loss + follow
                else:
                    objective = loss
            objective.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            seen += len(chosen)
            step += 1
            if step % 50 == 0:
                running["score"] += float(loss.detach()) * 10
            if step % 2000 == 0:
                row = {"step": step, "epoch": epoch, "pairs": seen, "seconds": round(before + elapsed, 1)}
                row["score_mse"] = round(running["score"] / 40, 4)
                row["hidden_mse"] = round(running["hidden"] / 40, 5) if with_states else None
                running = {"score": 0.0, "hidden": 0.0}
                if step % 6000 == 0:
                    row["held_out"] = validated(model, sets, targets)
                curve.append(row)
                print(json.dumps(row), flush=True)
        epoch += 1
    resume = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "curve": curve, "seen": seen}
    spent = before + time.perf_counter() - begun
    torch.save({**resume, "step": step, "epoch": epoch, "before": spent}, STATE / "resume.pt")
    last = {"step": step, "epoch": epoch, "pairs": seen, "held_out": validated(model, sets, targets)}
    curve.append(last)
    print(json.dumps(last), flush=True)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "curve.json").write_text(
        json.dumps({"settings": settings(total, hidden, shipped, rate), "curve": curve}, indent=1) + "\n"
    )
    checkpoint = to_checkpoint(model)
    np.savez(STATE / "student.npz", **checkpoint)
    send(checkpoint)


def settings(total: float, hidden: float, shipped: bool, rate: float) -> dict[str, object]:
    """Return what the training was run with."""
    return {
        "seconds": total,
        "hidden_part": hidden,
        "student_layers": STUDENT_LAYERS,
        "step_tokens": STEP_TOKENS,
        "begun_with": "the shipped weights" if shipped else "layers of the teacher",
        "rate": rate,
        "decay": DECAY,
        "warmup": WARMUP,
        "window": WINDOW,
        "gold_of_code": GOLD,
        "margin_of_code": MARGIN,
        "seed": SEED,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(),
    }


def send(checkpoint: dict[str, np.ndarray]) -> None:
    """Write the weights to ``$OUT`` as float16 in parts that may come back (16 MiB each)."""
    part, size, number = {}, 0, 0
    for name, value in checkpoint.items():
        rows = np.array_split(value.astype(np.float16), 2) if value.nbytes > 20e6 else [value.astype(np.float16)]
        for at, piece in enumerate(rows):
            if size + piece.nbytes > 15.5e6:
                np.savez(OUT / f"student-{number}.npz", **part)
                part, size, number = {}, 0, number + 1
            part[f"{name}#{at}" if len(rows) > 1 else name] = piece
            size += piece.nbytes
    np.savez(OUT / f"student-{number}.npz", **part)


def squared_error(value: Tensor, wanted: Tensor) -> Tensor:
    """Return the mean squared error in float32."""
    return (value.float() - wanted.float()).square().mean()


def validated(model: CrossEncoder, sets: list[Set], targets: list[Tensor]) -> dict[str, dict[str, float]]:
    """Return, for the held-out queries of each kind, the error and how often student and target agree on the best."""
    found = {}
    for material, wanted in zip(sets, targets, strict=True):
        chosen = material.held[material.pairs[:, 0]].nonzero().squeeze(1)
        if not len(chosen):
            continue
        pairs = material.pairs[chosen]
        given, wanted = scores_of(model, material.queries, material.passages, pairs, WINDOW), wanted[chosen]
        count = len(material.queries.lengths)
        best = [
            torch.full((count,), -99.0, device="cuda").scatter_reduce(0, pairs[:, 0], row, "amax")
            for row in (given, wanted)
        ]
        agree = ((given == best[0][pairs[:, 0]]) & (wanted == best[1][pairs[:, 0]])).sum() / pairs[
            :, 0
        ].unique().numel()
        found[material.kind] = {
            "mse": round(float(squared_error(given, wanted)), 4),
            "same_best": round(float(agree), 4),
        }
    return found


def score(names: list[str]) -> None:
    """Score the evaluation pools with ``teacher`` and ``student``; write ``scores-NAME.npz``."""
    models = {}
    if "teacher" in names:
        models["teacher"] = teacher()
    if "student" in names:
        stored = np.load(STATE / "student.npz")
        models["student"] = from_checkpoint({name: stored[name] for name in stored.files}, range(len(STUDENT_LAYERS)))
    for name, model in models.items():
        model.cuda().eval()
        written = {}
        for file in sorted((WORK / "pools").glob("*.jsonl.gz")):
            with gzip.open(file, "rt", encoding="utf-8") as lines:
                rows = [json.loads(line) for line in lines]
            queries = Texts(*tokenised([row["query"] for row in rows]))
            for form in ("text", "context"):
                if form not in rows[0]["hits"][0]:
                    continue
                texts = [hit[form] for row in rows for hit in row["hits"]]
                order = {text: place for place, text in enumerate(dict.fromkeys(texts))}
                passages = Texts(*tokenised(list(order)))
                pairs = [(at, order[hit[form]]) for at, row in enumerate(rows) for hit in row["hits"]]
                given = scores_of(model, queries, passages, torch.tensor(pairs).cuda(), POOL_WINDOW)
                written[f"{file.name.removesuffix('.jsonl.gz')}#{form}"] = given.cpu().numpy().astype(np.float32)
        OUT.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(OUT / f"scores-{name}.npz", **written)
        print(name, {key: len(value) for key, value in written.items()}, flush=True)


def main() -> None:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("prepare", "label", "train", "score"))
    parser.add_argument("names", nargs="*", help="kinds to prepare, or models to score with")
    parser.add_argument("--seconds", type=float, default=540, help="of this call")
    parser.add_argument("--total", type=float, default=1000, help="seconds of all calls together")
    parser.add_argument("--hidden", type=float, default=0.5, help="part of the training that follows the states too")
    parser.add_argument("--part", type=float, default=1.0, help="part of the queries to prepare")
    parser.add_argument("--seed", type=int, default=SEED, help="of the queries and candidates that are prepared")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--shipped", action="store_true", help="label with, or go on from, the weights in src/trivet")
    parser.add_argument("--rate", type=float, default=RATE, help="first learning rate")
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.names or list(KINDS), options.part, options.seed)
    elif options.step == "label":
        label(options.compile, options.shipped)
    elif options.step == "train":
        train(options.seconds, options.total, options.hidden, options.compile, options.shipped, options.rate)
    else:
        score(options.names or ["teacher", "student"])


if __name__ == "__main__":
    main()
