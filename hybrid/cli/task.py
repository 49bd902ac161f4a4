"""`hybrid task`: run maintenance tasks by type, and list past and scheduled runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from hybrid.cli.cells import View
from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.completed_names import complete_runs
from hybrid.cli.dispatch import ask, tell
from hybrid.operations.tasks import TASK_TYPES

_RUNS = View(
    ("id", "created_at", "table", "type", "state", "result"),
    below=("type", "table", "created_at"),
    notes=("hint",),
)
_SCHEDULES = View(("table", "type", "schedule", "next_run", "state", "result"), below=("schedule",))


@click.group(cls=HybridGroup, alone="list", named="list")
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
@click.option("--limit", metavar="N", type=click.IntRange(1, 1000), default=100, help="So many (default 100).")
@pass_cli
def list_(cli: Cli, name: str | None, limit: int) -> None:
    """List runs, newest first: ingestions, moves, retention, jobs, reverts."""
    wanted = {"table": name, "limit": limit}
    runs = ask(cli, "runs", **wanted)
    if cli.is_terminal:
        runs = _with_hints(cli, runs, wanted)
    empty = "Nothing has run yet. The types of tasks are listed by: hybrid task run --help"
    cli.emit(runs, _RUNS, empty=empty)


@task.command()
@click.argument("run_id", metavar="ID", shell_complete=complete_runs)
@pass_cli
def show(cli: Cli, run_id: str) -> None:
    """Show a run."""
    found = ask(cli, "run", run=run_id)
    if cli.is_terminal and found["state"] == "FAILED":
        hints = ask(cli, "run_hints", table=found["table"])
        found = {**found, "hint": _hint(hints, found)}
    cli.emit(found)


@task.command()
@click.argument("name", metavar="[TABLE]", required=False)
@pass_cli
def schedule(cli: Cli, name: str | None) -> None:
    """Show when scheduled tasks run next (on a server), the last result, and why a task waits."""
    schedules = ask(cli, "schedules", table=name)
    empty = (
        "No task has a schedule. A table config sets one under task.taskTypeConfigsMap, applied by: hybrid table apply"
    )
    cli.emit(schedules, _SCHEDULES, empty=empty)


def _with_hints(cli: Cli, runs: list[dict[str, Any]], wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The runs that were `wanted`; failed ones with what to do, unless a later run of the same kind did not fail."""
    is_newest, seen = list[bool](), set[tuple[str, str]]()
    for run in runs:
        is_newest.append((run["table"], run["type"]) not in seen)
        seen.add((run["table"], run["type"]))
    failed = [run["state"] == "FAILED" and newest for run, newest in zip(runs, is_newest, strict=True)]
    hints = ask(cli, "run_hints", **wanted) if any(failed) else {}
    return [
        {**run, "hint": _hint(hints, run)} if needs_hint else run for run, needs_hint in zip(runs, failed, strict=True)
    ]


def _hint(hints: Mapping[str, str], run: Mapping[str, Any]) -> str:
    return hints.get(run["id"], f"hybrid doctor {run['table']}")
