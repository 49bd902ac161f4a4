"""`hybrid purge`: remove deleted rows permanently from every place that still holds them."""

from __future__ import annotations

from typing import Any

import click

from hybrid.cli.cells import View
from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.dispatch import ask, confirm, tell, will_ask
from hybrid.cli.replacement import os_user
from hybrid.errors import UsageError

_READINGS = View(("place", "current", "files", "rows", "matching", "shown"))
_LISTED = View(("id", "created_at", "columns", "reason", "user", "sentence"), drop=("user",))


@click.command(cls=HybridCommand)
@click.argument("table", metavar="TABLE")
@click.option("--where", metavar="CONDITION", help="Which rows. Queries must not show any of them any more.")
@click.option("--undecided", is_flag=True, help="Remove rejected messages too that may match.")
@click.option("--dry-run", is_flag=True, help="Show where such rows are; change nothing.")
@click.option("--reason", help="Why; kept with the record.")
@click.option("--list", "listed", is_flag=True, help="List the records of the table's purges.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def purge(
    cli: Cli,
    table: str,
    where: str | None,
    undecided: bool,
    dry_run: bool,
    reason: str | None,
    listed: bool,
    yes: bool,
) -> None:
    """Remove deleted rows from every place, and verify it. Places are old files, rejected rows, plans and memory.

    It cannot be taken back. Delete the rows first: hybrid backfill plan TABLE --delete --where CONDITION.
    """
    if listed:
        _list(cli, table)
        return
    if where is None:
        raise UsageError("Which rows are to go? A purge takes --where.", hint='hybrid purge TABLE --where "id = 7"')
    asked = {"table": table, "where": where, "undecided": undecided, "reason": reason, "user": os_user()}
    if not dry_run:
        if will_ask(yes):
            looked = ask(cli, "purge", dry_run=True, **asked)
            cli.say(looked["sentence"])
            if not cli.is_machine_read:
                cli.emit(looked["before"], _READINGS)
        confirm(f"Remove every deleted row of '{table}' where {where}? It cannot be taken back.", yes)
    report = ask(cli, "purge", dry_run=dry_run, **asked)
    tell(cli, report)
    if not cli.is_machine_read:
        cli.emit(report["before"] if dry_run else report["after"], _READINGS)
        for place in report["outside"]:
            cli.say(f"Not reached: {place}.")


def _list(cli: Cli, table: str) -> None:
    report: list[dict[str, Any]] = ask(cli, "purges", table=table)
    cli.emit(
        report, _LISTED, empty=f"Table '{table}' was never purged. To purge: hybrid purge {table} --where \"id = 7\""
    )
