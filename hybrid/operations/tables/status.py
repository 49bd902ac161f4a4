"""The status of tables: rows, boundary, lag behind Kafka, last task, what stops them. Needs no JVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import HybridError
from hybrid.kafka.clients import QUERY_TIMEOUT_MS, import_clients
from hybrid.kafka.streams import SilentBrokers
from hybrid.operations.lag import lag_of
from hybrid.operations.run_views import visible_run
from hybrid.operations.segments import segments_of
from hybrid.operations.tables.visible_rows import RowCount
from hybrid.query.covered_rows import StoredTwice, stored_twice
from hybrid.runtime.sentence_repr import shown_as
from hybrid.table.effective import EffectiveBoundary

if TYPE_CHECKING:
    from hybrid.catalog.run_record import RunRecord
    from hybrid.config.table_config import TableSpec
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.lake.log import HalfSnapshot
    from hybrid.operations.tables.visible_rows import VisibleRows

_THREADS = 8


@shown_as("{0.table}: {0.state}")
@dataclass(frozen=True)
class TableStatus:
    """The status of one table. `behind` counts offsets in Kafka that are not committed yet (None: unknown).

    `state` is OK, or a sentence that says what stops the table or which of its topics does not exist yet. Row counts
    are of the rows stored in each half. `visible_rows` are those that a query sees. `stored_twice_rows` are realtime
    rows that have moved, and stay until retention drops their segments. Both are None when not counted, or not in time.
    `override_ms` is epoch milliseconds. `hint` says what to do about a `state` that is not OK, where that is known.
    `visible_rows_reason` says why `visible_rows` is None although it was to be counted. `tails` divides `behind` among
    partitions, as `place_text` names them.
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
    stored_twice_rows: int | None
    stored_twice_bytes: int | None
    bytes: int
    hint: str | None = None
    tails: Mapping[str, int] = field(default_factory=dict)
    visible_rows_reason: str | None = None

    @property
    def healthy(self) -> bool:
        """Whether nothing stops the table or part of it."""
        return self.state == "OK"


def status_of_all(home: Home, visible: VisibleRows | None = None) -> list[TableStatus]:
    """The status of every table, by name. Tables are checked in parallel, because Kafka may be slow for each.

    Without `visible` the rows that queries see are not counted.
    """
    return statuses_of(home, [home.table(name) for name in home.table_names()], visible)


def statuses_of(
    home: Home,
    tables: Sequence[TableRef],
    visible: VisibleRows | None = None,
    silent: SilentBrokers | None = None,
) -> list[TableStatus]:
    """The status of each of these tables, as `status_of_all`. Brokers are asked by way of `silent`."""
    silent = silent or SilentBrokers(QUERY_TIMEOUT_MS)
    if len(tables) == 1:
        return [status_of(home, tables[0], silent, visible)]
    if sum(Half.REALTIME in table.spec.halves for table in tables) > 1:
        import_clients()
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="status") as threads:
        # Each thread gets a copy of the context, which holds what the requesting account may see.
        futures = [threads.submit(copy_context().run, status_of, home, table, silent, visible) for table in tables]
        return [future.result() for future in futures]


def status_of(
    home: Home, table: TableRef, silent: SilentBrokers | None = None, visible: VisibleRows | None = None
) -> TableStatus:
    """The status of one table."""
    table = table.pinned()
    segments = segments_of(table)
    states = Counter(segment.state for segment in segments)
    lag = lag_of(home, table, silent)
    behind, state, hint = lag.behind, lag.state, lag.hint
    pause = home.catalog.serving.pauses().get(table.name)
    if pause is not None and state == "OK":
        why = f" ({pause.comment})" if pause.comment else ""
        state, hint = f"Ingestion of '{table.name}' is paused{why}.", f"hybrid connector start {table.name}"
    runs = home.catalog.runs.list(table.name, limit=1, dry_runs=False)
    effective = table.effective_boundary()
    realtime = table.half(Half.REALTIME) if Half.REALTIME in table.spec.halves else None
    twice = _stored_twice(table.spec, realtime, effective, visible)
    seen = visible.count(table, behind) if visible is not None else RowCount(None)
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
        visible_rows=seen.rows,
        stored_twice_rows=twice.rows if twice is not None else None,
        stored_twice_bytes=twice.bytes if twice is not None else None,
        bytes=sum(segment.bytes for segment in segments),
        hint=hint,
        tails=lag.tails,
        visible_rows_reason=seen.reason,
    )


def stored_bytes(home: Home, name: str) -> int | None:
    """The bytes of a table's data files; None where a definition or a log cannot be read."""
    try:
        return sum(segment.bytes for segment in segments_of(home.table(name)))
    except (HybridError, OSError):
        return None


def _stored_twice(
    spec: TableSpec, realtime: HalfSnapshot | None, boundary: EffectiveBoundary | None, visible: VisibleRows | None
) -> StoredTwice | None:
    """The rows that both halves hold; without `visible` by statistics alone."""
    if realtime is None or boundary is None:
        return StoredTwice()
    if visible is None:
        return stored_twice(spec, realtime, boundary, None)
    return visible.stored_twice(spec, realtime, boundary)


def _last_task(run: RunRecord) -> str:
    """`move DONE: Moved 3 rows.`"""
    return f"{run.type} {run.state}: {run.result or ''}".rstrip(": ")
