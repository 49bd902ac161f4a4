"""The types of upkeep tasks: which tables have one, and its schedule.

Read by everything that depends on a task's type: the verb and its runs, schedules, the server's `/tasks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid.config.compaction_json import COMPACTION_TASK
from hybrid.config.cron import Cron
from hybrid.config.merge_json import MERGE_TASK
from hybrid.config.retention_json import RETENTION_TASK, require_retention
from hybrid.config.table_config import Half, TableSpec
from hybrid.config.task_schedules import OPTIMIZE_TASK, VACUUM_TASK
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.errors import NotFoundError, SpecError

if TYPE_CHECKING:
    from hybrid.home.home import Home


@dataclass(frozen=True)
class TaskType:
    """A type of task. Without a `schedule` it runs only on request.

    `does` describes it in a few words. `lacks` says why a table has none, after "Table 'orders' has no NAME: "; where
    there are several reasons, it is a function that raises the SpecError.
    """

    name: str
    does: str
    is_had_by: Callable[[TableSpec], bool]
    lacks: str | Callable[[TableSpec], None]
    schedule: Callable[[TableSpec], Cron | None]

    def require(self, spec: TableSpec) -> None:
        """SpecError, which says why, for a table that does not have this task."""
        if self.is_had_by(spec):
            return
        if not isinstance(self.lacks, str):
            self.lacks(spec)
        else:
            raise SpecError(f"Table '{spec.name}' has no {self.name}: {self.lacks}")


_TYPES = (
    TaskType(
        MOVE_TASK,
        "one bucket, as `hybrid move`",
        lambda spec: spec.move is not None,
        "its REALTIME config names none under task.taskTypeConfigsMap.",
        lambda spec: spec.move.schedule if spec.move is not None else None,
    ),
    TaskType(
        RETENTION_TASK,
        "drops expired segments",
        lambda spec: bool(spec.retention),
        require_retention,
        lambda spec: spec.retention_schedule,
    ),
    TaskType(
        MERGE_TASK,
        "merges small segments of OFFLINE",
        lambda spec: bool(spec.merge_levels),
        "its OFFLINE config names none under task.taskTypeConfigsMap.",
        lambda spec: spec.merge_schedule,
    ),
    TaskType(
        COMPACTION_TASK,
        "leaves superseded rows out",
        lambda spec: spec.compaction is not None,
        "no config of its halves names one under task.taskTypeConfigsMap.",
        lambda spec: spec.compaction.schedule if spec.compaction is not None else None,
    ),
    TaskType(
        OPTIMIZE_TASK,
        "many small files of sealed realtime segments become few",
        lambda spec: Half.REALTIME in spec.halves,
        "it has no REALTIME half.",
        lambda spec: spec.optimize_schedule,
    ),
    TaskType(
        VACUUM_TASK,
        "removes what nothing within the revert window needs from disk",
        lambda _: True,
        "every table has one.",
        lambda spec: spec.vacuum_schedule,
    ),
)
TASK_TYPES: Mapping[str, TaskType] = {kind.name: kind for kind in _TYPES}


def task_type(name: str) -> TaskType:
    """The task type with this name; NotFoundError, with a suggestion and all types, for an unknown name."""
    if name not in TASK_TYPES:
        error = NotFoundError.named("Task type", name[:100], TASK_TYPES)
        raise NotFoundError(str(error), hint=f"Types are: {', '.join(TASK_TYPES)}.")
    return TASK_TYPES[name]


def check_task(home: Home, arguments: Mapping[str, Any]) -> bool:
    """True for a task that can be queued. NotFoundError for an unknown type or table, SpecError for a task it lacks."""
    kind, spec = task_type(arguments["type"]), home.spec(arguments["table"])
    kind.require(spec)
    return True


def crons_of(spec: TableSpec) -> dict[str, Cron]:
    """The schedules of a table's tasks, by type; tasks without a schedule are left out."""
    schedules = {name: task.schedule(spec) for name, task in TASK_TYPES.items() if task.is_had_by(spec)}
    return {name: cron for name, cron in schedules.items() if cron is not None}
