"""Routes `/tasks`: schedule tasks and show their states, in Pinot's words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Path, Query, Request

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.run_record import DRY_RUN, REJECTED, RunRecord, public_arguments
from hybrid.config.table_keys import TASKS
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.errors import ConflictError, SpecError
from hybrid.home.accounts import Right
from hybrid.operations.run_views import visible_run
from hybrid.operations.tasks import TASK_TYPES, TaskType, task_type
from hybrid.rpc.verbs import VERBS
from hybrid.runtime.json_values import shown_stamps
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import ServerContext, context_of
from hybrid.serve.openapi import shown
from hybrid.serve.path_parameters import path_table

router = StrictRouter(tags=["tasks"])
STATES = {
    "QUEUED": "NOT_STARTED",
    "RUNNING": "IN_PROGRESS",
    "DONE": "COMPLETED",
    "NOTHING": "COMPLETED",
    "FAILED": "FAILED",
    "INTERRUPTED": "STOPPED",
    DRY_RUN: "COMPLETED",
    REJECTED: "FAILED",
}
_RUNS_MAX = 1000
_LENGTH_MAX = 200
_EXAMPLE_ID = f"Task_{MOVE_TASK}_1637491080000"
TypeName = Annotated[str, Path(examples=[MOVE_TASK])]
TaskId = Annotated[str, Path(examples=[_EXAMPLE_ID])]


@router.post("/tasks/schedule", summary="Run tasks now", responses=shown({MOVE_TASK: _EXAMPLE_ID}))
@needs(Right.OPERATE)
def schedule(
    request: Request,
    type_: Annotated[
        str | None, Query(alias="taskType", description="Moves, if left out; other types run when they are named")
    ] = None,
    table: Annotated[
        str | None, Query(alias="tableName", description="All tables, if left out", examples=["orders_REALTIME"])
    ] = None,
) -> Any:
    """Queues the tasks and returns their ids by type.

    If a table's task waits or runs already, no second one is queued: the id is null, and `schedulingErrors` says so.
    """
    context = context_of(request)
    # As in Pinot, where retention is no minion task: a request for all tasks must not drop rows.
    selected_type = task_type(MOVE_TASK) if type_ is None else _known(type_)
    return _scheduled(context, selected_type, _tables(context, selected_type, table))


@router.get("/tasks/tasktypes", summary="List the task types", responses=shown(list(TASK_TYPES)))
def list_types() -> list[str]:
    """Returns the types of tasks that can run."""
    return list(TASK_TYPES)


@router.get(
    "/tasks/schedules",
    summary="Show when scheduled tasks run",
    responses=shown(
        [
            {
                "table": "orders",
                "type": MOVE_TASK,
                "schedule": "0 0/5 * * * ?",
                "next_run": "2021-11-21T10:40:00Z",
                "state": "WAITING",
                "result": "It has not run yet.",
            }
        ]
    ),
)
def list_schedules(
    request: Request, table: Annotated[str | None, Query(alias="tableName", examples=["orders"])] = None
) -> Any:
    """Returns when each scheduled task runs next, how its last run ended, and why it waits."""
    context = context_of(request)
    return VERBS["schedules"].call(context.home, table=None if table is None else path_table(context, table).table.name)


@router.get("/tasks/task/{task}/state", summary="Show a task's state", responses=shown("COMPLETED"))
def show_state(request: Request, task: TaskId) -> str:
    """Returns NOT_STARTED, IN_PROGRESS, COMPLETED, FAILED or STOPPED."""
    return STATES[_run(context_of(request).home, task).state]


@router.get(
    "/tasks/task/{task}/debug",
    summary="Show what a task did",
    responses=shown(
        {
            "startTime": "2021-11-21T10:38:00Z",
            "executionStartTime": "2021-11-21T10:38:00.100Z",
            "finishTime": "2021-11-21T10:38:04Z",
            "taskState": "COMPLETED",
            "triggeredBy": "http",
            "table": "orders",
            "result": "Moved 7 rows of 'orders' to 1 segment.",
            "progress": None,
            "error": None,
            "subtaskCount": {"total": 1, "completed": 1, "running": 0, "waiting": 0, "error": 0, "unknown": 0},
            "subtaskInfos": [],
        }
    ),
)
def show_debug(request: Request, task: TaskId) -> Any:
    """Returns when a task was queued, began and ended, and a sentence: what it did, or why it did nothing."""
    return _debug(_run(context_of(request).home, task))


@router.get("/tasks/{type}/state", summary="Show the state of a task type", responses=shown("COMPLETED"))
def show_type_state(request: Request, type: TypeName) -> str:
    """Returns IN_PROGRESS if any task of the type is incomplete, else the newest task's state, or NOT_STARTED."""
    runs = [run for run in _runs(context_of(request).home, _known(type).name) if not run.dry_run]
    if any(run.incomplete for run in runs):
        return "IN_PROGRESS"
    return STATES[runs[0].state] if runs else "NOT_STARTED"


