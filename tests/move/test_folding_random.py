"""Tables that fold (PARTIAL upsert) through moves, late rows, merges, retention, replacements, reverts in any order.

After every step queries show what folding the visible rows one after the other gives. HYBRID_SEEDS=20 plays more lives.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import (
    BoundaryMode,
    Half,
    MergeLevel,
    MergeType,
    MoveConfig,
    Partial,
    Strategy,
    UpsertConfig,
)
from hybrid.lake.commit_context import CommitContext
from hybrid.move.retention.run import run_retention
from tests.folding import folded
from tests.move.clocked import DAY
from tests.move.test_merging import Merging
from tests.move.test_upkeep_random import KEYS, STEPS, Random, Seen, Stored
from tests.oracle import Event
from tests.query.halves import Halves, orders_spec

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STRATEGIES = {0: Strategy.INCREMENT, 1: Strategy.MAX, 2: Strategy.OVERWRITE}


class FoldingRandom(Random):
    """Rows are compared by their times, of which no key has one twice: so it is plain which row one corrects."""

    def shown(self, rows: Iterable[Stored]) -> list[Seen]:
        events = [
            Event(
                (*one.arrival[1:6],),
                one.seen[2],
                one.key,
                one.seen[2],
                one.arrival[0],
                one.deleted,
                payload=dict(zip(("order_id", "amount", "ts"), one.seen, strict=True)),
            )
            for one in rows
        ]
        found = folded(self.table.halves.spec, events)
        return sorted((one["order_id"], one["amount"], one["ts"]) for one in found)

    def retain(self) -> None:
        """Rows of segments that are dropped go; delete markers may stay, in other segments."""
        before = self.visible(self.stored(Half.OFFLINE))
        report = run_retention(self.table.halves.context(self.table.bench))
        dropped = {name for names in report.segments.values() for name in names}
        left = self.visible(self.stored(Half.OFFLINE))
        stay = sorted(one.seen for one in before if not one.deleted and one.segment not in dropped)
        assert sorted(one.seen for one in left if not one.deleted) == stay
        self.seen = self.shown(left)

    def correct(self) -> None:
        """A segment of OFFLINE gets other rows, by a job or by Pinot's protocol; at times it is taken back at once."""
        stored, before = self.stored(Half.OFFLINE), list(self.seen)
        if not stored:
            return
        segment = self.dice.choice(sorted({one.segment for one in stored}))
        markers = [one for one in stored if one.segment == segment and one.deleted]
        old = [one for one in stored if one.segment == segment and not one.deleted]
        come = [self._corrected(one) for one in old if self.dice.random() < 0.7]
        if self.dice.random() < 0.3 or not come:
            time = (old or markers)[0].seen[2]
            seen = (2 * KEYS + len(self.done), float(self.offset), time)
            come.append(Stored(seen, (self.offset // 3, "~replacement", "act-9", 0, 0, 0), deleted=False))
        act = self._replace(segment, [one.seen for one in come])
        if act is None:  # it changes nothing
            return
        outside = [one for one in stored if one.segment != segment]
        self.seen = self.shown(self.visible([*outside, *markers, *come]))
        self._take_back_at_times(segment, act, before)

    def _corrected(self, one: Stored) -> Stored:
        key, amount, time = one.seen
        return replace(one, seen=(key, amount + self.dice.choice([0, 0, 1]), time))


@pytest.fixture
def make(workbench: CommitContext, tmp_path: Path) -> Callable[[int], Merging]:
    def made(seed: int) -> Merging:
        changes: dict[str, Any] = {
            "upsert": UpsertConfig("ts", "gone", partial=Partial({"amount": STRATEGIES[seed % len(STRATEGIES)]})),
            "null_handling": True,
            "move": MoveConfig(DAY, DAY, MergeType.CONCAT, max_records_per_segment=3),
            "merge_levels": (
                MergeLevel(DAY, 2 * DAY, MergeType.CONCAT, 5, 12, name="1day"),
                MergeLevel(3 * DAY, 3 * DAY, MergeType.CONCAT, 9, 30, name="3days"),
            ),
            "retention": {Half.REALTIME: 5 * DAY, Half.OFFLINE: 7 * DAY},
        }
        spec = replace(orders_spec(upsert=True, deletes=True), **changes)
        return Merging(Halves.create(tmp_path, spec, BoundaryMode.EXACT), workbench, now=20 * DAY)

    return made


@pytest.mark.parametrize("seed", range(2 + int(os.environ.get("HYBRID_SEEDS", 0))))
def test_queries_show_the_fold_of_the_visible_rows(make: Callable[[int], Merging], tmp_path: Path, seed: int) -> None:
    table = FoldingRandom(make(seed), "partial", seed, tmp_path / "jobs")
    table.take(table.live)
    table.take(table.move)
    for _ in range(STEPS):
        table.take()
