"""Exports: the rows of a statement in a file or on a stream, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.files.results.output_file import OutputStream, open_output
from hybrid.files.results.result_format import ResultFormat, format_of_file
from hybrid.files.results.result_sink import ExportReport, ResultSink, abandoned_on_error
from hybrid.operations.queries import AsOfText, Queries, record_answer
from hybrid.progress import Progress

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.sql.parameters import Parameters

# DuckDB's memory; what needs more, such as ORDER BY over many rows, is spilled to disk.
EXPORT_MEMORY_BYTES = 256 * 1024 * 1024


def export_to_file(
    home: Home,
    sql: str,
    path: str | Path,
    *,
    fmt: str | None = None,
    as_of: AsOfText | None = None,
    force: bool = False,
    params: Parameters | None = None,
) -> ExportReport:
    """Writes the rows of a statement to a file, which is complete or absent. Pinot's default LIMIT does not apply.

    The format is `fmt`, else that of the file's suffix. ConflictError when the file exists, unless `force` is set.
    """
    chosen = format_of_file(str(path), fmt)
    output = open_output(Path(path), force=force)
    return export_to(home, sql, output, chosen, as_of=as_of, progress=home.progress, params=params)


def export_to(
    home: Home,
    sql: str,
    output: OutputStream,
    fmt: ResultFormat,
    *,
    as_of: AsOfText | None = None,
    progress: Progress,
    running: Callable[[Callable[[], None]], None] = lambda interrupt: None,
    params: Parameters | None = None,
) -> ExportReport:
    """Writes the rows of a statement to an output, as `export_to_file` does.

    `running` receives the function that interrupts the statement.
    """
    from hybrid.query.engine import QueryOptions

    with (
        home.query_log.recorded(sql, home.client) as record,
        abandoned_on_error(ResultSink(output, fmt, progress)) as sink,
    ):
        options = QueryOptions(
            whole=True,
            memory_bytes=EXPORT_MEMORY_BYTES,
            spill=home.settings.spill,
            sink=sink,
            running=running,
            params=params,
            spark=home.context_with_spark,
        )
        result = Queries(home).query(sql, options, as_of=as_of)
        report = sink.complete()
        record_answer(record, result, report.rows)
        return report
