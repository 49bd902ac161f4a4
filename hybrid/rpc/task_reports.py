"""Tasks by their type, and the JSON forms of their reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hybrid.config.compaction_json import COMPACTION_TASK
from hybrid.config.merge_json import MERGE_TASK
from hybrid.config.retention_json import RETENTION_TASK
from hybrid.config.task_schedules import OPTIMIZE_TASK, VACUUM_TASK
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.operations.tasks import task_type
from hybrid.rpc import json_views as views

if TYPE_CHECKING:
    from hybrid.api.table import Table

_RUNS: Mapping[str, Callable[[Table, bool], Any]] = {
    MOVE_TASK: lambda table, dry_run: views.move_view(table.move(dry_run=dry_run)),
    RETENTION_TASK: lambda table, dry_run: views.retention_view(table.upkeep.drop_expired(dry_run=dry_run)),
    MERGE_TASK: lambda table, dry_run: views.merge_view(table.upkeep.merge_segments(dry_run=dry_run)),
    COMPACTION_TASK: lambda table, dry_run: views.merge_view(table.upkeep.compact(dry_run=dry_run)),
    OPTIMIZE_TASK: lambda table, dry_run: views.optimize_view(table.upkeep.optimize(dry_run=dry_run)),
    VACUUM_TASK: lambda table, dry_run: views.vacuum_view(table.upkeep.vacuum(dry_run=dry_run)),
}


def run_task(table: Table, type_name: str, *, dry_run: bool) -> Any:
    """Runs a task and returns its report as a JSON value. NotFoundError for an unknown type."""
    return _RUNS[task_type(type_name).name](table, dry_run)
