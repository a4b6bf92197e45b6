from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from trivet.errors import InputError
from trivet.models.encoders.safetensors import read_safetensors

VALUES = np.array([[0.0, -1.5, 3.25], [1e-3, 65504.0, -0.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_what_the_package_writes_is_read(dtype: type, tmp_path: Path) -> None:
    stored = VALUES.astype(dtype)
    save_file({"a.weight": stored, "b": np.ones(4, dtype=np.float32)}, str(tmp_path / "m"), {"format": "pt"})
    tensors = read_safetensors(tmp_path / "m")
    assert set(tensors) == {"a.weight", "b"}
    assert tensors["a.weight"].dtype == np.float32
    assert np.array_equal(tensors["a.weight"], stored.astype(np.float32))


def test_integer_tensors_are_left_out(tmp_path: Path) -> None:
    save_file({"position_ids": np.arange(4), "w": np.ones(2, dtype=np.float32)}, str(tmp_path / "m"))
    assert list(read_safetensors(tmp_path / "m")) == ["w"]


@pytest.mark.parametrize("kept", [0, 7, 20, -1])
def test_a_file_cut_short_is_refused(kept: int, tmp_path: Path) -> None:
    save_file({"w": np.ones(8, dtype=np.float32)}, str(tmp_path / "m"))
    (tmp_path / "m").write_bytes((tmp_path / "m").read_bytes()[:kept])
    with pytest.raises(InputError, match=r"is not a readable \.safetensors file"):
        read_safetensors(tmp_path / "m")


def test_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0")
    with pytest.raises(InputError, match="download it again"):
        read_safetensors(tmp_path / "m")
