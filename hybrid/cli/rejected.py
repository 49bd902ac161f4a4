"""`hybrid rejected`: messages that could not be read or converted."""

from __future__ import annotations

import click

from hybrid.cli.cells import View
from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import ask, tell

_COLUMNS = ("topic", "partition", "offset", "reason", "value")
_REASONS = View(("rows", "reason"))


@click.group(cls=HybridGroup, named="list")
def rejected() -> None:
    """List and replay messages that could not be read or converted."""


@rejected.command("list")
@click.argument("table", metavar="TABLE")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--all", "everything", is_flag=True, help="Also replayed messages, with their state.")
@pass_cli
def list_(cli: Cli, table: str, limit: int, everything: bool) -> None:
    """List rejected messages: position, reason and original bytes."""
    more = {"everything": True} if everything else {}
    report = ask(cli, "rejected", table=table, limit=limit, **more)
    empty = f"Table '{table}' has no rejected messages. Those that were replayed: hybrid rejected list {table} --all"
    cli.emit(report, View((*_COLUMNS, "state") if everything else _COLUMNS), empty=empty)


@rejected.command()
@click.argument("table", metavar="TABLE")
@click.option("--dry-run", is_flag=True, help="Say what would convert; change nothing.")
@pass_cli
def replay(cli: Cli, table: str, dry_run: bool) -> None:
    """Replay messages that convert now, in one commit; the rest stays rejected. The current settings decide."""
    report = ask(cli, "rejected_replay", table=table, dry_run=dry_run)
    tell(cli, report)
    if report["reasons"] and not cli.is_machine_read:
        cli.emit(report["reasons"], _REASONS)
