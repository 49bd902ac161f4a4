"""`hybrid access`: the accounts of this home's server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hybrid.cli.cells import View
from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import refuse_server, require_home, require_right
from hybrid.runtime.json_values import shown_stamps

if TYPE_CHECKING:
    from hybrid.home.accounts import Account

_RIGHTS = ("read", "operate", "admin")
_LISTED = View(("name", "right", "created_at"))


@click.group(cls=HybridGroup, alone="list")
def access() -> None:
    """Manage accounts of the server of this home. A running server sees changes within a second."""


@access.command()
@click.argument("name", metavar="NAME")
@click.option("--right", type=click.Choice(_RIGHTS), required=True, help="What it may do; each includes those before.")
@pass_cli
def add(cli: Cli, name: str, right: str) -> None:
    """Add an account and print its secret, once. From then on every request needs an account."""
    from hybrid.home.accounts import Accounts, Right

    _check(cli)
    is_new_home = not cli.home.is_dir()
    account, secret = Accounts(cli.home).add(name, Right[right.upper()])
    if is_new_home:
        cli.say(f"{cli.home} did not exist: it is a new home now. If that was a mistake, remove it, and name another.")
    cli.say(f"Account '{name}' has the right {right} on servers of {cli.home}. Its secret is not shown again.")
    if cli.is_machine_read:
        cli.emit({**_row(account), "secret": secret})
    else:
        click.echo(secret)


@access.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List the accounts, oldest first."""
    from hybrid.home.accounts import Accounts

    _check(cli)
    require_home(cli)
    empty = "There are no accounts: a server answers everybody here. Add one: hybrid access add NAME --right read"
    cli.emit([_row(account) for account in Accounts(cli.home).list()], _LISTED, empty=empty)


@access.command()
@click.argument("name", metavar="NAME")
@pass_cli
def remove(cli: Cli, name: str) -> None:
    """Remove an account. Without any, a server on loopback answers everybody on this machine."""
    from hybrid.home.accounts import Accounts

    _check(cli)
    require_home(cli)
    account = Accounts(cli.home).remove(name)
    cli.say(f"Account '{name}' is removed from {cli.home}.")
    if cli.is_machine_read:
        cli.emit(_row(account))


def _check(cli: Cli) -> None:
    refuse_server(cli, "hybrid access", "Run it on the server's machine: hybrid access ... --home DIR")
    require_right(cli, "admin", "'access'")


def _row(account: Account) -> dict[str, object]:
    return shown_stamps({"name": account.name, "right": account.right.word, "created_at": account.created_at})
