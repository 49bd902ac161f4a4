"""Partitions and times at their edges, from Kafka to moved rows: nothing stalls, and nothing is lost or seen twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hybrid.config.table_config import ARRIVED, Half, UpsertConfig
from tests.cases.tables import DAY, HOUR

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def row(number, ts, **more):
    return {"id": number, "key": f"k{number}", "value": number, "ts": ts, **more}


def ms(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_an_idle_partition_and_one_that_never_had_a_row_stall_nothing(new_table):
    """Partition 1 falls silent after one row, 2 never speaks until all others have moved."""
    table = new_table(partitions=3)
    table.produce(row(1, 5))
    table.produce(row(2, 6), partition=1)
    table.ingest()
    assert table.move().boundary.time_ms == HOUR
    table.produce(row(3, HOUR), row(4, 3 * HOUR))
    table.ingest()
    report = table.move(None)
    assert (report.rows_read, report.boundary.time_ms) == (2, 4 * HOUR)
    assert table.visible() == table.queried() == [1, 2, 3, 4] and table.offsets == {0: 3, 1: 1, 2: 0}
    table.produce(row(5, 7), row(6, 4 * HOUR), partition=2)
    table.produce(row(7, 8), partition=1)
    assert table.queried() == list(range(1, 8)), "in the tail, behind the boundary"
    table.ingest()
    assert table.visible() == list(range(1, 8))
    report = table.move(None)
    assert (report.rows_read, report.late_rows) == (3, 2)
    assert table.visible() == table.queried() == list(range(1, 8)) and sum(table.segments().values()) == 7


def test_windows_that_end_and_begin_at_epoch_0(new_table):
    """The boundary stands at 0 itself; a row of the instant 0 is of the bucket that begins there."""
    table = new_table()
    table.now = 0
    table.produce(row(1, -1), row(2, 0), row(3, HOUR - 1))
    table.ingest()
    report = table.move(None)
    assert (report.rows_read, report.boundary.time_ms) == (1, 0)
    assert table.visible() == table.queried() == [1, 2, 3]
    assert not table.move(None).moved
    table.produce(row(4, -1))  # late: behind a boundary of 0
    table.ingest()
    assert table.move(None).late_rows == 1 and table.boundary.time_ms == 0
    table.now = HOUR
    report = table.move(None)
    assert (report.rows_read, report.boundary.time_ms) == (2, HOUR)
    assert table.visible() == table.queried() == [1, 2, 3, 4]
    assert {"t_-1_-1_0", f"t_0_{HOUR - 1}_0"} <= set(table.segments())


def test_a_week_without_data_and_a_leap_day(new_table):
    """One bucket a run: the empty week is stepped over, and 29 February has a bucket of its own."""
    table = new_table(bucket_ms=DAY)
    times = [
        "2024-02-20T12:00",
        "2024-02-28T23:59:59.999",
        "2024-02-29T00:00",
        "2024-02-29T23:59:59.999",
        "2024-03-01T00:00",
    ]
    table.produce(*(row(number, ms(text)) for number, text in enumerate(times)))
    table.ingest()
    table.now = ms("2024-03-01T00:00")
    seen = []
    while (report := table.move()).moved:
        seen.append((report.rows_read, table.boundary.time_ms))
        assert table.visible() == table.queried() == list(range(5))
    ends = ["2024-02-21T00:00", "2024-02-29T00:00", "2024-03-01T00:00"]
    assert seen == list(zip([1, 1, 2], map(ms, ends), strict=True))
    assert table.query("select count(*) from t where ts >= 1709164800000 and ts < 1709251200000") == [(2,)]
    assert "1 rows wait in 1 bucket not closed yet" in report.sentence


def test_clocks_that_jump_back_stall_nothing(new_table):
    """The server's clock, so that segments are as if not begun yet; and a producer's, who dates rows before others."""
    table = new_table(flush_rows=2, flush_ms=HOUR)
    table.produce(row(1, 5), timestamp_ms=5 * DAY)
    table.ingest()
    table.now = HOUR
    table.produce(row(2, 6), row(3, HOUR + 1), timestamp_ms=DAY)
    table.ingest()
    assert table.visible() == table.queried() == [1, 2, 3]
    report = table.move(None)
    assert (report.rows_read, report.boundary.time_ms) == (2, HOUR)
    table.now = 0
    assert not table.move(None).moved and table.boundary.time_ms == HOUR
    table.produce(row(4, 7), row(5, 2 * HOUR), timestamp_ms=0)
    table.ingest()
    assert table.visible() == table.queried() == [1, 2, 3, 4, 5]
    table.now = 10 * HOUR
    table.ingest()
    assert table.move(None).rows_read == 3
    assert table.visible() == table.queried() == [1, 2, 3, 4, 5]
    assert len(table.segments(Half.REALTIME)) >= 2, "full segments are sealed whatever the clock says"


def test_dedup_from_the_tail_to_the_offline_half(new_table):
    """Of each key the row that came first is seen, before it is committed, then, and when it has moved."""
    table = new_table(upsert=True, merge="latest")
    table.spec = replace(table.spec, upsert=UpsertConfig(ARRIVED, first_wins=True))
    table.produce({**row(1, 3 * HOUR), "key": "a"}, timestamp_ms=10)
    table.produce({**row(2, 5), "key": "a"}, {**row(3, 6), "key": "b"}, timestamp_ms=11)
    assert table.queried() == [1, 3]
    table.ingest()
    table.produce({**row(4, 7), "key": "b"}, {**row(5, HOUR), "key": "c"}, timestamp_ms=12)
    assert table.queried() == [1, 3, 5]
    assert table.move().boundary.time_ms == HOUR
    assert table.queried() == [1, 3, 5], "the later row of a moved first, and later ones in the tail"
    table.ingest()
    table.move(None)
    assert table.queried() == [1, 3, 5] and table.boundary.time_ms == 4 * HOUR
    assert table.query("select id from t where ts < 100") == [(3,)], "a filter brings no later row up"
    table.produce({**row(6, 9 * HOUR), "key": "a"}, timestamp_ms=13)
    assert table.queried() == [1, 3, 5]
