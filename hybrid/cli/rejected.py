"""`hybrid rejected`: messages that could not be read or converted."""

from __future__ import annotations

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.opened import ask


@click.group(cls=HybridGroup)
def rejected() -> None:
    """Messages that could not be read or converted."""


@rejected.command("list")
@click.argument("table", metavar="TABLE")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True)
@pass_cli
def list_(cli: Cli, table: str, limit: int) -> None:
    """Where each came from, why it was rejected, and its bytes as they came."""
    cli.emit(ask(cli, "rejected", table=table, limit=limit), ["topic", "partition", "offset", "reason", "value"])
