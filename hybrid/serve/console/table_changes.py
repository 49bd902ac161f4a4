"""Changes of a table that several pages offer: pause, resume, move now."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from hybrid.serve.console.page import Json, PageRequest, change

router = APIRouter(include_in_schema=False)


@change(router, "/ui/tables/{table}/pause", verb="pause", then="/ui/tables/{table}/ingestion")
def pause_change(ask: PageRequest, table: str) -> Json:
    """Pauses the table's ingestion; the field `comment` says why."""
    return {"table": table, "comment": ask.text("comment")}


@change(router, "/ui/tables/{table}/resume", verb="resume", then="/ui/tables/{table}/ingestion")
def resume_change(ask: PageRequest, table: str) -> Json:
    """Resumes the table's ingestion."""
    return {"table": table}


@change(router, "/ui/tables/{table}/move", verb="move", then="/ui/tables/{table}")
def move_change(ask: PageRequest, table: str) -> Json:
    """Moves the next closed bucket, or all of them with `all`; with `dry_run` it only says what would move."""
    arguments: dict[str, Any] = {"table": table}
    if ask.is_checked("all"):
        arguments["max_buckets"] = None
    return {**arguments, "dry_run": True} if ask.is_checked("dry_run") else arguments
