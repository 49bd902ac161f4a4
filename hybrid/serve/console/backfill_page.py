"""The page of one backfill: its plan bucket by bucket, differences, progress, actions, and who did what and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from itertools import zip_longest
from typing import Any
from urllib.parse import urlencode

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from hybrid.catalog.run_record import RunRecord
from hybrid.errors import HybridError, NotFoundError, UsageError
from hybrid.operations import backfill_status as states
from hybrid.operations.result_diff import RowChange, RowPair, result_difference
from hybrid.operations.run_views import run_details
from hybrid.rpc import json_views as views
from hybrid.serve.console.backfill_views import (
    actions_of,
    bucket_views,
    cell,
    default_statement,
    history,
    page_of,
    plan_words,
    planning_query,
    runs_of,
    sample_views,
    totals,
)
from hybrid.serve.console.bucket_chart import bucket_chart
from hybrid.serve.console.copies import Copies, command_line, copies_of
from hybrid.serve.console.page import (
    Json,
    PageRequest,
    accepts_json,
    change,
    error_page,
    html_response,
    page,
    page_headers,
)
from hybrid.serve.console.query_page import with_plan
from hybrid.serve.console.rendering import path_part, render
from hybrid.serve.context import context_of
from hybrid.serve.verbs import run_verb

router = APIRouter(include_in_schema=False)
_PATH = "/ui/tables/{table}/backfills/{backfill}"
_PAIRS_MAX, _PAIRS_WHOLE = 200, 40
_SQL_MAX = 100_000
# A plan in these states has nothing more to show: the table is compared with what it was before the plan.
_ENDED = frozenset({states.DONE, states.REVERTED, states.CANCELLED})


@page(router, _PATH, template="backfill.html", title="Backfill")
def backfill_page(ask: PageRequest, table: str, backfill: str) -> Json:
    """A backfill with its plan. `sql` is a statement to compare, `page` and `buckets=all` choose buckets."""
    status, shown = _backfill_and_table(ask, table, backfill)
    plan = status.pop("plan")
    entries = [entry for entry in ask.call("replacements", table=shown["name"]) if _is_of(entry, status["id"])]
    runs = ask.context.home.runs(shown["name"])
    own = runs_of(status["id"], runs)
    active = [entry for entry in entries if entry["state"] == "ACTIVE" and entry.get("backfill") == status["id"]]
    busy = next((run for run in own if run.incomplete), None)
    buckets = bucket_views(
        plan["buckets"], status["state"], [entry for entry in entries if entry.get("backfill")], runs
    )
    asked = ask.context.home.backfills.show(status["id"]).request
    return {
        **status,
        "plan": {name: value for name, value in plan.items() if name != "buckets"},
        "totals": totals(plan["buckets"]),
        "buckets": page_of(buckets, ask.parameter("page"), ask.parameter("buckets") == "all"),
        "chart": bucket_chart([bucket for bucket in buckets if bucket["progress"] is not None]),
        "samples": sample_views(plan["buckets"], _keys(shown), list(shown["columns"])),
        "sql": ask.parameter("sql") or default_statement(shown["name"], shown["columns"], plan["buckets"]),
        "ended": status["state"] in _ENDED,
        "busy": None if busy is None else _run(busy),
        "actions": actions_of(status, busy=busy is not None, active=bool(active), refused=bool(plan["failed_checks"])),
        "entries": history(entries),
        "runs": [_run(run) for run in own],
        "again": planning_query(asked),
        "copies": _copies(ask, status, asked),
    }


def backfill_of(ask: PageRequest, table: str, backfill: str) -> Json:
    """The backfill with its plan; NotFoundError where it is of another table."""
    return _backfill_and_table(ask, table, backfill)[0]


def _backfill_and_table(ask: PageRequest, table: str, backfill: str) -> tuple[Json, Json]:
    found, shown = ask.call("backfill", backfill=backfill), ask.call("table_show", table=table)
    if found["table"] != shown["name"]:
        raise NotFoundError(f"Backfill '{backfill}' is of table '{found['table']}', not of '{table}'.")
    return found, shown


def _is_of(entry: Mapping[str, Any], backfill: str) -> bool:
    return backfill in (entry.get("backfill"), entry.get("reverts"))


def _keys(shown: Mapping[str, Any]) -> list[str]:
    key = list(shown["primary_key"])
    return key or [shown["time_column"]] if key or shown["time_column"] else []


def _run(run: RunRecord) -> Json:
    details = run_details(run)
    return {**views.run_view(run), "error": details["error"], "source": details["source"]}


def _copies(ask: PageRequest, status: Mapping[str, Any], asked: Mapping[str, Any]) -> Copies:
    """The commands that plan, run and revert it. A plan of an erasure is not made by hand."""
    name = status["id"]
    shown = copies_of(
        ask.url, "backfill_run", {"backfill": name}, cli=("backfill", "run", name, "--yes"),
        python=f"hy.backfills.run({name!r}, BackfillOptions())",
    )  # fmt: skip
    shown[2]["text"] = f"from hybrid.replace.backfill.options import BackfillOptions\n{shown[2]['text']}"
    if "erasure" in asked:
        return shown
    planned = command_line(plan_words(status["table"], asked), "Plan it again")
    return [planned, *shown, command_line(("backfill", "revert", name), "Revert")]


# Changes


@change(router, f"{_PATH}/run", verb="backfill_run", then=_PATH, template="backfill_change.html")
def run_change(ask: PageRequest, table: str, backfill: str) -> Json:
    """Runs or resumes a backfill."""
    backfill_of(ask, table, backfill)
    arguments: dict[str, Any] = {"backfill": backfill, **ask.texts("reason", "user")}
    arguments |= {name: True for name in ("atomic", "newest_first") if ask.is_checked(name)}
    pace = ask.text("rows_per_second")
    if pace is not None:
        arguments["rows_per_second"] = _pace(pace)
    return arguments


def _pace(text: str) -> float:
    try:
        pace = float(text)
    except ValueError as error:
        raise UsageError(f"Rows per second: '{text[:40]}' is not a number.") from error
    if not 0 < pace < float("inf"):
        raise UsageError(f"Rows per second: '{text[:40]}' is not a number above 0.")
    return pace


@change(router, f"{_PATH}/pause", verb="backfill_pause", then=_PATH, template="backfill_change.html")
@change(router, f"{_PATH}/cancel", verb="backfill_cancel", then=_PATH, template="backfill_change.html")
@change(router, f"{_PATH}/release", verb="backfill_release", then=_PATH, template="backfill_change.html")
def named_change(ask: PageRequest, table: str, backfill: str) -> Json:
    """Pauses a backfill after the commit in progress, cancels it for good, or gives back its rejected rows."""
    backfill_of(ask, table, backfill)
    return {"backfill": backfill}


@change(router, f"{_PATH}/revert", verb="backfill_revert", then=_PATH, template="backfill_change.html")
def revert_change(ask: PageRequest, table: str, backfill: str) -> Json:
    """Reverts all corrections of a backfill; the field `confirm` repeats the table's name."""
    ask.require_confirmed(backfill_of(ask, table, backfill)["table"])
    return {"backfill": backfill, **ask.texts("reason", "user")}