@router.get("/tasks/{type}/tasks", summary="List the tasks of a type", responses=shown([_EXAMPLE_ID]))
def list_tasks(request: Request, type: TypeName) -> list[str]:
    """Returns the ids of the newest 1000 tasks, newest first."""
    return [run.id for run in _runs(context_of(request).home, _known(type).name)]


@router.get(
    "/tasks/{type}/taskstates", summary="Show the states of a type's tasks", responses=shown({_EXAMPLE_ID: "COMPLETED"})
)
def list_states(request: Request, type: TypeName) -> dict[str, str]:
    """Returns states by task id, newest first."""
    return {run.id: STATES[run.state] for run in _runs(context_of(request).home, _known(type).name)}


def _tables(context: ServerContext, wanted: TaskType, table: str | None) -> list[str]:
    """Return the tables whose task should run; SpecError if the named table does not have it."""
    home = context.home
    if table is None:
        return [name for name in home.table_names() if wanted.is_had_by(home.spec(name))]
    target = path_table(context, table).table
    wanted.require(target.spec)
    return [target.name]


def _scheduled(context: ServerContext, wanted: TaskType, tables: Iterable[str]) -> dict[str, Any]:
    queued: list[str] = []
    errors: list[str] = []
    for table in tables:
        try:
            queued.append(context.queue("task_run", {"table": table, "type": wanted.name}).id)
        except ConflictError as error:
            errors.append(error.words)
    if not queued and not errors:
        errors.append(f"No table has a {wanted.name}.")
    error_keys = {"schedulingErrors": " ".join(errors)} if errors else {}
    return {wanted.name: ",".join(queued) or None, **error_keys}


def _known(type_: str) -> TaskType:
    if type_ in TASKS:
        raise SpecError(f"Task type '{type_}' is not built yet. There is {', '.join(TASK_TYPES)}.")
    return task_type(type_[:_LENGTH_MAX])


def _run(home: Hybrid, run_id: str) -> RunRecord:
    return home.run(run_id[:_LENGTH_MAX])


def _runs(home: Hybrid, type_: str) -> list[RunRecord]:
    return home.context.catalog.runs.list(kind=type_, limit=_RUNS_MAX)


def _debug(run: RunRecord) -> dict[str, Any]:
    run = visible_run(run)
    state = STATES[run.state]
    counted = {"COMPLETED": "completed", "IN_PROGRESS": "running", "NOT_STARTED": "waiting", "FAILED": "error"}
    counts = {name: int(counted.get(state, "unknown") == name) for name in (*counted.values(), "unknown")}
    times = {"startTime": run.created_at, "executionStartTime": run.started_at, "finishTime": run.finished_at}
    info = run.progress if run.incomplete else run.result
    config = {"taskType": run.type, "tableName": run.table_name, "configs": public_arguments(run.arguments)}
    return {
        **shown_stamps(times),
        "taskState": state,
        "triggeredBy": run.source,
        "table": run.table_name,
        "result": run.result,
        "progress": run.progress,
        "error": run.error,
        "subtaskCount": {"total": 1, **counts},
        "subtaskInfos": [
            {
                "taskId": f"{run.id}_0",
                "state": state,
                **shown_stamps({"startTime": run.started_at, "finishTime": run.finished_at}),
                "participant": "pipeline",
                "info": info,
                "taskConfig": config,
            }
        ],
    }
