"""The status of tables: rows, boundary, lag behind Kafka, last task, what stops them. Needs no JVM."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import HybridError
from hybrid.ingest.plan import plan_batch
from hybrid.kafka.clients import QUERY_TIMEOUT_MS
from hybrid.kafka.streams import SilentBrokers, absent_words
from hybrid.operations.connectors.run import TableConnectors
from hybrid.operations.run_views import visible_run
from hybrid.operations.segments import segments_of
from hybrid.query.prune import is_covered
from hybrid.runtime.json_values import capitalized
from hybrid.table.columns import bookkeeping
from hybrid.table.effective import EffectiveBoundary

if TYPE_CHECKING:
    from hybrid.catalog.runs import RunRecord
    from hybrid.config.table_config import TableSpec
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.lake.log import HalfSnapshot
    from hybrid.lake.log_entries import DataFile
    from hybrid.operations.tables.visible_rows import VisibleRows

_THREADS = 8
_NO_BOUND = 2**62


@dataclass(frozen=True)
class TableStatus:
    """The status of one table. `behind` counts offsets in Kafka that are not committed yet (None: unknown).

    `state` is OK, or a sentence that says what stops the table or which of its topics does not exist yet. Row counts
    are of the rows stored in each half. `visible_rows` are those that a query sees (None: not counted, or not in time).
    `stored_twice_rows` lie in realtime files whose rows have all moved, until retention drops their segments.
    `override_ms` is epoch milliseconds. `hint` says what to do about a `state` that is not OK, where that is known.
    """

    table: str
    state: str
    offline_segments: int
    offline_rows: int
    realtime_segments: int
    consuming_segments: int
    realtime_rows: int
    behind: int | None
    rejected: int
    boundary: EffectiveBoundary | None
    override_ms: int | None
    last_task: str | None
    visible_rows: int | None
    stored_twice_rows: int
    stored_twice_bytes: int
    bytes: int
    hint: str | None = None

    @property
    def healthy(self) -> bool:
        """Whether nothing stops the table or part of it."""
        return self.state == "OK"


def status_of_all(home: Home, visible: VisibleRows | None = None) -> list[TableStatus]:
    """The status of every table, by name. Tables are checked in parallel, because Kafka may be slow for each.

    Without `visible` the rows that queries see are not counted.
    """
    names, silent = home.table_names(), SilentBrokers(QUERY_TIMEOUT_MS)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="status") as threads:
        # Each thread gets a copy of the context, which holds what the requesting account may see.
        futures = [
            threads.submit(copy_context().run, status_of, home, home.table(name), silent, visible) for name in names
        ]
        return [future.result() for future in futures]


def status_of(
    home: Home, table: TableRef, silent: SilentBrokers | None = None, visible: VisibleRows | None = None
) -> TableStatus:
    """The status of one table."""
    table = table.pinned()
    segments = segments_of(table)
    states = Counter(segment.state for segment in segments)
    behind, state, hint = _lag(home, table, silent)
    pause = home.catalog.serving.pauses().get(table.name)
    if pause is not None and state == "OK":
        why = f" ({pause.comment})" if pause.comment else ""
        state, hint = f"Ingestion of '{table.name}' is paused{why}.", f"hybrid connector start {table.name}"
    runs = home.catalog.runs.list(table.name, limit=1, dry_runs=False)
    effective = table.effective_boundary()
    realtime = table.half(Half.REALTIME) if Half.REALTIME in table.spec.halves else None
    twice = _stored_twice(table.spec, realtime, effective) if realtime is not None and effective is not None else []
    return TableStatus(
        table=table.name,
        state=state,
        offline_segments=states["OFFLINE"],
        offline_rows=sum(segment.rows for segment in segments if segment.half == Half.OFFLINE),
        realtime_segments=states["SEALED"] + states["CONSUMING"],
        consuming_segments=states["CONSUMING"],
        realtime_rows=sum(segment.rows for segment in segments if segment.half == Half.REALTIME),
        behind=behind,
        rejected=realtime.realtime.rejected if realtime is not None else 0,
        boundary=effective,
        override_ms=boundary.override_ms if (boundary := table.boundary()) is not None else None,
        last_task=_last_task(visible_run(runs[0])) if runs else None,
        visible_rows=visible.count(table.name, with_tail=behind is not None) if visible is not None else None,
        stored_twice_rows=sum(file.rows for file in twice),
        stored_twice_bytes=sum(file.bytes for file in twice),
        bytes=sum(segment.bytes for segment in segments),
        hint=hint,
    )


def stored_bytes(home: Home, name: str) -> int | None:
    """The bytes of a table's data files; None where a log cannot be read."""
    try:
        return sum(segment.bytes for segment in segments_of(home.table(name)))
    except HybridError:
        return None


def _stored_twice(spec: TableSpec, realtime: HalfSnapshot, boundary: EffectiveBoundary) -> list[DataFile]:
    """The realtime files whose rows OFFLINE has all taken over, by their statistics."""
    partitions = sorted({*realtime.realtime.offsets, *boundary.frontier})
    return [
        file
        for file in realtime.files
        if file.segment not in bookkeeping(spec.name) and is_covered(spec, file, boundary, partitions)
    ]


def _last_task(run: RunRecord) -> str:
    """`move DONE: Moved 3 rows.`"""
    return f"{run.type} {run.state}: {run.result or ''}".rstrip(": ")


def _lag(home: Home, table: TableRef, silent: SilentBrokers | None = None) -> tuple[int | None, str, str | None]:
    """The number of offsets not ingested yet; OK, or what stops ingestion or which topic is missing; a hint."""
    failure = _failure(home, table)
    if failure is not None:
        return None, failure, f"hybrid connector list {table.name}"
    stream = table.spec.stream
    if stream is None:
        return None, "OK", None
    try:
        state = table.half(Half.REALTIME).realtime
        if not state.reads(stream):
            return None, "OK", None
        view = (silent or SilentBrokers(QUERY_TIMEOUT_MS)).view(stream, state)
        plan = plan_batch(table.name, stream, state, view, _NO_BOUND)
    except HybridError as error:
        return None, str(error), error.hint
    absent = absent_words(stream, view.topic_ids)
    state_words = f"{capitalized(absent)}; the others are read." if absent else "OK"
    return sum(piece.end - piece.start for piece in plan.ranges), state_words, None


def _failure(home: Home, table: TableRef) -> str | None:
    """The connector that failed, and those that wait for it; None when none has. A pause is not a failure."""
    statuses = TableConnectors(home, table).look(ask_kafka=False)
    failed = next((status for status in statuses if status.state == "FAILED"), None)
    if failed is None:
        return None
    waiting = ", ".join(f"'{it.name}'" for it in statuses if it.state == "WAITING" and failed.name in it.waits_for)
    also = f" Waiting for it: {waiting}." if waiting else ""
    return f"Connector '{failed.name}' failed: {failed.latest_error}{also}"
