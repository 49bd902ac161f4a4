"""`hybrid boundary`: the boundary between the halves."""

from __future__ import annotations

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.opened import opened, time_text
from hybrid.errors import NotFoundError
from hybrid.table.boundary import INFINITE


@click.group(cls=HybridGroup)
def boundary() -> None:
    """The boundary between the halves."""


@boundary.command()
@click.argument("name", metavar="TABLE")
@pass_cli
def show(cli: Cli, name: str) -> None:
    """Which realtime rows the offline half has taken over: those before `time` and below `frontier`."""
    with opened(cli) as home:
        table = home.table(name)
        found = table.boundary()
    if found is None:
        raise NotFoundError(f"Table '{name}' has one half only, so it has no boundary.")
    untimed = found.time_ms == INFINITE
    cli.emit(
        {
            "table": name,
            "mode": "exact",
            "time_column": table.spec.time_column,
            "time": "any time" if untimed else time_text(found.time_ms),
            "time_ms": None if untimed else found.time_ms,
            "frontier": found.to_json()["frontier"],
        }
    )