# A statement before and after


@router.get(f"{_PATH}/result.json")
async def result_json(request: Request) -> Response:
    """Returns the difference between the results of the statement `sql` before and after the backfill."""
    return JSONResponse(await _result(request), headers={**page_headers(), "Cache-Control": "no-store"})


@router.get(f"{_PATH}/result")
async def result_fragment(request: Request) -> Response:
    """Returns the difference as part of the backfill's page."""
    if accepts_json(request):
        return await result_json(request)
    parameters = request.path_params
    if "hx-request" not in request.headers:
        place = _PATH.format(**{name: path_part(part) for name, part in parameters.items()})
        query = urlencode({"sql": request.query_params.get("sql", "")})
        return RedirectResponse(f"{place}?{query}", status_code=303)
    try:
        model = await _result(request)
    except HybridError as error:
        return error_page(request, error, "Result")
    body = await run_sync(partial(render, "backfill_result.html", {"model": model}))
    return html_response(body)


async def _result(request: Request) -> Json:
    context, sql = context_of(request), request.query_params.get("sql", "").strip().rstrip(";").rstrip()
    if not sql or len(sql) > _SQL_MAX:
        raise UsageError("There is no statement to compare.", hint="SELECT COUNT(*) FROM ...")
    asked = PageRequest(request, context)
    status = await run_sync(partial(backfill_of, asked, **request.path_params), limiter=context.page_threads)
    first, second = statements(sql, status)
    before, after = [bytes((await run_verb("query", request, arguments)).body) for arguments in (first, second)]
    return await run_sync(partial(result_view, status, sql, before, after), limiter=context.page_threads)


def statements(sql: str, status: Mapping[str, Any]) -> tuple[Json, Json]:
    """The arguments of the verb `query` before and after a backfill.

    Until its end: now, and with `SET plan`.
    Afterwards: as of the revision that it was planned on, and now.
    """
    now = {"sql": sql, "all_rows": True}
    if status["state"] in _ENDED:
        return {**now, "as_of": status["plan"]["base_revision"]}, now
    return now, {**now, "sql": with_plan(sql, status["id"])}


def result_view(status: Mapping[str, Any], sql: str, before: bytes, after: bytes) -> Json:
    """The difference of two answers of the verb `query`: rows that differ, and all where they are few."""
    first, second = json.loads(before), json.loads(after)
    found = result_difference(first, second)
    whole = len(found.pairs) <= _PAIRS_WHOLE
    pairs = [pair for pair in found.pairs if whole or pair.change is not RowChange.SAME]
    return {
        "sql": sql,
        "ended": status["state"] in _ENDED,
        "sentence": found.sentence,
        "differs": found.differs,
        "columns": list(found.columns),
        "types": list(found.types),
        "key": None if found.key is None else list(found.key),
        "rows": [_pair_view(pair) for pair in pairs[:_PAIRS_MAX]],
        "row_count": len(pairs),
        "equal": found.count(RowChange.SAME),
        "revision_before": first["revision"],
        "revision_after": second["revision"],
        "warnings": list(dict.fromkeys([*first["warnings"], *second["warnings"]])),
    }


def _pair_view(pair: RowPair) -> Json:
    values = zip_longest(pair.before or (), pair.after or ())
    cells = [cell(before, after, differs=place in pair.places) for place, (before, after) in enumerate(values)]
    return {"change": pair.change.value, "cells": cells}
