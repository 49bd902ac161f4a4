"""`hybrid status`: the state of every table."""

from __future__ import annotations

import time
from typing import Any

import click

from hybrid.cli.cells import View
from hybrid.cli.command import FINDINGS, Cli, HybridCommand, pass_cli
from hybrid.cli.dispatch import ask, server_url, shown_server
from hybrid.errors import UsageError

_SHOWN = View(
    (
        *("table", "state", "visible_rows", "offline_rows", "realtime_rows", "boundary", "behind", "rejected"),
        "last_task",
    ),
    drop=("boundary", "realtime_rows", "offline_rows"),
    more=(
        *("bytes", "stored_twice_rows", "stored_twice_bytes"),
        *("offline_segments", "realtime_segments", "consuming_segments"),
    ),
    notes=("hint",),
)
_EVERY_S = 2.0


@click.command(cls=HybridCommand)
@click.option(
    "--watch",
    is_flag=False,
    flag_value=_EVERY_S,
    type=click.FloatRange(min=0.5),
    metavar="[SECONDS]",
    help="On a terminal: show it again every 2 (or so many) seconds, until Ctrl-C.",
)
@pass_cli
def status(cli: Cli, watch: float | None) -> int:
    """Show every table: rows, boundary, lag behind Kafka, errors (exit code 3 then)."""
    if watch is None:
        return _show(cli, ask(cli, "status"))
    if not cli.is_terminal:
        raise UsageError("--watch shows a page on a terminal.", hint="hybrid status --json, as often as it is needed")
    code = 0
    try:
        while True:
            report = ask(cli, "status")
            click.clear()
            code = _show(cli, report)
            time.sleep(watch)
    except KeyboardInterrupt:
        return code


def _show(cli: Cli, report: dict[str, Any]) -> int:
    """Print the report, and return the exit code."""
    cli.say(f"home: {report['home']}")
    server = _server_words(cli)
    if server is not None:
        cli.say(f"server: {server}")
    disk = report.get("disk")
    if disk is not None:
        cli.say(f"disk: {_disk_words(disk)}")
    if report.get("remote"):
        cli.say(f"on other servers: {', '.join(report['remote'])}")
    if not report["tables"] and not cli.is_machine_read:
        cli.say("No tables yet. Try: hybrid demo orders, or hybrid table create --help")
        return 0
    cli.emit(report["tables"], _SHOWN)
    for row in report["tables"]:
        if row.get("visible_rows_reason"):
            cli.say(f"visible_rows of '{row['table']}' is not known: {row['visible_rows_reason']}.")
        if row["override"] is not None:
            words = f"The boundary of '{row['table']}' is set by hand to {row['override']}."
            cli.say(f"{words} `hybrid boundary clear {row['table']}` takes it back.")
    return 0 if report["healthy"] else FINDINGS


def _disk_words(disk: dict[str, int]) -> str:
    """What the home takes on disk beside its tables, and what is left."""
    from hybrid.runtime.byte_sizes import size_text

    size = {name: size_text(count) for name, count in disk.items()}
    return (
        f"{size['logs']} of logs, {size['kafka']} of the local broker, {size['dropped_copies']} of dropped tables; "
        f"{size['free']} are free"
    )


def _server_words(cli: Cli) -> str | None:
    """The server that answered, and its process where it runs on this home; None without a server."""
    from hybrid.rpc.client import plain_address, server_record

    url, record = server_url(cli), server_record(cli.home)
    if record is not None and url is not None and plain_address(url) == plain_address(record.url):
        return f"{url} (process {record.process.pid})"
    return None if url is None else shown_server(url)
