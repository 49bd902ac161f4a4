"""Prometheus metrics: counters of this process, and the state of tables, queue and pipeline at each scrape.

Names and units by prometheus.io/docs/practices/naming: base units, `_total` for counters, no unbounded label values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from hybrid.api.hybrid import Hybrid
from hybrid.api.table import Table
from hybrid.config.table_config import Half
from hybrid.errors import HybridError
from hybrid.table.boundary import INFINITE

_KEPT = 1000
_PLACES = ("memory", "disk")
# How a cached table gets new rows, by whether it awaits commits.
_MODES = {False: "stream", True: "commits"}
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The metrics of one application."""

    def __init__(self, home: Hybrid) -> None:
        self._registry = CollectorRegistry()
        shared: dict[str, Any] = {"registry": self._registry}
        # Looking up a metric by its labels takes ten times as long as incrementing it, so look-ups are cached.
        cached_by_labels = lru_cache(_KEPT)
        self._requests = cached_by_labels(
            Counter(
                "hybrid_http_requests", "HTTP requests, by route and status.", ["method", "route", "status"], **shared
            ).labels
        )
        self._request_s = cached_by_labels(
            Histogram(
                "hybrid_http_request_duration_seconds", "Time to answer.", ["route"], buckets=_SECONDS, **shared
            ).labels
        )
        self._queries = cached_by_labels(
            Counter(
                "hybrid_queries",
                "Statements answered, by table, route and source.",
                ["table", "route", "source"],
                **shared,
            ).labels
        )
        self._query_s = cached_by_labels(
            Histogram(
                "hybrid_query_duration_seconds",
                "Time to answer a statement.",
                ["source"],
                buckets=_SECONDS,
                **shared,
            ).labels
        )
        self._errors = cached_by_labels(
            Counter("hybrid_errors", "Errors answered, by kind and code.", ["kind", "code"], **shared).labels
        )
        self._registry.register(_Home(home))

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

    def query_failed(self, code: int) -> None:
        """Count a statement that failed with a Pinot error code."""
        self._errors("query", str(code)).inc()

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _Home:
    """Collector that reads the home at each scrape. Unreadable tables are counted and do not affect others."""

    def __init__(self, home: Hybrid) -> None:
        self._home = home

    def describe(self) -> list[Metric]:
        """Return nothing: the home is not read at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families, each with a sample per table."""
        tables, unreadable = self._tables()
        yield _family("hybrid_tables_unreadable", "Tables that cannot be read.", (), [((), unreadable)])
        yield from self._of_tables(tables)
        yield from self._of_ingestion()
        yield from self._of_runs()
        yield self._of_cache()
        yield from self._of_streams()

    def _tables(self) -> tuple[list[Table], int]:
        readable, unreadable = [], 0
        for name in self._home.table_names():
            try:
                table = self._home.table(name)
                table.segments()
                readable.append(table)
            except HybridError:
                unreadable += 1
        return readable, unreadable

    def _of_tables(self, tables: list[Table]) -> Iterator[Metric]:
        segments = [
            ((table.name, segment.half, segment.state), segment) for table in tables for segment in table.segments()
        ]
        labels = ("table", "half", "state")
        yield _family("hybrid_segments", "Segments.", labels, _summed([(key, 1) for key, _ in segments]))
        rows = _summed([(key, segment.rows) for key, segment in segments])
        yield _family("hybrid_stored_rows", "Rows stored, covered or not.", labels, rows)
        size = _summed([(key, segment.bytes) for key, segment in segments])
        yield _family("hybrid_stored_bytes", "Bytes of data files.", labels, size)
        both = [table for table in tables if len(table.spec.halves) == 2]
        yield _family(
            "hybrid_boundary_timestamp_seconds", "Where offline rows end.", ("table",), _each(both, _boundary_s)
        )
        live = [table for table in tables if Half.REALTIME in table.spec.halves]
        yield _family("hybrid_rejected_rows", "Messages kept as rejected rows.", ("table",), _each(live, _rejected))
        yield _family("hybrid_filtered_rows", "Messages that the filter dropped.", ("table",), _each(live, _filtered))

    def _of_ingestion(self) -> Iterator[Metric]:
        names = set(self._home.table_names())
        ingestions = [
            ingestion for name, ingestion in self._home.context.catalog.serving.ingestions().items() if name in names
        ]
        behind = [
            ((ingestion.table_name,), ingestion.behind) for ingestion in ingestions if ingestion.behind is not None
        ]
        yield _family("hybrid_ingest_lag_offsets", "Offsets in Kafka beyond the last commit.", ("table",), behind)
        fresh = [
            ((ingestion.table_name,), max(0.0, self._home.context.now_ms() - ingestion.at_ms) / 1000)
            for ingestion in ingestions
        ]
        yield _family("hybrid_ingest_checked_age_seconds", "Since ingestion last looked at Kafka.", ("table",), fresh)
        up = [((ingestion.table_name, ingestion.state), 1) for ingestion in ingestions]
        yield _family("hybrid_ingest_state", "1 for the state that ingestion is in.", ("table", "state"), up)
        role = self._home.context.catalog.serving.role("pipeline")
        ages = [(("pipeline",), role.age_s)] if role else []
        yield _family("hybrid_role_heartbeat_age_seconds", "Since the last sign of life.", ("role",), ages)

    def _of_runs(self) -> Iterator[Metric]:
        counts = [(key, count) for key, count in self._home.context.catalog.runs.counts().items()]
        yield _family("hybrid_runs", "Runs of tasks and jobs in the catalog.", ("table", "type", "state"), counts)

    def _of_cache(self) -> Metric:
        cache_sizes = self._home.cached_sizes()
        sizes = [
            ((kind, place), size) for kind, *both in cache_sizes for place, size in zip(_PLACES, both, strict=True)
        ]
        text = "Memory and disk of the serving cache, its running statements included, by DuckDB's names."
        return _family("hybrid_cache_bytes", text, ("kind", "place"), sizes)

    def _of_streams(self) -> Iterator[Metric]:
        streams = self._home.cached_streams()
        modes = [((name, _MODES[status.mode.awaits]), 1) for name, status in streams.items()]
        text = "1 for how the cache gets new rows: it reads the stream, or awaits commits."
        yield _family("hybrid_tail_mode", text, ("table", "mode"), modes)
        unread = [((name,), status.mode.unread) for name, status in streams.items()]
        yield _family("hybrid_tail_unread_offsets", "Offsets in Kafka beyond the cached rows.", ("table",), unread)
        limits = [((name,), status.mode.limit) for name, status in streams.items()]
        text = "Unread offsets beyond which the cache awaits commits."
        yield _family("hybrid_tail_limit_offsets", text, ("table",), limits)
        switches = [
            ((name, mode), count)
            for name, status in streams.items()
            for mode, count in zip(_MODES.values(), (status.mode.to_stream, status.mode.to_commits), strict=True)
        ]
        yield _counter("hybrid_tail_switches", "Switches to a mode.", ("table", "mode"), switches)
        offsets = [
            ((name, source), count) for name, status in streams.items() for source, count in status.offsets_from.items()
        ]
        text = "Offsets taken into the cache, by where their rows came from."
        yield _counter("hybrid_tail_offsets", text, ("table", "source"), offsets)


Samples = Sequence[tuple[tuple[str, ...], float]]


def _family(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def _counter(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def _summed(rows: Samples) -> Samples:
    sums: dict[tuple[str, ...], float] = {}
    for labels, number in rows:
        sums[labels] = sums.get(labels, 0) + number
    return list(sums.items())


def _each(tables: list[Table], value: Callable[[Table], float | None]) -> Samples:
    return [((table.name,), number) for table in tables if (number := value(table)) is not None]


def _boundary_s(table: Table) -> float | None:
    boundary = table.effective_boundary()
    if boundary is None or boundary.limit_ms is None or boundary.limit_ms >= INFINITE:
        return None
    return boundary.limit_ms / 1000


def _rejected(table: Table) -> float:
    return table.half(Half.REALTIME).realtime.rejected


def _filtered(table: Table) -> float:
    return table.half(Half.REALTIME).realtime.filtered
