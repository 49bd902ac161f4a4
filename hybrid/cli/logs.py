"""`hybrid logs`: the log records of commands and server processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click

from hybrid.cli.cells import printable
from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.dispatch import refuse_server, require_home, require_right
from hybrid.cli.output import emit
from hybrid.errors import UsageError

_KEYS = ("ts", "level", "role", "logger", "message", "table", "request_id", "run_id", "error", "account")
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@click.command(cls=HybridCommand)
@click.option("--table", metavar="TABLE", help="Only what was done to this table.")
@click.option("-f", "--follow", is_flag=True, help="Print new records as they are written, until Ctrl-C.")
@click.option("--level", type=click.Choice(_LEVELS, case_sensitive=False), help="Only this level and above.")
@click.option("-n", "--lines", metavar="N", type=click.IntRange(1), default=100, help="So many records (default 100).")
@pass_cli
def logs(cli: Cli, table: str | None, follow: bool, level: str | None, lines: int) -> None:
    """Show the newest log records of this home, by time."""
    from hybrid.logs import read_logs

    refuse_server(cli, "hybrid logs", "Run it on the server's machine: hybrid logs --home DIR")
    require_right(cli, "read", "'logs'")
    require_home(cli)
    if follow and cli.format == "csv":
        raise UsageError(
            "--format csv ends with its last row, and -f does not end.", hint="hybrid logs -f --format jsonl"
        )
    records = read_logs(cli.settings.logs, table, follow, level=level, last=lines)
    if cli.is_machine_read and not follow:
        cli.emit([_row(record) for record in records], _KEYS)
        return
    with suppress(KeyboardInterrupt):  # Ctrl-C ends --follow
        _print(cli, records)


def _print(cli: Cli, records: Iterator[dict[str, Any]]) -> None:
    has_records = False
    for record in records:
        has_records = True
        if cli.is_machine_read:
            emit(_row(record), fmt="jsonl")  # a JSON array would never be closed
        else:
            click.echo(_text(record))
    if not has_records:
        cli.say(f"Nothing is logged in {cli.settings.logs} that was asked for.")


def _row(record: dict[str, Any]) -> dict[str, Any]:
    return {key: record.get(key) for key in _KEYS}


def _text(record: dict[str, Any]) -> str:
    """`time level role table message`, and a traceback below."""
    at = str(record["ts"]).replace("T", " ")
    words = [at, f"{record.get('level') or '':7}", f"{record.get('role') or '':8}", str(record.get("table") or "-")]
    first = printable(" ".join([*words, str(record.get("message") or "")]))
    below = [f"    {printable(line)}" for line in str(record.get("error") or "").split("\n") if line]
    return "\n".join([first, *below])
