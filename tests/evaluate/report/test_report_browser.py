"""Does a real browser show the page, and do its switches, tips and tables work?

The page is opened from disk; nothing listens anywhere. Where no browser is installed there is nothing to ask.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from report_material import GARDEN, KITCHEN, Page, four, headroom, sweep

from trivet.evaluate import compare
from trivet.evaluate.report import Material, render

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
    *("--enable-logging=stderr", "--log-level=0"),
)
SECONDS = 90
Browse = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser is installed; looked for {', '.join(BROWSERS)} (Debian: apt-get install chromium)")
    return found


@pytest.fixture
def browse(browser: str, tmp_path: Path) -> Browse:
    """Open a file and come back: with a fresh profile, in a process group of its own that is ended with it."""

    def open_(page: Path, *flags: str) -> subprocess.CompletedProcess[str]:
        command = [browser, *FLAGS, f"--user-data-dir={tmp_path / 'browser'}", *flags, page.as_uri()]
        # its own home: a browser writes outside its profile as well
        home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, **home},
            start_new_session=True,
        )
        try:
            said, complained = process.communicate(timeout=SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, said, complained)

    return open_


@pytest.fixture(scope="module")
def page() -> str:
    first, second = four(), four(GARDEN)
    axes = {"alpha": (0.0, 0.5, 1.0)}
    return render(
        Material(
            "A page </title><script>document.title = 'taken over'</script>",
            [*first, *second],
            [compare(first), compare(second)],
            [sweep(axes), sweep(axes, dataset=GARDEN), sweep({**axes, "rrf_k": (5, 60)})],
            {KITCHEN: headroom()},
        )
    )


def console(complained: str) -> list[str]:
    """What the page's script, or the browser about the page, said on the console."""
    return [line for line in complained.splitlines() if "CONSOLE" in line]


