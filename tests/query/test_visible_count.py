"""Counts of visible rows without a statement are those of a query; statistics count only what is certain."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import BoundaryMode, Half
from hybrid.query.revision import pin_halves
from hybrid.query.visible_count import VisibleCount
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.table.boundary import INFINITE, Boundary
from hybrid.table.columns import bookkeeping
from tests.query.conftest import Ask
from tests.query.halves import KEY, Halves, orders_spec
from tests.query.test_cases import row
from tests.query.test_net_deletes import LIVE, STARTED, keyless, stored

_BYTES = 256 * 1024 * 1024
Make = Callable[..., Halves]


def counts(halves: Halves, tmp_path: Path) -> tuple[int | None, int | None]:
    """By statistics, and by reading."""
    counted = VisibleCount(halves.spec, pin_halves(halves.spec, halves.layout))
    return counted.by_statistics(), counted.by_reading(_BYTES, tmp_path / "spill", time.monotonic() + 60)


def queried(ask: Ask, halves: Halves) -> int:
    return int(ask(halves, "select count(*) from orders").rows[0][0])


def moved(halves: Halves, limit_ms: int = 250) -> None:
    """Rows at 100, 200, 300 and 400, a file of each two in REALTIME; the rows before the limit have moved."""
    rows = [row(number, number * 100, number - 1, segment=f"orders__0__{number // 3}__x") for number in range(1, 5)]
    halves.commit_realtime(rows[:2], offsets={KEY: 2})
    halves.commit_realtime(rows[2:], offsets={KEY: 4})
    past = [replace(each, segment="o") for each in rows if (each.time_ms or 0) < limit_ms]
    halves.commit_offline(past, Boundary(limit_ms, {KEY: 4}))


@pytest.mark.slow
def test_files_that_the_boundary_does_not_divide_are_counted_by_statistics(
    make: Make, ask: Ask, tmp_path: Path
) -> None:
    halves = make()
    moved(halves)
    assert counts(halves, tmp_path) == (4, 4) and queried(ask, halves) == 4
    halves.commit_realtime([row(5, 50, 4, segment="orders__0__2__x")], offsets={KEY: 5})
    assert counts(halves, tmp_path) == (5, 5) and queried(ask, halves) == 5, "a late row, by its offset"
    rejected = next(iter(bookkeeping("orders")))
    halves.commit_realtime([row(6, 1, 5, segment=rejected, reason="no number")], offsets={KEY: 6})
    assert counts(halves, tmp_path) == (5, 5) and queried(ask, halves) == 5


@pytest.mark.slow
def test_a_divided_file_is_read(make: Make, ask: Ask, tmp_path: Path) -> None:
    halves = make()
    moved(halves, limit_ms=350)
    assert counts(halves, tmp_path) == (None, 4) and queried(ask, halves) == 4
    halves.commit_offline([], replace(halves.offline.boundary, override_ms=150))
    assert counts(halves, tmp_path) == (None, 4) and queried(ask, halves) == 4


@pytest.mark.slow
def test_a_table_with_one_half(make: Make, tmp_path: Path) -> None:
    halves = make(halves=[Half.OFFLINE])
    assert counts(halves, tmp_path) == (0, 0)
    halves.commit_offline([row(1, 100, 0, segment="o")])
    assert counts(halves, tmp_path) == (1, 1)


@pytest.mark.slow
def test_keys_and_deletes_are_read(make: Make, ask: Ask, tmp_path: Path) -> None:
    upsert = make(upsert=True, deletes=True)
    live, gone = {"gone": False}, {"gone": True}
    rows = [row(1, 100, 0, values=live), row(1, 200, 1, values=live), row(2, 300, 2, values=live)]
    upsert.commit_realtime([*rows, row(2, 400, 3, values=gone, op="delete")], offsets={KEY: 4})
    assert counts(upsert, tmp_path) == (None, 1) and queried(ask, upsert) == 1
    nets = Halves.create(tmp_path / "net", keyless())
    nets.commit_realtime([stored("row", 1, "a", 0), stored("row", 1, "a", 1)], offsets={LIVE: 2}, **STARTED)
    assert counts(nets, tmp_path) == (2, 2)
    nets.commit_realtime([stored("delete", 1, "a", 2)], offsets={LIVE: 3}, deletes=1, **STARTED)
    nets.commit_offline([], Boundary(INFINITE, {}))
    assert counts(nets, tmp_path) == (None, 1) and queried(ask, nets) == 1


@pytest.mark.slow
def test_a_count_that_fails_is_none(make: Make, tmp_path: Path) -> None:
    halves = make()
    moved(halves)
    for path in halves.layout.half(Half.OFFLINE).rglob("*.parquet"):
        path.unlink()
    assert counts(halves, tmp_path) == (4, None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("mode", BoundaryMode)
@pytest.mark.parametrize("upsert", [False, True])
def test_histories(tmp_path: Path, ask: Ask, seed: int, mode: BoundaryMode, upsert: bool) -> None:
    drawn = random.Random(seed)
    extra = (FieldSpec("added", DataType.INT, FieldKind.DIMENSION),) if seed % 2 else ()
    spec: Any = replace(orders_spec(upsert=upsert, extra=extra), boundary_lag_ms=drawn.choice((0, 100)))
    halves, live, at = Halves.create(tmp_path, spec, mode), list[Any](), 0
    for _ in range(6):
        rows = [
            row(drawn.randint(1, 9), drawn.randint(0, 999), at + number, segment=f"orders__0__{at}__x")
            for number in range(drawn.randint(1, 4))
        ]
        live, at = [*live, *rows], at + len(rows)
        halves.commit_realtime(rows, offsets={KEY: at})
        if drawn.random() < 0.5:
            before = halves.offline.boundary
            after = before.advance(drawn.randint(0, 1000), {KEY: at})
            taken = [
                replace(each, segment=f"o{at}")
                for each in live
                if each.time_ms < (after.time_ms or 0)
                and not (each.time_ms < (before.time_ms or 0) and each.offset < before.frontier.get(KEY, 0))
            ]
            halves.commit_offline(taken, after)
        if drawn.random() < 0.3:
            override_ms = drawn.choice((None, drawn.randint(0, halves.offline.boundary.time_ms or 0)))
            halves.commit_offline([], replace(halves.offline.boundary, override_ms=override_ms))
        by_statistics, by_reading = counts(halves, tmp_path)
        assert by_reading == queried(ask, halves)
        assert by_statistics in (None, by_reading)
