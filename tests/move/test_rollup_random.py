"""Tables that are rolled up and rounded, through moves, late rows, merges, limits, retention and reverts in any order.

After every step the sums by shop and hour are those of Python lists.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.config.table_config import BoundaryMode, Half, MergeLevel, MergeType, MoveConfig
from hybrid.errors import ConflictError
from hybrid.lake.commit_context import CommitContext
from hybrid.move.boundary_override import OverrideRequest, change_boundary
from hybrid.move.plan import Reach
from hybrid.move.retention.run import run_retention
from hybrid.replace.lineage import EntryState, list_replacements
from hybrid.table.effective import covered_until
from tests.move.clocked import DAY
from tests.move.rolled import HOUR, MERGED, MOVED, Rolling, sale, sales_spec
from tests.query.halves import Halves

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STEPS, MINUTE = 14, 60_000
Place = tuple[str, int]
SUMS = "select $segmentName, shop, ts, long, rows from orders limit 10000"


def place(shop: str, time: int) -> Place:
    return shop, time // HOUR * HOUR


class Random:
    """One table, what Python has of it (`long` and rows by place), and the steps that may be taken."""

    def __init__(self, table: Rolling, mode: BoundaryMode, seed: int) -> None:
        self.table, self.mode, self.dice, self.offset = table, mode, random.Random(seed), 0
        self.long: Counter[Place] = Counter()
        self.count: Counter[Place] = Counter()
        self.done: list[str] = []

    @property
    def steps(self) -> list[Callable[[], object]]:
        more = [self.retain] if self.mode is BoundaryMode.EXACT else [self.limit, self.limit]
        return [self.live, self.live, self.move, self.move, self.merge, self.revert, *more]

    def live(self) -> None:
        """Rows of the last days come, in any order, many of an hour."""
        rows = []
        hours = [self.table.now - self.dice.randrange(4 * DAY) for _ in range(2)]
        for _ in range(self.dice.randint(4, 9)):
            shop, value = self.dice.choice("ab"), self.dice.randrange(-100, 100)
            time = self.dice.choice(hours) // HOUR * HOUR + self.dice.randrange(HOUR)
            segment = f"orders__0__{self.offset // 16}__x"
            rows.append(replace(sale(shop, time, self.offset, long=value), segment=segment))
            self.long[place(shop, time)] += value
            self.count[place(shop, time)] += 1
            self.offset += 1
        self.table.live(*rows)

    def move(self) -> None:
        self.table.move(reach=Reach(self.dice.choice([1, None])))

    def merge(self) -> None:
        self.table.merge()

    def limit(self) -> None:
        """The boundary is set by hand, where no hour is divided; or cleared."""
        table = self.table
        covered = covered_until(table.half().offline.boundary, table.half().last_ms)
        step = table.half().offline.boundary.step_ms
        if covered is not None:
            limit = (covered - self.dice.randrange(3 * DAY)) // step * step
            wish = OverrideRequest(clear=True) if self.dice.random() < 0.4 else OverrideRequest(limit, accepted=True)
            change_boundary(table.context, wish)

    def retain(self) -> None:
        before = self.table.ask(SUMS)
        report = run_retention(self.table.context)
        dropped = {name for names in report.segments.values() for name in names}
        for segment, shop, time, value, rows in before:
            if segment in dropped:
                self.long[place(shop, time)] -= value
                self.count[place(shop, time)] -= rows

    def revert(self) -> None:
        """The newest merge that stands is taken back, if it can be."""
        standing = [one for one in list_replacements(self.table.halves.layout) if one.state is EntryState.ACTIVE]
        if standing:
            try:
                self.table.revert(standing[0].id)
            except ConflictError as error:
                assert "does not exist any more" in str(error) or "has removed rows" in str(error), error

    def seen(self) -> dict[Place, tuple[int, int]]:
        long: Counter[Place] = Counter()
        count: Counter[Place] = Counter()
        for _, shop, time, value, rows in self.table.ask(SUMS):
            long[place(shop, time)] += value
            count[place(shop, time)] += rows
        return {at: (long[at], count[at]) for at in count}

    def take(self) -> None:
        step = self.dice.choice(self.steps)
        self.done.append(step.__name__)
        step()
        self.table.now += self.dice.randrange(DAY)
        assert self.seen() == {at: (self.long[at], rows) for at, rows in self.count.items() if rows}, self.done


@pytest.mark.parametrize(("mode", "seed"), [(BoundaryMode.EXACT, 1), (BoundaryMode.PINOT, 2)])
def test_sums_are_those_of_lists(workbench: CommitContext, tmp_path: Path, mode: BoundaryMode, seed: int) -> None:
    move = MoveConfig(DAY, DAY, MergeType.ROLLUP, 5, 12, 20 * MINUTE, MOVED)
    levels = (
        MergeLevel(DAY, 2 * DAY, MergeType.CONCAT, 5, 12, name="1day"),
        MergeLevel(3 * DAY, 3 * DAY, MergeType.ROLLUP, 9, 30, HOUR, MERGED, name="3days"),
    )
    retention = {Half.REALTIME: 5 * DAY, Half.OFFLINE: 7 * DAY} if mode is BoundaryMode.EXACT else {}
    spec = sales_spec(move, *levels, retention=retention, null_handling=True)
    halves = Halves.create(tmp_path, replace(spec, boundary_lag_ms=DAY), mode)
    table = Random(Rolling(halves, workbench, now=20 * DAY), mode, seed)
    table.live()
    for _ in range(STEPS):
        table.take()
    assert len(set(table.done)) >= 5, "too few kinds of steps: take another seed"
