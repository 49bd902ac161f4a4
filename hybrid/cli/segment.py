"""`hybrid segment`: the segments of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.opened import opened, time_text

if TYPE_CHECKING:
    from hybrid.handle import Segment


@click.group(cls=HybridGroup)
def segment() -> None:
    """The segments of a table."""


@segment.command("list")
@click.argument("table", metavar="TABLE")
@pass_cli
def list_(cli: Cli, table: str) -> None:
    """All segments, offline ones first."""
    with opened(cli) as home:
        rows = [_row(found) for found in home.table(table).segments()]
    cli.emit(rows, ["name", "half", "state", "rows", "bytes", "start", "end", "created_at"])


@segment.command()
@click.argument("table", metavar="TABLE")
@click.argument("name")
@pass_cli
def show(cli: Cli, table: str, name: str) -> None:
    """One segment."""
    with opened(cli) as home:
        cli.emit(_row(home.table(table).segment(name)))


def _row(found: Segment) -> dict[str, object]:
    return {
        "name": found.name,
        "half": found.half,
        "state": found.state,
        "rows": found.rows,
        "bytes": found.bytes,
        "files": found.files,
        "start": time_text(found.start_ms),
        "end": time_text(found.end_ms),
        "start_ms": found.start_ms,
        "end_ms": found.end_ms,
        "partition": found.partition,
        "start_offset": found.start_offset,
        "end_offset": found.end_offset,
        "created_at": time_text(found.created_ms),
    }
