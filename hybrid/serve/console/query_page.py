"""Page `/ui/query`: an editor for statements, and their results as table, chart and plan.

The page's script runs statements by the verbs `query` and `explain`, as the command line does. Without scripts the
form asks for `html=1`, and the server renders the rows.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from starlette.responses import Response

from hybrid.errors import HybridError, error_document
from hybrid.operations.result_diff import NUMERIC
from hybrid.query.connection import quoted
from hybrid.serve.console.page import accepts_json, html_response, page_headers
from hybrid.serve.console.rendering import render, value_text
from hybrid.serve.context import ServerContext, context_of
from hybrid.serve.verbs import run_verb
from hybrid.sql.tokens import VIRTUAL
from hybrid.sql.vocabulary import KEYWORDS, RESERVED, SET_OPTIONS, TYPE_NAMES, function_names

router = APIRouter(include_in_schema=False)
PATH = "/ui/query"
ROWS_WITHOUT_SCRIPTS = 200
_CELL_MAX = 400  # characters
_PLAIN_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
Json = Any


@dataclass(frozen=True)
class AskedStatement:
    """What the address asks for: a statement, its moment, and a backfill plan to preview."""

    sql: str
    as_of: str
    plan: str

    @classmethod
    def of(cls, request: Request) -> AskedStatement:
        """Read the parameters of a request."""
        query = request.query_params
        return cls(query.get("sql", ""), query.get("as_of", "").strip(), query.get("plan", "").strip())

    def arguments(self) -> dict[str, Any]:
        """The arguments of the verb `query`."""
        sql = with_plan(self.sql, self.plan) if self.plan else self.sql
        return {"sql": sql, "as_of": self.as_of or None}

    def to_json(self) -> dict[str, str]:
        """The parameters as the page and its twin name them."""
        return {"sql": self.sql, "as_of": self.as_of, "plan": self.plan}


def with_plan(sql: str, plan: str) -> str:
    """A statement that previews a plan. The setting follows it, where it moves no position of an error."""
    return f"{sql}\n;\nSET plan = {quoted(plan)}"


@router.get(f"{PATH}.json")
async def query_json(request: Request) -> Response:
    """Returns the statement of the address with its result; without a statement `result` is null."""
    asked = AskedStatement.of(request)
    result = await _result(request, asked) if asked.sql.strip() else b"null"
    # The result is JSON already: parsing a large one here would block the event loop.
    head = json.dumps(asked.to_json(), ensure_ascii=False).encode("utf-8", "backslashreplace")
    body = head.removesuffix(b"}") + b', "result": ' + result + b"}"
    return Response(body, headers={**page_headers(), "Cache-Control": "no-store"}, media_type="application/json")


@router.get(PATH)
async def query_page(request: Request) -> Response:
    """Returns the page; with `html=1` and a statement also its rows."""
    if accepts_json(request):
        return await query_json(request)
    asked = AskedStatement.of(request)
    result, error = None, None
    if request.query_params.get("html") and asked.sql.strip():
        try:
            result = await _result(request, asked)
        except HybridError as failure:
            error = error_document(failure)
    context = context_of(request)
    return await run_sync(_html, context, asked, result, error, limiter=context.page_threads)


async def _result(request: Request, asked: AskedStatement) -> bytes:
    """The result of the verb, as JSON. It waits and is limited as a statement of the command line."""
    answer: Response = await run_verb("query", request, asked.arguments())
    return bytes(answer.body)


def _html(
    context: ServerContext, asked: AskedStatement, result: bytes | None, error: Mapping[str, Any] | None
) -> Response:
    nonce = secrets.token_urlsafe(16)
    shown = None if result is None else table_of(json.loads(result))
    model = {**asked.to_json(), "words": vocabulary(), "result": shown, "error": error}
    values = {
        "model": model,
        "title": "Query",
        "path": PATH,
        "nonce": nonce,
        "tables": context.home.context.listed_names(),
    }
    return html_response(render("query.html", values), nonce=nonce)


@cache
def vocabulary() -> Mapping[str, list[str]]:
    """The words of the dialect for the editor: what the interactive shell highlights and completes."""
    functions = [name for name in function_names() if set(name) <= _PLAIN_NAME]
    return {
        "keywords": sorted(KEYWORDS),
        "reserved": sorted(RESERVED),
        "functions": functions,
        "types": sorted(TYPE_NAMES),
        "virtual": list(VIRTUAL),
        "options": list(SET_OPTIONS),
    }


def table_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """The view of a result for the template: at most `ROWS_WITHOUT_SCRIPTS` rows of cells, and how many there are."""
    types = result["types"]
    shown = result["rows"][:ROWS_WITHOUT_SCRIPTS]
    return {
        "columns": [
            {"name": name, "type": kind.lower(), "is_number": kind in NUMERIC}
            for name, kind in zip(result["columns"], types, strict=True)
        ],
        "rows": [[cell_of(value, kind) for value, kind in zip(row, types, strict=True)] for row in shown],
        "row_count": len(result["rows"]),
        "warnings": result["warnings"],
        "revision": result["revision"],
        "source": result["source"],
    }


def cell_of(value: Json, kind: str) -> dict[str, Any]:
    """One value: its text, and whether it is a number or NULL."""
    text = value_text(value, _CELL_MAX)
    return {"text": "NULL" if text is None else text, "is_null": text is None, "is_number": kind in NUMERIC}
