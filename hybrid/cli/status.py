"""`hybrid status`: every table at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.opened import opened, time_text
from hybrid.table.boundary import INFINITE

if TYPE_CHECKING:
    from hybrid.status import TableStatus

UNHEALTHY = 3
_SHOWN = ["table", "state", "offline_rows", "realtime_rows", "boundary", "behind", "rejected", "last_task"]


@click.command(cls=HybridCommand)
@pass_cli
def status(cli: Cli) -> int:
    """Every table at a glance: rows, boundary, how far behind Kafka, what went wrong (exit code 3 then)."""
    with opened(cli) as home:
        tables = home.status()
        cli.say(f"home: {home.home}")
    if not tables and not cli.is_machine_read:
        cli.say("No tables yet. Try: hybrid demo orders, or hybrid table create --help")
        return 0
    cli.emit([_row(table) for table in tables], _SHOWN)
    return 0 if all(table.healthy for table in tables) else UNHEALTHY


def _row(table: TableStatus) -> dict[str, object]:
    limit = table.boundary.time_ms if table.boundary else None
    return {
        "table": table.table,
        "state": table.state,
        "offline_rows": table.offline_rows,
        "offline_segments": table.offline_segments,
        "realtime_rows": table.realtime_rows,
        "realtime_segments": table.realtime_segments,
        "consuming_segments": table.consuming_segments,
        "boundary": "any time" if limit == INFINITE else time_text(limit),
        "behind": table.behind,
        "rejected": table.rejected,
        "last_task": table.last_task,
    }
