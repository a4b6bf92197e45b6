"""How do I use a model that lies in a folder?

Two layouts: sentence-transformers (config.json, tokenizer.json or vocab.txt, model.safetensors), whose weights become
the same graph as the built-in model's, and ONNX (model.onnx or onnx/model.onnx), which runs as it is. Weights of a
family that cannot be built fall back to the ONNX file where there is one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.embedders.bert_names import FAMILIES, short_named
from trivet.embedders.encoder import ACTIVATIONS, BLOCK, BLOCK_INT8, BUILD, FP32, Architecture, encoder_graph
from trivet.embedders.local import LocalModel, Opened, open_session
from trivet.embedders.safetensors import read_safetensors
from trivet.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ONNX_FILES = ("model.onnx", "onnx/model.onnx")
#: Modules of a sentence-transformers pipeline that we can stand in for; every row is normalised anyway.
MODULES = ("Transformer", "Pooling", "Normalize")
POOLINGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a folder's JSON files say about turning text into a vector, beside the weights."""

    pooling: str
    max_tokens: int
    #: Lower-case the text before anything else; and what a tokenizer made from vocab.txt does by itself.
    lower: bool
    uncased: bool
    query_prompt: str
    passage_prompt: str


def load(argument: str) -> LocalModel:
    """``folder:PATH`` or ``folder:PATH?int8``."""
    named, _, option = argument.partition("?")
    path = Path(named).expanduser().resolve()
    if option not in ("", "int8"):
        raise InputError(f"embedder 'folder:{argument}': option {option!r} is not known; write '?int8' or nothing")
    if not named or not path.is_dir():
        raise InputError(f"embedder 'folder:{argument}': {path} is not a folder")
    config = read_json(path / "config.json")
    onnx = next((path / name for name in ONNX_FILES if (path / name).is_file()), None)
    weights = path / "model.safetensors"
    family = str(config.get("model_type", "unknown"))
    settings = read_settings(path, config)
    open_model: Callable[[], Opened]
    if weights.is_file() and (family in FAMILIES or onnx is None):
        precision = option or "fp32"
        shape = architecture(path, config, settings, precision)
        open_model = partial(open_weights, path, shape, settings, precision)
    elif onnx is not None and not option:
        weights, precision = onnx, "onnx"
        open_model = partial(open_onnx, path, onnx, settings)
    else:
        wanted = "model.safetensors" if option or onnx is None else "a model"
        raise InputError(f"embedder 'folder:{argument}': {path} has no {wanted} (nor, without ?int8, {ONNX_FILES[0]})")
    dim, layers = _size(path, config, "hidden"), _size(path, config, "layers")
    return LocalModel(
        spec=f"folder:{path}{'?int8' if option else ''}",
        id=f"{family}-{layers}x{dim}/{precision}/{fingerprint(weights, tokenizer_file(path), settings)}",
        dim=dim,
        open=open_model,
        query_prompt=settings.query_prompt,
        passage_prompt=settings.passage_prompt,
    )


def read_json(path: Path, default: Any = None) -> Any:
    if default is not None and not path.is_file():
        return default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"model folder {path.parent} has no {path.name}: copy the whole folder of the model") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from None


def read_settings(path: Path, config: dict[str, Any]) -> Settings:
    modules = read_json(path / "modules.json", [])
    for module in modules:
        kind = str(module["type"]).rsplit(".", 1)[-1]
        if kind not in MODULES:
            raise InputError(f"{path / 'modules.json'}: module {kind!r} is not supported, only {', '.join(MODULES)}")
    folder = next((module["path"] for module in modules if str(module["type"]).endswith("Pooling")), "1_Pooling")
    pooling = read_json(path / folder / "config.json", {"pooling_mode_mean_tokens": True})
    modes = [name for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True]
    if len(modes) != 1 or modes[0] not in POOLINGS:
        raise InputError(f"{path / folder / 'config.json'}: pooling {modes} is not supported, only {list(POOLINGS)}")
    sentence = read_json(path / "sentence_bert_config.json", {})
    tokenizer = read_json(path / "tokenizer_config.json", {})
    prompts = read_json(path / "config_sentence_transformers.json", {}).get("prompts") or {}
    if prompts and pooling.get("include_prompt") is False:
        raise InputError(
            f"{path / folder / 'config.json'}: include_prompt false is not supported together with prompts"
        )
    return Settings(
        pooling=POOLINGS[modes[0]],
        max_tokens=max_tokens(config, sentence, tokenizer),
        lower=bool(sentence.get("do_lower_case")),
        uncased=bool(tokenizer.get("do_lower_case", True)),
        query_prompt=prompts.get("query", ""),
        passage_prompt=prompts.get("passage", prompts.get("document", "")),
    )


