"""Routes `/livez`, `/readyz` with named checks, `/health` and `/version` as in Pinot, and `/metrics`."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from fastapi import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from hybrid.catalog.catalog import CATALOG_ERRORS
from hybrid.errors import HybridError
from hybrid.runtime import durable
from hybrid.runtime.json_values import json_value
from hybrid.serve.bodies import StrictRouter
from hybrid.serve.context import ServerContext, context_of

router = StrictRouter(tags=["operations"])
BEAT_S_MAX = 5.0
# Reported without making the server unready, as it still answers for all other tables.
_TOLD = frozenset({"connectors"})
_IN_CATALOG = frozenset({"pipeline", "connectors"})
_FOR_ACCOUNTS = "told to accounts"


@router.get("/livez", response_class=PlainTextResponse, summary="This process answers")
async def livez() -> str:
    """Returns `OK` from the event loop, which no slow route can occupy."""
    return "OK"


@router.get("/health", response_class=PlainTextResponse, summary="Pinot's health check")
async def health() -> str:
    """Returns `OK`."""
    return "OK"


@router.get("/readyz", summary="Everything is there that work needs", responses={503: {"description": "Not ready"}})
def readyz(request: Request) -> JSONResponse:
    """Returns `{"status": "ok", "checks": [{"name", "ok", "detail"}]}`; 503 if a check other than connectors fails.

    If accounts are required, only they see the details: paths, names and errors.
    """
    results = checks(context_of(request))
    if not getattr(request.state, "may_see_details", True):
        results = [{"name": check["name"], "ok": check["ok"], "detail": _FOR_ACCOUNTS} for check in results]
    ready = all(check["ok"] for check in results if check["name"] not in _TOLD)
    document = {"status": "ok" if ready else "not ready", "checks": results}
    return JSONResponse(document, status_code=200 if ready else 503)


@router.get("/version", summary="The product's version")
def show_version() -> dict[str, str]:
    """Returns the version by component, as in Pinot."""
    return {"hybrid": version("hybrid")}


@router.get("/metrics", response_class=PlainTextResponse, summary="Prometheus metrics")
def metrics(request: Request) -> Response:
    """Returns metrics in Prometheus' text format."""
    return Response(context_of(request).metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def checks(context: ServerContext) -> list[dict[str, Any]]:
    """Run the named readiness checks; each has a sentence as detail.

    What is read from the catalog is not asked when the catalog failed its own check: a silent database would be
    awaited again.
    """
    catalog = _checked("catalog", context, _catalog)
    others = [
        {**catalog, "name": name} if name in _IN_CATALOG and not catalog["ok"] else _checked(name, context, look)
        for name, look in _LOOKS.items()
    ]
    return [catalog, *others]


def _checked(name: str, context: ServerContext, look: Callable[[ServerContext], tuple[bool, str]]) -> dict[str, Any]:
    try:
        ok, detail = look(context)
    except (HybridError, OSError, *CATALOG_ERRORS) as error:
        ok, detail = False, str(error)
    return {"name": name, "ok": ok, "detail": json_value(detail)}


def _catalog(context: ServerContext) -> tuple[bool, str]:
    context.home.context.catalog.require_owner()
    waiting = context.home.context.catalog.runs.list(states=["QUEUED", "RUNNING"])
    return True, f"answers; {len(waiting)} runs are incomplete"


def _warehouse(context: ServerContext) -> tuple[bool, str]:
    folder = context.home.settings.warehouse
    durable.make_folder(folder)
    remote = len(context.home.context.remote.names())
    here = f"{folder}: {len(context.home.context.definitions.names())} tables"
    return os.access(folder, os.W_OK), f"{here}, {remote} on other servers" if remote else here


def _pipeline(context: ServerContext) -> tuple[bool, str]:
    role = context.home.context.catalog.serving.role("pipeline")
    if role is None:
        return False, "has not started yet"
    if role.age_s > BEAT_S_MAX:
        return False, f"gave its last sign of life {role.age_s:.0f} s ago"
    return role.state == "ready", role.state


def _connectors(context: ServerContext) -> tuple[bool, str]:
    """Check the connectors. Errors are left out, for they may show data and this route is open to everybody."""
    tables = context.home.table_names()
    failed = [
        f"'{name}' of '{table}'"
        for table, name in context.home.context.catalog.connectors.failures()
        if table in tables
    ]
    if not failed:
        return True, "none has failed"
    return False, f"{len(failed)} failed: {', '.join(failed)}. hybrid connector list says why"


_LOOKS = {"warehouse": _warehouse, "pipeline": _pipeline, "connectors": _connectors}
