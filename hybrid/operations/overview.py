"""The overview of tables: how fresh each is, what runs, failed and is scheduled, and what to do about each problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.home.table_ref import TableRef
from hybrid.kafka.clients import QUERY_TIMEOUT_MS
from hybrid.kafka.streams import SilentBrokers
from hybrid.operations.ingestion_lag import TableLag
from hybrid.operations.partitions import StreamEnds, newest_ms
from hybrid.operations.run_views import visible_run
from hybrid.operations.schedules import Schedule, schedules_of
from hybrid.operations.tables.status import TableStatus, statuses_of
from hybrid.progress import counted
from hybrid.table.columns import bookkeeping

if TYPE_CHECKING:
    from hybrid.catalog.run_record import RunRecord
    from hybrid.home.home import Home
    from hybrid.home.table_ref import FixedTableRef
    from hybrid.kafka.streams import StreamView

TREND_BUCKETS, TREND_BUCKET_MS = 30, 120_000
_RUNS_MAX = 300
_INCOMPLETE = ("QUEUED", "RUNNING")


@dataclass(frozen=True)
class TableProblem:
    """What is wrong, in one sentence, and the command that fixes it or shows more."""

    sentence: str
    command: str


@dataclass(frozen=True)
class Trend:
    """Rows that arrived, by interval of `TREND_BUCKET_MS`, oldest first; the last interval ends at `end_ms`."""

    rows: tuple[int, ...]
    end_ms: int


@dataclass(frozen=True)
class TableOverview:
    """A table at a glance. `committed_until_ms` is the Kafka timestamp of its newest committed row.

    `complete_ms` is when all that Kafka held was committed, where that is known. `active` are its incomplete runs,
    `failed` the newest run of each type where that failed. `ends` are Kafka's end offsets, if it answered.
    """

    status: TableStatus
    committed_until_ms: int | None
    trend: Trend
    active: tuple[RunRecord, ...]
    failed: tuple[RunRecord, ...]
    schedules: tuple[Schedule, ...]
    complete_ms: int | None
    ends: StreamEnds | None = None

    @property
    def lag(self) -> TableLag:
        """How far it is behind Kafka."""
        return TableLag(self.status.table, self.status.behind, self.complete_ms)

    @property
    def problems(self) -> list[TableProblem]:
        """All that needs a person, most urgent first."""
        found = []
        name = self.status.table
        if not self.status.healthy:
            found.append(TableProblem(self.status.state, self.status.hint or f"hybrid logs --table {name}"))
        found.extend(_failed_problem(run) for run in self.failed)
        if self.status.rejected:
            rows = counted(self.status.rejected, "row")
            found.append(TableProblem(f"{rows} could not be read or converted.", f"hybrid rejected list {name}"))
        return found


def overview_of_all(home: Home, pinned: Callable[[TableRef], FixedTableRef] = TableRef.pinned) -> list[TableOverview]:
    """The overview of every table, by name. Rows that queries see are not counted.

    `pinned` gives the table whose halves are opened once for all that is shown of it.
    """
    runs: dict[str, list[RunRecord]] = defaultdict(list)
    for run in home.catalog.runs.list(limit=_RUNS_MAX, dry_runs=False):
        runs[run.table_name].append(visible_run(run))
    tables = [pinned(home.table(name)) for name in home.table_names()]
    brokers = SilentBrokers(QUERY_TIMEOUT_MS)
    statuses = statuses_of(home, tables, silent=brokers)
    return [
        _overview(
            home, table, status, runs[table.name], brokers.views.get(stream) if (stream := table.spec.stream) else None
        )
        for table, status in zip(tables, statuses, strict=True)
    ]


def _overview(
    home: Home, table: FixedTableRef, status: TableStatus, runs: Sequence[RunRecord], view: StreamView | None
) -> TableOverview:
    realtime = table.half(Half.REALTIME) if Half.REALTIME in table.spec.halves else None
    hidden = bookkeeping(table.name)
    files = [file for file in realtime.files if file.segment not in hidden] if realtime is not None else []
    return TableOverview(
        status=status,
        committed_until_ms=newest_ms(files),
        trend=trend_of(((file.modified_ms, file.rows) for file in files), home.now_ms()),
        active=tuple(run for run in runs if run.state in _INCOMPLETE),
        failed=tuple(newest_failures(runs)),
        schedules=tuple(schedules_of(home, table.spec)),
        complete_ms=realtime.realtime.complete_ms if realtime is not None else None,
        ends=StreamEnds.of(view) if view is not None else None,
    )


def newest_failures(runs: Iterable[RunRecord]) -> list[RunRecord]:
    """The runs that failed and after which none of their type succeeded; `runs` are newest first."""
    ended: set[str] = set()
    found = []
    for run in runs:
        if run.state in _INCOMPLETE or run.type in ended:
            continue
        ended.add(run.type)
        if run.state == "FAILED":
            found.append(run)
    return found


def trend_of(arrivals: Iterable[tuple[int, int]], now_ms: int) -> Trend:
    """The trend of arrivals (time in ms, rows). Intervals have fixed ends, so that it changes only with the rows."""
    end_ms = (now_ms // TREND_BUCKET_MS + 1) * TREND_BUCKET_MS
    start_ms = end_ms - TREND_BUCKETS * TREND_BUCKET_MS
    rows = [0] * TREND_BUCKETS
    for time_ms, count in arrivals:
        if start_ms <= time_ms < end_ms:
            rows[(time_ms - start_ms) // TREND_BUCKET_MS] += count
    return Trend(tuple(rows), end_ms)


def _failed_problem(run: RunRecord) -> TableProblem:
    hint = run.error.get("hint") if run.error else None
    sentence = run.result or "It failed."
    return TableProblem(f"{run.type}: {sentence}", hint or f"hybrid task show {run.id}")
