"""The input of a job: the rows of a statement, or files fetched from an object store.

A statement is answered as by `hybrid query`, but without Pinot's default LIMIT. Its rows are staged as a Parquet file
while the job runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from hybrid.config.job_spec import AnsweredStatement, JobSpec
from hybrid.config.table_config import Half
from hybrid.errors import DataError, HybridError, UsageError
from hybrid.expression.path_patterns import is_hidden
from hybrid.lake.commit_context import new_act_id
from hybrid.operations.job_rows import ParquetSpool
from hybrid.operations.queries import Queries
from hybrid.operations.replacement_jobs import run_replacement_job

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.query.tail import TailSource
    from hybrid.replace.job_options import JobOptions
    from hybrid.replace.report import JobReport


@dataclass(frozen=True)
class GivenToJob:
    """Arguments of a job beside its spec: `covers` as in `JobSpec`, `sql` a statement. None: what the spec says."""

    covers: str | None = None
    sql: str | None = None

    def input_dir(self, given: str | None) -> str | None:
        """The replacement for inputDirURI; with a statement any folder does. UsageError when both are given."""
        if self.sql is None:
            return given
        if given is not None:
            raise UsageError("--sql and --input both say what the job reads. Give one of them.")
        return "."


def run_given(home: Home, job: JobSpec, given: GivenToJob, options: JobOptions) -> JobReport:
    """Runs a job on the table that it names."""
    if given.covers is not None:
        job = replace(job, covers=given.covers)
    table = home.table(job.table_name)
    with _answered(home, job, given.sql) if given.sql is not None else _fetched(home, job) as ready:
        return run_replacement_job(home, table, ready, options)


@contextmanager
def _answered(home: Home, job: JobSpec, sql: str) -> Iterator[JobSpec]:
    """The job with the rows of a statement as its input."""
    if job.segment_name_type == "inputFile":
        raise UsageError(f"{job.source}: 'inputFile' names segments by files, and --sql has none. Write another type.")
    with answered(home, home.spec(job.table_name).name, sql) as (path, statement):
        fields: dict[str, Any] = {"include": None, "exclude": None, "data_format": "parquet", "reader_configs": {}}
        yield replace(job, input_dir=path, statement=statement, **fields)


@contextmanager
def answered(
    home: Home, table: str, sql: str, tail: TailSource | None = None
) -> Iterator[tuple[Path, AnsweredStatement]]:
    """The rows of a statement in a Parquet file, staged beside the halves of `table`, and what they were read from.

    `tail` is the source of rows beyond the last commit (None: Kafka).
    """
    from hybrid.query.engine import QueryOptions
    from hybrid.query.options import AS_OF_OPTION
    from hybrid.sql.statement import parse_statement

    home.bench.progress.say("Answering the statement.")
    options = QueryOptions(whole=True)
    # With time travel later commits do not matter, because an old revision was requested; a later purge does.
    is_past = AS_OF_OPTION in parse_statement(sql).options
    target = home.table(table)
    if target.spec.folds:
        _refuse_folded(table, sql, home.table_names())
    seen_version = target.half(Half.OFFLINE).version if is_past and Half.OFFLINE in target.spec.halves else None
    if home.input_rules is not None:  # a server's process has other work to do
        settings = home.settings
        options = replace(
            options,
            timeout_ms=settings.job_sql_timeout_s * 1000,
            rows_max=settings.job_sql_rows_max,
            memory_bytes=settings.query_memory_bytes or None,
        )
    with home.bench.staging(home.layout(table), new_act_id("query")) as folder:
        folder.mkdir()
        path = folder / "query.parquet"
        spool = ParquetSpool(path)
        if home.input_rules is not None:
            # Spill beside the result: the server's spill folder is cleared whenever its query process starts.
            options = replace(options, spill=folder / "spill")
        options = replace(options, sink=spool)
        result = Queries(home).query(sql, options if tail is None else replace(options, tail=tail))
        spool.close()
        versions = [read.offline for read in result.revision.tables if read.table == table and not is_past]
        statement = AnsweredStatement(sql, str(result.revision), versions[0] if versions else None, seen_version)
        try:
            yield path, statement
        except DataError as error:
            if str(path) not in error.words:
                raise
            raise _of_answer(error, path) from error


@contextmanager
def _fetched(home: Home, job: JobSpec) -> Iterator[JobSpec]:
    """The job with the files of its object store fetched to this machine; unchanged where the files are local."""
    rules = home.input_rules
    if rules is not None:
        job.check_rules(rules)
    if job.store is None:
        yield replace(job, rules=rules)
        return
    from hybrid.files.objectstore import fetch

    home.bench.progress.say(f"Fetching files from {job.store.address}.")
    with home.bench.staging(home.layout(job.table_name), new_act_id("fetch")) as folder:
        folder.mkdir()
        base = fetch(job.store, partial(_is_wanted, job), folder)
        if base is None:
            pattern = job.include or "any file"
            raise DataError(f"{job.source}: no object at {job.store.address} matches '{pattern}'.")
        # Only matching objects were fetched, and the job's patterns are of the store's addresses.
        fields: dict[str, Any] = {"include": "glob:**", "exclude": None, "search_recursively": True, "store": None}
        yield replace(job, input_dir=folder, fetched_from=base, **fields)


def _is_wanted(job: JobSpec, below: str, address: str) -> bool:
    """Whether an object is input. Markers that writers leave beside their data count only when a pattern names them."""
    return job.matches(below, address) and bool(job.include or not is_hidden(PurePosixPath(below).name))


def _of_answer(error: DataError, path: Path) -> HybridError:
    """The error of rows that were staged at `path`, which the user has never seen."""

    def named(one: HybridError) -> DataError:
        return DataError(str(one).replace(str(path), "--sql: the answer"), hint="Correct the statement.")

    return named(error).carry(map(named, error.others))


def _refuse_folded(table: str, sql: str, names: list[str]) -> None:
    """UsageError for a statement that returns combined rows of a key: written back they would be combined twice."""
    from hybrid.sql.statement import parse_statement
    from hybrid.sql.tables import resolve_tables

    refs = resolve_tables(parse_statement(sql).tree, names)
    if any(ref.table == table and ref.half is not Half.OFFLINE for ref in refs):
        raise UsageError(
            f"--sql: FROM {table} gives one row for each key, folded of all its rows: put in their place it would be "
            "folded once more.",
            hint=f"FROM {table}_OFFLINE gives the rows as they are stored. To correct them in their place: hybrid "
            "backfill plan ... --update or --delete",
        )
