"""Routes `/tableConfigs`: schema and configs of a table as one document; `.../validate` writes nothing.

StarTree's MCP server and Pinot's own console use these paths. Source: TableConfigsRestletResource of Apache Pinot.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool

from hybrid.config.table_config import Half
from hybrid.config.table_documents import TableDocuments
from hybrid.errors import ConflictError, SpecError
from hybrid.home.accounts import Right
from hybrid.operations.tables import configs
from hybrid.rpc.json_views import export_view
from hybrid.schema.document import Section
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import SOURCE, BodyText, StrictRouter, document, unrecognized
from hybrid.serve.context import ServerContext, context_of
from hybrid.serve.openapi import NOT_BUILT, StatusBody, json_body, shown
from hybrid.serve.path_parameters import TableName, path_table
from hybrid.serve.schemas import EXAMPLE as SCHEMA
from hybrid.serve.tables import EXAMPLE as CONFIG
from hybrid.serve.tables import config_shown, half_not_dropped

router = StrictRouter(tags=["tables"])
EXAMPLE: dict[str, Any] = {"tableName": "events", "schema": SCHEMA, "offline": CONFIG}
_DONE = shown({"unrecognizedProperties": {}, "status": "TableConfigs events successfully added", "warnings": []})
_KEYS = {Half.OFFLINE: "offline", Half.REALTIME: "realtime"}
Skipped = Annotated[str | None, Query(alias="validationTypesToSkip", description="Read and not used", examples=["ALL"])]


@router.get("/tableConfigs", summary="List the tables with configs", responses=shown(["events", "orders"]))
def list_table_configs(request: Request) -> list[str]:
    """Returns table names without suffix."""
    return list(context_of(request).home.context.listed_names())


@router.get("/tableConfigs/{table}", summary="Show schema and configs", responses=shown(EXAMPLE))
def show_table_configs(request: Request, table: TableName) -> Any:
    """Returns schema and configs as they were submitted, without secrets and without absent halves."""
    target = path_table(context_of(request), table)
    spec = target.table.spec
    shown_configs = {_KEYS[half]: config_shown(spec, half) for half in target.halves}
    return {"tableName": spec.name, "schema": spec.schema_doc, **shown_configs}


@router.get(
    "/tables/{table}/export",
    summary="Export a table's documents",
    responses=shown({"table": "events", "documents": EXAMPLE, "brokers": None, "hidden": []}),
)
def export_table(request: Request, table: TableName) -> Any:
    """Returns schema and configs with references to secrets; `hidden` are the places of secrets that are left out."""
    return export_view(path_table(context_of(request), table).table.export())


@router.post("/tableConfigs", summary="Add schema and configs", responses=_DONE, openapi_extra=json_body(EXAMPLE))
@needs(Right.ADMIN)
async def add_table_configs(request: Request, text: BodyText, skipped: Skipped = None) -> Any:
    """Creates a table from one document; 409 if it exists."""
    context, body = context_of(request), document(text)
    documents = _documents(body)
    name = _name(body)
    if name in await run_in_threadpool(context.home.table_names):
        raise ConflictError(f"Table '{name}' exists already. Nothing was changed.", hint=f"PUT /tableConfigs/{name}")
    return await _apply(context, body, documents, f"TableConfigs {name} successfully added")


@router.put(
    "/tableConfigs/{table}", summary="Change schema and configs", responses=_DONE, openapi_extra=json_body(EXAMPLE)
)
@needs(Right.ADMIN)
async def update_table_configs(request: Request, table: TableName, text: BodyText, skipped: Skipped = None) -> Any:
    """Changes schema and configs at once, as `PUT /schemas/{schema}` and `PUT /tables/{table}` do; 404 for no table."""
    context, body = context_of(request), document(text)
    target = await run_in_threadpool(path_table, context, table)
    name = target.table.name
    if _name(body) != name:
        raise SpecError.at(SOURCE, "tableName", f"it is not the table of the path, '{name}'.")
    for half, key in _KEYS.items():
        if target.half not in (None, half) and body.get(key) is not None:
            raise SpecError.at(SOURCE, key, f"the path names the {target.half} half alone.")
    return await _apply(context, body, _documents(body), f"TableConfigs updated for {name}")


@router.delete("/tableConfigs/{table}", summary="Drop a table", response_model=StatusBody, responses=NOT_BUILT)
@needs(Right.ADMIN)
def delete_table_configs(request: Request, table: TableName) -> Any:
    """Drops the table with its schema, as `DELETE /tables/{table}`; `hybrid table undrop` restores it."""
    context = context_of(request)
    target = path_table(context, table)
    if target.is_half_of_two:
        return half_not_dropped(target, "/tableConfigs")
    return {"status": context.home.drop_table(target.table.name)}


@router.post("/tableConfigs/validate", summary="Check schema and configs", openapi_extra=json_body(EXAMPLE))
@needs(Right.READ)
def validate_table_configs(request: Request, text: BodyText, skipped: Skipped = None) -> Any:
    """Checks the documents and returns them with their warnings; 400 names the mistake. Nothing is written."""
    body = document(text)
    spec = context_of(request).home.validate(_documents(body))
    warnings = list(spec.warnings)
    return {**body, "unrecognizedProperties": unrecognized(body, warnings), "warnings": warnings}


@router.post("/tables/validate", summary="Check a table config", openapi_extra=json_body(CONFIG))
@needs(Right.READ)
def validate_table(request: Request, text: BodyText, skipped: Skipped = None) -> Any:
    """Checks a config and returns it by half with warnings; 400 names the mistake. Its schema must be stored."""
    context, config = context_of(request), document(text)
    _, halves = configs.halves_of(config, SOURCE)
    spec = context.home.validate(configs.documents_of(context.home.context, config, SOURCE, None))
    warnings = list(spec.warnings)
    shown_halves = {half.value: half_config for half, half_config in halves.items()}
    return {**shown_halves, "unrecognizedProperties": unrecognized(config, warnings), "warnings": warnings}


@router.post("/schemas/validate", summary="Check a schema", openapi_extra=json_body(SCHEMA, form=True))
@needs(Right.READ)
def validate_schema(request: Request, text: BodyText) -> Any:
    """Checks the schema and returns it; 400 names the mistake. Nothing is written."""
    from hybrid.config.schema_json import parse_schema

    schema = document(text)
    parse_schema(schema, SOURCE)
    return schema


async def _apply(
    context: ServerContext, given: dict[str, object], documents: TableDocuments, status: str
) -> dict[str, Any]:
    outcome = await context.done("table_apply", {"documents": documents.to_json()})
    warnings = list(outcome["warnings"])
    return {
        "unrecognizedProperties": unrecognized(given, warnings),
        "status": status,
        "sentence": outcome["sentence"],
        "warnings": warnings,
    }


def _name(given: dict[str, object]) -> str:
    return Section(given, SOURCE).text("tableName")


def _documents(given: dict[str, object]) -> TableDocuments:
    """Split one document into schema and configs. SpecError names a part that is missing, no object or foreign."""
    name = _name(given)
    halves = [(half, _part(given, key)) for half, key in _KEYS.items() if given.get(key) is not None]
    if not halves:
        raise SpecError.at(SOURCE, "offline", "neither 'offline' nor 'realtime' is there; a table needs one of them.")
    for half, part in halves:
        table, of = configs.halves_of(part, f"{SOURCE}.{_KEYS[half]}")
        if (table, list(of)) != (name, [half]):
            raise SpecError.at(SOURCE, _KEYS[half], f"it is not the {half} config of table '{name}'.")
    schema = _part(given, "schema")
    return TableDocuments((schema, f"{SOURCE}.schema"), [(part, f"{SOURCE}.{_KEYS[half]}") for half, part in halves])


def _part(given: dict[str, object], key: str) -> dict[str, object]:
    part = given.get(key)
    if part is None:
        raise SpecError.at(SOURCE, key, "is missing.")
    if not isinstance(part, dict):
        raise SpecError.at(SOURCE, key, "must be an object.")
    return part
