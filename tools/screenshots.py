"""Take the screenshots in docs/images/ of the web page with the demo's notes, with the built-in model.

Run it with `make screenshots`. It makes a store in a temporary folder, judges the demo's training questions, tunes and
evaluates on them, and looks at every view with Chromium.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import trivet
from trivet import data

IMAGES = Path(__file__).parent.parent / "docs/images"
HOME = "/v1/collections/notes"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDE, PHONE = 1280, 390  # pixels
COLOURS = 256  # of a picture: text and a few hues need no more
LARGEST = 250_000  # bytes
QUESTION = "why do gateways reconnect all at once after the broker restarts"


@dataclass(frozen=True, slots=True)
class Shot:
    name: str
    view: dict[str, Any]
    ready: str  # what is there when it is drawn
    opened: str = ""  # what is clicked then
    scheme: str = "light"
    phone: bool = False
    height: int = 800


SHOTS = (
    Shot("search", {"q": QUESTION}, ".hit", ".hit .open"),
    Shot("search-dark", {"q": "ancient trees suffered because the furnace quit"}, ".hit", scheme="dark"),
    Shot("compare", {"view": "compare", "q": QUESTION, "right": "memories"}, ".side.right .ranked li", height=980),
    Shot("browse", {"view": "browse", "where": "kind=decision", "id": "decision-broker-emqx"}, ".graph .node"),
    Shot("judge", {"view": "judge", "q": "Stilt status light steady red"}, ".job[data-kind=tune]"),
    Shot("health", {"view": "health"}, ".plot svg", scheme="dark"),
    Shot("phone", {"q": QUESTION}, ".hit", phone=True, height=844),
)


def fill(store: Path) -> None:
    with trivet.open(store, "notes") as memory:
        memory.add(data.notes())
        memory.wait()
        for question in data.questions():
            if question["split"] != "train" or not question["relevant"]:
                continue
            for id in question["relevant"]:
                memory.feedback(question["text"], id)
            for hit in memory.search(question["text"], k=2):
                if hit.id not in question["relevant"]:
                    memory.feedback(question["text"], hit.id, good=False)


def served(store: Path) -> tuple[subprocess.Popen[bytes], httpx.Client]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = ["--store", store, "--collection", "notes", "--port", port, "--evaluations", store.parent / "evaluations"]
    command = [sys.executable, "-m", "trivet", "serve", "--log-level", "warning", *map(str, flags)]
    process = subprocess.Popen(command)
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120)
    while process.poll() is None:
        try:
            if client.get("/readyz").status_code == 200:
                return process, client
        except httpx.TransportError:
            time.sleep(0.1)
    raise SystemExit("the service did not start")


def busy(client: httpx.Client) -> None:
    """Something to show in Judge and Health: jobs that ran, searches of every kind."""
    for kind in ("evaluate", "tune"):
        profiles = ["memories", "composite", "chunks"] if kind == "evaluate" else []
        client.post(f"{HOME}/jobs", json={"kind": kind, "profiles": profiles}).raise_for_status()
        while client.get(f"{HOME}/jobs").json()["jobs"][-1 if kind == "tune" else 0]["state"] == "running":
            time.sleep(0.3)
    for at, question in enumerate(data.questions()):
        overrides = {"weights": {"trigram": 0.4}} if at % 7 == 0 else {}
        client.post(f"{HOME}/search", json={"query": question["text"], "overrides": overrides}).raise_for_status()


def draw(browser: Browser, url: str, shot: Shot) -> None:
    context = browser.new_context(
        viewport={"width": PHONE if shot.phone else WIDE, "height": shot.height},
        color_scheme=shot.scheme,
        device_scale_factor=2,
        reduced_motion="reduce",
        has_touch=shot.phone,
        is_mobile=shot.phone,
    )
    page: Page = context.new_page()
    page.goto(f"{url}/?{urlencode({'c': 'notes', **shot.view})}")
    page.locator(shot.ready).first.wait_for()
    if shot.opened:
        page.locator(shot.opened).first.click()
    page.mouse.move(1, 1)
    page.wait_for_timeout(600)
    target = IMAGES / f"{shot.name}.png"
    Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(
        target, optimize=True
    )
    context.close()
    size = target.stat().st_size
    print(f"{target.relative_to(IMAGES.parent.parent)} {size / 1000:.0f} kB")
    if size > LARGEST:
        raise SystemExit(f"{target.name}: more than {LARGEST:,} bytes; a page that shows it should be quick")


def main() -> None:
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        raise SystemExit("no browser is installed; `make browser` installs one")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "memory.db"
        fill(store)
        process, client = served(store)
        try:
            busy(client)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
                for shot in SHOTS:
                    draw(browser, str(client.base_url).rstrip("/"), shot)
                browser.close()
        finally:
            client.close()
            os.kill(process.pid, signal.SIGTERM)
            process.wait(60)


if __name__ == "__main__":
    main()
