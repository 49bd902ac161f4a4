"""Merges die at every failpoint of the second of two buckets: it is merged, or not; the next run does the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.config.table_config import Half
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.failpoints import POSITIONS
from hybrid.lake.log import open_half
from hybrid.move.merging.run import run_merges
from hybrid.progress import Silent
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import NoTail
from hybrid.table.boundary import Boundary
from tests.move.clocked import DAY
from tests.move.upkeep_worker import worker_spec
from tests.query.halves import KEY, Halves, Row
from tests.shared_jvm import die_at

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(500)]


def row(day: int, number: int) -> Row:
    time, offset = day * DAY + number, day * 10 + number
    return Row({"order_id": offset, "customer": "c", "amount": 1.0, "ts": time}, time, offset, segment=f"s{offset}")


def test_killed_anywhere_the_next_run_does_the_rest(workbench: CommitContext, tmp_path: Path) -> None:
    """Two more days close each time."""
    halves, days = Halves.create(tmp_path, worker_spec()), 2 * len(POSITIONS)
    rows = [row(day, number) for day in range(days) for number in range(2)]
    halves.commit_offline(rows, Boundary(days * DAY, {KEY: 1000}))

    def shown() -> list[int]:
        options = QueryOptions(tail=NoTail(), now_ms=lambda: 0)
        return [found[0] for found in run("select order_id from orders order by 1 limit 99", halves, options).rows]

    before = shown()
    for closed, position in zip(range(2, days + 1, 2), POSITIONS, strict=True):
        now = closed * DAY
        die_at(f"merge.commit.{position}@2", workbench, "tests.move.upkeep_worker", "merges", str(tmp_path), str(now))
        assert shown() == before, position
        bench = CommitContext(lambda: workbench.spark, lambda now=now: now, Silent(), lock_timeout_s=120.0)
        report = run_merges(halves.context(bench))
        assert [one.start for one in report.merged] == ([] if position == "after" else [now - DAY]), position
        assert shown() == before, position
        held = {file.segment for file in open_half(halves.layout.half(Half.OFFLINE)).files}
        assert len(held) == closed + 2 * (days - closed)
