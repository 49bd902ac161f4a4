"""Halves of the orders table, and a way to ask them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.query.engine import QueryOptions, QueryResult, run
from hybrid.query.tail import NoTail, TailSource
from tests.query.backlogs import Backlog
from tests.query.halves import Halves, orders_spec

NOW_MS = 1_632_700_000_000
Ask = Callable[..., QueryResult]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Halves]:
    return lambda **options: Halves.create(tmp_path, orders_spec(**options))


@pytest.fixture
def ask() -> Ask:
    def asked(halves: Any, sql: str, tail: TailSource | None = None, **options: Any) -> QueryResult:
        return run(sql, halves, QueryOptions(tail=tail or NoTail(), now_ms=lambda: NOW_MS, **options))

    return asked


@pytest.fixture(params=[False, True], ids=["append", "upsert"])
def backlog(request: pytest.FixtureRequest, tmp_path: Path) -> Backlog:
    return Backlog(tmp_path, 20, upsert=request.param)
