"""`hybrid.connect()`: the product as a library, one method per verb. The command line is thin over this.

It owns what no part below may own: the records of runs, and the order of steps that touch more than one part.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hybrid import durable
from hybrid.catalog.definitions import Definition, Definitions, is_table_name
from hybrid.clock import wall_clock_ms
from hybrid.disk import keep_free
from hybrid.errors import ConflictError, NotFoundError
from hybrid.lake.layout import TableLayout
from hybrid.lake.workbench import Workbench, new_act_id
from hybrid.logs import log_context
from hybrid.plain import stamp
from hybrid.progress import Progress, Silent
from hybrid.spec.settings import Settings, load_settings, missing_home
from hybrid.spec.table_config import TableSpec
from hybrid.table_documents import DdlDocuments, TableDocuments

if TYPE_CHECKING:
    from hybrid.backfills import Backfills
    from hybrid.catalog.catalog import Catalog
    from hybrid.catalog.runs import RunOutcome, RunRecord
    from hybrid.flow.declared.model import Flow
    from hybrid.flow.declared.runner import FlowReport
    from hybrid.flow.declared.session import FlowSession
    from hybrid.flow_runs import FlowStatus
    from hybrid.handle import Table
    from hybrid.query.cache.answers import CachedAnswers
    from hybrid.query.engine import Explanation, QueryOptions, QueryResult
    from hybrid.query.revision import Revision
    from hybrid.replace.report import JobReport
    from hybrid.schedules import Schedule
    from hybrid.spec.connectors import Connector
    from hybrid.spec.input_rules import InputRules
    from hybrid.status import TableStatus
    from hybrid.table.boundary import TopicPartition


# A revision or its text; a time, by its ISO 8601 text, as a datetime with a zone or in epoch milliseconds.
AsOfText: TypeAlias = "str | int | datetime | Revision"


def connect(home: str | Path | None = None, *, progress: Progress | None = None) -> Hybrid:
    """Opens a home (a folder with warehouse, catalog and logs); without one, `.hybrid` is searched upward."""
    return Hybrid(load_settings(home=Path(home) if home is not None else None), progress or Silent())


__all__ = ["Creation", "DdlDocuments", "Hybrid", "ServerTask", "TableDocuments", "connect"]


@dataclass(frozen=True)
class Creation:
    """What creating or applying did: `changes` by document path, offsets to start from, warnings, one sentence."""

    table: str
    changes: Sequence[str]
    starts: Mapping[str, int]
    warnings: Sequence[str]
    sentence: str


@dataclass(frozen=True)
class ServerTask:
    """The queued run that a server's process carries out: its acts bear its id, and its outcome is kept in it.

    `scheduled`: a schedule has asked for it, and not a person.
    """

    run_id: str
    outcome: RunOutcome
    rules: InputRules
    scheduled: bool = False


class Hybrid:
    """A home and everything in it. `now_ms` is the clock that buckets are closed by."""

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
        self.progress = progress
        self.now_ms = now_ms
        self._task = task
        self._cached: CachedAnswers | None = None
        self._specs: dict[str, tuple[Hashable, TableSpec]] = {}

    @property
    def home(self) -> Path:
        """The home's folder."""
        return self.settings.home

    @cached_property
    def catalog(self) -> Catalog:
        """The record of runs."""
        from hybrid.catalog.catalog import Catalog

        return Catalog.in_home(self.home)

    @cached_property
    def definitions(self) -> Definitions:
        """The tables' definitions."""
        return Definitions(self.settings.warehouse)

    @cached_property
    def bench(self) -> Workbench:
        """The workbench of this process; Spark starts at the first act."""
        return Workbench(self._start_spark, self.now_ms, self.progress, self.settings.lock_timeout_s)

    def close(self) -> None:
        """Gives up the catalog; a Spark session ends with the process."""
        if "catalog" in vars(self):
            self.catalog.close()

    # Tables

    def table_names(self) -> list[str]:
        """All tables, sorted. NotFoundError when the home does not exist."""
        names = self.definitions.names()
        if not names:
            self._require_home()
        return names

    def _require_home(self) -> None:
        if not self.home.is_dir():
            raise missing_home(self.settings)

    def table(self, name: str) -> Table:
        """A table by its name; NotFoundError, with a suggestion, when there is none."""
        from hybrid.handle import Table

        spec = self.spec(name)
        return Table(self, spec, self.layout(spec.name))

    def spec(self, name: str) -> TableSpec:
        """What a table's definition says; it is read again only when its file is another one."""
        file = self.definitions.stamp(name) if is_table_name(name) else None
        kept = self._specs.get(name)
        if kept is not None and kept[0] == file:
            return kept[1]
        definition = self.definitions.find(name)
        if definition is not None:
            found = self.spec_of(definition)
            self._specs[name] = file, found  # of before it was read: what was put there meanwhile is read again
            return found
        self._specs.pop(name, None)
        for known in self.table_names():  # names of tables by DDL match whatever their case
            if known.lower() == name.lower() and self.spec(known).ignores_case:
                return self.spec(known)
        raise NotFoundError.named("Table", name, self.table_names())

    def spec_of(self, definition: Definition) -> TableSpec:
        """What a definition says, stored or not."""
        from hybrid.spec.table_json import parse_table

        name, documents = definition.name, (definition.realtime_doc, definition.offline_doc)
        configs = [(dict(doc), name) for doc in documents if doc is not None]
        return parse_table(dict(definition.schema_doc), name, configs, definition.brokers)

    def layout(self, name: str) -> TableLayout:
        """Where a table's halves lie."""
        return TableLayout(self.settings.warehouse / name)

    def validate(self, given: TableDocuments) -> TableSpec:
        """Checks the documents of a table. Nothing is written, nobody is asked."""
        from hybrid.brokers import brokers_for
        from hybrid.spec.overrides import apply_sets
        from hybrid.spec.table_json import parse_table

        (schema, source), configs = given.schema, apply_sets(list(given.configs), list(given.overrides))
        spec = parse_table(schema, source, configs, brokers_for(self, given, configs))
        if spec.expectations:
            from hybrid.sql.expectation_sql import refuse_wrong_conditions

            refuse_wrong_conditions(spec.expectations, spec)
        return spec

    def create_table(self, given: TableDocuments) -> Creation:
        """Creates a table: resolves where it starts in Kafka, lays its halves, records it.

        ConflictError when there is one of that name; StreamError when Kafka does not answer. Nothing is created then.
        """
        from hybrid.creation import check_free, creation_lock, lay_halves, start_words

        spec = self.validate(given)
        layout = self.layout(spec.name)
        with creation_lock(layout, self.settings.lock_timeout_s, self.progress):
            if self.definitions.find(spec.name) is not None:
                raise ConflictError(
                    f"Table '{spec.name}' exists already. Nothing was changed.",
                    hint="hybrid table apply ... (to change it or add a half)",
                )
            check_free(layout, spec)
            if spec.connectors:
                self.catalog.connectors.forget(spec.name)  # what an earlier table of that name left
            starts = lay_halves(layout, spec, self.now_ms())
            self.definitions.add(_definition(spec))
        halves = " and ".join(half.value for half in sorted(spec.halves, reverse=True))
        sentence = f"Created table '{spec.name}' ({halves}){start_words(spec, starts)}."
        return Creation(spec.name, (), starts, spec.warnings, sentence)

    def apply_table(self, given: TableDocuments, *, dry_run: bool = False) -> Creation:
        """Creates a table, or changes the one there is to what the documents say, and tells the difference."""
        from hybrid.change import apply_change

        spec = self.validate(given)
        known = self.definitions.find(spec.name)
        if known is None and dry_run:
            return Creation(spec.name, (), {}, spec.warnings, f"Would create table '{spec.name}'. Nothing was changed.")
        return (
            self.create_table(given)
            if known is None
            else apply_change(self, known, spec, dry_run=dry_run, kafka=given.kafka)
        )

    def add_table(self, given: TableDocuments, *, update: bool = False) -> Creation:
        """Creates a table or adds a half, as Pinot does; ConflictError for a half that is there, unless `update`."""
        spec = self.validate(given)
        known = self.definitions.find(spec.name)
        there = self.spec_of(known).halves & spec.halves if known is not None else frozenset()
        if there and not update:
            raise ConflictError(
                f"Table '{spec.name}_{min(there).value}' exists already. Nothing was changed.",
                hint="Give -update (or PUT /tables/{name}) to change it.",
            )
        return self.apply_table(given)

    def drop_table(self, name: str, *, purge: bool = False) -> str:
        """Drops a table; its data is kept aside unless it is purged. Returns a sentence."""
        from hybrid.drop import drop_table

        return drop_table(self, name, purge=purge)

    def undrop_table(self, name: str) -> str:
        """Brings back the table of that name that was dropped last. Returns a sentence."""
        from hybrid.drop import undrop_table

        return undrop_table(self, name)

    # Queries

    def query(self, sql: str, options: QueryOptions | None = None, *, as_of: AsOfText | None = None) -> QueryResult:
        """Answers a statement from one revision, rows in Kafka that are not committed yet included.

        `as_of` is the revision of another answer or a time, instead of now; see `hybrid.query.asof`.
        """
        from hybrid.query.engine import QueryOptions, run

        asked = options or QueryOptions()
        text = asked.as_of if as_of is None else str(as_of)
        return run(sql, _Source(self), replace(asked, cache=self._cached, as_of=text))

    def query_at_once(self, sql: str, options: QueryOptions) -> QueryResult | None:
        """The same where memory answers in a moment, without waiting for anything; None: ask `query`."""
        from hybrid.query.engine import run_at_once

        return run_at_once(sql, replace(options, cache=self._cached))

    def serve_from_memory(self, bytes_max: int) -> None:
        """Keeps the tables in memory from now on, which answers `query` in milliseconds; for a server's process."""
        from hybrid.query.cache.answers import CachedAnswers
        from hybrid.query.cache.cache import Cache

        cache = Cache(_Source(self), self.settings.warehouse, bytes_max=bytes_max, spill=self.settings.spill)
        cache.follow_all()
        self._cached = CachedAnswers(cache)

    def cached_sizes(self) -> Sequence[tuple[str, int, int]]:
        """What is kept by `serve_from_memory`: bytes in memory and on disk, by kind."""
        return () if self._cached is None else self._cached.sizes()

    def explain(self, sql: str, *, as_of: AsOfText | None = None, options: QueryOptions | None = None) -> Explanation:
        """How a statement would be answered: revision, boundary, segments read and pruned, SQL per half."""
        from hybrid.query.engine import QueryOptions, explain

        asked = replace(options or QueryOptions(), as_of=None if as_of is None else str(as_of))
        return explain(sql, _Source(self), asked)

    # Work

    def run_job(
        self,
        path: Path,
        variables: Mapping[str, str],
        *,
        input_dir: str | None = None,
        covers: str | None = None,
        sql: str | None = None,
        **options: Any,
    ) -> JobReport:
        """Runs an ingestion job spec on the table it names; options as `Table.replace` takes them.

        `covers` (FROM/TO, `day` or `all`) is what the job answers for: other segments in it are removed. With `sql`,
        the rows of that statement are its input.
        """
        from hybrid.job_input import GivenToJob, run_given
        from hybrid.spec.job_spec import load_job_spec

        given = GivenToJob(covers, sql)
        job = load_job_spec(path, dict(variables), given.input_dir(input_dir), self.now_ms())
        return run_given(self, job, given, options)

    def load_flows(self, path: Path, variables: Mapping[str, str]) -> FlowSession:
        """What the flow file at `path` (.py or .sql) declares. Nothing runs, and no JVM is started."""
        from hybrid.flow_runs import load_flows

        return load_flows(self, path, variables)

    def run_flows(self, session: FlowSession, refresh: Sequence[Flow] = ()) -> list[FlowReport]:
        """Runs every flow of a loaded file, in parallel; those in `refresh` load everything once again."""
        from hybrid.flow_runs import run_flows

        return run_flows(self, session, refresh)

    def flows(self) -> list[FlowStatus]:
        """Every flow that has run in this home, by target and name. Needs no JVM."""
        from hybrid.flow_runs import flows_of

        return flows_of(self)

    @property
    def backfills(self) -> Backfills:
        """Corrections of stretches of time: planned, looked at, run."""
        from hybrid.backfills import Backfills

        return Backfills(self)

    def runs(self, table: str | None = None) -> list[RunRecord]:
        """The newest runs of tasks and jobs, newest first."""
        if table is not None and table not in self.table_names():
            raise NotFoundError.named("Table", table, self.table_names())
        self._require_home()
        return self.catalog.runs.list(table)

    def run(self, run_id: str) -> RunRecord:
        """One run; NotFoundError, with a suggestion, when there is none of that id."""
        found = self.catalog.runs.find(run_id)
        if found is None:
            raise NotFoundError.named("Task run", run_id, [run.id for run in self.catalog.runs.list()])
        return found

    @contextmanager
    def recorded(self, table: str, kind: str, arguments: Mapping[str, Any] | None = None) -> Iterator[RunOutcome]:
        """Records work as a run; inside a server's run, that one is it. What is logged meanwhile bears both."""
        if self._task is not None:
            yield self._task.outcome
            return
        run_id = new_act_id("run")
        recorded = self.catalog.runs.recorded(run_id, table, kind, arguments)
        with log_context(table=table, run_id=run_id), recorded as outcome:
            yield outcome

    @property
    def asked_at(self) -> str | None:
        """When the run was asked for that a server carries out here (ISO 8601); None where nobody waited."""
        return self.run(self._task.run_id).created_at if self._task is not None else None

    @property
    def input_rules(self) -> InputRules | None:
        """What the run that is carried out here may read; None: everything, as in a command's own process."""
        return self._task.rules if self._task is not None else None

    @property
    def share_max(self) -> float | None:
        """The share of a half's rows that the work of now may drop; None: all, as a person has asked for it."""
        is_scheduled = self._task is not None and self._task.scheduled
        return self.settings.retention_share_max if is_scheduled else None

    def act_id(self, kind: str) -> str:
        """The id of an act about to be done: bound to a server's run, so that its successor finds what it committed."""
        return f"{kind}-{self._task.run_id}" if self._task is not None else new_act_id(kind)

    def for_task(self, task: ServerTask, progress: Progress) -> Hybrid:
        """The same home, Spark session and catalog for one run of a server."""
        twin = Hybrid(self.settings, progress, self.now_ms, task)
        bench = Workbench(lambda: self.bench.spark, self.now_ms, progress, self.settings.lock_timeout_s)
        vars(twin).update(catalog=self.catalog, definitions=self.definitions, bench=bench, _specs=self._specs)
        return twin

    def schedules(self, table: str | None = None) -> list[Schedule]:
        """The scheduled tasks of a table, or of all."""
        from hybrid.schedules import schedules_of

        names = [table] if table is not None else self.table_names()
        return [found for name in names for found in schedules_of(self, self.spec(name))]

    def status(self) -> list[TableStatus]:
        """Every table at a glance."""
        from hybrid.status import status_of_all

        return status_of_all(self)

    def _start_spark(self) -> Any:
        from hybrid.jvm.jars import ensure_jars
        from hybrid.jvm.java import find_java
        from hybrid.lake.archive import with_archive
        from hybrid.lake.spark import SparkSettings, is_running, spark_session

        java = find_java()  # says what to install; Spark itself only says that its gateway has gone
        jars = ensure_jars(self.progress)
        if not is_running():
            self.progress.say("Starting Spark.")
        settings = SparkSettings(
            jars=jars.spark,
            java_home=java.home,
            log_dir=self.settings.logs,
            master=self.settings.spark_master,
            driver_memory=self.settings.spark_driver_memory,
            extra=self.settings.spark,
            java_options=with_archive(java),
        )
        return spark_session(settings)


