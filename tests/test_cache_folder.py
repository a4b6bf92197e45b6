from __future__ import annotations

import os
from pathlib import Path

import pytest

from trivet.cache_folder import cache_folder


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRIVET_CACHE", str(tmp_path / "said"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "said"
    monkeypatch.delenv("TRIVET_CACHE")
    assert cache_folder() == tmp_path / "xdg" / "trivet"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "trivet"


def test_a_user_without_a_home_has_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("TRIVET_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert cache_folder().parent == Path(os.devnull)
    with pytest.raises(OSError):
        cache_folder().mkdir(parents=True)
