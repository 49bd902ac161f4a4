"""`Home`: the context of every operation: a home's settings, clock, catalog, tables and Spark session."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from hybrid.catalog.definitions import Definition, Definitions, is_table_name
from hybrid.catalog.remote_tables import RemoteTables
from hybrid.clock import wall_clock_ms
from hybrid.config.settings import Settings, missing_home
from hybrid.config.table_config import TableSpec
from hybrid.errors import NotFoundError, UsageError
from hybrid.home.running_queries import PYTHON
from hybrid.home.table_ref import TableRef
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.layout import TableLayout
from hybrid.lake.workers import raised_by_worker
from hybrid.logs import log_context
from hybrid.progress import Progress
from hybrid.runtime import durable
from hybrid.runtime.disk import keep_free
from hybrid.store.mirror import configure as configure_mirror

if TYPE_CHECKING:
    from hybrid.catalog.catalog import Catalog
    from hybrid.catalog.run_record import RunOutcome, RunRecord
    from hybrid.config.input_rules import InputRules
    from hybrid.home.query_log import QueryLog
    from hybrid.lake.spark import SparkSettings
    from hybrid.lake.spark_connect import ConnectServer
    from hybrid.lake.table_context import TableContext
    from hybrid.store.ownership import WarehouseOwner


class Report(Protocol):
    """The result of an operation: one sentence, and whether it did something (R7)."""

    @property
    def sentence(self) -> str:
        """What it did, with numbers, or why it did nothing."""

    @property
    def did_something(self) -> bool:
        """Whether it changed anything."""


SomeReport = TypeVar("SomeReport", bound=Report)


@dataclass(frozen=True)
class ServerTask:
    """The queued run that a server's process executes: its commits carry the run's id, its outcome is stored with it.

    `scheduled`: a schedule requested it, not a person.
    """

    run_id: str
    outcome: RunOutcome
    rules: InputRules
    scheduled: bool = False


def run_act_id(kind: str, run_id: str) -> str:
    """The id of an operation in a server's run: `revert-17640` of run `revert_17640`, `move-Task_..._17640`."""
    return f"{kind}-{run_id.removeprefix(f'{kind}_')}"


def is_act_of(act_id: str, run_id: str) -> bool:
    """Whether a run's operation has this id. Ids of earlier versions have the kind twice: `revert-revert_17640`."""
    kind = act_id.partition("-")[0]
    return act_id in (run_act_id(kind, run_id), f"{kind}-{run_id}")


def _warehouse_owner(settings: Settings) -> WarehouseOwner:
    from hybrid.catalog.ownership import warehouse_owner

    return warehouse_owner(settings.home)


