"""Entry point of `hybrid`: runs a command and turns exceptions into a message, a hint and an exit code.

Imports are lazy to keep start-up fast: a noun's module is imported only when that noun is used.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from hybrid.cli.command import Cli, HybridGroup, Noun
from hybrid.cli.output import emit
from hybrid.errors import HybridError
from hybrid.jvm.spark_errors import is_spark_error, unexpected_words
from hybrid.logs import logging_to, written_log

NOUNS = {
    "setup": Noun("hybrid.cli.setup:setup", "Check Java and fetch the jars of Spark and Kafka."),
    "demo": Noun("hybrid.cli.demo:demo", "Play a recipe end to end."),
    "doctor": Noun("hybrid.cli.doctor:doctor", "Check a home or a table, and repair it."),
    "status": Noun("hybrid.cli.status:status", "Show the state of every table."),
    "config": Noun("hybrid.cli.config:config", "Show the settings and their sources."),
    "kafka": Noun("hybrid.cli.kafka:kafka", "Manage the local Kafka broker and topics."),
    "serve": Noun("hybrid.cli.serve:serve", "Ingest tables, run scheduled tasks, serve HTTP."),
    "table": Noun("hybrid.cli.table:table", "Create, change, inspect and drop tables."),
    "ingest": Noun("hybrid.cli.ingest:ingest", "Ingest from Kafka into realtime segments."),
    "move": Noun("hybrid.cli.move:move", "Move closed buckets from REALTIME to OFFLINE."),
    "task": Noun("hybrid.cli.task:task", "Run tasks, and list runs and schedules."),
    "query": Noun("hybrid.cli.query:query", "Run a query in Pinot's SQL."),
    "segment": Noun("hybrid.cli.segment:segment", "List, inspect and seal segments."),
    "boundary": Noun("hybrid.cli.boundary:boundary", "Show, set and clear the time boundary."),
    "job": Noun("hybrid.cli.job:job", "Run an ingestion job spec."),
    "purge": Noun("hybrid.cli.purge:purge", "Remove deleted rows permanently, with proof."),
    "replacement": Noun("hybrid.cli.replacement:replacement", "List and revert segment replacements."),
    "backfill": Noun("hybrid.cli.backfill:backfill", "Correct a time range: plan, inspect, run, revert."),
    "backup": Noun("hybrid.cli.backup:backup", "Back up a home and restore it."),
    "access": Noun("hybrid.cli.access:access", "Manage server accounts."),
    "admin": Noun("hybrid.cli.admin:admin", "Run Pinot's admin commands."),
    "connector": Noun("hybrid.cli.connector:connector", "List, start, pause and reset connectors."),
    "flow": Noun("hybrid.cli.flow:flow", "Load files, once or incrementally."),
    "rejected": Noun("hybrid.cli.rejected:rejected", "List and replay rejected messages."),
    "logs": Noun("hybrid.cli.logs:logs", "Show logs."),
}
INTERRUPTED = 130
_TOKEN = "--token"
_JSON = ("json", "jsonl")


@click.group(cls=HybridGroup, nouns=NOUNS, context_settings={"help_option_names": ["-h", "--help"]})
def hybrid() -> None:
    """One table, two halves: fresh rows from Kafka, cheap and correctable history, one answer."""


def main() -> None:
    """Run the console script."""
    os.umask(0o077)  # definitions, logs and the catalog hold passwords: only their user may read them
    logging.lastResort = None  # no library log on stderr while the process ends
    sys.exit(run(sys.argv[1:]))


def run(args: Sequence[str]) -> int:
    """Run one command line and return its exit code. Exceptions become messages on stderr."""
    cli = Cli()
    # A callable, because the home is known only after the arguments are parsed, and needed only for a log record.
    with logging_to(lambda: cli.settings.logs, "cli"):
        return _run(cli, args)


def _run(cli: Cli, args: Sequence[str]) -> int:
    try:
        result = hybrid.main(list(args), prog_name="hybrid", obj=cli, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except HybridError as error:
        if _was_interrupted(error):
            return _interrupted(cli)
        _complain(cli, args, str(error), error.hint, error.code)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        cli.say(error.format_message())
        return 2
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "hybrid"
        _complain(cli, args, error.format_message(), f"{path} --help", "usage")
        return 2
    except click.ClickException as error:
        _complain(cli, args, error.format_message(), None, "usage")
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _interrupted(cli)
    except BrokenPipeError:
        # The reader of the pipe has closed it (`| head`); Python must not flush stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # last resort: log the traceback and report the error
        return _interrupted(cli) if _was_interrupted(error) else _unexpected(cli, args, error)


def _interrupted(cli: Cli) -> int:
    cli.say("interrupted")
    return INTERRUPTED


def _was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C caused an error: clean-up after a cancelled Spark job can fail."""
    cause = error.__cause__ or error.__context__
    return isinstance(error, KeyboardInterrupt) or (cause is not None and _was_interrupted(cause))


def _unexpected(cli: Cli, args: Sequence[str], error: Exception) -> int:
    """Report an error that is no HybridError: a fault of the machine, or a bug."""
    from hybrid.runtime.disk import machine_error

    log = _log_traceback(cli)
    try:
        home = cli.home
    except HybridError:  # the settings cannot be read either
        home = Path.cwd()
    machine_failure = machine_error(error, home)
    if machine_failure is not None:
        _complain(cli, args, str(machine_failure), machine_failure.hint, machine_failure.code)
    elif isinstance(error, OSError):  # for example a folder of another user: a fault of the machine, not a bug
        _complain(cli, args, str(error), f"the traceback is in {log}", "machine")
    else:
        what = "the traceback is in" if is_spark_error(error) else "this is a bug; the traceback is in"
        _complain(cli, args, unexpected_words(error), f"{what} {log}", "error")
    return 1


def _complain(cli: Cli, args: Sequence[str], message: str, hint: str | None, code: str) -> None:
    """Report an error on stderr; with a JSON format also as an object on stdout."""
    if cli.verbose:
        cli.say(traceback.format_exc().rstrip())
    cli.say(f"error: {message}")
    if hint:
        cli.say(f"hint: {hint}")
    if cli.format in _JSON or "--json" in args:  # --json is unparsed when an argument before it was invalid
        emit({"code": code, "message": message, "hint": hint}, fmt=cli.format if cli.format in _JSON else "json")


def _log_traceback(cli: Cli) -> Path | str:
    logging.getLogger("hybrid").exception("Unexpected error; arguments: %s", _without_secret(sys.argv[1:]))
    log = written_log()
    if log is not None:
        return log
    try:
        return f"no log, because {cli.settings.logs} cannot be written (run again with -v)"
    except HybridError:
        return "no log, because the settings cannot be read (run again with -v)"


def _without_secret(args: Sequence[str]) -> list[str]:
    """The arguments of a command line with the token masked, for a log."""
    shown = [f"{_TOKEN}=..." if arg.startswith(f"{_TOKEN}=") else arg for arg in args]
    return ["..." if before == _TOKEN else arg for before, arg in zip(["", *shown], shown, strict=False)]
