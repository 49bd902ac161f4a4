"""Entry point of `hybrid`: runs a command and turns exceptions into a message, a hint and an exit code.

Imports are lazy to keep start-up fast: a noun's module is imported only when that noun is used.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

import click

from hybrid.cli.command import Cli, HybridGroup, Noun
from hybrid.logs import logging_to
from hybrid.runtime.gc_tuning import collect_rarely

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
    "shell": Noun("hybrid.cli.shell.command:shell", "Open the interactive shell, or run several statements."),
    "segment": Noun("hybrid.cli.segment:segment", "List, inspect and seal segments."),
    "boundary": Noun("hybrid.cli.boundary:boundary", "Show, set and clear the time boundary."),
    "job": Noun("hybrid.cli.job:job", "Run an ingestion job spec."),
    "purge": Noun("hybrid.cli.purge:purge", "Remove deleted rows permanently, with proof."),
    "erase": Noun("hybrid.cli.erase:erase", "Erase rows from every place of tables, with a certificate."),
    "replacement": Noun("hybrid.cli.replacement:replacement", "List and revert segment replacements."),
    "backfill": Noun("hybrid.cli.backfill:backfill", "Correct a time range: plan, inspect, run, revert."),
    "backup": Noun("hybrid.cli.backup:backup", "Back up a home and restore it."),
    "warehouse": Noun("hybrid.cli.warehouse:warehouse", "Keep the tables on an object store."),
    "access": Noun("hybrid.cli.access:access", "Manage server accounts."),
    "admin": Noun("hybrid.cli.admin:admin", "Run Pinot's admin commands."),
    "connector": Noun("hybrid.cli.connector:connector", "List, start, pause and reset connectors."),
    "flow": Noun("hybrid.cli.flow:flow", "Load files, once or incrementally."),
    "rejected": Noun("hybrid.cli.rejected:rejected", "List and replay rejected messages."),
    "logs": Noun("hybrid.cli.logs:logs", "Show logs."),
    "completion": Noun(
        "hybrid.cli.completion:completion", "Print the script for bash, zsh or fish to complete commands."
    ),
}


@click.group(cls=HybridGroup, nouns=NOUNS, context_settings={"help_option_names": ["-h", "--help"]})
def hybrid() -> None:
    """One table, two halves: fresh rows from Kafka, cheap and correctable history, one answer."""


def main() -> None:
    """Run the console script."""
    collect_rarely()  # imports make many objects and no garbage: the collector took a fifth of their time
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
    except BrokenPipeError:
        # The reader of the pipe has closed it (`| head`); Python must not flush stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Exception, KeyboardInterrupt) as error:
        from hybrid.cli.error_report import report_error

        return report_error(cli, args, error)
