"""`/tableConfigs`: schema and both configs of a table as one document, and `.../validate`, which writes nothing.

StarTree's MCP server and Pinot's own console use these paths. Source: TableConfigsRestletResource of Apache Pinot.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from hybrid.config.table_config import Half
from hybrid.config.table_documents import TableDocuments
from hybrid.errors import ConflictError, SpecError
from hybrid.operations.tables import configs
from hybrid.schema.document import Section
from hybrid.serve.bodies import SOURCE, BodyText, document, unrecognized
from hybrid.serve.context import ServerContext, context_of
from hybrid.serve.openapi import StatusBody, json_body, shown
from hybrid.serve.path_parameters import TableName, path_table
from hybrid.serve.schemas import EXAMPLE as SCHEMA
from hybrid.serve.tables import EXAMPLE as CONFIG
from hybrid.serve.tables import config_shown

router = APIRouter(tags=["tables"])
EXAMPLE: dict[str, Any] = {"tableName": "events", "schema": SCHEMA, "offline": CONFIG}
_DONE = shown({"unrecognizedProperties": {}, "status": "TableConfigs events successfully added", "warnings": []})
_KEYS = {Half.OFFLINE: "offline", Half.REALTIME: "realtime"}
Skipped = Annotated[str | None, Query(alias="validationTypesToSkip", description="Read and not used", examples=["ALL"])]


@router.get("/tableConfigs", summary="List the tables with configs", responses=shown(["events", "orders"]))
def list_table_configs(request: Request) -> list[str]:
    """Names without suffix."""
    return list(context_of(request).home.table_names())


@router.get("/tableConfigs/{table}", summary="Show schema and configs", responses=shown(EXAMPLE))
def show_table_configs(request: Request, table: TableName) -> Any:
    """The documents as they were given, secrets left out; a half that the table does not have is left out."""
    found = path_table(context_of(request), table)
    spec = found.table.spec
    shown_configs = {_KEYS[half]: config_shown(spec, half) for half in found.halves}
    return {"tableName": spec.name, "schema": spec.schema_doc, **shown_configs}


@router.post("/tableConfigs", summary="Add schema and configs", responses=_DONE, openapi_extra=json_body(EXAMPLE))
async def add_table_configs(request: Request, text: BodyText, skipped: Skipped = None) -> Any:
    """Creates a table from one document; 409 when it exists."""
    context, given = context_of(request), document(text)
    documents = _documents(given)
    name = _name(given)
    if name in await run_in_threadpool(context.home.table_names):
        raise ConflictError(f"Table '{name}' exists already. Nothing was changed.", hint=f"PUT /tableConfigs/{name}")
    return await _apply(context, given, documents, f"TableConfigs {name} successfully added")


@router.put(
    "/tableConfigs/{table}", summary="Change schema and configs", responses=_DONE, openapi_extra=json_body(EXAMPLE)
)
async def update_table_configs(request: Request, table: TableName, text: BodyText, skipped: Skipped = None) -> Any:
    """As `PUT /schemas/{schema}` and `PUT /tables/{table}` in one; 404 for a table that does not exist."""
    context, given = context_of(request), document(text)
    name = (await run_in_threadpool(path_table, context, table)).table.name
    if _name(given) != name:
        raise SpecError.at(SOURCE, "tableName", f"it is not the table of the path, '{name}'.")
    return await _apply(context, given, _documents(given), f"TableConfigs updated for {name}")


@router.delete("/tableConfigs/{table}", summary="Drop a table", response_model=StatusBody)
def delete_table_configs(request: Request, table: TableName) -> Any:
    """As `DELETE /tables/{table}`: `hybrid table undrop` brings it back. Its schema goes with it."""
    context = context_of(request)
    return {"status": context.home.drop_table(path_table(context, table).table.name)}


@router.post("/tableConfigs/validate", summary="Check schema and configs", openapi_extra=json_body(EXAMPLE))
def validate_table_configs(request: Request, text: BodyText, skipped: Skipped = None) -> Any:
    """Answers the documents and their warnings; 400 names what is wrong. Nothing is written."""
    given = document(text)
    spec = context_of(request).home.validate(_documents(given))
    warnings = list(spec.warnings)
    return {**given, "unrecognizedProperties": unrecognized(given, warnings), "warnings": warnings}


@router.post("/tables/validate", summary="Check a table config", openapi_extra=json_body(CONFIG))
def validate_table(request: Request, text: BodyText, skipped: Skipped = None) -> Any:
    """Answers the config by half and its warnings; 400 names what is wrong. Its schema is stored already."""
    context, given = context_of(request), document(text)
    _, halves = configs.halves_of(given, SOURCE)
    spec = context.home.validate(configs.documents_of(context.home.context, given, SOURCE, None))
    warnings = list(spec.warnings)
    shown_halves = {half.value: one for half, one in halves.items()}
    return {**shown_halves, "unrecognizedProperties": unrecognized(given, warnings), "warnings": warnings}


@router.post("/schemas/validate", summary="Check a schema", openapi_extra=json_body(SCHEMA, form=True))
def validate_schema(request: Request, text: BodyText) -> Any:
    """Answers the schema; 400 names what is wrong. Nothing is written."""
    from hybrid.config.schema_json import parse_schema

    given = document(text)
    parse_schema(given, SOURCE)
    return given


async def _apply(
    context: ServerContext, given: dict[str, object], documents: TableDocuments, status: str
) -> dict[str, Any]:
    done = await context.done("table_apply", {"documents": documents.to_json()})
    warnings = list(done["warnings"])
    return {
        "unrecognizedProperties": unrecognized(given, warnings),
        "status": status,
        "sentence": done["sentence"],
        "warnings": warnings,
    }


def _name(given: dict[str, object]) -> str:
    return Section(given, SOURCE).text("tableName")


def _documents(given: dict[str, object]) -> TableDocuments:
    """The parts of one document. SpecError names a part that is missing or no object, or of another table."""
    name = _name(given)
    halves = [(half, _part(given, key)) for half, key in _KEYS.items() if given.get(key) is not None]
    if not halves:
        raise SpecError.at(SOURCE, "offline", "neither 'offline' nor 'realtime' is there; a table needs one of them.")
    for half, part in halves:
        found, of = configs.halves_of(part, f"{SOURCE}.{_KEYS[half]}")
        if (found, list(of)) != (name, [half]):
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
