"""Cases of modes and overrides with Spark's acts in between: every row once at every step."""

from __future__ import annotations

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError
from hybrid.lake.failpoints import POSITIONS
from tests.cases.tables import HOUR
from tests.cases.test_crashes import NOW, workers

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
__all__ = ["workers"]


def row(number, ts, **more):
    return {"id": number, "key": f"k{number}", "value": number, "ts": ts, **more}


def seen(table, *expected):
    assert table.visible() == table.queried() == sorted(expected)


@pytest.mark.parametrize("mode", ["exact", "pinot"])
def test_moves_go_on_under_an_override_that_comes_and_goes(new_table, mode):
    table = new_table(mode=mode)
    table.produce(row(1, 5), row(2, HOUR), row(3, 2 * HOUR), row(4, 10 * HOUR))
    table.ingest()
    with pytest.raises(ConflictError, match="covers no time yet"):
        table.set_boundary(5)
    table.move(2)
    table.replace("t_5_5_0", [row(101, 5)])
    table.replace(f"t_{HOUR}_{HOUR}_0", [row(102, HOUR)])
    by_mode = (101, 102, 3, 4) if mode == "exact" else (1, 2, 3, 4)
    seen(table, *by_mode)
    report = table.set_boundary(HOUR)
    assert report.version == table.half(Half.OFFLINE).version
    seen(table, 101, 2, 3, 4)
    assert not table.set_boundary(HOUR).committed, "twice changes nothing"
    table.produce(row(5, 6), row(6, HOUR + 5))
    assert table.queried() == [2, 3, 4, 5, 6, 101], "late rows in the tail"
    table.ingest()
    seen(table, 101, 2, 3, 4, 5, 6)
    before = table.boundary
    assert table.move(None).late_rows == 2
    assert (table.boundary.override_ms, table.boundary.time_ms) == (HOUR, before.time_ms + HOUR)
    seen(table, 101, 2, 3, 4, 5, 6)
    table.set_boundary(6)
    seen(table, 101, 2, 3, 4, 5, 6)
    table.set_boundary(HOUR + 1)
    seen(table, 101, 102, 3, 4, 5, 6)
    assert table.clear_boundary().committed and not table.clear_boundary().committed
    seen(table, 101, 102, 3, 4, 5, 6)
    if mode == "pinot":
        table.set_boundary(None)
        assert table.boundary.override_ms == 2 * HOUR + 1
        seen(table, 101, 102, 3, 4, 5, 6)


def test_a_boundary_is_set_between_the_plan_of_a_move_and_its_commit(new_table):
    table = new_table()
    table.produce(row(1, 5), row(2, HOUR), row(3, 10 * HOUR))
    table.ingest()
    table.move()
    table.said.when("Merging", lambda: table.set_boundary(3))
    table.move()
    assert table.said.all_happened and any("planning again" in message for message in table.said.messages)
    assert (table.boundary.time_ms, table.boundary.override_ms) == (2 * HOUR, 3)
    seen(table, 1, 2, 3)


def test_a_boundary_is_set_between_the_plan_of_a_replacement_and_its_commit(new_table):
    table = new_table()
    table.produce(row(1, 5), row(2, 10 * HOUR))
    table.ingest()
    table.move()
    table.said.when("Swapping", lambda: table.set_boundary(3))
    table.replace("t_5_5_0", [row(101, 5)])
    assert table.said.all_happened and table.boundary.override_ms == 3
    seen(table, 1, 2)
    table.clear_boundary()
    seen(table, 101, 2)


def test_outside_jobs_push_any_time_in_mode_pinot_and_no_time_past_the_boundary_in_mode_exact(new_table):
    pushed = [row(101, HOUR), row(102, 5 * HOUR), row(103, 6 * HOUR)]
    exact = new_table()
    exact.produce(row(1, HOUR), row(2, 5 * HOUR), row(3, 6 * HOUR))
    exact.ingest()
    with pytest.raises(ConflictError, match="which would stand beside them"):
        exact.replace("pushed", pushed)

    table = new_table(mode="pinot")
    table.produce(row(1, HOUR), row(2, 5 * HOUR), row(3, 6 * HOUR))
    table.ingest()
    table.replace("pushed", pushed)
    seen(table, 101, 102, 3)
    table.produce(row(4, 2 * HOUR), row(5, 7 * HOUR))
    seen_with_tail = table.queried()
    assert seen_with_tail == [3, 5, 101, 102], "no frontier is named: time alone decides"
    table.ingest()
    seen(table, 101, 102, 3, 5)
    table.set_boundary(None)
    seen(table, 101, 102, 103, 5)
    table.replace("pushed", [row(201, HOUR), row(202, 5 * HOUR)])
    seen(table, 201, 202, 5)
    table.clear_boundary()
    seen(table, 201, 3, 5, 2)


def test_a_removed_winner_takes_its_older_versions_with_it_under_any_boundary(new_table):
    """The older version was moved, too, and lies in REALTIME still: it must not win while the limit is below it."""
    table = new_table(upsert=True, merge="latest")
    table.produce(row(1, 50 * 60_000, key="k", value=10), row(2, 5, key="k", value=20), row(3, 5, key="o", value=1))
    table.ingest()
    table.move()
    seen(table, 2, 3)
    table.replace("t_5_3000000_0", [row(3, 5, key="o", value=1)])
    seen(table, 3)
    table.set_boundary(10)
    seen(table, 3)
    table.set_boundary(5)
    seen(table, 2, 3)
    table.clear_boundary()
    seen(table, 3)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_setting_a_boundary_dies_anywhere_and_is_done_by_the_next(workers):
    ours = workers()
    ours.table.create()
    ours.produce(8)
    ours.table.ingest()
    ours.table.move(None)
    limit = HOUR
    for position in POSITIONS:
        limit += 60_000
        act = f"boundary/{limit}@{NOW}"
        ours.die(act, f"boundary.commit.{position}")
        assert ours.table.queried() == ours.produced, "every row once, at any moment"
        ours.table.set_boundary(limit)
        assert ours.table.boundary.override_ms == limit
        ours.check()
    assert "until it is cleared" in ours.table.set_boundary(HOUR).sentence
    assert "alone decides again" in ours.table.clear_boundary().sentence
    ours.check()
