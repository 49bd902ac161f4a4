"""`POST /verbs/{verb}` and `GET /runs/{id}`: how the command line has a server do its work."""

from __future__ import annotations

import inspect
import time
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model
from starlette.responses import JSONResponse

from hybrid import views
from hybrid.errors import HybridError, NotFoundError, UsageError
from hybrid.run_views import run_details
from hybrid.serve.context import Context, context_of
from hybrid.verbs import VERBS, query, segments

router = APIRouter(tags=["verbs"])
Arguments = Annotated[dict[str, Any], Body(examples=[{"table": "orders"}])]


@router.post("/verbs/{verb}", summary="Run a verb of the API", responses={202: {"description": "Queued as a run"}})
def run_verb(verb: str, request: Request, arguments: Arguments) -> Any:
    """What the verb returns; a heavy one is queued (202, `{"run": id}`) and followed at `/runs/{id}`."""
    context = context_of(request)
    found = VERBS.get(verb)
    if found is None:
        raise NotFoundError.named("Verb", verb, VERBS)
    checked = _checked(found.call, arguments)
    if found.is_heavy(context.home, checked):
        return JSONResponse({"run": context.queue(verb, checked, "cli").id}, status_code=202)
    if found.call is query:
        return JSONResponse(_counted_query(context, request, checked))
    if found.call is segments:
        context.await_commits(context.home.table(checked["table"]))
    return JSONResponse(found.call(context.home, **checked))


def _counted_query(context: Context, request: Request, arguments: Mapping[str, Any]) -> Any:
    """The answer to a statement, which the metrics count like those of other clients."""
    began, metrics = time.monotonic(), context.metrics
    try:
        answer = query(context.home, **arguments)
    except HybridError as error:
        metrics.query_failed(error.pinot_code)
        raise
    metrics.query(answer["tables"], request.scope["path"], answer["source"], time.monotonic() - began)
    return answer


@router.get("/runs/{run_id}", summary="A run: queued, going on or done")
def show_run(run_id: str, request: Request) -> Any:
    """The run with its report, or the error it ended with."""
    run = context_of(request).home.run(run_id)
    return JSONResponse({**views.run_view(run), **run_details(run)})


def _checked(call: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, if they fit the verb; UsageError names the first that does not."""
    try:
        model = _adapter(call).validate_python(dict(arguments))
    except ValidationError as error:
        found = error.errors()[0]
        raise UsageError(f"{'.'.join(str(part) for part in found['loc'])}: {found['msg']}.") from error
    return {name: value for name, value in dict(model).items() if name in arguments}


@cache
def _adapter(call: Callable[..., Any]) -> TypeAdapter[Any]:
    # The annotations of the verb are its document; `Hybrid`, its first argument, is ours to give.
    hints = {name: hint for name, hint in _hints(call).items() if name not in {"home", "return"}}
    defaults = {
        name: ... if parameter.default is parameter.empty else parameter.default
        for name, parameter in inspect.signature(call).parameters.items()
    }
    fields: dict[str, Any] = {name: (hint, defaults[name]) for name, hint in hints.items()}
    model = create_model(call.__name__, __config__=ConfigDict(extra="forbid", strict=True), **fields)
    return TypeAdapter(model)


def _hints(call: Callable[..., Any]) -> dict[str, Any]:
    from hybrid.api import Hybrid, TableDocuments

    return typing.get_type_hints(call, localns={"Hybrid": Hybrid, "TableDocuments": TableDocuments})
