"""Cases of the move: every row once, the boundary never falls."""

import pytest

from hybrid.config.table_config import Half
from hybrid.move import move
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.table.boundary import INFINITE, Boundary
from tests.cases.tables import DAY, HOUR, MILLIS

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def row(number, ts, **more):
    return {"id": number, "key": f"k{number}", "value": number, "ts": ts, **more}


def test_late_rows_are_visible_at_once_and_moved_by_the_next_move_though_no_bucket_closed(new_table):
    table = new_table(partitions=2)
    table.produce(row(1, HOUR), row(2, 10 * HOUR))
    table.ingest()
    table.move()
    assert table.boundary.time_ms == 2 * HOUR
    table.produce(row(3, HOUR + 5), row(4, 5), partition=1)
    assert table.queried() == [1, 2, 3, 4], "in the tail"
    table.ingest()
    assert table.visible() == table.queried() == [1, 2, 3, 4]
    report = table.move()
    assert (report.rows_read, report.late_rows, report.boundary.time_ms) == (2, 2, 2 * HOUR)
    assert set(table.segments()) == {f"t_{HOUR}_{HOUR}_0", f"t_{HOUR + 5}_{HOUR + 5}_0", "t_5_5_0"}
    assert table.visible() == table.queried() == [1, 2, 3, 4]
    assert "1 rows wait in 1 bucket not closed yet" in table.move().sentence


def test_bucket_period_changed_from_1_d_to_2_h_and_back(new_table):
    from dataclasses import replace

    table = new_table(bucket_ms=DAY)
    times = [HOUR, 20 * HOUR, DAY + HOUR, DAY + 3 * HOUR, DAY + 5 * HOUR, DAY + 23 * HOUR, 2 * DAY + HOUR]
    table.produce(*(row(number, ts) for number, ts in enumerate(times)))
    table.ingest()
    table.now = DAY
    assert table.move(None).boundary.time_ms == DAY
    table.spec = replace(table.spec, move=replace(table.spec.move, bucket_ms=2 * HOUR))
    table.now = DAY + 4 * HOUR
    assert table.move(None).rows_read == 2
    assert table.boundary.time_ms == DAY + 4 * HOUR, "inside a day"
    table.spec = replace(table.spec, move=replace(table.spec.move, bucket_ms=DAY))
    table.produce(row(7, DAY + 2 * HOUR))  # late, in the day that T divides
    table.ingest()
    assert table.move(None).late_rows == 1, "the rest of the day has not closed"
    assert table.boundary.time_ms == DAY + 4 * HOUR
    table.now = 3 * DAY
    assert table.move(1).rows_read == 2
    assert table.boundary.time_ms == 2 * DAY
    assert table.visible() == table.queried() == list(range(8))
    assert table.move(None).rows_read == 1
    table.now = 0  # the clock jumps back
    assert not table.move(None).moved
    assert table.boundary.time_ms == 3 * DAY
    assert table.visible() == table.queried() == list(range(8))
    assert sum(table.segments().values()) == 8


def test_all_buckets_at_once_over_empty_stretches_and_before_1970(new_table):
    table = new_table()
    table.produce(row(1, -5 * HOUR - 1), row(2, 0), row(3, 7 * HOUR), row(4, 10 * HOUR))
    table.ingest()
    dry = table.move(None, dry_run=True)
    assert (dry.rows_read, dry.moved, dry.dry_run) == (3, False, True)
    report = table.move(None)
    assert report.rows_read == 3
    assert report.boundary.time_ms == dry.boundary.time_ms == 8 * HOUR
    assert len(report.segments) == 3
    assert table.visible() == table.queried() == [1, 2, 3, 4]


def test_a_table_without_a_time_column_moves_by_the_frontier_alone(new_table):
    table = new_table(time_column=None, records_max=2)
    table.produce(row(1, 1), row(2, 2), row(3, 3))
    table.ingest()
    assert table.visible() == table.queried() == [1, 2, 3]
    report = table.move()
    assert report.segments == ("t_0", "t_1")
    key = next(iter(report.boundary.frontier))
    assert report.boundary == Boundary(INFINITE, {key: 3})
    assert not table.move().moved
    table.produce(row(4, 4))
    table.ingest()
    assert table.visible() == table.queried() == [1, 2, 3, 4]
    assert table.move().segments == ("t_2",)
    assert table.visible() == table.queried() == [1, 2, 3, 4]


def test_dedup_keeps_one_of_equal_rows_of_a_bucket(new_table):
    table = new_table(merge="dedup", partitions=2)
    same = row(1, 5)
    table.produce(same, row(2, 5), same, {**same, "value": 9})
    table.produce(same, row(1, HOUR), partition=1)
    table.ingest()
    report = table.move(None)
    assert (report.rows_read, report.rows_written) == (6, 4)
    assert ", merged to 4 (dedup)" in report.sentence
    assert table.visible() == [1, 1, 1, 2]


def test_dedup_on_an_upsert_table_keeps_the_winner(new_table):
    """A and B tie by comparison value; A came again and wins. Dedup may not keep its first copy, which loses to B."""
    table = new_table(merge="dedup", upsert=True)
    again = {"id": 1, "key": "k", "value": 10, "ts": 5}
    table.produce(again, {"id": 2, "key": "k", "value": 10, "ts": 5}, again, timestamp_ms=1000)
    table.ingest()
    assert table.visible() == table.queried() == [1]
    assert table.move().rows_written == 2
    assert table.visible() == table.queried() == [1]


