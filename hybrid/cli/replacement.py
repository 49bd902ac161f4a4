"""`hybrid replacement`: what replaced what, and back."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.opened import confirm, opened

if TYPE_CHECKING:
    from hybrid.replace.report import JobReport


@click.group(cls=HybridGroup)
def replacement() -> None:
    """What replaced what, and back."""


@replacement.command("list")
@click.argument("table", metavar="TABLE")
@pass_cli
def list_(cli: Cli, table: str) -> None:
    """Replacements and reverts, newest first."""
    with opened(cli) as home:
        rows = [entry.to_json() for entry in home.table(table).replacements()]
    cli.emit(rows, ["id", "created_at", "kind", "state", "user", "reason", "result"])


@replacement.command()
@click.argument("table", metavar="TABLE")
@click.argument("entry", metavar="ID")
@pass_cli
def show(cli: Cli, table: str, entry: str) -> None:
    """One replacement: segments, rows, input files with checksums."""
    with opened(cli) as home:
        cli.emit(home.table(table).replacement(entry).to_json())


@replacement.command()
@click.argument("table", metavar="TABLE")
@click.argument("entry", metavar="ID")
@click.option("--reason", help="Why; kept with the lineage entry.")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def revert(cli: Cli, table: str, entry: str, reason: str | None, dry_run: bool, yes: bool) -> None:
    """Put back what a replacement replaced, as a new commit."""
    with opened(cli) as home:
        found = home.table(table)
        if not dry_run:
            confirm(f"Revert {entry} of table '{table}'?", yes)
        tell_job(cli, found.revert(entry, dry_run=dry_run, reason=reason, user=os_user()))


def tell_job(cli: Cli, report: JobReport) -> None:
    """Warnings, the sentence, samples of a dry run; all numbers where a program reads."""
    for warning in report.warnings:
        cli.say(f"warning: {warning}")
    cli.say(report.sentence)
    if cli.is_machine_read:
        cli.emit(report.to_json())
    elif report.dry_run and report.samples:
        cli.say("Samples:")
        cli.emit([vars(sample) for sample in report.samples])


def os_user() -> str:
    """The user of this machine who acts."""
    return getpass.getuser()
