"""Health checks and metrics.

``/healthz`` and ``/readyz`` need no key, because a load balancer has none, and return nothing but a status.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from trivet.http import metrics, problem_details
from trivet.http.json_response import json_response
from trivet.http.response_models import Health, ProblemDetails, responses
from trivet.http.routes.parameters import Access

router = APIRouter(tags=["operation"])
_OPEN: dict[int | str, dict[str, Any]] = {
    200: {"model": Health, "description": "Success"},
    405: {"model": ProblemDetails, "description": problem_details.KINDS["method-not-allowed"][1]},
}
_METRICS = responses(None)
_METRICS[200] = {
    "description": "The text format of Prometheus.",
    "content": {"text/plain": {"schema": {"type": "string"}, "example": "trivet_search_hits_total 12.0\n"}},
}


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", responses=_OPEN, summary="Check that the process is alive")
async def check_health() -> Response:
    return json_response({"status": "ok"})


@router.head("/readyz", include_in_schema=False)
@router.get(
    "/readyz",
    responses={
        **_OPEN,
        **{code: {"model": ProblemDetails, "description": "Not ready"} for code in (429, 500, 503, 504)},
    },
    summary="Check that the service is ready",
)
async def check_ready(access: Access) -> Response:
    """Ready means that the store can be read and that a thread was free to read it."""
    await access.dispatcher.probe()
    return json_response({"status": "ready"})


@router.get("/metrics", responses=_METRICS, summary="Get metrics for Prometheus")
async def get_metrics(access: Access) -> Response:
    page = await access.run_on_store("read", lambda: metrics.page(access.dispatcher.stats))
    return Response(page, media_type=metrics.MEDIA_TYPE)