def test_segments_of_so_many_records_sorted_by_the_sort_column(new_table):
    table = new_table(records_max=3, sort=("value",))
    table.produce(*(row(number, number, value=-number) for number in range(7)), row(7, HOUR))
    table.ingest()
    report = table.move(None)
    assert table.segments() == {"t_0_2_0": 3, "t_3_5_0": 3, "t_6_6_0": 1, f"t_{HOUR}_{HOUR}_0": 1}
    assert len(table.half(Half.OFFLINE).files) == len(report.segments), "one file each"
    first = [line["value"] for line in table.rows(Half.OFFLINE) if line["_hy_segment"] == "t_0_2_0"]
    assert first == [-2, -1, 0]
    assert table.visible() == table.queried() == list(range(8))


def test_a_move_takes_no_more_records_than_a_task_may(new_table):
    table = new_table(task_max=4, records_max=3)
    times = [*range(6), HOUR, HOUR + 1, 2 * HOUR, 2 * HOUR + 1, 2 * HOUR + 2, 5 * HOUR]
    table.produce(*(row(number, time) for number, time in enumerate(times)))
    table.ingest()
    dry = table.move(None, dry_run=True)
    assert (dry.rows_read, dry.boundary.time_ms) == (4, 4) and dry.sentence.endswith("maxNumRecordsPerTask.")
    report = table.move(None)
    assert (report.rows_read, report.boundary.time_ms) == (4, 4), "the first four of a bucket of six"
    assert report.segments == ("t_0_2_0", "t_3_3_0")
    assert report.sentence.endswith("; more is closed, and left to the next run by maxNumRecordsPerTask.")
    assert table.visible() == table.queried() == list(range(12))
    table.produce(row(12, 3))  # late, before T inside the bucket
    table.ingest()
    report = table.move(None)
    assert (report.rows_read, report.late_rows, report.boundary.time_ms) == (3, 1, HOUR), "the next would make five"
    assert report.segments == ("t_3_5_0",)
    report = table.move(None)
    assert (report.rows_read, report.boundary.time_ms) == (2, 2 * HOUR)
    report = table.move(None)
    assert (report.rows_read, report.boundary.time_ms) == (4, 6 * HOUR)
    assert not report.sentence.endswith("maxNumRecordsPerTask.")
    assert table.visible() == table.queried() == list(range(13))


def test_late_rows_and_an_instant_are_not_divided(new_table):
    table = new_table(task_max=2)
    table.produce(*(row(number, 7) for number in range(3)), row(3, 8))
    table.ingest()
    report = table.move(None)
    assert (report.rows_read, report.boundary.time_ms) == (3, 8), "one instant"
    table.produce(*(row(number, 1) for number in range(4, 7)))
    table.ingest()
    report = table.move(None)
    assert (report.rows_read, report.late_rows, report.boundary.time_ms) == (3, 3, 8), "late rows alone are too many"
    assert table.move(None).boundary.time_ms == HOUR
    assert table.visible() == table.queried() == list(range(7))


def test_a_backlog_behind_the_bucket_that_moves_is_not_counted(new_table, monkeypatch):
    counted = []
    waiting = move.count_waiting
    monkeypatch.setattr(move, "count_waiting", lambda *of: counted.append(waiting(*of)) or counted[-1])
    table = new_table()
    for hour in range(4):
        table.produce(row(hour, hour * HOUR))
        table.ingest()
    assert table.move(1).rows_read == 1
    assert table.move(2).rows_read == 2
    assert [sum(piece.count for piece in one) for one in counted] == [1, 2]


def test_columns_may_have_any_name(new_table):
    fields = (
        FieldSpec("id", DataType.INT, FieldKind.DIMENSION, default_null=0),
        FieldSpec("name", DataType.STRING, FieldKind.DIMENSION, default_null="null"),
        FieldSpec("bucket", DataType.STRING, FieldKind.DIMENSION, default_null="null"),
        FieldSpec("part", DataType.INT, FieldKind.DIMENSION, default_null=0),
        FieldSpec("order-key", DataType.STRING, FieldKind.DIMENSION, default_null="null"),
        FieldSpec("value", DataType.LONG, FieldKind.METRIC, default_null=0),
        FieldSpec("deleted", DataType.BOOLEAN, FieldKind.DIMENSION, default_null=False),
        FieldSpec("event.time", DataType.LONG, FieldKind.DATE_TIME, default_null=0, time_format=MILLIS),
    )
    options = {"fields": fields, "time_column": "event.time", "key": ("order-key", "part"), "sort": ("order-key",)}
    table = new_table(upsert=True, merge="latest", **options)
    one = {"id": 1, "name": "n", "bucket": "b", "part": 1, "order-key": "k", "value": 1, "event.time": 5}
    table.produce(one, {**one, "id": 2, "value": 2}, {**one, "id": 3, "part": 2})
    table.ingest()
    report = table.move()
    assert (report.rows_read, report.rows_written, report.segments) == (3, 2, ("t_5_5_0",))
    assert {line["id"] for line in table.rows(Half.OFFLINE)} == {2, 3}
    assert table.queried() == [2, 3]


def test_a_move_names_no_segment_that_a_revert_may_bring_back(new_table):
    from hybrid.replace.revert import revert

    table = new_table()
    table.produce(row(1, 5), row(2, 6))
    table.ingest()
    table.move()
    emptied = table.replace("t_5_6_0", [], allow_empty=True)
    assert table.segments() == {}
    table.produce(row(3, 5), row(4, 6))
    table.ingest()
    assert table.move().segments == ("t_5_6_1",)
    back = revert(table.context, emptied.act)
    assert table.visible() == table.queried() == [1, 2, 3, 4]
    revert(table.context, back.act)
    assert table.visible() == table.queried() == [3, 4]
