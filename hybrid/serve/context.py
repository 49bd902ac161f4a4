"""The context that all routes share: the home, limits, and the queue of heavy work."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from hybrid.api.hybrid import Hybrid
from hybrid.api.table import Table
from hybrid.catalog.run_record import RunRecord
from hybrid.errors import ConflictError, HybridError, QueryError, known_kinds, with_others
from hybrid.home.input_access import rules_of
from hybrid.home.query_log import QueryLog
from hybrid.home.running_queries import RunningQueries
from hybrid.home.table_ref import FixedTableRef
from hybrid.operations.backups.backup_create import check_directory
from hybrid.operations.overview import TableOverview, overview_of_all
from hybrid.operations.partitions import StreamEnds, stream_ends
from hybrid.operations.rejected_rows import Bounds
from hybrid.operations.timeline import OfflineLane, TimelineSource
from hybrid.query.engine import QueryOptions
from hybrid.query.memory_budget import MemoryBudget, default_total
from hybrid.rpc.queue import enqueue
from hybrid.rpc.verbs import VERBS
from hybrid.runtime.backoff import Backoff
from hybrid.serve.admission import RUNNING_OF_ONE, Admission
from hybrid.serve.authentication import who_asks
from hybrid.serve.callers import Callers
from hybrid.serve.commit_waits import CommitWaits
from hybrid.serve.export_slots import ExportSlots
from hybrid.serve.kept_values import KeptValues
from hybrid.serve.lag_history import LagHistory
from hybrid.serve.metrics import Metrics
from hybrid.serve.open_halves import OpenHalves
from hybrid.serve.status_cache import StatusCache, StatusCaches
from hybrid.serve.uploads import Uploads
from hybrid.table.timeline_marks import Work

_POLL_S = (0.01, 0.2)
_MESSAGE_CHARACTERS = 10_000  # of a rejected message, shown in a response
_BEAT_S_MAX = 5.0
_PAGE_THREADS, _KAFKA_THREADS = 4, 2
_TIMELINES = 4  # of as many tables; one of 100,000 segments takes about 50 MB
_MARKS = 32  # windows of timelines, a lane each


class GoesOn(HybridError):
    """The caller stopped waiting for a run, which continues."""

    code = "goes-on"
    http_status = 504


@dataclass(frozen=True)
class ServerLimits:
    """`body_bytes` bounds JSON bodies, `upload_bytes` uploaded files; `query_timeout_ms`, `query_rows`,
    `query_bytes` and `query_memory_bytes` a statement's time, the rows and bytes of its result, and its memory where
    files answer, `query_memory_total_bytes` that of all at once (0: half of the machine's); `query_running` how many of
    one account run at once; `export_timeout_s` the time of an export, seconds (0: no limit).
    """

    body_bytes: int = 16 * 1024 * 1024
    upload_bytes: int = 1024 * 1024 * 1024
    query_timeout_ms: int = 60_000
    query_rows: int = 1_000_000
    query_bytes: int = 256 * 1024 * 1024
    query_memory_bytes: int = 1024 * 1024 * 1024
    query_memory_total_bytes: int = 0
    query_running: int = RUNNING_OF_ONE
    export_timeout_s: int = 3600
    run_wait_s: float = 600.0


@dataclass(frozen=True)
class ServerContext:
    """Shared state of one application. `url` is the address that other processes use."""

    home: Hybrid
    limits: ServerLimits
    metrics: Metrics
    url: str
    callers: Callers = field(default_factory=Callers)
    admission: Admission = field(default_factory=Admission)
    uploads: Uploads = field(default_factory=Uploads)
    commit_waits: CommitWaits = field(default_factory=CommitWaits)
    exports: ExportSlots = field(default_factory=ExportSlots)
    lag: LagHistory = field(default_factory=LagHistory)
    offline_lanes: KeptValues[tuple[OfflineLane, Any]] = field(default_factory=lambda: KeptValues(_TIMELINES))
    timelines: KeptValues[TimelineSource] = field(default_factory=lambda: KeptValues(_TIMELINES))
    works: KeptValues[list[Work]] = field(default_factory=lambda: KeptValues(_TIMELINES))
    marks: KeptValues[dict[str, Any]] = field(default_factory=lambda: KeptValues(_MARKS))
    open_halves: OpenHalves = field(default_factory=OpenHalves)

    @cached_property
    def query_log(self) -> QueryLog:
        """Return the log of all statements."""
        return self.home.context.query_log

    @property
    def queries(self) -> RunningQueries:
        """Return the statements that run now."""
        return self.query_log.running

    @cached_property
    def overview(self) -> StatusCache[list[TableOverview]]:
        """Return the briefly cached overview of the tables."""

        def look() -> list[TableOverview]:
            began = time.monotonic()
            found = overview_of_all(self.home.context, self.open_halves.pinned)
            for table in found:
                if table.ends is not None:
                    self.stream_ends.put(table.status.table, table.ends, began)
            self.lag.add((table.lag for table in found), self.home.context.now_ms())
            return found

        return StatusCache(look)

    @cached_property
    def stream_ends(self) -> StatusCaches[StreamEnds]:
        """Return the briefly cached end offsets of streams, by table: Kafka may take long to answer.

        The overview adds those that it was answered, so that a page that shows both asks once.
        """
        return StatusCaches(lambda table: stream_ends(self.pinned(table)))

    @cached_property
    def memory(self) -> MemoryBudget:
        """Return the memory budget of all statements over files."""
        return MemoryBudget(self.limits.query_memory_total_bytes or default_total())

    @cached_property
    def page_threads(self) -> CapacityLimiter:
        """Return the limiter of the threads that render the console's pages."""
        return CapacityLimiter(_PAGE_THREADS)

    @cached_property
    def overview_threads(self) -> CapacityLimiter:
        """Return the limiter of the threads that wait for the overview, so that other pages do not."""
        return CapacityLimiter(_PAGE_THREADS)

    @cached_property
    def kafka_threads(self) -> CapacityLimiter:
        """Return the limiter of the threads that wait for Kafka by themselves, as long as an operation does."""
        return CapacityLimiter(_KAFKA_THREADS)

    def pinned(self, table: str) -> FixedTableRef:
        """Return a table for one answer; its halves are opened once for all who look."""
        return self.open_halves.pinned(self.home.context.table(table))

    def query_options(self) -> QueryOptions:
        """Return the options for statements on this server, the same for every route."""
        limits = self.limits
        return QueryOptions(
            limits.query_timeout_ms or None,
            limits.query_rows,
            memory_bytes=limits.query_memory_bytes or None,
            spill=self.home.settings.spill,
            bytes_max=limits.query_bytes or None,
            timeout_max_ms=limits.query_timeout_ms or None,
            budget=self.memory,
        )

    def rejected_bounds(self, began: float) -> Bounds:
        """Return the limits of a response with rejected rows, requested at `began` (monotonic clock, s)."""
        timeout_ms = self.limits.query_timeout_ms
        return Bounds(_MESSAGE_CHARACTERS, began + timeout_ms / 1000 if timeout_ms else None)

    def check_directory(self, directory: str, source: str = "http") -> None:
        """RightError when the current request may not use this directory of backups."""
        check_directory(self.home.context, Path(directory), rules_of(self.home.settings, source_of(source)))

    def queue(self, verb: str, arguments: Mapping[str, Any], source: str = "http") -> RunRecord:
        """Queue heavy work; ConflictError if a run of its kind waits or runs already.

        The run and its lineage entry name the authenticated account: see `with_account`.
        """
        run = enqueue(self.home, verb, with_account(verb, arguments), source_of(source))
        if run is None:
            raise ConflictError(
                f"Table '{arguments.get('table')}' has an incomplete run of this task already. Nothing was queued.",
                hint=f"hybrid task list {arguments.get('table')}",
            )
        return run

    async def await_commits(self, table: Table) -> None:
        """Wait until a table's messages in Kafka are committed, as long as a pipeline runs."""
        role = await run_in_threadpool(self.home.context.catalog.serving.role, "pipeline")
        if role is not None and role.age_s < _BEAT_S_MAX:
            await self.commit_waits.wait(table)

    async def carried_out(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Queue heavy work, wait and return its report; raises the error of the work."""
        return self.report(await self.ended(await run_in_threadpool(self.queue, verb, arguments)))

    async def done(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Run a verb in a thread here, or in the pipeline process if its arguments need Spark; return the result."""
        operation = VERBS[verb]
        if await run_in_threadpool(operation.is_heavy, self.home, arguments):
            return await self.carried_out(verb, arguments)
        return await run_in_threadpool(partial(operation.call, self.home, **arguments))

    async def ended(self, run: RunRecord) -> RunRecord:
        """Return the run at its end, or at the timeout. No thread is blocked meanwhile."""
        deadline, backoff = time.monotonic() + self.limits.run_wait_s, Backoff(*_POLL_S)
        while run.incomplete and time.monotonic() < deadline:
            await asyncio.sleep(backoff.next_s())
            run = await run_in_threadpool(self.home.run, run.id)
        return run

    def report(self, run: RunRecord) -> Any:
        """Return the report of a run; raises its error, or GoesOn while it is incomplete."""
        if run.incomplete:
            raise GoesOn(
                f"Run {run.id} has not ended: {run.progress or run.state}.", hint=f"GET {self.url}/runs/{run.id}"
            )
        if run.error is not None:
            raise error_of(run.error)
        return run.report


def source_of(kind: str) -> str:
    """Return the source to record for a new run: its kind and the requesting account."""
    account = who_asks()
    return kind if account is None else f"{kind}:{account}"


def with_account(verb: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a verb with the authenticated account as their user, whatever user the request names."""
    account = who_asks()
    if account is None or "user" not in inspect.signature(VERBS[verb].call).parameters:
        return arguments
    return {**arguments, "user": account}


def error_of(document: Mapping[str, Any]) -> HybridError:
    """Rebuild the error that a run's record holds."""
    kind = known_kinds().get(str(document["kind"]), HybridError)
    if issubclass(kind, QueryError):
        return kind(document["error"], pinot_code=document["pinot_code"], hint=document["hint"])
    return with_others(kind(document["error"], hint=document["hint"]), document)


def context_of(request: Request) -> ServerContext:
    """Return the context of the application that received the request."""
    context = request.app.state.context
    assert isinstance(context, ServerContext)
    return context
