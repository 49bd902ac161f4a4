"""The HTTP application: one for the controller's port and the broker's; both serve every route."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from hybrid.api.hybrid import Hybrid
from hybrid.logs import Audit
from hybrid.serve import (
    backfills,
    backups,
    boundaries,
    connectors,
    consumption,
    discovery,
    erasures,
    exports,
    flows,
    health,
    ingest_files,
    jobs,
    openapi,
    purges,
    queries,
    replacements,
    replacing,
    schemas,
    segments,
    sizes,
    table_configs,
    tables,
    tasks,
    verbs,
)
from hybrid.serve.admission import Admission
from hybrid.serve.authentication import Authentication
from hybrid.serve.authorization import RouteRights
from hybrid.serve.console.routes import ROUTERS as CONSOLE_ROUTERS
from hybrid.serve.context import ServerContext, ServerLimits
from hybrid.serve.error_responses import add_error_answers, answer_of
from hybrid.serve.metrics import Metrics
from hybrid.serve.middleware import Middleware
from hybrid.serve.passing_on import PassingOn
from hybrid.serve.query_parameters import refuse_unknown

_ROUTERS = tuple(
    noun.router
    for noun in (
        queries, exports, health, table_configs, schemas, consumption, connectors, discovery, tables, sizes, boundaries,
        replacing, segments, tasks, jobs, ingest_files, replacements, backfills, backups, purges, erasures, flows,
        verbs, openapi,
    )
) + CONSOLE_ROUTERS  # fmt: skip
RIGHTS = RouteRights(route for router in _ROUTERS for route in router.routes)
# What is passed on to another server when its table is there.
_ELSEWHERE = [
    route
    for router in _ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and route.endpoint not in discovery.OF_ANY_TABLE
]
# Statements bypass the framework's layers, which take as long as a small statement.
_DIRECT = {
    ("POST", route.path): route
    for route in queries.router.routes
    if isinstance(route, APIRoute) and route.endpoint is queries.post_sql
}
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


class Application(FastAPI):
    """FastAPI application behind `Middleware`, which every request passes first."""

    def __init__(
        self, context: ServerContext, hosts: frozenset[str] | None, authentication: Authentication, **options: Any
    ) -> None:
        super().__init__(**options)
        self.state.context = context
        self.state.authentication = authentication
        audit = Audit(lambda: context.home.settings.logs)
        self._passing_on = PassingOn.of(context, authentication, RIGHTS, _ELSEWHERE)
        self._middleware = Middleware(
            self._answered, context.limits, context.metrics, hosts, authentication, RIGHTS, audit
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI scope: a request, or the server's start and end."""
        await self._middleware(scope, receive, send)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._passing_on is None:
            await self._routed(scope, receive, send)
            return
        await self._passing_on.answer(scope, receive, send, self._routed)

    async def _routed(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = _DIRECT.get((scope.get("method", ""), scope.get("path", "")))
        if route is None:
            await super().__call__(scope, receive, send)
            return
        scope["app"], scope["route"] = self, route
        request = Request(scope, receive)
        try:
            answer: Response = await queries.post_sql(request)
        except Exception as error:
            answer = answer_of(request, error)
        await answer(scope, receive, send)


@cache
def _routes() -> Sequence[BaseRoute]:
    """The routes, shared by the applications of a process: the first request to new ones takes 0.2 s."""
    whole = APIRouter(responses=openapi.ERRORS)
    for router in _ROUTERS:
        whole.include_router(router, dependencies=None if router in CONSOLE_ROUTERS else [Depends(refuse_unknown)])
    return whole.routes


def build_app(
    home: Hybrid,
    limits: ServerLimits,
    url: str,
    hosts: frozenset[str] | None = LOOPBACK,
    closed: bool = False,
    accounts_look_s: float = 1.0,
) -> Application:
    """Build the application for a home. `hosts` are the accepted Host names (None: any); `url` is its address.

    `closed` refuses every request while no account exists, as required when other machines can reach it. A change of
    the accounts is seen after `accounts_look_s`.
    """
    app = Application(
        ServerContext(home, limits, Metrics(home), url, admission=Admission(running_of_one=limits.query_running)),
        hosts,
        Authentication(home.home, closed, accounts_look_s),
        title="hybrid",
        summary="One table, two halves, one answer.",
        version="1",
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        responses=openapi.ERRORS,
    )
    add_error_answers(app)
    app.router.routes.extend(_routes())
    openapi.describe(app)
    return app
