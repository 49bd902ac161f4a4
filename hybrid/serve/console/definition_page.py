"""The page of a table's definition: schema and configs, changed after the difference was shown."""

from __future__ import annotations

from fastapi import APIRouter

from hybrid.errors import ConflictError, UsageError
from hybrid.serve.console.copies import copies_of
from hybrid.serve.console.page import Json, PageRequest, change, page
from hybrid.serve.console.pasted_form import pasted_table
from hybrid.serve.console.rendering import digest

router = APIRouter(include_in_schema=False)
_PATH = "/ui/tables/{table}/edit"


@page(router, _PATH, template="definition.html", title="Definition")
def definition_page(ask: PageRequest, table: str) -> Json:
    """The documents of a table as `hybrid table export` prints them."""
    exported = ask.call("table_export", table=table)
    name = exported["table"]
    return {
        **exported,
        "copies": copies_of(
            ask.url, "table_export", {"table": name}, cli=("table", "export", name),
            python=f"hy.table({name!r}).export()",
        ),
    }  # fmt: skip


@change(router, f"{_PATH}/check", verb="table_apply", then=_PATH, template="table_checked.html", stays=True)
def check_change(ask: PageRequest, table: str) -> Json:
    """Shows the difference to the table's definition. Nothing is changed."""
    return {"documents": _documents(ask, table), "dry_run": True}


@change(router, _PATH, verb="table_apply", then=_PATH, template="table_changed.html")
def apply_change(ask: PageRequest, table: str) -> Json:
    """Applies documents whose difference was shown; the field `shown` is its digest."""
    documents = _documents(ask, table)
    planned = ask.call("table_apply", documents=documents, dry_run=True)
    if ask.text("shown") != digest(planned["changes"]):
        raise ConflictError("The difference is no longer the one that was shown. Nothing was changed: check it again.")
    return {"documents": documents}


def _documents(ask: PageRequest, table: str) -> Json:
    name = ask.call("table_show", table=table)["name"]
    found = pasted_table(ask)
    if found.name != name:
        raise UsageError(f"The documents describe table '{found.name}', and this is the page of '{name}'.")
    return found.documents.to_json()
