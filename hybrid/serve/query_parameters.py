"""Parameters of a request's address that no route reads: what changes something refuses them.

A misspelt `type` of `DELETE /tables/orders` would otherwise drop both halves, and a `dryRun` would be run in earnest.
"""

from __future__ import annotations

from collections.abc import Iterator

from fastapi.dependencies.models import Dependant
from starlette.requests import Request

from hybrid.errors import UsageError, suggestion
from hybrid.serve.authorization import only_reads

# Pinot's clients send them to its paths. They say how its controller works, not what is changed: they have no effect.
_PATHS_OF_PINOT = ("/schemas", "/tables", "/tableConfigs", "/segments", "/tasks")
_OF_PINOT = frozenset(
    {
        "batchSize", "batchStatusCheckIntervalSec", "batchStatusCheckTimeoutSec", "cleanupSegments", "database",
        "errorSegmentsOnly", "force", "forceDownload", "forceTableSchemaUpdate", "ignoreActiveTasks",
        "instanceToSegmentsMap", "minionInstanceTag", "reload", "retention", "targetInstance",
    }
)  # fmt: skip
_LENGTH_MAX = 200


async def refuse_unknown(request: Request) -> None:
    """Raise UsageError for a parameter that the route of a change does not read. A dependency of the routes."""
    route = request.scope["route"]
    if not request.query_params or request.method in {"GET", "HEAD"} or only_reads(route.endpoint):
        return
    names = list(_names_in(route.dependant))
    of_pinot = _OF_PINOT if route.path.startswith(_PATHS_OF_PINOT) else frozenset()
    for name in request.query_params:
        if name not in names and name not in of_pinot:
            raise UsageError(
                f"'{name[:_LENGTH_MAX]}' is no parameter here.{suggestion(name, names)} Nothing was changed.",
                hint=f"{request.method} {route.path} takes " + (", ".join(names) or "no parameters") + ".",
            )


def _names_in(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        yield field.alias
    for dependency in dependant.dependencies:
        yield from _names_in(dependency)
