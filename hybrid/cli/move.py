"""`hybrid move`: realtime to offline."""

from __future__ import annotations

import click

from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.dispatch import ask, tell
from hybrid.errors import UsageError


@click.command(cls=HybridCommand)
@click.argument("name", metavar="TABLE")
@click.option("--max-buckets", default="1", metavar="N|all", show_default=True, help="Closed buckets to move at most.")
@click.option("--dry-run", is_flag=True, help="Say what would move; change nothing.")
@pass_cli
def move(cli: Cli, name: str, max_buckets: str, dry_run: bool) -> None:
    """Move closed buckets and late rows to the OFFLINE half. The new boundary is in the same commit."""
    tell(cli, ask(cli, "move", table=name, max_buckets=_buckets(max_buckets), dry_run=dry_run))


def _buckets(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"--max-buckets {text}: give a number from 1, or all.")
    return int(text)
