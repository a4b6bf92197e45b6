"""The script that runs a Citus cluster, where PostgreSQL with citus and pgvector is installed."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[2] / "tools/cluster.py"


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("cluster", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["cluster"] = module  # its dataclasses look for it there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["cluster"]


def test_what_a_server_lacks_is_named(tool: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(tool.ClusterError, match="lacks initdb"):
        tool.programs(tmp_path)


def test_a_folder_without_a_cluster_is_named(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "programs", lambda named: tmp_path)
    monkeypatch.setattr(tool, "plain_user", lambda named: None)
    assert tool.main(["stop", "--folder", str(tmp_path)]) == 1
    assert "there is no cluster" in capsys.readouterr().err


def test_settings_are_checked_and_the_given_ones_win(tool: ModuleType) -> None:
    assert tool.settings(durable=False, given=["fsync=on"])["fsync"] == "on"
    assert "fsync" not in tool.settings(durable=True, given=[])
    with pytest.raises(tool.ClusterError, match="'shards' is not NAME=VALUE"):
        tool.settings(durable=True, given=["shards"])


@pytest.mark.slow
@pytest.mark.crash
def test_a_cluster_is_made_grows_stops_and_is_deleted(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        tool.plain_user("postgres"), tool.programs()
    except tool.ClusterError as error:
        pytest.skip(str(error))
    folder = Path(tempfile.mkdtemp(prefix="trivet-cluster-"))  # below a folder that a plain user may enter
    folder.chmod(0o755)
    place = ["--folder", str(folder / "nodes")]
    try:
        assert tool.main(["start", "--workers", "1", *place]) == 0
        url = capsys.readouterr().out.strip()
        assert url.startswith("postgresql://postgres@127.0.0.1:")
        assert tool.main(["add", *place]) == 0
        cluster = tool.Cluster.open(folder / "nodes", tool.programs(), tool.plain_user("postgres"))
        assert cluster.sql(cluster.coordinator, "SELECT count(*) FROM citus_get_active_worker_nodes()") == "2"
        assert tool.main(["stop", *place]) == 0 and not any(map(cluster.runs, cluster.nodes))
        assert tool.main(["start", *place]) == 0 and all(map(cluster.runs, cluster.nodes))
    finally:
        assert tool.main(["delete", *place]) == 0
        assert not (folder / "nodes").exists()
        folder.rmdir()
