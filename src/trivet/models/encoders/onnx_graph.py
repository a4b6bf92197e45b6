"""ONNX models written without the ``onnx`` package.

onnxruntime reads a protobuf message; the ``onnx`` package that usually writes it takes 36 MB and is needed for nothing
else. ``MESSAGES`` is the part of onnx.proto (IR version 9) that an encoder uses, with that file's field numbers;
protobuf makes message classes of it at first use. The tests check the result with ``onnx.checker``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: message -> field -> (number in onnx.proto, type). ``*`` marks a repeated field, a capital letter a message.
MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "Model": {
        "ir_version": (1, "int64"),
        "producer_name": (2, "string"),
        "graph": (7, "Graph"),
        "opset_import": (8, "*OperatorSetId"),
    },
    "OperatorSetId": {"domain": (1, "string"), "version": (2, "int64")},
    "Graph": {
        "node": (1, "*Node"),
        "name": (2, "string"),
        "initializer": (5, "*Tensor"),
        "input": (11, "*ValueInfo"),
        "output": (12, "*ValueInfo"),
    },
    "Node": {
        "input": (1, "*string"),
        "output": (2, "*string"),
        "name": (3, "string"),
        "op_type": (4, "string"),
        "attribute": (5, "*Attribute"),
        "domain": (7, "string"),
    },
    "Attribute": {"name": (1, "string"), "f": (2, "float"), "i": (3, "int64"), "type": (20, "int32")},
    "Tensor": {"dims": (1, "*int64"), "data_type": (2, "int32"), "name": (8, "string"), "raw_data": (9, "bytes")},
    "ValueInfo": {"name": (1, "string"), "type": (2, "Type")},
    "Type": {"tensor_type": (1, "TensorType")},
    "TensorType": {"elem_type": (1, "int32"), "shape": (2, "TensorShape")},
    "TensorShape": {"dim": (1, "*Dimension")},
    "Dimension": {"dim_value": (1, "int64"), "dim_param": (2, "string")},
}

#: numpy dtype -> TensorProto.DataType
DATA_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}
#: AttributeProto.AttributeType
FLOAT, INT = 1, 2

IR_VERSION = 9
OPSETS = {"": 18, "com.microsoft": 1}


@cache
def message_classes() -> Mapping[str, Any]:
    """Return the classes of ``MESSAGES``, in their own pool so that they never clash with an installed ``onnx``."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="trivet_onnx.proto", package="trivet_onnx", syntax="proto2")
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            plain = kind.removeprefix("*")
            field = described.field.add(name=name, number=number, label=label)
            if plain in MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".trivet_onnx.{plain}"
            else:
                field.type = getattr(kinds, f"TYPE_{plain.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"trivet_onnx.{name}")) for name in MESSAGES
    }


class OnnxGraph:
    """Writes a graph node by node; a value is known by its name."""

    def __init__(self) -> None:
        self._model = message_classes()["Model"](ir_version=IR_VERSION, producer_name="trivet")
        self._graph = self._model.graph
        self._graph.name = "encoder"
        self._constants: set[str] = set()
        for domain, version in OPSETS.items():
            self._model.opset_import.add(domain=domain, version=version)

    def constant(self, name: str, values: Array | Sequence[int]) -> str:
        """Add an initializer and return its name; a name that is there already is not added again."""
        if name not in self._constants:
            self._constants.add(name)
            array = np.ascontiguousarray(values)
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            kind = DATA_TYPES[array.dtype.name]
            self._graph.initializer.add(name=name, dims=array.shape, data_type=kind, raw_data=little.tobytes())
        return name

    def nodes(self, outputs: int, op: str, *inputs: str, domain: str = "", **attributes: int | float) -> list[str]:
        """Append a node and return the names of its outputs."""
        number = len(self._graph.node)
        names = [f"{op}_{number}_{index}" for index in range(outputs)]
        node = self._graph.node.add(name=f"{op}_{number}", op_type=op, domain=domain, input=inputs, output=names)
        for name, value in attributes.items():
            kind = {"f": value, "type": FLOAT} if isinstance(value, float) else {"i": value, "type": INT}
            node.attribute.add(name=name, **kind)
        return names

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: int | float) -> str:
        """Append a node with one output and return its name."""
        return self.nodes(1, op, *inputs, domain=domain, **attributes)[0]

    def fused(self, op: str, *inputs: str, **attributes: int | float) -> str:
        """Append a node of onnxruntime's own domain, which has several operators in one kernel."""
        return self.node(op, *inputs, domain="com.microsoft", **attributes)

    def input(self, name: str, dtype: str, *shape: int | str) -> str:
        """Add an input of the graph and return its name."""
        self._describe(self._graph.input.add(name=name), dtype, shape)
        return name

    def output(self, value: str, name: str, dtype: str, *shape: int | str) -> None:
        """Make a value an output of the graph under this name."""
        self._graph.node.add(name=name, op_type="Identity", input=[value], output=[name])
        self._describe(self._graph.output.add(name=name), dtype, shape)

    def serialised(self) -> bytes:
        """Return the model as onnxruntime reads it."""
        data: bytes = self._model.SerializeToString()
        return data

    @staticmethod
    def _describe(info: Any, dtype: str, shape: Sequence[int | str]) -> None:
        tensor = info.type.tensor_type
        tensor.elem_type = DATA_TYPES[dtype]
        for size in shape:
            tensor.shape.dim.add(**({"dim_param": size} if isinstance(size, str) else {"dim_value": size}))
