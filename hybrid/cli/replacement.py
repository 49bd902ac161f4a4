"""`hybrid replacement`: list and revert replacements."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from typing import Any

import click

from hybrid.cli.cells import View
from hybrid.cli.command import FINDINGS, Cli, HybridGroup, pass_cli
from hybrid.cli.completed_names import complete_replacements
from hybrid.cli.dispatch import ask, confirm, tell, will_ask

_LISTED = View(("id", "created_at", "kind", "state", "user", "reason", "result"), drop=("user",))
_EXPECTATIONS = View(("name", "on_failure", "state", "rows", "sentence"), drop=("on_failure",))


@click.group(cls=HybridGroup, named="list")
def replacement() -> None:
    """List and revert segment replacements."""


@replacement.command("list")
@click.argument("table", metavar="TABLE")
@pass_cli
def list_(cli: Cli, table: str) -> None:
    """List replacements and reverts: IN_PROGRESS first, then newest first."""
    empty = f"Nothing in table '{table}' was replaced yet. Load corrected rows with: hybrid job run SPEC.yml"
    cli.emit(ask(cli, "replacements", table=table), _LISTED, empty=empty)


@replacement.command()
@click.argument("table", metavar="TABLE")
@click.argument("entry", metavar="ID", shell_complete=complete_replacements)
@pass_cli
def show(cli: Cli, table: str, entry: str) -> None:
    """Show a replacement: segments, rows, input files with checksums."""
    cli.emit(ask(cli, "replacement", table=table, entry=entry))


@replacement.command()
@click.argument("table", metavar="TABLE")
@click.argument("entry", metavar="ID", shell_complete=complete_replacements)
@click.option("--reason", help="Why; kept with the lineage entry.")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def revert(cli: Cli, table: str, entry: str, reason: str | None, dry_run: bool, yes: bool) -> int:
    """Revert a replacement, as a new commit. If IN_PROGRESS: discard what was pushed to it."""
    ask(cli, "table_show", table=table)  # a name that is wrong is said before anything is asked
    if not dry_run:
        if will_ask(yes):
            ask(cli, "replacement", table=table, entry=entry)  # and so is a wrong id
        confirm(f"Revert {entry} of table '{table}'?", yes)
    return tell_job(cli, ask(cli, "revert", table=table, entry=entry, dry_run=dry_run, reason=reason, user=os_user()))


def tell_job(cli: Cli, report: dict[str, Any]) -> int:
    """Print warnings, sentence, samples and expectations of a dry run; all numbers in a format for programs.

    Return the exit code: `FINDINGS` when an expectation of a dry run failed, which would have refused the run.
    """
    tell(cli, report)
    if report["dry_run"] and report["expectations"] and not cli.is_machine_read:
        cli.say("Expectations:")
        cli.emit(report["expectations"], _EXPECTATIONS)
    if report["dry_run"] and report["samples"] and not cli.is_machine_read:
        cli.say("Samples:")
        tell_samples(cli, report["table"], report["samples"])
    has_failed = any(expectation["state"] == "FAILED" for expectation in report["expectations"])
    return FINDINGS if has_failed else 0


def tell_samples(cli: Cli, table: str, samples: Sequence[dict[str, Any]]) -> None:
    """Print sample rows of a difference: on a terminal by their keys (else their times) and the columns that change."""
    if not cli.is_terminal:
        cli.emit(samples)
        return
    from hybrid.cli.terminal.differences import difference_table

    shown = ask(cli, "table_show", table=table)
    keys = shown["primary_key"] or [name for name in [shown["time_column"]] if name]
    cli.emit(*difference_table(samples, keys, shown["columns"]))


def os_user() -> str:
    """The operating system user of this process."""
    return getpass.getuser()
