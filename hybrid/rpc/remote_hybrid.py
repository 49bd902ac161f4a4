"""`RemoteHybrid`: a server's home, with the methods, results and errors of `hybrid.api.hybrid.Hybrid`.

The server runs each method by its verb. Heavy work is queued there; the method waits for its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.api.hybrid import Hybrid
from hybrid.errors import NotFoundError
from hybrid.files.results.output_file import open_output
from hybrid.files.results.result_format import format_of_file
from hybrid.operations.flows import FlowStatus
from hybrid.operations.query_list import LoggedQuery
from hybrid.operations.tables.creation import Creation
from hybrid.operations.tables.drop import DroppedTable
from hybrid.operations.tables.given_documents import GivenDocument, given_documents
from hybrid.operations.tables.status import TableStatus
from hybrid.progress import Progress
from hybrid.query.result_warning import warn_if_cut
from hybrid.rpc import remote_values as values
from hybrid.rpc.client import Began, Client
from hybrid.rpc.exports import export_from
from hybrid.rpc.local_only import LocalOnly, RemoteObject, refuse_remote
from hybrid.rpc.remote_operations import RemoteBackfills, RemoteBackups
from hybrid.rpc.remote_table import RemoteTable

if TYPE_CHECKING:
    from hybrid.catalog.run_record import RunRecord
    from hybrid.config.table_documents import TableDocuments
    from hybrid.files.results.result_sink import ExportReport
    from hybrid.operations.inference.inferred_table import InferredTable
    from hybrid.operations.queries import AsOfText
    from hybrid.operations.schedules import Schedule
    from hybrid.query.engine import QueryOptions, QueryResult
    from hybrid.query.explain import Explanation
    from hybrid.replace.report import JobReport
    from hybrid.sql.parameters import Parameters
    from hybrid.table.effective import EffectiveBoundary

_FLOWS = "hybrid flow run FILE on the server's machine."


class RemoteHybrid(RemoteObject, Hybrid):
    """A server's home: its tables, queries, jobs and runs."""

    def __init__(self, url: str, token: str | None, progress: Progress) -> None:
        self._client, self._progress = Client(url, progress, token), progress

    settings: Any = LocalOnly("hybrid config show on the server's machine.")
    home: Any = LocalOnly("The home is on the server's machine.")
    spec: Any = LocalOnly("GET /tables/TABLE and GET /schemas/TABLE give its documents.")
    validate: Any = LocalOnly("hy.apply_table(..., dry_run=True) checks documents and changes nothing.")
    load_flows: Any = LocalOnly(_FLOWS)
    run_flows: Any = LocalOnly(_FLOWS)

    erasures: Any = LocalOnly("hybrid erase, with --server.")
    erase: Any = LocalOnly("hybrid erase, with --server.")

    def __repr__(self) -> str:
        return f"<Hybrid {self._client.url}>"

    def close(self) -> None:
        """Nothing stays open between calls."""

    # Tables

    def table_names(self) -> list[str]:
        """The names of all tables, sorted."""
        return [table["name"] for table in self._client.call("table_list", {})]

    def table(self, name: str) -> RemoteTable:
        """A table by its name; NotFoundError, with a suggestion, for an unknown name."""
        return RemoteTable(self._client, name)

    def infer_table(self, source: str | Path, **options: Any) -> InferredTable:
        """The documents of a table that fit a topic, which the server reads, or a file of this machine."""
        from hybrid.operations.inference.infer import infer_file, is_file
        from hybrid.operations.inference.infer_options import InferOptions
        from hybrid.operations.inference.inferred_table import InferredTable

        given = InferOptions(**options)
        if isinstance(source, Path) or is_file(source):
            return infer_file(Path(source), given)
        arguments = values.plain_arguments(given, InferOptions)
        return InferredTable.from_json(self._client.call("table_infer", {"source": source, **arguments}))

    def create_table(
        self,
        given: TableDocuments | GivenDocument,
        *configs: GivenDocument,
        kafka: str | None = None,
        overrides: Sequence[str] = (),
    ) -> Creation:
        """Creates a table, as `Hybrid.create_table` does. Files are read on this machine."""
        documents = given_documents(given, configs, kafka, overrides).to_json()
        return values.value_of(Creation, self._client.call("table_create", {"documents": documents}))

    def apply_table(
        self,
        given: TableDocuments | GivenDocument,
        *configs: GivenDocument,
        kafka: str | None = None,
        overrides: Sequence[str] = (),
        dry_run: bool = False,
    ) -> Creation:
        """Creates a table, or changes the existing one to match the documents."""
        documents = given_documents(given, configs, kafka, overrides).to_json()
        made = self._client.call("table_apply", {"documents": documents, "dry_run": dry_run})
        return values.value_of(Creation, made)

    def add_table(self, given: TableDocuments, *, update: bool = False) -> Creation:
        """Creates a table or adds a half, as Pinot does."""
        made = self._client.call("table_add", {"documents": given.to_json(), "update": update})
        return values.value_of(Creation, made)

    def drop_table(self, name: str, *, purge: bool = False) -> str:
        """Drops a table; returns a sentence."""
        return str(self._client.call("table_drop", {"table": name, "purge": purge})["sentence"])

    def undrop_table(self, name: str) -> str:
        """Restores a dropped table; returns a sentence."""
        return str(self._client.call("table_undrop", {"table": name})["sentence"])

    def dropped_tables(self) -> list[DroppedTable]:
        """The dropped tables that the server keeps, by name and time."""
        return [values.value_of(DroppedTable, found) for found in self._client.call("table_dropped", {})]

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
        """Answers a statement, as `Hybrid.query` does."""
        if options is not None:
            refuse_remote("`options`", "SET statements before the SELECT, such as SET timeoutMs = 1000;")
        result = self._answer(sql, params, as_of, all_rows)
        warn_if_cut(result.warnings, stacklevel=2)
        return result

    def _answer(
        self,
        sql: str,
        params: Parameters | None,
        as_of: AsOfText | None,
        all_rows: bool,
        began: Began | None = None,
    ) -> QueryResult:
        arguments = {**_statement(sql, params, as_of), **({"all_rows": True} if all_rows else {})}
        return values.query_result(self._client.call("query", arguments, began))

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
        """Writes a statement's rows to a file of this machine as they come."""
        chosen, statement = format_of_file(str(path), format), _statement(sql, params, as_of)
        output = open_output(Path(path), force=force)  # last: what fails before leaves no file
        return export_from(self._client, statement, output, chosen, self._progress)

    def queries(
        self,
        *,
        slow: bool = False,
        since: str | None = None,
        account: str | None = None,
        table: str | None = None,
        limit: int = 100,
    ) -> list[LoggedQuery]:
        """Statements that run on the server or are in its query log, newest first."""
        arguments = {"slow": slow, "since": since, "account": account, "table": table, "limit": limit}
        return [values.value_of(LoggedQuery, found) for found in self._client.call("queries", arguments)]

    def explain(
        self,
        sql: str,
        params: Parameters | None = None,
        *,
        as_of: AsOfText | None = None,
        options: QueryOptions | None = None,
    ) -> Explanation:
        """How a statement would be answered."""
        if options is not None:
            refuse_remote("`options`", "SET statements before the SELECT.")
        return values.explanation(self._client.call("explain", _statement(sql, params, as_of))["plan"])

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
        """Runs an ingestion job spec. The spec is read on this machine, its input on the server's."""
        from hybrid.config.job_document import read_job_file
        from hybrid.replace.job_options import JobOptions

        path = Path(path)
        arguments = {
            "spec": read_job_file(path),
            "source": str(path),
            "folder": str(path.absolute().parent),
            "variables": dict(variables),
            "input_dir": input_dir,
            "covers": covers,
            "sql": sql,
            **values.plain_arguments(JobOptions(**options), JobOptions),
        }
        return values.job_report(self._client.call("job_run", arguments))

    def flows(self) -> list[FlowStatus]:
        """Every flow that has run in the server's home, by target and name."""
        return [values.value_of(FlowStatus, found) for found in self._client.call("flows", {})]

    @property
    def backfills(self) -> RemoteBackfills:
        """The backfills of all tables: plan, show, run, pause, cancel, revert."""
        return RemoteBackfills(self._client)

    @property
    def backups(self) -> RemoteBackups:
        """The backups of the server's home: create, list, verify, delete."""
        return RemoteBackups(self._client)

    def runs(self, table: str | None = None, limit: int = 100) -> list[RunRecord]:
        """The newest runs of tasks and jobs, of one table or of all, newest first; `limit` is 1 to 1000."""
        return [values.run_record(found) for found in self._client.call("runs", {"table": table, "limit": limit})]

    def run(self, run_id: str) -> RunRecord:
        """One run; NotFoundError, with a suggestion, for an unknown id."""
        if not run_id.replace("-", "").isalnum():  # it is part of a path; no run has such an id
            self._client.call("run", {"run": run_id})
        return values.run_record(self._client.run(run_id))

    def schedules(self, table: str | None = None) -> list[Schedule]:
        """The scheduled tasks of a table, or of all."""
        return [values.schedule(found) for found in self._client.call("schedules", {"table": table})]

    def status(self) -> list[TableStatus]:
        """The status of every table, by name."""
        return [self._status(found) for found in self._client.call("status", {})["tables"]]

    def _status(self, document: values.Document) -> TableStatus:
        boundary: EffectiveBoundary | None = None
        override_ms = None
        try:
            found = self._client.call("boundary", {"table": document["table"]})
            boundary, override_ms = values.effective(found), found["override_ms"]
        except NotFoundError:  # the table has one half, or was dropped meanwhile
            pass
        return values.value_of(TableStatus, document, boundary=boundary, override_ms=override_ms)


def _statement(sql: str, params: Parameters | None, as_of: AsOfText | None) -> dict[str, Any]:
    """A statement as the arguments of a verb."""
    from hybrid.sql.parameter_values import json_parameters

    return {"sql": sql, "as_of": _text(as_of), **({} if params is None else {"params": json_parameters(params)})}


def _text(as_of: AsOfText | None) -> str | None:
    return None if as_of is None else str(as_of)
