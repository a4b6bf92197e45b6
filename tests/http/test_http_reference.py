"""``/docs``: the reference page, whose scripts come from this server."""

from __future__ import annotations

import re
from typing import Any


def test_everything_that_the_page_loads_comes_from_here(client: Any) -> None:
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    loaded = re.findall(r'(?:src|href)="(/[^"]+)"', page.text)
    assert "//" not in page.text
    assert loaded == ["/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js", "/docs/start.js"]
    kinds = [client.get(url).headers["content-type"].partition(";")[0] for url in loaded]
    assert kinds == ["text/css", "text/javascript", "text/javascript"]
    assert "default-src 'none'; script-src 'self';" in page.headers["content-security-policy"]


def test_it_shows_the_openapi_document(client: Any) -> None:
    (url,) = re.findall(r'url: "([^"]+)"', client.get("/docs/start.js").text)
    assert client.get(url).json()["openapi"].startswith("3.1")


def test_no_other_file_is_served(client: Any) -> None:
    for name in ("favicon.png", "redoc.standalone.js", "..%2Fcore.py"):
        assert client.get(f"/docs/{name}").status_code == 404
