"""Routes `POST /verbs/{verb}` and `GET /runs/{id}`: the command line runs its operations on a server."""

from __future__ import annotations

import inspect
import time
import typing
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

from fastapi import Body, Request
from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from hybrid.errors import NotFoundError, QueryError, UsageError
from hybrid.home.query_log import TOO_MANY
from hybrid.operations.run_views import run_details
from hybrid.query.engine import QueryResult
from hybrid.rpc import json_views as views
from hybrid.rpc.client import STATEMENT_VERBS
from hybrid.rpc.verbs import VERBS, Verb, explain, query, rejected, segments
from hybrid.runtime.json_values import json_value
from hybrid.serve.authentication import who_asks
from hybrid.serve.bodies import StrictRouter, check_characters
from hybrid.serve.context import ServerContext, context_of, with_account
from hybrid.serve.statement_records import StatementRecord

router = StrictRouter(tags=["verbs"])
REJECTED_MAX = 10_000
Arguments = Annotated[dict[str, Any], Body(examples=[{"table": "orders"}])]


@router.post("/verbs/{verb}", summary="Run a verb of the API", responses={202: {"description": "Queued as a run"}})
async def run_verb(verb: str, request: Request, arguments: Arguments) -> Any:
    """Runs a verb and returns its result; a heavy verb is queued (202, `{"run": id}`), to follow at `/runs/{id}`.

    Verbs that read rows of tables count as statements: they share their queue and limits.
    """
    context = context_of(request)
    operation = VERBS.get(verb)
    if operation is None:
        raise NotFoundError.named("Verb", verb, VERBS)
    if verb in STATEMENT_VERBS:
        statement = _statement(request, verb, arguments)
        try:
            return await context.admission.run(request, who_asks(), statement.answer, statement.leave)
        except QueryError as error:
            if error.pinot_code == TOO_MANY:
                statement.refused(error)
            raise
    checked = await run_in_threadpool(_checked, operation.call, arguments)
    if operation.call is segments:
        await context.await_commits(await run_in_threadpool(context.home.table, checked["table"]))
    return await run_in_threadpool(_run_verb, context, verb, checked)


def answer_statement(request: Request, verb: str, arguments: Mapping[str, Any]) -> JSONResponse:
    """Run a verb that reads rows within the server's limits, for a caller that bounds how many run at once."""
    return _statement(request, verb, arguments).answer()


