"""`hybrid segment`: the segments of a table."""

from __future__ import annotations

import click

from hybrid.cli.cells import View
from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.completed_names import complete_segments
from hybrid.cli.dispatch import ask, tell

_LISTED = View(
    ("name", "half", "state", "rows", "bytes", "start", "end", "created_at"),
    drop=("half", "created_at", "bytes"),
    below=(("start", "end"),),
)


@click.group(cls=HybridGroup, named="list")
def segment() -> None:
    """List, inspect and seal segments of a table."""


@segment.command("list")
@click.argument("table", metavar="TABLE")
@pass_cli
def list_(cli: Cli, table: str) -> None:
    """List segments, offline ones first."""
    empty = f"Table '{table}' has no segments yet. Rows come by: hybrid ingest {table}, or hybrid job run SPEC.yml"
    cli.emit(ask(cli, "segments", table=table), _LISTED, empty=empty)


@segment.command()
@click.argument("table", metavar="TABLE")
@click.argument("name", shell_complete=complete_segments)
@pass_cli
def show(cli: Cli, table: str, name: str) -> None:
    """Show a segment."""
    cli.emit(ask(cli, "segment", table=table, name=name))


@segment.command()
@click.argument("table", metavar="TABLE")
@click.argument("name", required=False, shell_complete=complete_segments)
@pass_cli
def seal(cli: Cli, table: str, name: str | None) -> None:
    """Commit what Kafka holds, and seal the consuming segments, or one. Pinot's forceCommit."""
    tell(cli, ask(cli, "seal", table=table, name=name))
