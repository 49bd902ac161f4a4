"""`hybrid task`: run maintenance tasks by type, and list past and scheduled runs."""

from __future__ import annotations

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import ask, tell
from hybrid.operations.tasks import TASK_TYPES


@click.group(cls=HybridGroup)
def task() -> None:
    """Run tasks, and list runs and schedules."""


_RUN_HELP = "Run a task of a table now. TYPE is {}.".format(
    ", or ".join(f"{one.name} ({one.does})" for one in TASK_TYPES.values())
)


@task.command(help=_RUN_HELP)
@click.argument("name", metavar="TABLE")
@click.argument("type_", metavar="TYPE")
@click.option("--dry-run", is_flag=True, help="Say what it would do; change nothing.")
@click.option("--yes", is_flag=True, help="Believe the machine's clock, though it has leapt.")
@pass_cli
def run(cli: Cli, name: str, type_: str, dry_run: bool, yes: bool) -> None:
    """Runs a task of a table now; the help names the types."""
    tell(cli, ask(cli, "task_run", table=name, type=type_, dry_run=dry_run, yes=yes))


@task.command("list")
@click.argument("name", metavar="[TABLE]", required=False)
@pass_cli
def list_(cli: Cli, name: str | None) -> None:
    """List runs, newest first: ingestions, moves, retention, jobs, reverts."""
    cli.emit(ask(cli, "runs", table=name), ["id", "created_at", "table", "type", "state", "result"])


@task.command()
@click.argument("run_id", metavar="ID")
@pass_cli
def show(cli: Cli, run_id: str) -> None:
    """Show a run."""
    cli.emit(ask(cli, "run", run=run_id))


@task.command()
@click.argument("name", metavar="[TABLE]", required=False)
@pass_cli
def schedule(cli: Cli, name: str | None) -> None:
    """Show when scheduled tasks run next (on a server), the last result, and why a task waits."""
    schedules = ask(cli, "schedules", table=name)
    cli.emit(schedules, ["table", "type", "schedule", "next_run", "state", "result"])
