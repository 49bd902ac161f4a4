"""Retention dies at every failpoint of both of its acts: what queries show is what it was, or what it is to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.config.table_config import Half
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.failpoints import POSITIONS
from hybrid.lake.log import open_half
from hybrid.move.retention.run import run_retention
from hybrid.progress import Silent
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import NoTail
from hybrid.table.boundary import Boundary
from tests.move.clocked import DAY
from tests.move.upkeep_worker import worker_spec
from tests.query.halves import KEY, Halves, Row
from tests.shared_jvm import die_at

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(500)]


def row(day: int, segment: str) -> Row:
    return Row({"order_id": day, "customer": "c", "amount": 1.0, "ts": day * DAY}, day * DAY, day, segment=segment)


def test_killed_anywhere_the_next_run_does_the_rest(workbench: CommitContext, tmp_path: Path) -> None:
    """One more day expires each time, so that every death finds both acts to do."""
    halves, days = Halves.create(tmp_path, worker_spec()), range(8)
    for day in days:
        halves.commit_realtime([row(day, f"orders__0__{day}__x")], offsets={KEY: day + 1})
    halves.commit_offline([row(day, f"o{day}") for day in days], Boundary(8 * DAY, {KEY: 8}))

    def shown() -> list[int]:
        options = QueryOptions(tail=NoTail(), now_ms=lambda: 0)
        return sorted(found[0] for found in run("select order_id from orders limit 99", halves, options).rows)

    def stored(half: Half) -> int:
        return len(open_half(halves.layout.half(half)).files)

    number = 0
    for number, position in enumerate([*POSITIONS, *(f"{one}@2" for one in POSITIONS)], start=1):
        now = (8 + number) * DAY
        point, arguments = f"retention.commit.{position}", ("retention", str(tmp_path), str(now))
        die_at(point, workbench, "tests.move.upkeep_worker", *arguments)
        assert shown() in (list(days[number - 1 :]), list(days[number:])), position
        bench = CommitContext(lambda: workbench.spark, lambda now=now: now, Silent(), lock_timeout_s=120.0)
        run_retention(halves.context(bench))
        assert shown() == list(days[number:]), position
        assert stored(Half.OFFLINE) == stored(Half.REALTIME) == len(days) - number
    assert open_half(halves.layout.half(Half.OFFLINE)).offline.boundary == Boundary(
        8 * DAY, {KEY: 8}, floor_ms=(number - 1) * DAY + 1
    )