def max_tokens(config: dict[str, Any], sentence: dict[str, Any], tokenizer: dict[str, Any]) -> int:
    """The smallest of what the pipeline, the tokenizer and the table of positions allow."""
    positions = config.get("max_position_embeddings", 512) - position_offset(config)
    asked_for = (sentence.get("max_seq_length"), tokenizer.get("model_max_length"))
    return int(min(positions, *(size or positions for size in asked_for)))


def position_offset(config: dict[str, Any]) -> int:
    family = FAMILIES.get(str(config.get("model_type")))
    return int(config.get("pad_token_id") or 0) + 1 if family and family.offset_by_padding else 0


def architecture(path: Path, config: dict[str, Any], settings: Settings, precision: str) -> Architecture:
    """The encoder config.json describes, or why it cannot be built."""
    where, kind = path / "config.json", str(config.get("model_type"))
    if kind not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise InputError(
            f"{where}: model_type {kind!r} is not built here ({known} are); put its ONNX export in the folder"
        )
    activation = config.get(FAMILIES[kind].config["activation"], "gelu")
    if activation not in ACTIVATIONS:
        raise InputError(f"{where}: activation {activation!r} is not supported, only {', '.join(ACTIVATIONS)}")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise InputError(f"{where}: position_embedding_type {config['position_embedding_type']!r} is not supported")
    hidden = _size(path, config, "hidden")
    if precision == "int8" and hidden % BLOCK:
        raise InputError(
            f"{where}: ?int8 needs a hidden size divisible by {BLOCK}, not {hidden}; load it without ?int8"
        )
    return Architecture(
        hidden=hidden,
        layers=_size(path, config, "layers"),
        heads=_size(path, config, "heads"),
        pooling=settings.pooling,
        activation=activation,
        layer_norm_eps=float(config.get("layer_norm_eps", 1e-12)),
        position_offset=position_offset(config),
    )


def _size(path: Path, config: dict[str, Any], size: str) -> int:
    family = FAMILIES.get(str(config.get("model_type")), FAMILIES["bert"])
    value = config.get(family.config[size])
    if not isinstance(value, int) or value < 1:
        raise InputError(f"{path / 'config.json'}: {family.config[size]} must be a whole number above 0, not {value!r}")
    return value


def open_weights(path: Path, shape: Architecture, settings: Settings, precision: str) -> Opened:
    file = path / "model.safetensors"
    family = FAMILIES[read_json(path / "config.json")["model_type"]]
    weights = short_named(read_safetensors(file), family, shape.layers, str(file))
    graph = encoder_graph(shape, weights, BLOCK_INT8 if precision == "int8" else FP32)
    return Opened(read_tokenizer(path, settings), open_session(graph, fuse=False), settings.max_tokens)


def open_onnx(path: Path, file: Path, settings: Settings) -> Opened:
    session = open_session(str(file), fuse=True)
    return Opened(read_tokenizer(path, settings), session, settings.max_tokens, settings.pooling)


def tokenizer_file(path: Path) -> Path:
    for name in ("tokenizer.json", "vocab.txt"):
        if (path / name).is_file():
            return path / name
    raise InputError(
        f"model folder {path} has neither tokenizer.json nor vocab.txt: copy the whole folder of the model"
    )


def read_tokenizer(path: Path, settings: Settings) -> Tokenizer:
    from tokenizers import Tokenizer, normalizers

    file = tokenizer_file(path)
    whole = file.name == "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(file)) if whole else word_pieces(file, settings.uncased)
    if settings.lower:
        steps = [normalizers.Lowercase(), *([tokenizer.normalizer] if tokenizer.normalizer else [])]
        tokenizer.normalizer = normalizers.Sequence(steps)
    return tokenizer


def word_pieces(file: Path, uncased: bool) -> Tokenizer:
    """BERT's tokenizer from its list of pieces, one a line."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = models.WordPiece.read_file(str(file))
    missing = [piece for piece in ("[UNK]", "[CLS]", "[SEP]") if piece not in vocabulary]
    if missing:
        raise InputError(f"{file} lacks {', '.join(missing)}: it is not a WordPiece vocabulary")
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=uncased)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = (("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    tokenizer.post_processor = processors.BertProcessing(*ends)
    return tokenizer


def fingerprint(weights: Path, tokenizer: Path, settings: Settings) -> str:
    """8 hex digits over everything that changes a vector; the folder's own name and place do not."""
    digest = hashlib.sha256(json.dumps([BUILD, asdict(settings)]).encode())
    # an ONNX model over 2 GB keeps its tensors in a second file, model.onnx_data or model.onnx.data
    for file in (tokenizer, *sorted(weights.parent.glob(f"{weights.name}*"))):
        with file.open("rb") as data:
            digest.update(hashlib.file_digest(data, "sha256").digest())
    return digest.hexdigest()[:8]
