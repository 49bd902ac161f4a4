"""`hybrid replacement`: list and revert replacements."""

from __future__ import annotations

import getpass
from typing import Any

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import ask, confirm, tell


@click.group(cls=HybridGroup)
def replacement() -> None:
    """List and revert segment replacements."""


@replacement.command("list")
@click.argument("table", metavar="TABLE")
@pass_cli
def list_(cli: Cli, table: str) -> None:
    """List replacements and reverts: IN_PROGRESS first, then newest first."""
    cli.emit(ask(cli, "replacements", table=table), ["id", "created_at", "kind", "state", "user", "reason", "result"])


@replacement.command()
@click.argument("table", metavar="TABLE")
@click.argument("entry", metavar="ID")
@pass_cli
def show(cli: Cli, table: str, entry: str) -> None:
    """Show a replacement: segments, rows, input files with checksums."""
    cli.emit(ask(cli, "replacement", table=table, entry=entry))


@replacement.command()
@click.argument("table", metavar="TABLE")
@click.argument("entry", metavar="ID")
@click.option("--reason", help="Why; kept with the lineage entry.")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def revert(cli: Cli, table: str, entry: str, reason: str | None, dry_run: bool, yes: bool) -> None:
    """Revert a replacement, as a new commit. If IN_PROGRESS: discard what was pushed to it."""
    ask(cli, "table_show", table=table)  # a name that is wrong is said before anything is asked
    if not dry_run:
        confirm(f"Revert {entry} of table '{table}'?", yes)
    tell_job(cli, ask(cli, "revert", table=table, entry=entry, dry_run=dry_run, reason=reason, user=os_user()))


def tell_job(cli: Cli, report: dict[str, Any]) -> None:
    """Print warnings, sentence, samples and expectations of a dry run; all numbers in a format for programs."""
    tell(cli, report)
    if report["dry_run"] and report["expectations"] and not cli.is_machine_read:
        cli.say("Expectations:")
        cli.emit(report["expectations"], ["name", "on_failure", "state", "rows", "sentence"])
    if report["dry_run"] and report["samples"] and not cli.is_machine_read:
        cli.say("Samples:")
        cli.emit(report["samples"])


def os_user() -> str:
    """The operating system user of this process."""
    return getpass.getuser()
