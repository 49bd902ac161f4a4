"""`hybrid status`: the state of every table."""

from __future__ import annotations

import click

from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.dispatch import ask

UNHEALTHY = 3
_SHOWN = ["table", "state", "offline_rows", "realtime_rows", "boundary", "behind", "rejected", "last_task"]


@click.command(cls=HybridCommand)
@pass_cli
def status(cli: Cli) -> int:
    """Show every table: rows, boundary, lag behind Kafka, errors (exit code 3 then)."""
    report = ask(cli, "status")
    cli.say(f"home: {report['home']}")
    if not report["tables"] and not cli.is_machine_read:
        cli.say("No tables yet. Try: hybrid demo orders, or hybrid table create --help")
        return 0
    cli.emit(report["tables"], _SHOWN)
    for row in report["tables"]:
        if row["override"] is not None:
            words = f"The boundary of '{row['table']}' is set by hand to {row['override']}."
            cli.say(f"{words} `hybrid boundary clear {row['table']}` takes it back.")
    return 0 if report["healthy"] else UNHEALTHY
