"""Paths whose words could hide a name: those of Pinot alone."""

from __future__ import annotations

from itertools import combinations

from starlette.routing import Route

from hybrid.serve.app import _ROUTERS

PINOTS = ("/tables/livebrokers", "/tables/forceCommitStatus/{job}")


def is_shared(first: str, second: str) -> bool:
    """Whether some path is matched by both."""
    parts, others = first.split("/"), second.split("/")
    return len(parts) == len(others) and all(
        one == other or ("{" in one + other and one and other) for one, other in zip(parts, others, strict=True)
    )


def test_no_word_stands_in_the_place_of_a_name() -> None:
    """Two paths never match the same request, but for a page and its twin, because no name has a dot."""
    routes = [
        (route.methods or set(), route.path)
        for router in _ROUTERS
        for route in router.routes
        if isinstance(route, Route)
    ]
    assert len(routes) > 150
    shared = {
        (first, second)
        for (methods, first), (others, second) in combinations(routes, 2)
        if methods & others and first.removesuffix(".json") != second.removesuffix(".json") and is_shared(first, second)
    }
    assert {pair for pair in shared if not any(path in pair for path in PINOTS)} == set()
    assert {path for pair in shared for path in pair if path in PINOTS} == set(PINOTS)
