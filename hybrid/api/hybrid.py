"""`hybrid.connect()`: the product as a library, one method per verb. Everything delegates to `hybrid.operations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hybrid.clock import wall_clock_ms
from hybrid.config.settings import Settings, load_settings
from hybrid.config.table_config import TableSpec
from hybrid.config.table_documents import TableDocuments
from hybrid.home.home import Home
from hybrid.operations.queries import AsOfText, Queries, record_answer
from hybrid.operations.tables.given_documents import GivenDocument, given_documents
from hybrid.progress import Progress, Silent
from hybrid.query.result_warning import warn_if_cut

if TYPE_CHECKING:
    from hybrid.api.background_query import Interrupt
    from hybrid.api.table import Table
    from hybrid.catalog.erasures import ErasureCertificate
    from hybrid.catalog.run_record import RunRecord
    from hybrid.files.results.result_sink import ExportReport
    from hybrid.flow.declared.model import Flow
    from hybrid.flow.declared.runner import FlowReport
    from hybrid.flow.declared.session import FlowSession
    from hybrid.operations.backfills import Backfills
    from hybrid.operations.backups.backups import Backups
    from hybrid.operations.erasures import Erasures
    from hybrid.operations.flows import FlowStatus
    from hybrid.operations.inference.inferred_table import InferredTable
    from hybrid.operations.query_list import LoggedQuery
    from hybrid.operations.schedules import Schedule
    from hybrid.operations.tables.creation import Creation
    from hybrid.operations.tables.drop import DroppedTable
    from hybrid.operations.tables.status import TableStatus
    from hybrid.query.cache.follower import StreamStatus
    from hybrid.query.engine import QueryOptions, QueryResult
    from hybrid.query.explain import Explanation
    from hybrid.replace.report import JobReport
    from hybrid.sql.parameters import Parameters


def connect(home: str | Path | None = None, *, progress: Progress | None = None) -> Hybrid:
    """Opens a home: the folder with warehouse, catalog and logs of an installation.

    Without `home`, HYBRID_HOME names it, else `.hybrid` is searched from the current folder upward. `progress` receives
    messages about long work.
    """
    return Hybrid(load_settings(home=Path(home) if home is not None else None), progress or Silent())


# For the product's own command line and server.
_INTERNAL = frozenset(
    {"add_table", "cached_sizes", "cached_streams", "context", "of", "query_at_once", "serve_from_memory"}
)


class Hybrid:
    """A home: its tables, queries, jobs and runs. A `with` statement closes it at its end.

    `now_ms` is the clock in epoch milliseconds; it closes buckets.
    """

    def __init__(self, settings: Settings, progress: Progress, now_ms: Callable[[], int] = wall_clock_ms) -> None:
        self._open(Home(settings, progress, now_ms))

    def __dir__(self) -> list[str]:
        return [name for name in dir(type(self)) if not name.startswith("_") and name not in _INTERNAL]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Hybrid {self.home}>"

    @classmethod
    def of(cls, context: Home) -> Hybrid:
        """The API over a home that is already open."""
        hybrid = cls.__new__(cls)
        hybrid._open(context)
        return hybrid

    def _open(self, context: Home) -> None:
        self.context = context
        self._queries = Queries(context)

    @property
    def settings(self) -> Settings:
        """The home's settings."""
        return self.context.settings

    @property
    def home(self) -> Path:
        """The home's folder."""
        return self.context.folder

    def close(self) -> None:
        """Closes the catalog; a Spark session ends with the process."""
        self.context.close()

    # Tables

    def table_names(self) -> list[str]:
        """The names of all tables, sorted. NotFoundError when the home does not exist."""
        return self.context.table_names()

    def table(self, name: str) -> Table:
        """A table by its name; NotFoundError, with a suggestion, for an unknown name."""
        from hybrid.api.table import Table

        return Table(self.context, self.context.table(name))

    def spec(self, name: str) -> TableSpec:
        """A table's definition; NotFoundError, with a suggestion, for an unknown name."""
        return self.context.spec(name)

    def validate(
        self,
        given: TableDocuments | GivenDocument,
        *configs: GivenDocument,
        kafka: str | None = None,
        overrides: Sequence[str] = (),
    ) -> TableSpec:
        """Checks the documents of a table, given as to `create_table`; SpecError when they are invalid.

        Nothing is written, and Kafka is not asked.
        """
        from hybrid.operations.tables.create import validate_documents

        return validate_documents(self.context, given_documents(given, configs, kafka, overrides))

    def infer_table(self, source: str | Path, **options: Any) -> InferredTable:
        """The documents of a table that fit a sample of a topic's messages, or of a file. Nothing is created.

        `options` are those of `InferOptions`, such as `kafka`, `key`, `time_column`, `sample`. The result's
        `documents()` are for `create_table`, `write(folder)` makes files of them, and `notes` say what to check.
        """
        from hybrid.operations.inference.infer import infer_file, infer_table
        from hybrid.operations.inference.infer_options import InferOptions

        given = InferOptions(**options)
        return infer_file(source, given) if isinstance(source, Path) else infer_table(self.context, source, given)

    def create_table(
        self,
        given: TableDocuments | GivenDocument,
        *configs: GivenDocument,
        kafka: str | None = None,
        overrides: Sequence[str] = (),
    ) -> Creation:
        """Creates a table: resolves its start offsets in Kafka, writes its empty halves, stores its definition.

        `given` is the schema and `configs` are its table configs, each a dictionary or the path of a JSON file. Or
        `given` is all of it, as `hybrid.frame_documents` makes it. `kafka` replaces the brokers of the configs,
        `overrides` are `POINTER=VALUE` texts as `--set` takes them.

        ConflictError when the name is taken; StreamError when Kafka does not answer. Nothing is created then.
        """
        from hybrid.operations.tables.create import create_table

        return create_table(self.context, given_documents(given, configs, kafka, overrides))

    def apply_table(
        self,
        given: TableDocuments | GivenDocument,
        *configs: GivenDocument,
        kafka: str | None = None,
        overrides: Sequence[str] = (),
        dry_run: bool = False,
    ) -> Creation:
        """Creates a table, or changes the existing one to match the documents; the result lists the differences.

        The documents are given as to `create_table`.

        SpecError for a change that would lose rows or values, or change their meaning. Nothing is changed then, or with
        `dry_run`.
        """
        from hybrid.operations.tables.apply import apply_table

        return apply_table(self.context, given_documents(given, configs, kafka, overrides), dry_run=dry_run)

    def add_table(self, given: TableDocuments, *, update: bool = False) -> Creation:
        """Creates a table or adds a half, as Pinot does; ConflictError for an existing half, unless `update`."""
        from hybrid.operations.tables.apply import add_table

        return add_table(self.context, given, update=update)

    def drop_table(self, name: str, *, purge: bool = False) -> str:
        """Drops a table; its data is kept for `undrop_table` unless `purge` is set. Returns a sentence.

        `purge` also removes copies dropped earlier under this name. `NAME@TIME` names one of these copies alone.
        """
        from hybrid.operations.tables.drop import drop_table

        return drop_table(self.context, name, purge=purge)

    def undrop_table(self, name: str) -> str:
        """Restores the table of this name that was dropped last, or the older copy `NAME@TIME`. Returns a sentence.

        NotFoundError, with a suggestion, for an unknown name; ConflictError when there is a table of this name now.
        """
        from hybrid.operations.tables.drop import undrop_table

        return undrop_table(self.context, name)

    def dropped_tables(self) -> list[DroppedTable]:
        """The dropped tables that are kept, by name and time; `undrop_table` restores one by its name."""
        from hybrid.operations.tables.drop import dropped_tables

        return dropped_tables(self.context)

    # Queries

    def query(
        self,
        sql: str,
        params: Parameters | None = None,
        *,
        options: QueryOptions | None = None,
        as_of: AsOfText | None = None,
        all_rows: bool = False,
    ) -> QueryResult:
        """Answers a statement from one revision, including rows in Kafka that are not committed yet.

        `params` are the values of its parameters: `{"x": 1}` for `:x` or `$x`, a list for question marks.
        `as_of` is the revision of another answer or a time, instead of now; see `hybrid.query.time_travel`. A statement
        without LIMIT gives 10 rows, as in Pinot, with a `ResultLimitWarning` when there are more; `all_rows` gives all.
        With `options`, which are those of a server, there is no Python warning.
        """
        if options is not None:
            return self._queries.query(sql, options if params is None else replace(options, params=params), as_of=as_of)
        result = self._answer(sql, params, as_of, all_rows)
        warn_if_cut(result.warnings, stacklevel=2)
        return result

    async def aquery(
        self, sql: str, params: Parameters | None = None, *, as_of: AsOfText | None = None, all_rows: bool = False
    ) -> QueryResult:
        """Answers a statement as `query` does, in a thread; cancelling the task interrupts the statement."""
        from hybrid.api.background_query import run_in_background

        result = await run_in_background(
            lambda cancellation: self._answer(sql, params, as_of, all_rows, cancellation.began)
        )
        warn_if_cut(result.warnings, stacklevel=2)
        return result

    def _answer(
        self,
        sql: str,
        params: Parameters | None,
        as_of: AsOfText | None,
        all_rows: bool,
        began: Callable[[Interrupt], None] = lambda _: None,
    ) -> QueryResult:
        """The answer to a statement; `began` receives the function that interrupts it."""
        from hybrid.query.engine import QueryOptions

        with self.context.query_log.recorded(sql, self.context.client) as record:
            options = QueryOptions(whole=all_rows, running=began, params=params, spark=self.context.context_with_spark)
            result = self._queries.query(sql, options, as_of=as_of)
            record_answer(record, result)
        return result

    def export(
        self,
        sql: str,
        path: str | Path,
        params: Parameters | None = None,
        *,
        format: str | None = None,
        as_of: AsOfText | None = None,
        force: bool = False,
    ) -> ExportReport:
        """Writes a statement's rows to a file as they come, in bounded memory and without Pinot's default LIMIT.

        `format` is csv, json, jsonl, markdown, parquet or arrow; None: by the suffix of `path`. ConflictError when the
        file exists, unless `force` is set. After an error there is no file. `params` are as in `query`.
        """
        from hybrid.operations.exports import export_to_file

        return export_to_file(self.context, sql, path, fmt=format, as_of=as_of, force=force, params=params)

    def queries(
        self,
        *,
        slow: bool = False,
        since: str | None = None,
        account: str | None = None,
        table: str | None = None,
        limit: int = 100,
    ) -> list[LoggedQuery]:
        """Statements that run in this process or are in the query log, newest first.

        `since` is a time or a time ago (`2h`). `slow` leaves those that took `slow_query_ms` or longer.
        """
        from hybrid.operations.query_list import QueryFilter, list_queries

        return list_queries(self.context, QueryFilter(slow, since, account, table, limit))

    def query_at_once(self, sql: str, options: QueryOptions) -> QueryResult | None:
        """Answers a statement from the cache if that needs no waiting; None: use `query`."""
        return self._queries.query_at_once(sql, options)

    def serve_from_memory(self, bytes_max: int) -> None:
        """Keeps the tables in a cache of at most `bytes_max` bytes from now on, for a server's process.

        `query` then answers in milliseconds.
        """
        self._queries.serve_from_memory(bytes_max)

    def cached_sizes(self) -> Sequence[tuple[str, int, int]]:
        """The sizes of the cache: bytes in memory and on disk, by kind. Empty without `serve_from_memory`."""
        return self._queries.cached_sizes()

    def cached_streams(self) -> Mapping[str, StreamStatus]:
        """How the streams of the cached tables are read, by table. Empty without `serve_from_memory`."""
        return self._queries.cached_streams()

    def explain(
        self,
        sql: str,
        params: Parameters | None = None,
        *,
        as_of: AsOfText | None = None,
        options: QueryOptions | None = None,
    ) -> Explanation:
        """How a statement would be answered: revision, boundary, segments read and pruned, SQL per half."""
        return self._queries.explain(sql, as_of=as_of, options=options, params=params)

    # Work

    def run_job(
        self,
        path: str | Path,
        variables: Mapping[str, str],
        *,
        input_dir: str | None = None,
        covers: str | None = None,
        sql: str | None = None,
        **options: Any,
    ) -> JobReport:
        """Runs an ingestion job spec on the table it names; `options` are those of `Table.replace`.

        `input_dir` replaces the spec's inputDirURI. `covers` (FROM/TO, `day` or `all`) is the time that the job is
        responsible for: other segments in it are removed. With `sql`, the rows of that statement are the input.
        UsageError when both `input_dir` and `sql` are given.
        """
        from hybrid.config.job_spec import load_job_spec
        from hybrid.operations.job_input import GivenToJob, run_given
        from hybrid.replace.job_options import JobOptions

        arguments = GivenToJob(covers, sql)
        job = load_job_spec(Path(path), dict(variables), arguments.input_dir(input_dir), self.context.now_ms())
        return run_given(self.context, job, arguments, JobOptions(**options))

    def load_flows(self, path: Path, variables: Mapping[str, str]) -> FlowSession:
        """Reads what the flow file at `path` (.py or .sql) declares. Nothing runs, and no JVM is started."""
        from hybrid.operations.flows import load_flows

        return load_flows(self.context, path, variables)

    def run_flows(self, session: FlowSession, refresh: Sequence[Flow] = ()) -> list[FlowReport]:
        """Runs every flow of a loaded file, in parallel; flows in `refresh` load everything again.

        Returns a report for each flow, in the order of the file. A flow that fails stops no other.
        """
        from hybrid.operations.flows import run_flows

        return run_flows(self.context, session, refresh)

    def flows(self) -> list[FlowStatus]:
        """Every flow that has run in this home, by target and name. Needs no JVM."""
        from hybrid.operations.flows import flows_of

        return flows_of(self.context)

    @property
    def backfills(self) -> Backfills:
        """The backfills of all tables: plan, show, run, pause, cancel, revert."""
        from hybrid.operations.backfills import Backfills

        return Backfills(self.context)

    @property
    def backups(self) -> Backups:
        """The backups of this home: create, list, verify, restore, delete."""
        from hybrid.operations.backups.backups import Backups

        return Backups(self.context)

    @property
    def erasures(self) -> Erasures:
        """The erasures of this home: begin, look, run, show, all, discard, give_back."""
        from hybrid.operations.erasures import Erasures

        return Erasures(self.context)

    def erase(self, conditions: Mapping[str, str], **options: Any) -> ErasureCertificate:
        """Removes the rows that match, by table, from every place of this home, and returns the certificate.

        `options` are those of `ErasureOptions`: reason, user, undecided, dropped_copies. It cannot be taken back. An
        open erasure of the same conditions goes on. ConflictError while it cannot be completed; it stays open then.
        """
        from hybrid.operations.erasure import ErasureOptions

        given = ErasureOptions(**options)
        return self.erasures.run(self.erasures.begin(conditions, given).id, given)

    def runs(self, table: str | None = None, limit: int = 100) -> list[RunRecord]:
        """The newest runs of tasks and jobs, of one table or of all, newest first; `limit` is 1 to 1000."""
        return self.context.runs(table, limit)

    def run(self, run_id: str) -> RunRecord:
        """One run; NotFoundError, with a suggestion, for an unknown id."""
        return self.context.run(run_id)

    def schedules(self, table: str | None = None) -> list[Schedule]:
        """The scheduled tasks of a table, or of all."""
        from hybrid.operations.schedules import schedules_of

        names = [table] if table is not None else self.table_names()
        return [schedule for name in names for schedule in schedules_of(self.context, self.spec(name))]

    def status(self) -> list[TableStatus]:
        """The status of every table, by name."""
        from hybrid.operations.tables.status import status_of_all
        from hybrid.operations.tables.visible_rows import VisibleRows

        return status_of_all(self.context, VisibleRows(self.context, self._queries))
