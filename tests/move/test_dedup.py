"""Upkeep of dedup tables: of a key the row that arrived first is seen, whatever half, segment or bucket it lies in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.config.table_config import (
    ARRIVED,
    CompactionConfig,
    Half,
    MergeLevel,
    MergeType,
    MoveConfig,
    TableSpec,
    UpsertConfig,
)
from hybrid.lake.commit_context import CommitContext
from hybrid.move.compaction import run_compaction
from hybrid.move.merging.run import run_merges
from hybrid.move.move import run_move
from hybrid.move.plan import Reach
from hybrid.move.retention.run import run_retention
from hybrid.table.boundary import Boundary
from tests.move.clocked import DAY
from tests.move.test_merging import STORED, Merging, row
from tests.query.halves import KEY, Halves, orders_spec

pytestmark = pytest.mark.spark

Make = Callable[..., Merging]
REALTIME = "orders__0__0__x"


def dedup_spec(**changes: object) -> TableSpec:
    spec = replace(orders_spec(upsert=True), upsert=UpsertConfig(ARRIVED, first_wins=True))
    return replace(spec, **{"move": MoveConfig(DAY, DAY, MergeType.LATEST), **changes})  # type: ignore[arg-type]


@pytest.fixture
def make(workbench: CommitContext, tmp_path: Path) -> Make:
    def made(**changes: object) -> Merging:
        return Merging(Halves.create(tmp_path, dedup_spec(**changes)), workbench, now=20 * DAY)

    return made


def live(table: Merging, *events: tuple[int, int, float], start: int = 0) -> None:
    """Realtime rows (key, time, amount); the later ones arrive later."""
    rows = [row(key, time, start + at, REALTIME, amount) for at, (key, time, amount) in enumerate(events)]
    table.halves.commit_realtime(rows, offsets={KEY: start + len(rows)}, timestamp_max=0)


def move(table: Merging) -> None:
    run_move(table.halves.context(table.bench), reach=Reach(None))


@pytest.mark.parametrize("merge", [MergeType.LATEST, MergeType.DEDUP, MergeType.CONCAT])
def test_the_first_row_stays_through_moves_whatever_its_time(make: Make, merge: MergeType) -> None:
    """Key 1 came first with the latest time, key 2 twice in one bucket, key 3 with equal rows."""
    table = make(move=MoveConfig(DAY, DAY, merge))
    live(table, (1, 5 * DAY, 1.0), (2, 9, 1.0), (3, 7, 1.0), (2, 5, 2.0), (1, 3, 2.0), (3, 7, 1.0))
    before = table.ask()
    assert before == [(1, 1.0, 5 * DAY), (2, 1.0, 9), (3, 1.0, 7)]
    move(table)
    assert table.ask() == before
    rows = {MergeType.LATEST: 4, MergeType.DEDUP: 5, MergeType.CONCAT: 6}[merge]
    assert len(table.ask(STORED)) == rows
    live(table, (1, 2, 3.0), (4, 6 * DAY, 1.0), (3, 8 * DAY, 9.0), start=6)
    seen = table.ask()
    assert seen == [*before, (4, 1.0, 6 * DAY)]
    move(table)
    assert table.ask() == seen


def test_merges_and_compaction_leave_out_what_came_later(make: Make) -> None:
    levels = (MergeLevel(DAY, DAY, MergeType.LATEST, name="1day"),)
    table = make(merge_levels=levels, compaction=CompactionConfig(-(1 << 53), 10, 1))
    table.add(row(1, 9, 0, "a"), row(2, 9, 1, "a"), row(3, 2 * DAY, 2, "c"))
    table.add(row(2, 5, 3, "b", 2.0), row(3, 5, 4, "b", 2.0), row(4, 5, 5, "b"))
    before = table.ask()
    assert [found[:2] for found in before] == [(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)]
    (merged,) = run_merges(table.halves.context(table.bench)).merged
    assert (merged.rows_read, merged.rows_written) == (5, 4) and table.ask() == before
    (compacted,) = run_compaction(table.halves.context(table.bench)).merged
    assert (compacted.rows_read, compacted.rows_written) == (4, 3), "key 3 came first in another bucket"
    assert table.ask() == before
    table.revert(str(compacted.act))
    table.revert(str(merged.act))
    assert table.ask() == before


def test_a_first_row_that_expires_takes_the_later_ones_with_it(make: Make) -> None:
    """Key 1 has later rows in a newer bucket and in REALTIME, key 2 one with an older time that goes too."""
    table = make(retention={Half.OFFLINE: 10 * DAY})
    table.now = 12 * DAY
    table.add(row(1, DAY, 0, "o1"), row(2, DAY, 1, "o1"), row(3, DAY, 2, "o1"))
    table.add(row(1, 8 * DAY, 3, "o8", 2.0), row(2, 9, 4, "o0", 2.0), row(4, 8 * DAY, 5, "o8"))
    table.halves.commit_realtime([row(1, 11 * DAY, 1000, REALTIME, 3.0)], offsets={KEY: 1001})
    assert [found[0] for found in table.ask()] == [1, 2, 3, 4]
    report = run_retention(table.halves.context(table.bench))
    assert "1 delete marker" in report.sentence
    assert [found[0] for found in table.ask()] == [4], "key 1 does not come up as if it were new"
    table.now = 19 * DAY
    run_retention(table.halves.context(table.bench))
    assert table.ask() == [], "its realtime row has not expired yet, and stays hidden"
    table.add(kind="move")
    live(table, (2, 18 * DAY, 5.0), start=1001)
    assert table.ask() == [(2, 5.0, 18 * DAY)], "of key 2 nothing is left: what comes now is its first row"


def test_a_later_row_that_expires_leaves_the_first_alone(make: Make) -> None:
    table = make(retention={Half.OFFLINE: 10 * DAY})
    table.now = 12 * DAY
    table.halves.commit_offline([row(1, 8 * DAY, 0, "o8"), row(1, DAY, 1, "o1", 2.0)], Boundary(9 * DAY, {KEY: 1000}))
    run_retention(table.halves.context(table.bench))
    assert table.ask() == [(1, 1.0, 8 * DAY)] and table.segments() == ["o8"]
