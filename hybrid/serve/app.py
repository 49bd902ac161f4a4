"""The HTTP application: one, on the controller's port and the broker's; every path answers on both."""

from __future__ import annotations

from fastapi import FastAPI

from hybrid.api import Hybrid
from hybrid.query.cache.answers import CachedAnswers
from hybrid.serve import (
    boundaries,
    consumption,
    health,
    ingest_files,
    jobs,
    openapi,
    queries,
    replacements,
    schemas,
    segments,
    sizes,
    tables,
    tasks,
    verbs,
)
from hybrid.serve.answers import add_error_answers
from hybrid.serve.context import Context, Limits
from hybrid.serve.door import Door
from hybrid.serve.gate import Gate
from hybrid.serve.metrics import Metrics

_ROUTERS = tuple(
    noun.router
    for noun in (
        queries, health, schemas, consumption, tables, sizes, boundaries, segments, tasks, jobs, ingest_files,
        replacements, verbs, openapi,
    )
)  # fmt: skip
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


def build_app(
    home: Hybrid,
    limits: Limits,
    url: str,
    hosts: frozenset[str] | None = LOOPBACK,
    cache: CachedAnswers | None = None,
    closed: bool = False,
) -> FastAPI:
    """The application over a home. `hosts` are the Host names it answers to (None: any); `url` is where it is.

    `closed`: without any account it answers nobody, as it must where other machines reach it.
    """
    metrics = Metrics(home)
    app = FastAPI(
        title="hybrid",
        summary="One table, two halves, one answer.",
        version="1",
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        responses=openapi.ERRORS,
    )
    app.state.context = Context(home, limits, metrics, url, cache)
    add_error_answers(app)
    for router in _ROUTERS:
        app.include_router(router)
    openapi.describe(app)
    app.add_middleware(Gate, limits=limits, metrics=metrics, hosts=hosts, door=Door(home.home, closed))
    return app
