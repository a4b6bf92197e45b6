"""The web page is complete, small, cached and under a strict content security policy."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from trivet.http.routes import web_page

ROOT = Path(__file__).parents[2]
WEB = ROOT / "src/trivet/web"
SCRIPTS = sorted(WEB.glob("*.js"))
FIRST_PAINT = 100_000  # bytes, packed
PACKED = {"Accept-Encoding": "gzip"}


def referred(client: TestClient) -> set[str]:
    """Return every asset that the page loads, directly or through another asset."""
    seen: set[str] = set()
    found = set(re.findall(r'(?:href|src)="(/assets/[^"]+)"', client.get("/").text))
    while found - seen:
        for url in list(found - seen):
            seen.add(url)
            folder = url.rpartition("/")[0]
            if url.endswith((".js", ".css")):
                text = client.get(url).text
                named = re.findall(r'from "\./([^"]+)"', text) + re.findall(r'url\("([^"]+)"\)', text)
                found |= {f"{folder}/{name}" for name in named}
    return seen


def test_it_is_there_without_a_key(service: Any) -> None:
    client = service(require_key=True)
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert client.get("/v1/caller").status_code == 401


def test_the_first_paint_is_small(client: TestClient) -> None:
    urls = ["/", *referred(client)]
    assert len(urls) > len(SCRIPTS)
    sizes = {}
    for url in urls:
        answer = client.get(url, headers=PACKED)
        assert answer.status_code == 200, url
        sizes[url] = int(answer.headers["content-length"])
    assert sum(sizes.values()) < FIRST_PAINT, sizes


def test_every_asset_is_asked_for(client: TestClient) -> None:
    named = {url.rpartition("/")[2] for url in referred(client)}
    kept = {path.name for path in WEB.iterdir() if path.suffix != ".txt"} - {"index.html"}
    assert named == kept


def test_the_policy_lets_nothing_in_from_elsewhere(client: TestClient) -> None:
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:|\*", policy)
    for url in referred(client):
        assert client.get(url).headers["content-security-policy"] == policy
        assert client.get(url).headers["x-content-type-options"] == "nosniff"


def test_nothing_is_inline_and_nothing_is_from_another_host() -> None:
    markup = (WEB / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", markup)
    assert re.findall(r"<script[^>]*>(.*?)</script>", markup) == [""]
    for path in (*SCRIPTS, WEB / "style.css", WEB / "index.html"):
        hosts = set(re.findall(r"https?://[\w.]+", path.read_text()))
        assert hosts <= {"http://www.w3.org"}, path.name  # the name of SVG, which nobody asks for


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_text_can_only_become_text(path: Path) -> None:
    text = path.read_text()
    for sink in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "DOMParser",
    ):
        assert sink not in text, sink
    assert re.match(r"// \w.*\.\n", text), "it opens with a sentence that says what it is"
    assert len(text.splitlines()) <= 400


def test_every_picture_is_shown_somewhere_and_the_pages_own_are_on_the_page_about_it_and_small() -> None:
    kept = {path.name: path.stat().st_size for path in (ROOT / "docs/images").iterdir()}
    shown = {
        path.name: set(re.findall(r"images/([\w.-]+)\)", path.read_text())) for path in (ROOT / "docs").rglob("*.md")
    }
    assert set().union(*shown.values()) == set(kept)
    assert shown["web-page.md"] == {name for name in kept if name.endswith(".png")}
    assert max(kept.values()) < 250_000, kept


def test_assets_are_kept_for_ever_and_the_page_is_asked_for_again(client: TestClient) -> None:
    front = client.get("/")
    assert front.headers["cache-control"] == "no-cache"
    again = client.get("/", headers={"If-None-Match": front.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    script = next(url for url in referred(client) if url.endswith("app.js"))
    found = client.get(script)
    assert "immutable" in found.headers["cache-control"]
    assert found.headers["content-type"] == "text/javascript; charset=utf-8"
    digest = web_page.assets()[0]
    for other in (
        script.replace(digest, "0" * 16),
        script.replace("app.js", "none.js"),
        f"/assets/{digest}/index.html",
    ):
        assert client.get(other).status_code == 404


def test_it_is_packed_for_who_can_unpack_it(client: TestClient) -> None:
    plain = client.get("/", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    packed = web_page.assets()[1][web_page.PAGE].compressed
    assert packed is not None
    assert gzip.decompress(packed).decode() == plain.text
    assert client.get("/", headers=PACKED).headers["content-encoding"] == "gzip"
    assert plain.headers["vary"] == "Accept-Encoding"
