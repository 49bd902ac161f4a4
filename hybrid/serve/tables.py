"""Routes `/tables`: create, show, change and drop tables, one half at a time as in Pinot."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import JSONResponse

from hybrid.config.table_config import Half
from hybrid.home.accounts import Right
from hybrid.operations.tables import configs
from hybrid.operations.tables.creation import Creation
from hybrid.schema.secrets import without_secrets
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import SOURCE, BodyText, StrictRouter, document, unrecognized
from hybrid.serve.context import context_of
from hybrid.serve.error_responses import not_built
from hybrid.serve.openapi import NOT_BUILT, StatusBody, json_body, shown
from hybrid.serve.path_parameters import HalfType, PathTable, TableName, half_type, path_table

router = StrictRouter(tags=["tables"])
EXAMPLE: dict[str, Any] = {
    "tableName": "events",
    "tableType": "OFFLINE",
    "segmentsConfig": {"schemaName": "events", "timeColumnName": "ts", "replication": "1"},
    "tenants": {},
    "tableIndexConfig": {},
    "metadata": {},
}
Skipped = Annotated[
    str | None, Query(description="Read and not used: what could not be honoured is always refused", examples=["ALL"])
]
Kafka = Annotated[
    str | None, Query(description="Broker addresses that stand in for the config's", examples=["localhost:9092"])
]


@router.post(
    "/tables",
    summary="Add a table, or the other half of one",
    responses=shown(
        {
            "unrecognizedProperties": {},
            "status": "Table events_OFFLINE successfully added",
            "sentence": "Created table 'events' (OFFLINE).",
            "warnings": [],
        }
    ),
    openapi_extra=json_body(EXAMPLE),
)
@needs(Right.ADMIN)
def add_table(
    request: Request,
    text: BodyText,
    skipped: Annotated[Skipped, Query(alias="validationTypesToSkip")] = None,
    kafka: Kafka = None,
) -> Any:
    """Creates a table, or adds a half, from a table config: REALTIME or OFFLINE.

    The body may hold both, as `GET /tables/{table}` returns them. The schema must exist (`POST /schemas`).
    """
    config = document(text)
    name, halves = configs.halves_of(config, SOURCE)
    creation = configs.add_config(context_of(request).home.context, config, SOURCE, kafka)
    added = ", ".join(f"{name}_{half}" for half in halves)
    return _done(config, creation, f"Table {added} successfully added")


@router.get("/tables", summary="List the tables", responses=shown({"tables": ["events", "orders"]}))
def list_tables(
    request: Request,
    type_: HalfType = None,
    task: Annotated[str | None, Query(alias="taskType", description="Only tables with this task")] = None,
) -> Any:
    """Returns table names without suffix; with `type` or `taskType` the names of halves.

    As in Pinot, these are sorted with their suffix: `t20_OFFLINE` comes before `t2_OFFLINE`.
    """
    home, selected_half = context_of(request).home, half_type(type_)
    if selected_half is None and task is None:
        return {"tables": home.context.listed_names()}
    halves = [
        (spec, half) for spec in home.context.listed_specs() for half in spec.halves if selected_half in (None, half)
    ]
    return {
        "tables": sorted(
            f"{spec.name}_{half}" for spec, half in halves if task is None or task in _tasks(_document(spec, half))
        )
    }


@router.get("/tables/{table}", summary="Show a table's configs", responses=shown({"OFFLINE": EXAMPLE}))
def show_table(request: Request, table: TableName, type_: HalfType = None) -> Any:
    """Returns the configs as they were submitted, by half."""
    target = path_table(context_of(request), table, type_)
    return {half.value: config_shown(target.table.spec, half) for half in target.halves}


@router.put(
    "/tables/{table}",
    summary="Change a half's config",
    responses=shown(
        {
            "unrecognizedProperties": {},
            "status": "Table config updated for events",
            "sentence": "Changed table 'events': 1 change.",
            "warnings": [],
        }
    ),
    openapi_extra=json_body(EXAMPLE),
)
@needs(Right.ADMIN)
def update_table(
    request: Request,
    table: TableName,
    text: BodyText,
    skipped: Annotated[Skipped, Query(alias="validationTypesToSkip")] = None,
) -> Any:
    """Changes settings of a half.

    Key, time column, topic and upsert cannot change, for stored rows depend on them. Columns change by the schema.
    """
    context = context_of(request)
    target, config = path_table(context, table), document(text)
    creation = configs.update_config(context.home.context, target.table.name, config, SOURCE, target.half)
    return _done(config, creation, f"Table config updated for {target.table.name}")


@router.delete("/tables/{table}", summary="Drop a table", response_model=StatusBody, responses=NOT_BUILT)
@needs(Right.ADMIN)
def delete_table(request: Request, table: TableName, type_: HalfType = None) -> Any:
    """Drops the table. Its data is kept, and `hybrid table undrop` restores it."""
    context = context_of(request)
    target = path_table(context, table, type_)
    if target.is_half_of_two:
        return half_not_dropped(target, "/tables")
    halves = ", ".join(f"{target.table.name}_{half}" for half in target.halves)
    sentence = context.home.drop_table(target.table.name)
    return JSONResponse({"status": f"Tables: [{halves}] deleted", "sentence": sentence})


def half_not_dropped(target: PathTable, path: str) -> JSONResponse:
    """Return the response to a request to drop one half of two; `path` and the table's name drop both."""
    name = target.table.name
    return not_built(
        f"Table '{name}' has two halves, and dropping one of them alone is not built yet. "
        f"DELETE {path}/{name} drops both."
    )


def _done(given: dict[str, object], made: Creation, status: str) -> dict[str, Any]:
    warnings = list(made.warnings)
    return {
        "unrecognizedProperties": unrecognized(given, warnings),
        "status": status,
        "sentence": made.sentence,
        "warnings": warnings,
    }


def _document(spec: Any, half: Half) -> dict[str, Any]:
    return dict((spec.realtime_doc if half is Half.REALTIME else spec.offline_doc) or {})


def config_shown(spec: Any, half: Half) -> dict[str, Any]:
    """Return one half's config as it was submitted, without secrets, under the half's name."""
    shown_doc = without_secrets(_document(spec, half))
    assert isinstance(shown_doc, dict)
    return {**shown_doc, "tableName": f"{spec.name}_{half}"}


def _tasks(config: dict[str, Any]) -> dict[str, Any]:
    return ((config.get("task") or {}).get("taskTypeConfigsMap")) or {}
