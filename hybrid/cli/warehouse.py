"""`hybrid warehouse`: the tables on an object store, of which a home's folder is a mirror."""

from __future__ import annotations

import click

from hybrid.cli.cells import View
from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import confirm, dispatcher, refuse_server, require_right, tell

_HALVES = View(("table", "half", "state", "version", "store_version", "url"))
_PINNED = View(("table", "is_here", "servers"))


@click.group(cls=HybridGroup)
def warehouse() -> None:
    """Keep the tables on an object store, of which the home's folder is a mirror."""


@warehouse.command()
@pass_cli
def show(cli: Cli) -> None:
    """Show who writes the warehouse, and its halves here and on the store."""
    from hybrid.operations.warehouse.sync import warehouse_status

    _check(cli, "show", "read")
    with dispatcher(cli, may_create=True) as home:
        status = warehouse_status(home.context)
    if cli.is_machine_read:
        cli.emit(status.to_json())
        return
    cli.say(f"{status.url}: {status.words}.")
    cli.emit([half.to_json() for half in status.halves], _HALVES, empty="There is no table here.")
    if status.pinned:
        cli.say("The servers that hold each table:")
        cli.emit([table.to_json() for table in status.pinned], _PINNED)


@warehouse.command()
@pass_cli
def push(cli: Cli) -> None:
    """Copy the home's tables to the store of the setting 'warehouse'."""
    from hybrid.operations.warehouse.push import push_warehouse

    _check(cli, "push", "admin")
    with dispatcher(cli) as home:
        tell(cli, push_warehouse(home.context).to_json())


@warehouse.command()
@click.option("--take-over", is_flag=True, help="Let this home write the warehouse from now on, and no other.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def pull(cli: Cli, take_over: bool, yes: bool) -> None:
    """Bring the tables of the store into the home."""
    from hybrid.operations.warehouse.pull import pull_warehouse

    _check(cli, "pull", "admin")
    if take_over:
        confirm("Write the warehouse from this home? The home that writes it now will be refused.", yes)
    with dispatcher(cli, may_create=True) as home:
        tell(cli, pull_warehouse(home.context, take_over=take_over).to_json())


@warehouse.command()
@pass_cli
def sync(cli: Cli) -> None:
    """Bring mirror and store together after a crash."""
    from hybrid.operations.warehouse.sync import sync_warehouse

    _check(cli, "sync", "admin")
    with dispatcher(cli) as home:
        tell(cli, sync_warehouse(home.context).to_json())


def _check(cli: Cli, verb: str, right: str) -> None:
    refuse_server(cli, f"hybrid warehouse {verb}", "Run it on the machine of the home.", flag_only=True)
    require_right(cli, right, f"'warehouse {verb}'")
