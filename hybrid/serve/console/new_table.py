"""The page that creates a table from pasted Pinot files or a CREATE TABLE statement: checked first, then created."""

from __future__ import annotations

from fastapi import APIRouter

from hybrid.errors import ConflictError
from hybrid.operations.tables.pasted import PastedTable
from hybrid.serve.console.page import Json, PageRequest, change, page
from hybrid.serve.console.pasted_form import FIELDS, pasted_table

router = APIRouter(include_in_schema=False)
_PATH = "/ui/new-table"


@page(router, _PATH, template="new_table.html", title="New table")
def new_table_page(ask: PageRequest) -> Json:
    """The form; parameters of the address (`whole`, `schema`, `realtime`, `offline`, `kafka`) fill it in."""
    return {"form": {name: ask.parameter(name) for name in FIELDS}, "brokers": ask.context.home.settings.kafka}


@change(router, f"{_PATH}/check", verb="table_apply", then=_PATH, template="table_checked.html", stays=True)
def check_change(ask: PageRequest) -> Json:
    """Checks the documents and says what would be created. Nothing is changed."""
    return {"documents": _new(ask).documents.to_json(), "dry_run": True}


@change(router, _PATH, verb="table_create", then="/ui/tables/{table}", template="table_changed.html")
def create_change(ask: PageRequest) -> Json:
    """Creates the table."""
    return {"documents": _new(ask).documents.to_json()}


def _new(ask: PageRequest) -> PastedTable:
    found = pasted_table(ask)
    if found.name in ask.context.home.table_names():
        raise ConflictError(
            f"Table '{found.name}' exists already. Nothing was changed. Its page Definition changes it."
        )
    return found
