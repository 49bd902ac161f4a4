"""The right that each request needs. A route that declares none and changes something needs the highest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from starlette.routing import BaseRoute, Route, compile_path

from hybrid.home.accounts import Right
from hybrid.rpc.verbs import VERBS

# Open to everybody: load balancers and Pinot's clients request these first.
OPEN_PATHS = frozenset({"/livez", "/readyz", "/health", "/version"})

_VERBS = "/verbs/"
_NEEDED: dict[Callable[..., Any], Right] = {}
_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Any])


def needs(right: Right) -> Callable[[_Endpoint], _Endpoint]:
    """Declare the right that requests to an endpoint need, below its `@router` lines. GET and HEAD need READ anyway."""

    def declare(endpoint: _Endpoint) -> _Endpoint:
        _NEEDED[endpoint] = right
        return endpoint

    return declare


def only_reads(endpoint: Callable[..., Any]) -> bool:
    """Whether requests to an endpoint that is no GET change no table, such as a statement, or the end of one."""
    return _NEEDED.get(endpoint) is Right.READ


class RouteRights:
    """The rights of an application's routes."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._exact: dict[str, Right] = {}
        self._patterns: list[tuple[str, re.Pattern[str], Right]] = []
        for route in routes:
            if not isinstance(route, Route) or route.endpoint not in _NEEDED:
                continue
            right = _NEEDED[route.endpoint]
            for method in route.methods or ():
                if "{" in route.path:
                    self._patterns.append((method, compile_path(route.path)[0], right))
                else:
                    self._exact[f"{method} {route.path}"] = right

    def right_for(self, method: str, path: str) -> Right:
        """Return the right that a request needs."""
        if method in {"GET", "HEAD"}:
            return Right.READ
        if method == "POST" and path.startswith(_VERBS):
            verb = VERBS.get(path.removeprefix(_VERBS))
            return Right.ADMIN if verb is None else verb.right
        exact = self._exact.get(f"{method} {path}")
        if exact is not None:
            return exact
        rights = (right for name, pattern, right in self._patterns if name == method and pattern.match(path))
        return next(rights, Right.ADMIN)
