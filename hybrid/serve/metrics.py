"""Prometheus metrics: counters of this process, and the state of tables, queue and pipeline at each scrape.

Names and units by prometheus.io/docs/practices/naming: base units, `_total` for counters, no unbounded label values.
"""

from __future__ import annotations

import platform
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from hybrid.api.hybrid import Hybrid
from hybrid.serve.home_metrics import HomeMetrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series beside each counter, which no query needs
_KEPT = 1000
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The metrics of one application."""

    def __init__(self, home: Hybrid) -> None:
        self.registry = CollectorRegistry()
        self._is_slow = home.context.query_log.is_slow
        ProcessCollector(registry=self.registry)
        build = Gauge(
            "hybrid_build_info",
            "1, with the versions of the product, Python and DuckDB as labels.",
            ["version", "python", "duckdb"],
            registry=self.registry,
        )
        build.labels(version("hybrid"), platform.python_version(), version("duckdb")).set(1)
        self._requests = self._counter(
            "hybrid_http_requests", "HTTP requests that were answered.", "method", "route", "status"
        )
        self._request_s = self._histogram(
            "hybrid_http_request_duration_seconds", "Time from an HTTP request to the end of its response.", "route"
        )
        self._queries = self._counter(
            "hybrid_queries",
            "Statements answered, once for each of their tables; source says whether the cache or files answered.",
            *("table", "route", "source"),
        )
        self._query_s = self._histogram(
            "hybrid_query_duration_seconds", "Time from the request for a statement to its result.", "source"
        )
        self._slow = self._counter(
            "hybrid_slow_queries", "Statements answered that took slow_query_ms or longer.", "source"
        )
        self._ended = self._counter(
            "hybrid_queries_ended", "Statements that have ended: DONE, FAILED, CANCELLED or REFUSED.", "state"
        )
        for state in ("DONE", "FAILED", "CANCELLED", "REFUSED"):  # a rate needs the 0 before the first
            self._ended(state)
        self._passed_on = self._counter(
            "hybrid_requests_passed_on",
            "Requests about tables of other servers; kind: statement or other, outcome: answered, refused or silent.",
            *("server", "kind", "outcome"),
        )
        self._errors = self._counter(
            "hybrid_errors", "Errors answered: of kind http by status, of kind query by Pinot's code.", "kind", "code"
        )
        self.registry.register(HomeMetrics(home))

    def request(self, method: str, route: str, status: int, took_s: float) -> None:
        """Count one HTTP request that was answered."""
        self._requests(method, route, str(status)).inc()
        self._request_s(route).observe(took_s)
        if status >= 400:
            self._errors("http", str(status)).inc()

    def query(self, tables: list[str], route: str, source: str, took_s: float) -> None:
        """Count a statement over `tables` that was answered from `cache` or `files`."""
        for table in tables:
            self._queries(table, route, source).inc()
        self._query_s(source).observe(took_s)
        self._ended("DONE").inc()
        if self._is_slow(took_s):
            self._slow(source).inc()

    def query_failed(self, state: str, code: int | None) -> None:
        """Count a statement without a result: its state, and Pinot's code of its error (None: it has none)."""
        self._ended(state).inc()
        if code is not None:
            self._errors("query", str(code)).inc()

    def passed_on(self, server: str, kind: str, outcome: str) -> None:
        """Count a request that was passed on to another server: once for each server that was asked."""
        self._passed_on(server, kind, outcome).inc()

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Any:
        # Looking up a metric by its labels takes ten times as long as incrementing it, so look-ups are cached.
        return lru_cache(_KEPT)(Counter(name, text, labels, registry=self.registry).labels)

    def _histogram(self, name: str, text: str, *labels: str) -> Any:
        return lru_cache(_KEPT)(Histogram(name, text, labels, buckets=_SECONDS, registry=self.registry).labels)
