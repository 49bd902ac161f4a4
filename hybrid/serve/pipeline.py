"""The pipeline role: a warm Spark session that ingests tables and executes queued runs.

There is one pipeline per home; it holds `<home>/pipeline.lock` while it lives. A run that the catalog shows as
RUNNING when a pipeline starts was therefore interrupted by a crash, and is resumed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.catalog import CATALOG_ERRORS
from hybrid.catalog.run_record import RunRecord
from hybrid.config.table_config import TableSpec
from hybrid.errors import ConflictError, HybridError
from hybrid.jvm.process import Process
from hybrid.lake.spark import is_stopped, jvm_pid
from hybrid.logs import Lasting
from hybrid.operations.abandoned_runs import take_back_abandoned
from hybrid.operations.clock_guard import is_clock_believed, observe_clock
from hybrid.rpc.queue import PipelineLost, carry_out
from hybrid.runtime import durable
from hybrid.runtime.file_lock import try_lock
from hybrid.serve.ingester import Ingester, SharedLooks
from hybrid.serve.loader import Loader
from hybrid.serve.priority import Priority, session_of
from hybrid.serve.run_lanes import WORKERS_MAX, Lane, lane_of, may_start
from hybrid.serve.scheduler import Scheduler
from hybrid.serve.spark_ahead import SparkAhead
from hybrid.serve.supervisor import BEAT_FILE
from hybrid.serve.warehouse_keeper import WarehouseKeeper, reads_only, warehouse_keeper

_LOG = logging.getLogger(__name__)
Keeper = TypeVar("Keeper", Ingester, Loader)
ROLE = "pipeline"
_BEAT_S = 1.0
_TURN_S = 0.1
# How often it looks whether the JVM lives and work is late, at the tables, and at an unchanged queue.
_WATCH_S = 0.5
_LOOK_S = 1.0
_QUEUE_S = 1.0
_LOCK_S = 20.0
_REMOVE_S = 3600.0
_CLOCK_S = 60.0
_FIRST_BATCHES_S = 30.0
_END_S = 5.0
_JVM_END_S = 1.5
_DYING_S = 0.2  # a killed JVM loses its connections some milliseconds before its process ends


class Pipeline:
    """The work of the role. `stop` ends it after the batches and commits in progress."""

    def __init__(self, home: Hybrid, stop: threading.Event) -> None:
        self._home, self._stop = home, stop
        # Before Spark starts: its JVM has a session of its own, so that both can be given another priority.
        home.context.jvm_in_own_session = True
        self._priority = Priority(home.settings.pipeline_niceness, self._jvm_sessions)
        self._state = "starting"
        self._lost = False
        self._keeper: WarehouseKeeper | None = None
        self._reads_only = False  # another home writes the warehouse: see `warehouse_keeper`
        self._ending = False
        self._jvm: Process | None = None
        self._ahead = SparkAhead(home.context)
        self._began_at = time.monotonic()
        self._ingesters: dict[str, Ingester] = {}
        self._shared = SharedLooks(home.context.catalog.serving)
        self._loaders: dict[str, Loader] = {}
        self._workers: dict[str, threading.Thread] = {}
        self._lanes: dict[str, Lane] = {}
        self._scheduler = Scheduler(home)
        self._writes = home.context.catalog.write_watch()
        # The queue when it was last read: beside what it was, and when.
        self._busy_before: set[Lane] = set()
        self._queue_read_at = -_QUEUE_S
        self._unnoted: list[str] = []
        self._complaints = Lasting()
        self._removed_at = time.monotonic()
        self._clock_seen_at = -_CLOCK_S

    def run(self) -> int:
        """Work until stopped; return the exit code.

        It is 1 if a new process must start: the JVM was lost, or another home took over the warehouse on a store.
        """
        with pipeline_lock(self._home.home, self._stop):
            beat = threading.Thread(target=self._beat, name="beat", daemon=True)
            beat.start()
            self._reads_only = reads_only(self._home.context, self._stop)
            self._keep_warehouse(follows=self._reads_only)
            self._take_up_fallen()
            self._begin()
            try:
                self._turn_until_stopped()
            finally:
                self._state = "stopping"
                self._priority.restore()  # what ends is waited for; and this process may become `hybrid serve`
                self._end()
        return 1 if self._lost else 0

    def _keep_warehouse(self, *, follows: bool) -> None:
        self._keeper = warehouse_keeper(self._home.context, self._stop, follows=follows)
        if self._keeper is not None:
            self._keeper.start()

    def _begin(self) -> None:
        """Start Spark where this home writes the warehouse, and its JVM where it may do so soon.

        On a Spark Connect server each table's thread asks for the session: a server that is down shows as their state.
        """
        self._ahead.wait()
        has_jvm = not self._home.settings.has_spark_connect
        if has_jvm and not self._reads_only:
            self._jvm = Process.of(jvm_pid(self._home.context.bench.session))
        elif has_jvm and self._home.settings.take_over_after_s:
            self._ahead.start_jvm()
        self._state, self._began_at = self._state_of_tables, time.monotonic()
        _LOG.info("The pipeline is ready.")

    def _turn_until_stopped(self) -> None:
        looked = watched = 0.0
        while not self._stop.is_set() and not self._lost:
            now = time.monotonic()
            if now - watched >= _WATCH_S:
                watched = now
                if self._is_lost():
                    return
                if self._has_taken_over:
                    self._state = "starting"
                    self._keep_warehouse(follows=False)  # its sign of life first
                    self._reads_only = False
                    self._begin()
                elif self._reads_only and self._keeper is not None:
                    self._ahead.follow(expects_take_over=self._keeper.expects_take_over)
                self._priority.follow(self._is_late(), now)
            if now - looked >= _LOOK_S:
                looked = now
                self._look()
            if self._start_waiting():
                watched = 0.0  # work that was asked for is late at once
            else:
                self._stop.wait(_TURN_S)

    def _is_late(self) -> bool:
        """Whether requested work runs, or ingestion or a load lags behind."""
        keepers: list[Ingester | Loader] = [*self._ingesters.values(), *self._loaders.values()]
        return any(thread.is_alive() for thread in self._workers.values()) or any(
            keeper.rounds.is_late for keeper in keepers
        )

    def _jvm_sessions(self) -> list[int]:
        """The session that the JVM leads; none where the system, or a user's own Spark, put it elsewhere."""
        if self._jvm is None or not self._jvm.is_alive() or session_of(self._jvm.pid) != self._jvm.pid:
            return []
        return [self._jvm.pid]

    def _look(self) -> None:
        """Ensure that every table with a stream has its thread, and that due tasks are queued."""
        try:
            names = self._home.table_names()
            specs = self._readable_specs(names)
            unreadable = set(names) - specs.keys()
            if not self._reads_only:
                self._keep_ingesters(specs, unreadable)
                self._keep_loaders(specs, unreadable)
                self._scheduler.look(specs.values())
            self._take_up_unnoted()
            if time.monotonic() - self._clock_seen_at >= _CLOCK_S:
                self._clock_seen_at = time.monotonic()
                observe_clock(self._home.context)
            if time.monotonic() - self._removed_at >= _REMOVE_S:
                self._removed_at = time.monotonic()
                if is_clock_believed(self._home.context):
                    self._home.context.catalog.runs.remove_old(self._home.context.now_ms())
                    self._home.context.query_log.remove_old()
                    take_back_abandoned(self._home.context)
        except (HybridError, OSError, *CATALOG_ERRORS) as error:
            self._complain("The tables cannot be looked at", error)
            return
        self._state = self._state_of_tables

    @property
    def _state_of_tables(self) -> str:
        """The role's state: one that has no table of its store yet would say that none exists."""
        return "ready" if self._keeper is None or self._keeper.knows_tables else "brings the tables of the store"

    def _complain(self, what: str, error: Exception) -> None:
        """Report an error in the role's state, and once a minute in the log; work that needs no catalog continues."""
        self._state = f"{what}: {type(error).__name__}"
        if self._complaints.passes(what):
            _LOG.error("%s: %s", what, " ".join(str(error).split()))

    def _next_run(self, busy: set[Lane]) -> RunRecord | None:
        """Take a queued run that may start; None if there is none or the catalog is unavailable."""
        now = time.monotonic()
        try:
            is_written = self._writes.has_new()
            if not is_written and busy == self._busy_before and now - self._queue_read_at < _QUEUE_S:
                return None
            self._busy_before, self._queue_read_at = busy, now
            return self._home.context.catalog.runs.claim(lambda run: may_start(run, busy))
        except CATALOG_ERRORS as error:
            self._complain("The queue cannot be read", error)
            return None

    def _take_up_fallen(self) -> None:
        """Requeue runs that a crashed predecessor left, as soon as the catalog is available."""
        while not self._stop.is_set():
            try:
                taken_up = self._home.context.catalog.runs.take_up_fallen()
            except CATALOG_ERRORS as error:
                self._complain("The catalog cannot be read", error)
                self._stop.wait(_LOOK_S)
                continue
            if taken_up:
                _LOG.warning(
                    "Runs that a stopped process had begun start again: %s", ", ".join(run.id for run in taken_up)
                )
            return

    def _awaits_first_batches(self) -> bool:
        """Whether queued runs are still held back after a start, so that the tables' new events come first."""
        if time.monotonic() - self._began_at >= _FIRST_BATCHES_S:
            return False
        return not all(ingester.has_begun for ingester in self._ingesters.values())

    def _take_up_unnoted(self) -> None:
        """Requeue runs whose end could not be recorded; their commits are detected and not repeated."""
        idle_ids = [run_id for run_id in self._unnoted if run_id not in self._workers]
        if idle_ids:
            self._home.context.catalog.runs.take_up_fallen(idle_ids)
            self._unnoted = [run_id for run_id in self._unnoted if run_id not in idle_ids]

    def _readable_specs(self, names: Collection[str]) -> Mapping[str, TableSpec]:
        """The definitions of tables by name. One that cannot be read is logged and left out."""
        specs: dict[str, TableSpec] = {}
        for name in names:
            try:
                specs[name] = self._home.spec(name)
            except (HybridError, OSError) as error:
                _LOG.warning("Table '%s' cannot be read: %s", name, error)
        return specs

    def _keep_loaders(self, specs: Mapping[str, TableSpec], unreadable: Collection[str]) -> None:
        tables = {name for name, spec in specs.items() if spec.connectors}
        _keep(self._loaders, tables, unreadable, lambda name: Loader(self._home, name, lambda: not self._works()))

    def _keep_ingesters(self, specs: Mapping[str, TableSpec], unreadable: Collection[str]) -> None:
        def make(name: str) -> Ingester:
            return Ingester(self._home, name, self._shared, lambda: not self._works())

        tables = {name for name, spec in specs.items() if spec.stream is not None}
        _keep(self._ingesters, tables, unreadable, make, self._home.context.catalog.serving.forget_ingestion)

    def _start_waiting(self) -> bool:
        """Start one queued run in its own thread, if one may start."""
        self._workers = {key: thread for key, thread in self._workers.items() if thread.is_alive()}
        if len(self._workers) >= WORKERS_MAX or self._awaits_first_batches():
            return False
        run = self._next_run({self._lanes[key] for key in self._workers})
        if run is None:
            return False
        thread = threading.Thread(target=self._carry_out, args=(run,), name=run.id, daemon=True)
        self._workers[run.id], self._lanes[run.id] = thread, lane_of(run)
        thread.start()
        return True

    def _carry_out(self, run: RunRecord) -> None:
        try:
            carry_out(self._home, run, self._works)
        except PipelineLost:
            _LOG.warning("Spark's JVM is gone or ending; run %s is left to the next pipeline.", run.id)
        except Exception:  # the catalog cannot be written: the run stays RUNNING and is requeued later
            _LOG.exception("Run %s could not be noted as ended", run.id)
            self._unnoted.append(run.id)

    def _works(self) -> bool:
        """Whether an error is one of the work itself, not of a JVM that is gone or shutting down."""
        if not self._is_lost():
            time.sleep(_DYING_S)
        return not self._is_lost() and not self._ending

    def _is_lost(self) -> bool:
        if not self._lost and self._jvm is not None and not self._jvm.is_alive():
            self._lost = True
        if self._jvm is not None and not self._home.context.settings.has_local_spark and is_stopped():
            self._lost = True  # the cluster has removed the application
        if self._keeper is not None and self._keeper.has_changed_hands and not self._reads_only:
            self._lost = True  # its successor follows
        return self._lost

    @property
    def _has_taken_over(self) -> bool:
        """Whether this home writes the warehouse by now, which it followed before."""
        return self._reads_only and self._keeper is not None and self._keeper.has_changed_hands

    def _beat(self) -> None:
        sign = self._home.home / BEAT_FILE
        while True:
            try:
                sign.touch()  # first, as it needs no catalog: shows `hybrid serve` that this process does not hang
                self._home.context.catalog.serving.beat(ROLE, self._state)
            except Exception:  # a missed heartbeat shows in readiness
                _LOG.exception("No sign of life could be given")
            time.sleep(_BEAT_S)

    def _end(self) -> None:
        """Wait a few seconds for running work; work that takes longer is killed between two commits."""
        keepers: list[Ingester | Loader] = [*self._ingesters.values(), *self._loaders.values()]
        for keeper in keepers:
            keeper.stop.set()
        deadline = time.monotonic() + (0 if self._lost else _END_S)
        for thread in [*keepers, *self._workers.values()]:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._ending = True
        if self._jvm is not None:
            self._jvm.stop(_JVM_END_S)


def _keep(
    keepers: dict[str, Keeper],
    tables: Collection[str],
    unreadable: Collection[str],
    make: Callable[[str], Keeper],
    forget: Callable[[str], None] = lambda name: None,
) -> None:
    """Start a thread for each table that has none alive; stop and forget those of other tables.

    What cannot be read now is not gone: its thread notes why it stops, and a pause of it holds.
    """
    for name in set(keepers) - set(tables) - set(unreadable):
        keepers.pop(name).stop.set()
        forget(name)
    for name in tables:
        if name not in keepers or not keepers[name].is_alive():
            keepers[name] = make(name)
            keepers[name].start()


@contextmanager
def pipeline_lock(home: Path, stop: threading.Event) -> Iterator[None]:
    """Hold the lock of a home's only pipeline. Waits for an ending predecessor; ConflictError if it does not end."""
    durable.make_private(home)
    with (home / "pipeline.lock").open("a") as file:
        if not try_lock(file, _LOCK_S, gives_up=stop.is_set):
            raise ConflictError(f"Another pipeline works on {home}.", hint="hybrid status")
        yield
