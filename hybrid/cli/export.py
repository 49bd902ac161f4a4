"""`hybrid query -o`: write the rows of a statement to a file or to standard output."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from hybrid.cli.cancellation import cancellable
from hybrid.cli.command import Cli
from hybrid.cli.dispatch import client_of, dispatcher, require_right, statement_arguments
from hybrid.cli.signals import signals_handled
from hybrid.errors import UsageError
from hybrid.files.results.output_file import OutputStream, open_output
from hybrid.files.results.result_format import ResultFormat, format_named, format_of_file
from hybrid.progress import Progress, Silent

if TYPE_CHECKING:
    from hybrid.files.results.result_sink import ExportReport

STDOUT = "-"


def export(
    cli: Cli,
    sql: str,
    path: str,
    *,
    as_of: str | None,
    force: bool,
    by_suffix: bool = False,
    params: Mapping[str, Any] | None = None,
) -> ExportReport:
    """Write all rows of a statement to a file, and say on stderr what was written. A failed run leaves no file.

    Returns the report.

    `by_suffix`: the file's suffix decides on its format, whatever --format says.
    """
    fmt = format_of_file(path) if by_suffix else _format(cli, path)
    with signals_handled(_interrupt, signal.SIGTERM, signal.SIGHUP):
        output = _stdout() if path == STDOUT else open_output(Path(path), force=force)
        report = _exported(cli, statement_arguments(sql, as_of, params), output, fmt)
    for warning in report.warnings:
        cli.say(f"warning: {warning}")
    cli.say(report.sentence)
    return report


def _exported(cli: Cli, statement: dict[str, Any], output: OutputStream, fmt: ResultFormat) -> ExportReport:
    progress: Progress = cli.progress if sys.stderr.isatty() else Silent()
    try:
        client = client_of(cli)
        if client is not None:
            from hybrid.rpc.exports import export_from

            return export_from(client, statement, output, fmt, progress)
        require_right(cli, "read", "'query'")
        from hybrid.operations.exports import export_to

        with dispatcher(cli) as home:
            return cancellable(
                lambda started: export_to(
                    home.context,
                    statement.pop("sql"),
                    output,
                    fmt,
                    progress=progress,
                    running=started,
                    **statement,
                )
            )
    except BaseException:
        output.discard()  # an error before the first row
        raise


def _format(cli: Cli, path: str) -> ResultFormat:
    """The format: --format, else the suffix of the file. UsageError for a table, and for bytes on a terminal."""
    name = cli.given.get("format")
    if name == "table":
        raise UsageError("A table is for a terminal.", hint=f"hybrid query -o FILE --format {'|'.join(ResultFormat)}")
    if path != STDOUT:
        return format_of_file(path, name)
    if name is None:
        raise UsageError("-o - needs a format.", hint=f"hybrid query -o FILE --format {'|'.join(ResultFormat)}")
    fmt = format_named(name)
    if fmt.is_binary and sys.stdout.isatty():
        raise UsageError(f"{fmt} is not for a terminal.", hint=f"-o FILE.{fmt}, or send it to a program: ... | program")
    return fmt


def _stdout() -> OutputStream:
    return OutputStream(sys.stdout.buffer, "standard output")


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Let a request to end (SIGTERM, SIGHUP) clean up as Ctrl-C does."""
    raise KeyboardInterrupt
