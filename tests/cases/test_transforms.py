"""Transforms and filters from Kafka through Spark to the query: the tail, commits, counts, and the move."""

import json
from dataclasses import replace

import pytest

from hybrid.config.table_config import Half
from hybrid.schema.ingestion import IngestionConfig, Transform
from hybrid.table.boundary import PartitionKey

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

STEPS = (
    Transform("ts", "fromEpochSeconds(seconds)"),
    Transform("key", "concat('k', id)"),
    Transform("value", "coalesce(price, 0) * 100"),
)


def given(table, *steps, where=None, lenient=False):
    config = IngestionConfig(steps, where, lenient)
    table.spec = replace(table.spec, ingestion={Half.REALTIME: config})
    return table


def rows(*ids, **more):
    return [{"id": number, "seconds": number, **more} for number in ids]


SHOW = "select id, key, value, ts from t order by id limit 100"


def test_what_the_tail_shows_is_what_is_committed(new_table):
    table = given(new_table(), *STEPS, where="deleted OR id % 2 = 0")
    table.produce(*rows(1, 2, 3, price="1.5"), *rows(5, deleted=True), *rows(7, seconds="soon"))
    before = table.query(SHOW)
    assert before == [(1, "k1", 150, 1000), (3, "k3", 150, 3000)]
    report = table.ingest()
    assert (report.rows, report.filtered, report.rejected) == (2, 2, 1)
    assert "2 messages were filtered out; 1 messages could not be read" in report.sentence
    assert table.query(SHOW) == before and table.visible() == table.queried() == [1, 3]
    assert table.offsets == {0: 5} and table.rejected() == {(0, 4)}
    reason = next(row["_hy_reason"] for row in table.rows(Half.REALTIME) if row["_hy_reason"])
    assert reason == ("Column 'ts': the transform 'fromEpochSeconds(seconds)' failed: \"soon\" is not a whole number.")


def test_a_batch_that_keeps_nothing_commits_its_offsets(new_table):
    table = given(new_table(), *STEPS, where="id < 100")
    table.produce(*rows(1, 2, 3))
    report = table.ingest()
    assert (report.rows, report.filtered, report.rejected, report.batches) == (0, 3, 0, 1)
    assert report.sentence.endswith("in 1 commit; 3 messages were filtered out.")
    state = table.half(Half.REALTIME).realtime
    assert table.offsets == {0: 3} and (state.filtered, state.rejected) == (3, 0)
    assert state.act.detail == {"rows": 0, "rejected": 0, "filtered": 3}
    assert state.consuming == {} and table.segments(Half.REALTIME) == {}
    assert table.ingest().batches == 0, "they are not read again"
    assert table.query(SHOW) == []
    table.produce(*rows(200, 4))
    assert table.queried() == [200]
    assert table.ingest().sentence.endswith("1 message was filtered out.")
    assert table.half(Half.REALTIME).realtime.filtered == 4
    assert table.move().rows_read == 1
    assert table.visible() == table.queried() == [200]
    key = PartitionKey("kafka", table.spec.stream.topics[0], 0, 0)
    assert table.boundary.frontier[key] == 5


def test_rejected_and_filtered_messages_alone(new_table):
    table = given(new_table(), *STEPS, where="id < 100")
    table.produce(b"{", *rows(1), b"\xff")
    report = table.ingest()
    assert (report.rows, report.filtered, report.rejected) == (0, 1, 2)
    assert table.rejected() == {(0, 0), (0, 2)} and table.offsets == {0: 3}


def test_continue_on_error_keeps_the_row(new_table):
    table = given(new_table(), *STEPS, where="key > 5", lenient=True)
    table.produce(*rows(1, price="a lot"), *rows(2, price=[1]), *rows(3, deleted="perhaps"), *rows(4, seconds=None))
    expected = [(1, "k1", 0, 1000), (2, "k2", 0, 2000), (3, "k3", 0, 3000)]
    assert table.query(SHOW) == expected
    report = table.ingest()
    assert (report.rows, report.rejected, report.filtered) == (3, 1, 0), "a row needs its time all the same"
    assert table.query(SHOW) == expected


def test_now_is_the_time_of_the_message(new_table):
    table = given(new_table(), Transform("ts", "now()"), where="seconds < ago('PT1S') / 1000")
    table.produce(*rows(100, 9), timestamp_ms=11_000)
    expected = [(100, "null", 0, 11_000)]
    assert table.query(SHOW) == expected
    table.now += 5_000
    table.ingest()
    assert table.query(SHOW) == expected


def test_on_an_upsert_table_a_filtered_row_never_existed(new_table):
    table = given(new_table(upsert=True), Transform("key", "k.name"), where="state = 'draft'")
    first, second = (
        {"id": 1, "k": {"name": "a"}, "value": 1, "ts": 1},
        {"id": 2, "k": {"name": "a"}, "value": 2, "ts": 2},
    )
    gone = {"id": 3, "k": {"name": "a"}, "value": 9, "ts": 3, "deleted": True}
    table.produce(first, {**second, "state": "draft"}, {**gone, "state": "draft"})
    assert table.queried() == [1]
    table.ingest()
    assert table.visible() == table.queried() == [1]
    table.produce(second)
    table.ingest()
    table.move()
    assert table.visible() == table.queried() == [2]


def test_transforms_may_change_between_batches(new_table):
    """Rows are stored as they were transformed; a change holds from then on."""
    table = given(new_table(), *STEPS)
    table.produce(*rows(1))
    table.ingest()
    given(table, *STEPS[:1], Transform("key", "'new'"))
    table.produce(json.dumps({"id": 2, "seconds": 2}).encode())
    table.ingest()
    assert [row[:2] for row in table.query(SHOW)] == [(1, "k1"), (2, "new")]
