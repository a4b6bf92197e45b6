"""Model folders: what their JSON files, tokenizer and weights say, for embedders and scorers alike.

Two layouts are read: Hugging Face's (config.json, tokenizer.json or vocab.txt, model.safetensors), whose weights become
our own graph, and ONNX (model.onnx or onnx/model.onnx), which runs as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.errors import InputError
from trivet.models.encoders.encoder import ACTIVATIONS, BLOCK, BUILD, Architecture
from trivet.models.encoders.tensor_names import FAMILIES
from trivet.models.encoders.tokenizer import TokenizersPackage

if TYPE_CHECKING:
    import tokenizers

WEIGHTS = "model.safetensors"
ONNX_FILES = ("model.onnx", "onnx/model.onnx")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a folder's JSON files say about reading a text, beside the weights."""

    pooling: str
    max_tokens: int
    #: Lower-case the text first.
    lower: bool
    #: Whether a tokenizer made from vocab.txt lower-cases by itself.
    uncased: bool
    query_prompt: str
    passage_prompt: str


def parse_folder(role: str, argument: str) -> tuple[Path, str]:
    """Return the path and the precision (``int8`` or nothing) of a spec's ``PATH`` or ``PATH?int8``."""
    named, _, option = argument.partition("?")
    path = Path(named).expanduser().resolve()
    if option not in ("", "int8"):
        raise InputError(f"{role} 'folder:{argument}': option {option!r} is not known; write '?int8' or nothing")
    if not named or not path.is_dir():
        raise InputError(f"{role} 'folder:{argument}': {path} is not a folder")
    return path, option


def onnx_file(path: Path) -> Path | None:
    """Return the folder's ONNX model; None where it has none."""
    return next((path / name for name in ONNX_FILES if (path / name).is_file()), None)


def read_json(path: Path, default: Any = None) -> Any:
    """Return the content of a JSON file; ``default``, where one is given, if there is no such file."""
    if default is not None and not path.is_file():
        return default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"model folder {path.parent} has no {path.name}: copy the whole folder of the model") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from None


def max_tokens(config: Mapping[str, Any], sentence: Mapping[str, Any], tokenizer: Mapping[str, Any]) -> int:
    """Return the smallest limit of the pipeline, the tokenizer and the table of positions."""
    positions = config.get("max_position_embeddings", 512) - position_offset(config)
    limits = (sentence.get("max_seq_length"), tokenizer.get("model_max_length"))
    return int(min(positions, *(size or positions for size in limits)))


def position_offset(config: Mapping[str, Any]) -> int:
    """Return the row of the position table that belongs to the first token."""
    family = FAMILIES.get(str(config.get("model_type")))
    return int(config.get("pad_token_id") or 0) + 1 if family and family.offset_by_padding else 0


def architecture(path: Path, config: Mapping[str, Any], settings: Settings, precision: str) -> Architecture:
    """Return the encoder that config.json describes; ``InputError`` where it cannot be built."""
    where, kind = path / "config.json", str(config.get("model_type"))
    if kind not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise InputError(
            f"{where}: model_type {kind!r} is not supported ({known} are); put its ONNX export in the folder"
        )
    activation = config.get(FAMILIES[kind].config["activation"], "gelu")
    if activation not in ACTIVATIONS:
        raise InputError(f"{where}: activation {activation!r} is not supported, only {', '.join(ACTIVATIONS)}")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise InputError(f"{where}: position_embedding_type {config['position_embedding_type']!r} is not supported")
    hidden = size_of(path, config, "hidden")
    if precision == "int8" and hidden % BLOCK:
        raise InputError(
            f"{where}: ?int8 needs a hidden size divisible by {BLOCK}, not {hidden}; load it without ?int8"
        )
    return Architecture(
        hidden=hidden,
        layers=size_of(path, config, "layers"),
        heads=size_of(path, config, "heads"),
        pooling=settings.pooling,
        activation=activation,
        layer_norm_eps=float(config.get("layer_norm_eps", 1e-12)),
        position_offset=position_offset(config),
    )


def size_of(path: Path, config: Mapping[str, Any], size: str) -> int:
    """Return a size (``hidden``, ``layers``, ``heads``) from config.json, under the name its family gives it."""
    family = FAMILIES.get(str(config.get("model_type")), FAMILIES["bert"])
    value = config.get(family.config[size])
    if not isinstance(value, int) or value < 1:
        raise InputError(f"{path / 'config.json'}: {family.config[size]} must be a whole number above 0, not {value!r}")
    return value


def tokenizer_file(path: Path) -> Path:
    """Return the folder's tokenizer.json, else its vocab.txt."""
    for name in ("tokenizer.json", "vocab.txt"):
        if (path / name).is_file():
            return path / name
    raise InputError(
        f"model folder {path} has neither tokenizer.json nor vocab.txt: copy the whole folder of the model"
    )


def read_tokenizer(path: Path, settings: Settings) -> TokenizersPackage:
    """Return the folder's tokenizer."""
    from tokenizers import Tokenizer, normalizers

    file = tokenizer_file(path)
    whole = file.name == "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(file)) if whole else word_pieces(file, settings.uncased)
    if settings.lower:
        steps = [normalizers.Lowercase(), *([tokenizer.normalizer] if tokenizer.normalizer else [])]
        tokenizer.normalizer = normalizers.Sequence(steps)
    return TokenizersPackage(tokenizer, settings.max_tokens)


def word_pieces(file: Path, uncased: bool) -> tokenizers.Tokenizer:
    """Return BERT's tokenizer, made from its list of word pieces, one a line."""
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
    """Return 8 hex digits over everything that changes a vector. The folder's name and place do not."""
    digest = hashlib.sha256(json.dumps([BUILD, asdict(settings)]).encode())
    # an ONNX model over 2 GB keeps its tensors in a second file, model.onnx_data or model.onnx.data
    for file in (tokenizer, *sorted(weights.parent.glob(f"{weights.name}*"))):
        with file.open("rb") as data:
            digest.update(hashlib.file_digest(data, "sha256").digest())
    return digest.hexdigest()[:8]
