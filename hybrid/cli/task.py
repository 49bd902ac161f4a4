"""`hybrid task`: run upkeep tasks by their type, and see what ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.move import tell_move
from hybrid.cli.opened import opened
from hybrid.errors import NotFoundError
from hybrid.spec.upsert_json import MOVE_TASK

if TYPE_CHECKING:
    from hybrid.catalog.catalog import RunRecord


@click.group(cls=HybridGroup)
def task() -> None:
    """Run tasks, and see what they did."""


@task.command()
@click.argument("name", metavar="TABLE")
@click.argument("type_", metavar="TYPE")
@click.option("--dry-run", is_flag=True, help="Say what it would do; change nothing.")
@pass_cli
def run(cli: Cli, name: str, type_: str, dry_run: bool) -> None:
    """Run a task of a table now: RealtimeToOfflineSegmentsTask (one bucket, as `hybrid move`)."""
    if type_ != MOVE_TASK:
        raise NotFoundError.named("Task type", type_, [MOVE_TASK])
    with opened(cli) as home:
        tell_move(cli, home.table(name).move(dry_run=dry_run))


@task.command("list")
@click.argument("name", metavar="[TABLE]", required=False)
@pass_cli
def list_(cli: Cli, name: str | None) -> None:
    """What ran, newest first: ingestions, moves, jobs, reverts."""
    with opened(cli) as home:
        rows = [_row(run) for run in home.runs(name)]
    cli.emit(rows, ["id", "created_at", "table", "type", "state", "result"])


@task.command()
@click.argument("run_id", metavar="ID")
@pass_cli
def show(cli: Cli, run_id: str) -> None:
    """One run."""
    with opened(cli) as home:
        found = {run.id: run for run in home.runs()}
    if run_id not in found:
        raise NotFoundError.named("Task run", run_id, found)
    cli.emit(_row(found[run_id]))


def _row(run: RunRecord) -> dict[str, object]:
    return {
        "id": run.id,
        "created_at": run.created_at,
        "finished_at": run.finished_at,
        "table": run.table_name,
        "type": run.type,
        "state": run.state,
        "result": run.result,
    }
