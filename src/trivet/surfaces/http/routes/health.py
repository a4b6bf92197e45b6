"""Is it up, is it ready, how is it going?

``/healthz`` and ``/readyz`` need no key and tell nothing but yes or no: a load balancer has none.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from trivet.surfaces.http import answers, metrics, problems
from trivet.surfaces.http.access import Asking
from trivet.surfaces.http.replies import reply
from trivet.surfaces.http.routes.shared import Asked, responses

router = APIRouter(tags=["operation"])
_OPEN: dict[int | str, dict[str, Any]] = {
    200: {"model": answers.Health, "description": "Yes"},
    405: {"model": answers.ProblemDetails, "description": problems.KINDS["method-not-allowed"][1]},
}
_METRICS = responses(None)
_METRICS[200] = {
    "description": "Prometheus' text format.",
    "content": {"text/plain": {"schema": {"type": "string"}, "example": "trivet_search_hits_total 12.0\n"}},
}


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", responses=_OPEN, summary="Is the process alive?")
async def health() -> Response:
    return reply({"status": "ok"})


@router.head("/readyz", include_in_schema=False)
@router.get(
    "/readyz",
    responses={
        **_OPEN,
        **{code: {"model": answers.ProblemDetails, "description": "No"} for code in (429, 500, 503, 504)},
    },
    summary="Can it answer?",
)
async def ready(bridge: Asked) -> Response:
    """The store can be read, and a thread was free to do so."""
    await bridge.probe()
    return reply({"status": "ready"})


@router.get("/metrics", responses=_METRICS, summary="Numbers for Prometheus")
async def prometheus(bridge: Asked, caller: Asking) -> Response:
    page = await bridge.store(caller, "read", lambda: metrics.page(bridge.stats))
    return Response(page, media_type=metrics.MEDIA_TYPE)
