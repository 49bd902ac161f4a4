"""Every value that the Python API returns, of a home or of a server, is short at the prompt."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.api.table import Table
from hybrid.operations.connectors.run import Done
from hybrid.progress import Silent
from hybrid.query.cache.follower import StreamStatus
from hybrid.rpc import remote_operations
from hybrid.rpc.client import Client
from hybrid.rpc.remote_hybrid import RemoteHybrid
from hybrid.rpc.remote_table import RemoteTable
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey, TopicPartition
from hybrid.table.effective import EffectiveBoundary
from tests.serve.app import lay_orders
from tests.test_public_face import PARTS

FACES: list[type] = [Hybrid, Table, *PARTS.values(), RemoteHybrid, RemoteTable]
REMOTE = [
    kind for kind in vars(remote_operations).values() if getattr(kind, "__module__", "") == remote_operations.__name__
]
# Named tuples of two or three short fields, whose own form is short, and one that no user meets.
SMALL = {TopicPartition, StreamStatus, Done}


def names_of(module: Any) -> dict[str, Any]:
    """What a module's annotations name, imports for types included."""
    found = dict(vars(module))
    for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            imported = importlib.import_module(node.module)
            found |= {one.asname or one.name: getattr(imported, one.name, None) for one in node.names}
    return found


def classes_in(annotation: Any) -> Iterator[type]:
    is_class = isinstance(annotation, type) and not issubclass(annotation, Enum)
    if is_class and annotation.__module__.startswith("hybrid."):
        yield annotation
        for kind in annotation.__subclasses__():
            yield from classes_in(kind)
    for part in typing.get_args(annotation):
        yield from classes_in(part)


def returned(face: type) -> Iterator[type]:
    """The product's classes in what the public methods and properties of a class return."""
    names = names_of(sys.modules[face.__module__])
    for name, member in vars(face).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(function) and "return" in function.__annotations__:
            yield from classes_in(eval(str(function.__annotations__["return"]), names))


TYPES = sorted(
    {kind for face in (*FACES, *filter(inspect.isclass, REMOTE)) for kind in returned(face)} - SMALL, key=str
)


def is_own(method: Any) -> bool:
    """Whether this product has written the method, and not Python, a dataclass or a named tuple."""
    code = getattr(method, "__code__", None)
    return code is not None and Path(code.co_filename).is_relative_to(Path(hybrid.__file__).parent)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__qualname__)
def test_a_returned_value_has_a_short_form(kind: type) -> None:
    assert is_own(kind.__repr__)


def test_the_walk_finds_what_a_server_returns() -> None:
    names = {kind.__name__ for kind in TYPES}
    assert {"EffectiveBoundary", "Segment", "RemoteBackfills", "Backfills", "ServerPlan", "QueryResult"} <= names


@pytest.mark.parametrize(
    ("boundary", "shown"),
    [
        (EffectiveBoundary(1_632_463_351_000, {PartitionKey("c", "t", 0, 0): 9}), "2021-09-24T06:02:31Z"),
        (EffectiveBoundary(), "no time"),
        (EffectiveBoundary(INFINITE), "any time"),
        (Boundary(1_632_463_351_000, {}), "2021-09-24T06:02:31Z"),
    ],
)
def test_a_boundary_shows_its_time(boundary: Any, shown: str) -> None:
    assert repr(boundary) == f"<{type(boundary).__name__}: {shown}>"


@pytest.mark.slow
def test_parts_of_a_home_and_of_a_server(tmp_path: Path) -> None:
    with hybrid.connect(tmp_path / "home") as hy:
        lay_orders(hy)
        table = hy.table("orders")
        assert repr(hy.backfills) == f"<Backfills: {hy.home}>"
        assert repr(table.upkeep) == "<Upkeep: orders>" and repr(table.connectors) == "<TableConnectors: orders>"
        assert all(len(repr(segment)) < 90 for segment in table.segments()) and "OFFLINE" in repr(table.segments())
        assert all(len(repr(found)) < 90 for found in hy.status())
    client = Client("http://127.0.0.1:9000", Silent(), None)
    assert repr(remote_operations.RemoteBackfills(client)) == "<RemoteBackfills: http://127.0.0.1:9000>"
    assert repr(remote_operations.RemoteUpkeep(client, "orders")) == "<RemoteUpkeep: orders>"
