"""Routes `/schemas`: schemas independent of tables, as in Pinot."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query, Request
from starlette.concurrency import run_in_threadpool

from hybrid.errors import SpecError
from hybrid.home.accounts import Right
from hybrid.operations.tables import schemas
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import SOURCE, BodyText, StrictRouter, document, unrecognized
from hybrid.serve.context import context_of
from hybrid.serve.openapi import StatusBody, json_body, shown

router = StrictRouter(tags=["schemas"])
EXAMPLE: dict[str, Any] = {
    "schemaName": "events",
    "dimensionFieldSpecs": [{"name": "event_id", "dataType": "INT"}],
    "metricFieldSpecs": [{"name": "amount", "dataType": "FLOAT"}],
    "dateTimeFieldSpecs": [
        {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
    ],
}
_ADDED = shown({"unrecognizedProperties": {}, "status": "events successfully added", "warnings": []})
SchemaName = Annotated[str, Path(examples=["events"])]
Override = Annotated[bool, Query(description="Whether a schema of that name may be there already")]


@router.post("/schemas", summary="Add a schema", responses=_ADDED, openapi_extra=json_body(EXAMPLE, form=True))
@needs(Right.ADMIN)
async def add_schema(request: Request, text: BodyText, override: Override = True) -> Any:
    """Stores a schema, before the tables that use it. The body is the schema, or a form with its file.

    Existing tables may gain columns and wider types; a change that would lose values is refused.
    """
    return await _put(request, document(text), override)


@router.get("/schemas", summary="List the schemas", responses=shown(["events", "orders"]))
def list_schemas(request: Request) -> list[str]:
    """Returns the names of all schemas, including schemas of tables."""
    return schemas.schema_names(context_of(request).home.context)


@router.get("/schemas/{schema}", summary="Show a schema", responses=shown(EXAMPLE))
def show_schema(request: Request, schema: SchemaName) -> Any:
    """Returns the schema as it was submitted."""
    return schemas.find_schema(context_of(request).home.context, schema)


@router.put(
    "/schemas/{schema}", summary="Update a schema", responses=_ADDED, openapi_extra=json_body(EXAMPLE, form=True)
)
@needs(Right.ADMIN)
async def update_schema(request: Request, schema: SchemaName, text: BodyText) -> Any:
    """Replaces a schema; tables that use it get its new columns and wider types."""
    await run_in_threadpool(schemas.find_schema, context_of(request).home.context, schema)
    body = document(text)
    if body.get("schemaName") != schema:
        raise SpecError.at(SOURCE, "schemaName", f"it is not the schema of the path, '{schema}'.")
    return await _put(request, body, True)


@router.delete("/schemas/{schema}", summary="Delete a schema", response_model=StatusBody)
@needs(Right.ADMIN)
def delete_schema(request: Request, schema: SchemaName) -> Any:
    """Removes a schema that no table uses."""
    schemas.drop_schema(context_of(request).home.context, schema)
    return {"status": f"Schema {schema} deleted"}


async def _put(request: Request, given: dict[str, object], override: bool) -> Any:
    """Store the document and apply it to the tables that use it."""
    arguments = {"schema": given, "source": SOURCE, "override": override}
    outcome = await context_of(request).done("schema_put", arguments)
    return {
        "unrecognizedProperties": unrecognized(given, outcome["warnings"]),
        "status": f"{outcome['name']} successfully added",
        "warnings": list(outcome["warnings"]),
    }