def run_checked(context: ServerContext, verb: str, arguments: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Check a verb's arguments and run it, or queue it where it is heavy: its `result`, or the id of its `run`."""
    operation, checked = VERBS[verb], _checked(VERBS[verb].call, arguments)
    if operation.is_heavy(context.home, checked):
        return {"result": None, "run": context.queue(verb, checked, source).id}
    if "directory" in checked:
        context.check_directory(checked["directory"], source)
    return {"result": operation.call(context.home, **with_account(verb, checked)), "run": None}


def _statement(request: Request, verb: str, arguments: Mapping[str, Any]) -> _AskedVerb:
    return _AskedVerb(request, VERBS[verb], _with_defaults(VERBS[verb].call, arguments))


class _AskedVerb:
    """A request for a verb that reads rows of tables; `arguments` are complete, with defaults."""

    def __init__(self, request: Request, verb: Verb, arguments: dict[str, Any]) -> None:
        self._context, self._verb, self._arguments = context_of(request), verb, arguments
        self._request_id, self._began = request.state.request_id, time.monotonic()
        self._record: StatementRecord | None = None
        if verb.call is query:
            self._record = StatementRecord(self._context, request, arguments["sql"], self._began)

    def leave(self) -> None:
        """The client has disconnected."""
        with suppress(NotFoundError):
            self._context.queries.cancel(self._request_id, who_asks())

    def refused(self, error: QueryError) -> None:
        """Too many statements wait."""
        if self._record is not None:
            self._record.failed(error)

    def answer(self) -> JSONResponse:
        """Run the verb within the server's limits and return its response."""
        if self._record is None:
            return self._read_rows()
        try:
            result, answer = self._query(self._record)
        except BaseException as error:
            self._record.failed(error)
            raise
        self._record.answered(result)
        return answer

    def _query(self, record: StatementRecord) -> tuple[QueryResult, JSONResponse]:
        arguments = self._arguments
        with record.running() as running:
            whole, options = arguments["all_rows"], self._context.query_options()
            options = replace(options, running=running, began=self._began, whole=whole)
            sql, params = arguments["sql"], arguments["params"]
            result = self._context.home.query(sql, params, options=options, as_of=arguments["as_of"])
        return result, JSONResponse(views.query_view(result))

    def _read_rows(self) -> JSONResponse:
        context, arguments = self._context, self._arguments
        with context.queries.running(self._request_id, who_asks()) as running:
            options = replace(context.query_options(), running=running, began=self._began)
            if self._verb.call is explain:
                options = replace(options, params=arguments["params"])
                plan = context.home.explain(arguments["sql"], as_of=arguments["as_of"], options=options)
                return JSONResponse(views.explanation_view(plan))
            if self._verb.call is rejected:
                limit, bounds = min(arguments["limit"], REJECTED_MAX), context.rejected_bounds(self._began)
                table, everything = context.home.table(arguments["table"]), arguments["everything"]
                rows = table.rejected(limit, everything=everything, bounds=bounds)
                return JSONResponse(json_value(rows))
            table = context.home.table(arguments["table"])
            made = table.view(arguments["engine"], as_of=arguments.get("as_of"), timeout_ms=self._left_ms())
            return JSONResponse(views.code_view(made))

    def _left_ms(self) -> int | None:
        """Return the rest of the server's time limit for a statement; waiting in the queue counts."""
        timeout_ms = self._context.limits.query_timeout_ms
        return max(1, timeout_ms - int((time.monotonic() - self._began) * 1000)) if timeout_ms else None


def _run_verb(context: ServerContext, verb: str, checked: Mapping[str, Any]) -> JSONResponse:
    outcome = run_checked(context, verb, checked, "cli")
    if outcome["run"] is not None:
        return JSONResponse({"run": outcome["run"]}, status_code=202)
    return JSONResponse(outcome["result"])


@router.get("/runs/{run_id}", summary="A run: queued, going on or done")
def show_run(run_id: str, request: Request) -> Any:
    """Returns the run with its report, or with the error of a failed run."""
    run = context_of(request).home.run(run_id)
    return JSONResponse({**views.run_view(run), **run_details(run)})


def _checked(call: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the arguments for the verb; UsageError names the first invalid one."""
    return {name: value for name, value in _with_defaults(call, arguments).items() if name in arguments}


def _with_defaults(call: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the arguments and add the verb's defaults for missing ones."""
    check_characters(arguments)
    try:
        model = _adapter(call).validate_python(dict(arguments))
    except ValidationError as error:
        details = error.errors()[0]
        raise UsageError(f"{'.'.join(str(part) for part in details['loc'])}: {details['msg']}.") from error
    return dict(model)


@cache
def _adapter(call: Callable[..., Any]) -> TypeAdapter[Any]:
    # The annotations of the verb define its arguments; the server supplies the first, `Hybrid`.
    hints = {name: hint for name, hint in _hints(call).items() if name not in {"home", "return"}}
    defaults = {
        name: ... if parameter.default is parameter.empty else parameter.default
        for name, parameter in inspect.signature(call).parameters.items()
    }
    fields: dict[str, Any] = {name: (hint, defaults[name]) for name, hint in hints.items()}
    with warnings.catch_warnings():  # an argument `schema` hides a method of the model, which nobody calls
        warnings.filterwarnings("ignore", "Field name .* shadows an attribute")
        model = create_model(call.__name__, __config__=ConfigDict(extra="forbid", strict=True), **fields)
    return TypeAdapter(model)


def _hints(call: Callable[..., Any]) -> dict[str, Any]:
    from hybrid.api.hybrid import Hybrid
    from hybrid.config.table_documents import TableDocuments

    return typing.get_type_hints(call, localns={"Hybrid": Hybrid, "TableDocuments": TableDocuments})
