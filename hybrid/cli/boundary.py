"""`hybrid boundary`: the boundary between the halves."""

from __future__ import annotations

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import ask, tell


@click.group(cls=HybridGroup, named="show")
def boundary() -> None:
    """Show, set and clear the time boundary between the halves."""


@boundary.command()
@click.argument("table", metavar="TABLE")
@pass_cli
def show(cli: Cli, table: str) -> None:
    """Show what OFFLINE has taken over, and the limit that is in effect. Rows before `time`, below `frontier`."""
    cli.emit(ask(cli, "boundary", table=table))


@boundary.command("set")
@click.argument("table", metavar="TABLE")
@click.option("--at", metavar="TIME", help="A time; also in the time column's own unit. Default: the last one.")
@click.option("--yes", is_flag=True, help="A time before all offline rows is meant.")
@pass_cli
def set_(cli: Cli, table: str, at: str | None, yes: bool) -> None:
    """Set the boundary by hand, until it is cleared. Offline rows before TIME are visible, realtime rows from it on.

    Without --at the last offline time is set, as Pinot does; mode exact has nothing to do then.
    """
    tell(cli, ask(cli, "boundary_set", table=table, at=at, accepted=yes))


@boundary.command()
@click.argument("table", metavar="TABLE")
@pass_cli
def clear(cli: Cli, table: str) -> None:
    """Clear the override: the table's boundary mode alone decides again."""
    tell(cli, ask(cli, "boundary_clear", table=table))
