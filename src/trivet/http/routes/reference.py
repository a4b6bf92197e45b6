"""The reference of the routes at ``/docs``: Swagger UI over the OpenAPI document.

FastAPI's own page loads its scripts from another host. These come with the package ``fastapi-offline``, so the page
works without internet. It needs no key, because it contains no data; its requests take one from "Authorize".
"""

from __future__ import annotations

from importlib.resources import as_file, files

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

router = APIRouter(include_in_schema=False)
ASSETS = ("swagger-ui.css", "swagger-ui-bundle.js")
START = 'SwaggerUIBundle({url: "/openapi.json", dom_id: "#reference", deepLinking: true})\n'
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>trivet: HTTP reference</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<main id="reference"></main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # React writes style attributes
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "no-referrer", "Cache-Control": "max-age=3600"}


@router.get("/docs")
async def page() -> Response:
    return Response(PAGE, headers=HEADERS, media_type="text/html")


@router.get("/docs/start.js")
async def start() -> Response:
    return Response(START, headers=HEADERS, media_type="text/javascript")


@router.get("/docs/{name}")
async def asset(name: str) -> Response:
    if name not in ASSETS:
        raise HTTPException(404)
    with as_file(files("fastapi_offline") / "static" / name) as path:
        return FileResponse(path, headers=HEADERS)
