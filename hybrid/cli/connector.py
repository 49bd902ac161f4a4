"""`hybrid connector`: the sources of a table's rows."""

from __future__ import annotations

from typing import Any

import click

from hybrid.cli.cells import View
from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import ask, confirm, tell

_SHOWN = View(("name", "state", "detail", "transport", "records", "lag", "errors"), drop=("transport",))


@click.group(cls=HybridGroup, named="list")
def connector() -> None:
    """List, start, pause and reset connectors of a table."""


@connector.command("list")
@click.argument("table", metavar="TABLE")
@pass_cli
def list_(cli: Cli, table: str) -> None:
    """List the connectors of a table, with their state."""
    empty = f"Table '{table}' has no connectors. A config or DDL names them, and is applied by: hybrid table apply"
    cli.emit(ask(cli, "connectors", table=table), _SHOWN, empty=empty)


@connector.command()
@click.argument("table", metavar="TABLE")
@click.argument("name", required=False)
@pass_cli
def start(cli: Cli, table: str, name: str | None) -> None:
    """Start a connector (or all): at once, or when what it waits for has ended."""
    _tell(cli, ask(cli, "connector_start", table=table, name=name))


@connector.command()
@click.argument("table", metavar="TABLE")
@click.argument("name", required=False)
@pass_cli
def pause(cli: Cli, table: str, name: str | None) -> None:
    """Pause a connector (or all) until it is started. What Kafka holds now is still ingested."""
    _tell(cli, ask(cli, "connector_pause", table=table, name=name))


connector.add_command(start, "resume")


@connector.command()
@click.argument("table", metavar="TABLE")
@click.argument("name", required=False)
@click.option("--to", required=True, metavar="PLACE", help="earliest, latest, a time, a time ago (2d), or 0:42,1:7.")
@click.option("--dry-run", is_flag=True, help="Say what would be lost, skipped or read again, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def reset(cli: Cli, table: str, name: str | None, to: str, dry_run: bool, yes: bool) -> None:
    """Reset the position of a stream whose offsets have expired or whose topic is another one."""
    report = ask(cli, "connector_reset_plan", table=table, name=name, to=to)
    if not dry_run and report["partitions"]:
        confirm(f"{report['sentence']} Go on?", yes)
        report = ask(cli, "connector_reset", table=table, name=name, to=to, accepted=report)
    tell(cli, report)


def _tell(cli: Cli, found: list[dict[str, Any]]) -> None:
    for row in found:
        detail = f": {row['detail']}" if row["detail"] else ""
        cli.say(f"Connector '{row['name']}' is {row['state']}{detail}.")
    if cli.is_machine_read:
        cli.emit(found, _SHOWN)
