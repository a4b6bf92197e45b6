"""Metrics for Prometheus: request and stage times, degraded searches, hits by leg, passages to embed.

Several workers add up their numbers through the shared folder of prometheus_client.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from trivet.types import Results, Stats

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # seconds

_OWN = CollectorRegistry()
REQUESTS = Counter("trivet_http_requests", "Requests", ("method", "route", "status"), registry=_OWN)
SECONDS = Histogram("trivet_http_request_seconds", "Request time", ("route",), registry=_OWN, buckets=_BUCKETS)
STAGES = Histogram("trivet_search_stage_seconds", "Time of a search stage", ("stage",), registry=_OWN, buckets=_BUCKETS)
HITS = Counter("trivet_search_hits", "Hits returned", registry=_OWN)
ALONE = Counter("trivet_search_single_leg_hits", "Hits that only this leg found", ("leg",), registry=_OWN)
DEGRADED = Counter(
    "trivet_search_degraded", "Searches in which this part failed or timed out", ("part",), registry=_OWN
)
WRITTEN = Counter("trivet_documents_written", "Documents added or changed", registry=_OWN)


def count(found: Results) -> None:
    """Count one search."""
    for stage in found.trace:
        STAGES.labels(stage.name).observe(stage.ms / 1000)
    HITS.inc(len(found.hits))
    for hit in found.hits:
        if hit.only_leg:
            ALONE.labels(hit.only_leg).inc()
    for part in {item.part for item in found.degraded}:
        DEGRADED.labels(part).inc()


class _Collections(Collector):
    """Gauges read from the store at each scrape, so that every worker returns the same."""

    def __init__(self, stats: Callable[[], Iterable[Stats]]) -> None:
        self._stats = stats

    def collect(self) -> Iterable[Any]:
        backlog = GaugeMetricFamily("trivet_embed_backlog", "Passages waiting to be embedded", labels=["collection"])
        documents = GaugeMetricFamily("trivet_documents", "Documents stored", labels=["collection"])
        for found in self._stats():
            backlog.add_metric([found.collection], found.pending)
            documents.add_metric([found.collection], found.documents)
        return backlog, documents


def page(stats: Callable[[], Iterable[Stats]]) -> bytes:
    """Return the metrics in the text format of Prometheus."""
    counted = _OWN
    if os.environ.get(SHARED_FOLDER):
        counted = CollectorRegistry()
        MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
    now = CollectorRegistry()
    now.register(_Collections(stats))
    return generate_latest(counted) + generate_latest(now)
