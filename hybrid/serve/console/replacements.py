"""The pages of a table's replacements: what changed the offline half, by whom and why, and how to take it back."""

from __future__ import annotations

from fastapi import APIRouter

from hybrid.serve.console.backfill_views import HISTORY_MAX, history
from hybrid.serve.console.copies import copies_of
from hybrid.serve.console.page import Json, PageRequest, change, page

router = APIRouter(include_in_schema=False)
_PATH = "/ui/tables/{table}/replacements"


@page(router, _PATH, template="replacements.html", title="Replacements")
def replacements_page(ask: PageRequest, table: str) -> Json:
    """The lineage of a table; the commits of one backfill are one item."""
    shown = ask.call("table_show", table=table)
    name, has_offline = shown["name"], "OFFLINE" in shown["halves"]
    found = ask.call("replacements", table=name) if has_offline else []
    items = history(found)
    return {
        "table": name,
        "has_offline": has_offline,
        "history": items,
        "is_cut": len(items) == HISTORY_MAX,
        "copies": copies_of(
            ask.url, "replacements", {"table": name}, cli=("replacement", "list", name),
            python=f"hy.table({name!r}).replacements()",
        ),
    }  # fmt: skip


@page(router, f"{_PATH}/{{entry}}", template="replacement.html", title="Replacement")
def replacement_page(ask: PageRequest, table: str, entry: str) -> Json:
    """One replacement, with the files it was made of."""
    name = ask.call("table_show", table=table)["name"]
    found = ask.call("replacement", table=name, entry=entry)
    return {
        "table": name,
        "entry": found,
        "revertible": found["state"] in {"ACTIVE", "IN_PROGRESS"},
        "copies": copies_of(
            ask.url, "revert", {"table": name, "entry": found["id"]},
            cli=("replacement", "revert", name, found["id"]), python=f"hy.table({name!r}).revert({found['id']!r})",
        ),
    }  # fmt: skip


@change(router, f"{_PATH}/{{entry}}/revert", verb="revert", then=f"{_PATH}/{{entry}}", template="backfill_change.html")
def revert_change(ask: PageRequest, table: str, entry: str) -> Json:
    """Takes a replacement back; the field `confirm` repeats the table's name."""
    name = ask.call("table_show", table=table)["name"]
    ask.require_confirmed(name)
    return {"table": name, "entry": entry, **ask.texts("reason", "user")}