class _Source:
    """The tables of a home, as the query engine asks for them."""

    def __init__(self, home: Hybrid) -> None:
        self._home = home
        # The connectors of each table, by its definition's stamp: a statement asks for both.
        self._connectors: dict[str, tuple[Hashable, tuple[Connector, ...]]] = {}

    def names(self) -> list[str]:
        return self._home.table_names()

    def stamp(self, name: str) -> Any:
        stamp = self._home.definitions.stamp(name)
        if stamp is None:
            return stamp
        known = self._connectors.get(name)
        if known is None or known[0] != stamp:
            known = self._connectors[name] = stamp, self._home.spec(name).connectors
        # A pause changes what is shown.
        held = self._stop_at(name, known[1])
        return stamp, None if held is None else tuple(sorted(held.items()))

    def open(self, name: str) -> Any:
        from hybrid.query.engine import QueryTable

        spec = self._home.spec(name)
        brokers = spec.stream.brokers if spec.stream else None
        return QueryTable(spec, self._home.layout(name), brokers, self._stop_at(name, spec.connectors))

    def _stop_at(self, name: str, connectors: tuple[Connector, ...]) -> Mapping[TopicPartition, int] | None:
        if not connectors:  # most tables: the catalog takes longer to import than a query to run
            return None
        from hybrid.connector_view import stop_at

        return stop_at(self._home, name, connectors)


def _definition(spec: TableSpec) -> Definition:
    return Definition(
        name=spec.name,
        schema_doc=spec.schema_doc or {},
        realtime_doc=spec.realtime_doc,
        offline_doc=spec.offline_doc,
        brokers=spec.stream.brokers if spec.stream else None,
        created_at=stamp(wall_clock_ms()),
    )