def pixels(png: bytes) -> np.ndarray:
    """The picture as rows of pixels, by the format's own rules (PNG, RFC 2083): 8 bits, not interlaced."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    place, packed = 8, b""
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            width, height, bits, colours, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (bits, interlaced) == (8, 0)
            each = {2: 3, 6: 4}[colours]
        packed += body if kind == b"IDAT" else b""
        place += 12 + length
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + width * each)
    found = np.zeros((height, width, each), np.uint8)
    above = np.zeros((width, each), np.uint8)
    for y, row in enumerate(rows):
        line = row[1:].reshape(width, each)
        found[y] = above = _unfiltered(int(row[0]), line, above)
    return found[:, :, :3]


def _unfiltered(how: int, line: np.ndarray, above: np.ndarray) -> np.ndarray:
    if how == 0:
        return line
    if how == 1:
        return np.cumsum(line, axis=0, dtype=np.uint8)
    if how == 2:
        return line + above
    made = np.zeros_like(line)
    left = corner = [0] * line.shape[1]
    for x, (values, ups) in enumerate(zip(line.tolist(), above.tolist(), strict=True)):
        if how == 3:
            row = [(v + (a + b) // 2) & 255 for v, a, b in zip(values, left, ups, strict=True)]
        else:
            row = [(v + _paeth(a, b, c)) & 255 for v, a, b, c in zip(values, left, ups, corner, strict=True)]
        made[x] = left = row
        corner = ups
    return made


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))


def test_it_renders_without_complaint(browse: Browse, page: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    done = browse(file, "--dump-dom")
    assert done.returncode == 0, done.stderr[-2000:]
    assert console(done.stderr) == []
    shown = Page(done.stdout)
    assert shown.all("html", "js"), "the script did not run"
    for tag, kind in (
        ("circle", "dot default"),
        ("path", "band"),
        ("path", "curve"),
        ("circle", "point"),
        ("rect", "bar"),
    ):
        assert shown.all(tag, kind), f"no {tag} of {kind}"
    # every mark is there once it is parsed as the page's own markup was meant
    written = Page(page)
    for tag in ("svg", "circle", "line", "path", "rect", "table", "section"):
        assert len(shown.all(tag)) == len(written.all(tag))
    panes = [attrs for attrs in shown.all("div") if attrs.get("data-pane") == "measure"]
    assert {"hidden" in attrs for attrs in panes if attrs["data-value"] == "nDCG@10"} == {False}
    assert {"hidden" in attrs for attrs in panes if attrs["data-value"] != "nDCG@10"} == {True}
    assert "taken over" in shown.text
    assert done.stdout.count("<script>") == 1


def test_the_check_sees_a_script_that_fails(browse: Browse, tmp_path: Path) -> None:
    file = tmp_path / "broken.html"
    file.write_text("<!doctype html><title>x</title><script>missing.thing()</script>", encoding="utf-8")
    assert any("missing is not defined" in line for line in console(browse(file, "--dump-dom").stderr))


def test_no_other_script_runs(browse: Browse, page: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page.replace("</body>", "<script>document.body.id = 'foreign'</script></body>"), encoding="utf-8")
    done = browse(file, "--dump-dom")
    assert '<body id="foreign"' not in done.stdout
    assert any("Content Security Policy" in line for line in console(done.stderr))


@pytest.mark.parametrize(
    ("width", "dark", "background"),
    [(1280, False, (0xF4, 0xF5, 0xF7)), (390, False, (0xF4, 0xF5, 0xF7)), (1280, True, (0x10, 0x13, 0x17))],
)
def test_it_is_drawn(
    browse: Browse, page: str, tmp_path: Path, width: int, dark: bool, background: tuple[int, int, int]
) -> None:
    file, picture = tmp_path / "report.html", tmp_path / "report.png"
    file.write_text(page, encoding="utf-8")
    scheme = ("--blink-settings=preferredColorScheme=0",) if dark else ()
    done = browse(file, f"--screenshot={picture}", f"--window-size={width},1400", *scheme)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = pixels(picture.read_bytes())
    assert seen.shape[1] == width
    assert tuple(seen[2, 2]) == background
    assert len(np.unique(seen.reshape(-1, 3), axis=0)) > 50, "the picture is blank"
    default = (0xFF, 0x8D, 0x4D) if dark else (0xC7, 0x50, 0x00)
    assert (seen == default).all(axis=2).sum() > 50, "nothing has the default profile's colour"


_PROBE = """
const all = (selector) => [...document.querySelectorAll(selector)];
const told = {};
const select = document.querySelector("[data-switch=measure]");
select.value = "R@5";
select.dispatchEvent(new Event("change"));
told.panes = all("[data-pane=measure]").filter((pane) => !pane.hidden).map((pane) => pane.dataset.value);
const mark = document.querySelector("#quality [data-value='R@5'] .dot.tip");
mark.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, clientX: 5, clientY: 5 }));
told.tip = document.getElementById("tip").textContent;
document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
told.hidden = document.getElementById("tip").hidden;
const plot = mark.closest("svg");
plot.focus();
plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
told.second = document.getElementById("tip").textContent;
const table = document.querySelector("#tables details table");
const column = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.v));
const button = table.tHead.rows[0].cells[1].querySelector("button");
button.click();
told.falling = column();
button.click();
told.rising = column();
told.sorted = table.tHead.rows[0].cells[1].getAttribute("aria-sort");
told.wide = document.documentElement.scrollWidth > innerWidth;
dispatchEvent(new Event("beforeprint"));
told.folded = all("details:not([open], .topic)").length;
dispatchEvent(new Event("afterprint"));
told.foldedAgain = all("details:not([open])").length > 0;
document.body.setAttribute("data-told", JSON.stringify(told));
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_switches_tips_and_tables_work(browse: Browse, page: str, tmp_path: Path, width: int) -> None:
    import json

    file = tmp_path / "probe.html"
    probed = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    file.write_text(probed.replace("</body>", f"<script>{_PROBE}</script></body>"), encoding="utf-8")
    done = browse(file, "--dump-dom", f"--window-size={width},900")
    assert console(done.stderr) == []
    told = json.loads(str(Page(done.stdout).all("body")[0]["data-told"]))
    assert set(told["panes"]) == {"R@5"}
    assert re.fullmatch(r"\w+: R@5 0\.\d{3}, 95 % interval 0\.\d{3} to 0\.\d{3}", told["tip"])
    assert told["hidden"] is True
    assert "R@5" in told["second"]
    assert told["falling"] == sorted(told["falling"], reverse=True)
    assert told["rising"] == sorted(told["rising"])
    assert told["sorted"] == "ascending"
    assert told["folded"] == 0
    assert told["foldedAgain"] is True
    assert told["wide"] is False, "the page is wider than the screen"
