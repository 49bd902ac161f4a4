"""Metrics of a home at each scrape: its tables, ingestion, runs, queue, disk and cache."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.catalog import CATALOG_ERRORS
from hybrid.config.table_config import Half
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.errors import HybridError
from hybrid.operations.segments import Segment, segments_of
from hybrid.table.boundary import INFINITE
from hybrid.table.state import RealtimeState

if TYPE_CHECKING:
    from hybrid.home.table_ref import TableRef
    from hybrid.query.cache.follower import StreamStatus

_PLACES = ("memory", "disk")
# How a cached table gets new rows, by whether it awaits commits.
_MODES = {False: "stream", True: "commits"}
# Types of runs that correct rows. Jobs of a command have the type of their spec, which begins like `_PINOTS_JOBS`.
_CORRECTIONS, _PINOTS_JOBS = frozenset({"backfill", "job", "replace", "revert"}), "Segment"
Samples = Sequence[tuple[tuple[str, ...], float]]


@dataclass(frozen=True)
class _TableState:
    """What the metrics say of a table at one version of each half; the files, which may be many, are not kept."""

    name: str
    segments: Sequence[Segment]
    boundary_s: float | None
    realtime: RealtimeState | None


class HomeMetrics:
    """Collector that reads the home at each scrape. Neither an unreadable table nor the catalog hides the rest."""

    def __init__(self, home: Hybrid) -> None:
        self._home, self._context = home, home.context

    def describe(self) -> list[Metric]:
        """Return nothing: the home is not read at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families, each with a sample per table."""
        tables, unreadable = self._tables()
        yield gauge("hybrid_tables_unreadable", "Number of tables that cannot be read.", (), [((), unreadable)])
        yield from self._of_segments(tables)
        yield from self._of_tables(tables)
        yield from self._of_catalog(tables)
        yield from self._of_machine()
        yield from self._of_cache()
        yield from self._of_streams(self._home.cached_streams())

    def _tables(self) -> tuple[list[_TableState], int]:
        readable, unreadable = [], 0
        for name in self._home.table_names():
            try:
                readable.append(_state_of(self._context.table(name)))
            except Exception:  # a damaged table may make its readers raise anything
                unreadable += 1
        return readable, unreadable

    def _of_catalog(self, tables: list[_TableState]) -> Iterator[Metric]:
        """What the catalog knows; nothing of it while it does not answer: a silent database is awaited once."""
        try:
            families = [*self._of_ingestion(tables), *self._of_runs()]
        except (HybridError, *CATALOG_ERRORS):
            families = []
        text = "1 when the catalog has answered this scrape, else 0, without the metrics of ingestion and runs."
        yield gauge("hybrid_catalog_up", text, (), [((), 1 if families else 0)])
        yield from families

    def _of_segments(self, tables: list[_TableState]) -> Iterator[Metric]:
        segments = [
            ((table.name, segment.half, segment.state), segment) for table in tables for segment in table.segments
        ]
        labels = ("table", "half", "state")
        yield gauge("hybrid_segments", "Number of segments.", labels, _summed([(key, 1) for key, _ in segments]))
        rows = _summed([(key, segment.rows) for key, segment in segments])
        yield gauge("hybrid_stored_rows", "Rows stored in a half, covered by the boundary or not.", labels, rows)
        size = _summed([(key, segment.bytes) for key, segment in segments])
        yield gauge("hybrid_stored_bytes", "Bytes of the data files that a half has now.", labels, size)

    def _of_tables(self, tables: list[_TableState]) -> Iterator[Metric]:
        boundaries = [((table.name,), table.boundary_s) for table in tables if table.boundary_s is not None]
        text = "Time (Unix seconds) at which the rows of the OFFLINE half end."
        yield gauge("hybrid_boundary_timestamp_seconds", text, ("table",), boundaries)
        live = [((table.name,), table.realtime) for table in tables if table.realtime is not None]
        text = "Rows that ingestion and replays have committed to the REALTIME half, counted with the rows themselves."
        ingested = [(labels, state.ingested) for labels, state in live]
        yield _counter("hybrid_ingested_rows", text, ("table",), ingested)
        rejected = [(labels, state.rejected) for labels, state in live]
        yield gauge("hybrid_rejected_rows", "Messages that are kept as rejected rows.", ("table",), rejected)
        filtered = [(labels, state.filtered) for labels, state in live]
        text = "Messages that the table's filter dropped."
        yield _counter("hybrid_filtered_messages", text, ("table",), filtered)
        yield gauge("hybrid_filtered_rows", "Old name of hybrid_filtered_messages_total.", ("table",), filtered)

    def _of_ingestion(self, tables: list[_TableState]) -> Iterator[Metric]:
        names = set(self._home.table_names())
        found = self._context.catalog.serving.ingestions().items()
        ingestions = [ingestion for name, ingestion in found if name in names]
        behind = {one.table_name: one.behind for one in ingestions if one.behind is not None}
        text = "Offsets in Kafka beyond the last commit, when ingestion last looked."
        samples = [((name,), count) for name, count in behind.items()]
        yield gauge("hybrid_ingest_lag_offsets", text, ("table",), samples)
        text = (
            "How long the oldest uncommitted message may have waited: since all that Kafka held was committed; 0 when "
            "nothing waits. No value while ingestion is paused or stopped."
        )
        lags = [((name,), lag) for name, lag in self._lags(tables, behind)]
        yield gauge("hybrid_ingest_lag_seconds", text, ("table",), lags)
        fresh = [((one.table_name,), self._age_s(one.at_ms)) for one in ingestions]
        text = "Time since ingestion last looked at Kafka."
        yield gauge("hybrid_ingest_checked_age_seconds", text, ("table",), fresh)
        up = [((one.table_name, one.state), 1) for one in ingestions]
        text = "1 for the state that ingestion is in: INGESTING, PAUSED, WAITING or STOPPED."
        yield gauge("hybrid_ingest_state", text, ("table", "state"), up)
        role = self._context.catalog.serving.role("pipeline")
        ages = [(("pipeline",), role.age_s)] if role else []
        text = "Time since the last sign of life of a process of the server."
        yield gauge("hybrid_role_heartbeat_age_seconds", text, ("role",), ages)

    def _lags(self, tables: list[_TableState], behind: dict[str, int]) -> Iterator[tuple[str, float]]:
        for table in tables:
            if table.realtime is None or table.name not in behind:
                continue
            if not behind[table.name]:
                yield table.name, 0.0
            elif table.realtime.complete_ms is not None:
                yield table.name, self._age_s(table.realtime.complete_ms)

    def _age_s(self, at_ms: int) -> float:
        return max(0.0, self._context.now_ms() - at_ms) / 1000

    def _of_runs(self) -> Iterator[Metric]:
        runs, labels = self._context.catalog.runs, ("table", "type", "state")
        text = "Runs of tasks and jobs that the catalog has; old ones are removed."
        yield gauge("hybrid_runs", text, labels, list(runs.counts().items()))
        ended = runs.ended_counts()
        yield _counter("hybrid_runs_ended", "Runs that have ended.", labels, list(ended.items()))
        done = [(table, kind, count) for (table, kind, state), count in ended.items() if state == "DONE"]
        moves = [((table,), count) for table, kind, count in done if kind == MOVE_TASK]
        yield _counter("hybrid_moves", "Runs that have moved rows from REALTIME to OFFLINE.", ("table",), moves)
        corrections = [((table, kind), count) for table, kind, count in done if _corrects(kind)]
        text = "Runs that have corrected rows: backfills, jobs, replacements and reverts."
        yield _counter("hybrid_corrections", text, ("table", "type"), corrections)
        queue = runs.queue()
        yield gauge("hybrid_queue_runs", "Runs that wait for the pipeline process.", (), [((), queue.length)])
        text = "How long the oldest run in the queue has waited; 0 when none waits."
        age_s = 0.0 if queue.oldest_ms is None else self._age_s(queue.oldest_ms)
        yield gauge("hybrid_queue_oldest_age_seconds", text, (), [((), age_s)])

    def _of_machine(self) -> Iterator[Metric]:
        settings, log = self._home.settings, self._context.query_log
        usage = shutil.disk_usage(settings.home)
        yield gauge("hybrid_disk_free_bytes", "Free bytes of the disk that has the home.", (), [((), usage.free)])
        yield gauge("hybrid_disk_size_bytes", "Size of the disk that has the home.", (), [((), usage.total)])
        text = "Bytes of the disk that statements, uploads and jobs leave free (disk_reserve_bytes)."
        yield gauge("hybrid_disk_reserve_bytes", text, (), [((), settings.disk_reserve_bytes)])
        text = "Statements that run now."
        yield gauge("hybrid_queries_running", text, (), [((), len(log.running.list()))])
        text = "Statements that could not be written into the query log."
        yield _counter("hybrid_query_log_dropped", text, (), [((), log.dropped)])

    def _of_cache(self) -> Iterator[Metric]:
        cache_sizes = self._home.cached_sizes()
        sizes = [
            ((kind, place), size) for kind, *both in cache_sizes for place, size in zip(_PLACES, both, strict=True)
        ]
        text = "Memory and disk of the serving cache, its running statements included, by DuckDB's names."
        yield gauge("hybrid_cache_bytes", text, ("kind", "place"), sizes)
        limit = [((), self._home.settings.cache_bytes)] if cache_sizes else []
        yield gauge("hybrid_cache_limit_bytes", "Bound of the memory of the serving cache (cache_bytes).", (), limit)

    def _of_streams(self, streams: Mapping[str, StreamStatus]) -> Iterator[Metric]:
        modes = [((name, _MODES[status.mode.awaits]), 1) for name, status in streams.items()]
        text = "1 for how the cache gets new rows: it reads the stream, or awaits commits."
        yield gauge("hybrid_tail_mode", text, ("table", "mode"), modes)
        text = "Age of the moment up to which cached answers have all rows of the stream."
        lags = [((name,), self._age_s(status.seen_ms)) for name, status in streams.items() if status.seen_ms]
        yield gauge("hybrid_cache_lag_seconds", text, ("table",), lags)
        unread = [((name,), status.mode.unread) for name, status in streams.items()]
        yield gauge("hybrid_tail_unread_offsets", "Offsets in Kafka beyond the cached rows.", ("table",), unread)
        limits = [((name,), status.mode.limit) for name, status in streams.items()]
        text = "Unread offsets beyond which the cache awaits commits."
        yield gauge("hybrid_tail_limit_offsets", text, ("table",), limits)
        switches = [
            ((name, mode), count)
            for name, status in streams.items()
            for mode, count in zip(_MODES.values(), (status.mode.to_stream, status.mode.to_commits), strict=True)
        ]
        text = "Switches of the cache to a mode of getting new rows."
        yield _counter("hybrid_tail_switches", text, ("table", "mode"), switches)
        offsets = [
            ((name, source), count) for name, status in streams.items() for source, count in status.offsets_from.items()
        ]
        text = "Offsets taken into the cache, by where their rows came from."
        yield _counter("hybrid_tail_offsets", text, ("table", "source"), offsets)


def gauge(name: str, text: str, labels: tuple[str, ...], samples: Samples) -> Metric:
    """A gauge with its samples: (label values, number)."""
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


def _corrects(kind: str) -> bool:
    return kind in _CORRECTIONS or kind.startswith(_PINOTS_JOBS)


def _state_of(table: TableRef) -> _TableState:
    pinned = table.pinned()
    realtime = pinned.half(Half.REALTIME).realtime if Half.REALTIME in pinned.spec.halves else None
    return _TableState(pinned.name, segments_of(pinned), _boundary_s(pinned), realtime)


def _boundary_s(table: TableRef) -> float | None:
    boundary = table.effective_boundary()
    if boundary is None or boundary.limit_ms is None or boundary.limit_ms >= INFINITE:
        return None
    return boundary.limit_ms / 1000