class Home:
    """A home. `now_ms` is the clock that closes buckets; `task` is the run being executed."""

    def __init__(
        self,
        settings: Settings,
        progress: Progress,
        now_ms: Callable[[], int] = wall_clock_ms,
        task: ServerTask | None = None,
    ) -> None:
        self.settings = settings
        durable.configure(settings.home, settings.durable)
        keep_free(settings.home, settings.disk_reserve_bytes)
        configure_mirror(settings.warehouse, settings.warehouse_url, lambda: _warehouse_owner(settings))
        self.progress = progress
        self.now_ms = now_ms
        # Whether Spark's JVM gets a session of its own, whose priority can be changed.
        self.jvm_in_own_session = False
        # Who asks its statements, for the query log.
        self.client = PYTHON
        self._task = task
        self._specs: dict[str, tuple[Hashable, TableSpec]] = {}

    @property
    def folder(self) -> Path:
        """The home's folder."""
        return self.settings.home

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog of runs, opened on first use."""
        from hybrid.catalog.catalog import Catalog

        return Catalog.of_home(self.folder, self.settings.catalog)

    @cached_property
    def query_log(self) -> QueryLog:
        """The query log, and the statements that run in this process."""
        from hybrid.home.query_log import QueryLog

        return QueryLog(self.settings)

    @cached_property
    def definitions(self) -> Definitions:
        """The tables' definitions."""
        return Definitions(self.settings.warehouse)

    @cached_property
    def remote(self) -> RemoteTables:
        """The tables of the warehouse that other query servers hold, and this home does not."""
        return RemoteTables(self.settings.warehouse)

    @cached_property
    def bench(self) -> CommitContext:
        """The commit context of this process; Spark starts at the first operation that needs it."""
        return CommitContext(
            self._connect_server.session if self.settings.has_spark_connect else self._start_spark,
            self.now_ms,
            self.progress,
            self.settings.lock_timeout_s,
            has_shared_files=self.settings.workers_share_files,
            has_jvm=not self.settings.has_spark_connect,
        )

    def close(self) -> None:
        """Close the catalog and the query log; a Spark session ends with the process."""
        if "query_log" in vars(self):
            self.query_log.close()
        if "catalog" in vars(self):
            self.catalog.close()

    # Tables

    def require_folder(self) -> None:
        """NotFoundError when the home does not exist."""
        if not self.folder.is_dir():
            raise missing_home(self.settings)

    def table_names(self) -> list[str]:
        """All tables, sorted. NotFoundError when the home does not exist."""
        names = self.definitions.names()
        if not names:
            self.require_folder()
        return names

    def listed_specs(self) -> list[TableSpec]:
        """The definitions of all tables of the warehouse, by name: those of this home, and remote ones."""
        remote = [self.remote.find(name) for name in self.remote.names()]
        there = {definition.name: self.spec_of(definition) for definition in remote if definition is not None}
        here = {name: self.spec(name) for name in (self.definitions.names() if there else self.table_names())}
        return [spec for _, spec in sorted({**there, **here}.items())]

    def listed_names(self) -> list[str]:
        """The names of all tables of the warehouse, sorted. NotFoundError when the home does not exist."""
        remote = self.remote.names()
        return sorted({*self.definitions.names(), *remote}) if remote else self.table_names()

    def table(self, name: str) -> TableRef:
        """A table by its name; NotFoundError, with a suggestion, when there is none."""
        spec = self.spec(name)
        return TableRef(spec, self.layout(spec.name))

    def spec(self, name: str) -> TableSpec:
        """The parsed definition of a table; parsed again only when its file has changed."""
        file = self.definitions.stamp(name) if is_table_name(name) else None
        cached = self._specs.get(name)
        if cached is not None and cached[0] == file:
            return cached[1]
        definition = self.definitions.find(name)
        if definition is not None:
            spec = self.spec_of(definition)
            self._specs[name] = file, spec  # the stamp from before reading: a file replaced meanwhile is read again
            return spec
        self._specs.pop(name, None)
        for table_name in self.table_names():  # DDL table names are case-insensitive
            if table_name.lower() == name.lower() and self.spec(table_name).ignores_case:
                return self.spec(table_name)
        raise self.unknown_table(name)

    def unknown_table(self, name: str) -> NotFoundError:
        """The error for a table that is not in this home. It names the servers that hold a remote one."""
        if name not in self.remote.names():
            return NotFoundError.named("Table", name, self.listed_names())
        pinning = self.settings.pinning
        if pinning is None or pinning.is_here(name):
            return NotFoundError(f"Table '{name}' is not in this home yet.", hint="hybrid warehouse pull")
        holders = pinning.holders(name)
        return NotFoundError(
            f"Table '{name}' is not in this home: it is pinned to {', '.join(holders)}.",
            hint=f"Ask a server: hybrid --server {holders[0]}",
        )

    def spec_of(self, definition: Definition) -> TableSpec:
        """The parsed form of a definition, stored or not."""
        from hybrid.config.table_json import parse_table

        name, documents = definition.name, (definition.realtime_doc, definition.offline_doc)
        configs = [(dict(doc), name) for doc in documents if doc is not None]
        return parse_table(dict(definition.schema_doc), name, configs, definition.brokers)

    def table_context(self, table: TableRef) -> TableContext:
        """The table as the engines take it."""
        from hybrid.lake.table_context import TableContext

        return TableContext(self.bench, table.spec, table.layout)

    def layout(self, name: str) -> TableLayout:
        """The paths of a table's halves."""
        return TableLayout(self.settings.warehouse / name)

    # Runs

    def runs(self, table: str | None = None, limit: int = 100) -> list[RunRecord]:
        """The newest runs of tasks and jobs, newest first. UsageError for a `limit` below 1 or above what is kept."""
        from hybrid.catalog.runs import KEPT_PER_TABLE

        if not 1 <= limit <= KEPT_PER_TABLE:
            raise UsageError(
                f"limit: {limit} is not between 1 and {KEPT_PER_TABLE}, the runs that are kept of a table."
            )
        if table is not None and table not in self.table_names():
            raise NotFoundError.named("Table", table, self.table_names())
        self.require_folder()
        return self.catalog.runs.list(table, limit)

    def run(self, run_id: str) -> RunRecord:
        """One run; NotFoundError, with a suggestion, when no run has that id."""
        record = self.catalog.runs.find(run_id)
        if record is None:
            raise NotFoundError.named("Task run", run_id, [run.id for run in self.catalog.runs.list()])
        return record

    @contextmanager
    def recorded(self, table: str, kind: str, arguments: Mapping[str, Any] | None = None) -> Iterator[RunOutcome]:
        """Record work as a run; within a server's run, use that one. Log records of the work carry table and run id.

        An error that a worker of Spark's raised is raised as it was.
        """
        if self._task is not None:
            with raised_by_worker():
                yield self._task.outcome
            return
        run_id = new_act_id("run")
        recorded = self.catalog.runs.recorded(run_id, table, kind, arguments)
        with log_context(table=table, run_id=run_id), recorded as outcome, raised_by_worker():
            yield outcome

    def run_recorded(
        self, table: str, kind: str, work: Callable[[], SomeReport], *, dry_run: bool = False
    ) -> SomeReport:
        """Do the work and record it as a run that ends with its report. A dry run is not recorded."""
        if dry_run:
            with raised_by_worker():
                return work()
        with self.recorded(table, kind) as run:
            report = work()
            run.ended(report.sentence, did_something=report.did_something)
        return report

    @property
    def asked_at(self) -> str | None:
        """When the run that a server executes here was requested (ISO 8601); None outside of server runs."""
        return self.run(self._task.run_id).created_at if self._task is not None else None

    @property
    def input_rules(self) -> InputRules | None:
        """What the run executed here may read; None: everything, as in a command's own process."""
        return self._task.rules if self._task is not None else None

    @property
    def is_scheduled(self) -> bool:
        """Whether a server's schedule asked for the current work, and no person."""
        return self._task is not None and self._task.scheduled

    @property
    def share_max(self) -> float | None:
        """The share of a half's rows that the current work may drop; None: all, for a person's request."""
        return self.settings.retention_share_max if self.is_scheduled else None

    def act_id(self, kind: str) -> str:
        """The id of an operation about to start.

        In a server's run it is derived from the run, so that a retry finds its commits.
        """
        return run_act_id(kind, self._task.run_id) if self._task is not None else new_act_id(kind)

    def for_task(self, task: ServerTask, progress: Progress) -> Home:
        """The same home, Spark session and catalog for one run of a server."""
        twin = Home(self.settings, progress, self.now_ms, task)
        bench = replace(self.bench, start_spark=lambda: self.bench.session, now_ms=self.now_ms, progress=progress)
        vars(twin).update(catalog=self.catalog, definitions=self.definitions, bench=bench, _specs=self._specs)
        return twin

    def context_with_spark(self) -> CommitContext:
        """The commit context of this process, whose Spark the first call starts, for a statement on Spark.

        SpecError with a Spark Connect server, where statements cannot be stopped in groups.
        """
        if self.bench.has_jvm:
            _ = self.bench.session
        else:
            self.bench.require_shared_files("a statement on Spark")
        return self.bench

    @cached_property
    def _connect_server(self) -> ConnectServer:
        from hybrid.lake.spark_connect import ConnectServer

        return ConnectServer(self.settings.spark_connect_url, self.settings.spark, self.progress.say)

    def start_jvm(self) -> None:
        """Start Spark's JVM alone, for a session that may be wanted soon and then starts faster."""
        from hybrid.lake.spark import start_jvm

        start_jvm(self._spark_settings())

    def _start_spark(self) -> Any:
        from hybrid.lake.spark import is_running, spark_session

        settings = self._spark_settings()
        if not is_running():
            self.progress.say("Starting Spark.")
        return spark_session(settings)

    def _spark_settings(self) -> SparkSettings:
        from hybrid.jvm.jars import ensure_jars
        from hybrid.jvm.java import find_java
        from hybrid.lake.class_data_archive import with_archive
        from hybrid.lake.spark import SparkSettings

        java = find_java()  # its message says what to install; Spark only reports that its gateway exited
        jars = ensure_jars(self.progress)
        return SparkSettings(
            jars=jars.spark,
            java_home=java.home,
            log_dir=self.settings.logs,
            master=self.settings.spark_master,
            driver_memory=self.settings.spark_driver_memory,
            extra=self.settings.spark,
            java_options=with_archive(java),
            own_session=self.jvm_in_own_session,
            worker_python=self.settings.spark_worker_python,
            needs_store=not self.settings.workers_share_files,
        )
