"""A stream that a person has read on elsewhere: its topic is another one, or its offsets have expired."""

import pytest
from kafka import TopicPartition

from hybrid.config.table_config import Half
from hybrid.errors import QueryError, SpecError, StreamError
from hybrid.ingest.refetch import held_rows
from hybrid.query.engine import QueryOptions, run
from hybrid.table.columns import EPOCH
from tests.cases.tables import HOUR, _Source
from tests.cases.test_streams import admin_of, on_another_topic, rows

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def frontier(table):
    return {(key.epoch, key.partition): offset for key, offset in table.boundary.frontier.items()}


def test_a_recreated_topic_is_read_on_by_a_decision_and_moves_take_both_epochs(new_table):
    table = on_another_topic(new_table)
    with pytest.raises(StreamError, match="Decide where it continues: hybrid connector reset t --to earliest"):
        table.ingest()
    version = table.half(Half.REALTIME).version
    told = table.reset("earliest", dry_run=True)
    assert told.recreated and (told.lost, told.skipped, told.again) == (0, 0, 0)
    assert "it is another topic than was read before" in told.sentence
    assert table.half(Half.REALTIME).version == version and table.queried() == [1, 2]

    assert table.reset("earliest").version == version + 1
    assert table.half(Half.REALTIME).realtime.consuming == {}, "what was consuming is sealed"
    assert table.queried() == [1, 2, 11, 12, 13], "the tail is of the new topic"
    assert table.reset("earliest").sentence.startswith("Nothing to reset"), "told twice it is done once"
    table.ingest()
    assert table.offsets == {0: 3}
    assert [name.rsplit("__", 1)[0] for name in sorted(table.segments(Half.REALTIME))] == ["t__0__0", "t__0__1"]
    table.move()
    assert frontier(table) == {(0, 0): 2, (1, 0): 3}
    table.produce(*rows(14))
    table.ingest()
    assert table.visible() == table.queried() == [1, 2, 11, 12, 13, 14], "offset 3 of epoch 1 is late, and not moved"


def test_expired_offsets_are_told_in_numbers_and_a_move_planned_before_covers_nothing_new(new_table):
    table = new_table(upsert=False)
    table.produce(*rows(1, 2, 3, 4))
    table.ingest()
    table.produce(*rows(5, 6, 7))
    with admin_of(table) as admin:
        admin.delete_records({TopicPartition(table.spec.stream.topics[0], 0): 6})
    with pytest.raises(StreamError, match="2 offsets are gone"):
        table.ingest()
    found = []
    table.said.when("Merging", lambda: found.append(table.reset("earliest")))
    table.move()
    assert table.said.all_happened and (found[0].lost, found[0].skipped, found[0].again) == (2, 0, 0)
    assert "2 offsets are gone from Kafka unread" in found[0].sentence
    assert frontier(table) == {(0, 0): 4}, "the move knew of the old epoch alone"
    assert table.queried() == [1, 2, 3, 4, 7]
    table.ingest()
    assert table.visible() == table.queried() == [1, 2, 3, 4, 7], "row 7 lies before T, beyond the new epoch's frontier"
    table.move()
    assert table.visible() == table.queried() == [1, 2, 3, 4, 7]
    assert frontier(table) == {(0, 0): 4, (1, 0): 7}


def test_skipped_rows_leave_the_tail_and_rows_read_again_stand_twice(new_table):
    table = new_table(partitions=2)
    table.produce(*rows(1, 2))
    table.produce(*rows(9), partition=1)
    table.ingest()
    table.produce(*rows(3, 4))
    seen = str(run("select id from t", _Source(table)).revision)
    assert table.queried() == [1, 2, 3, 4, 9]
    skipped = table.reset("latest")
    assert (skipped.lost, skipped.skipped, skipped.again) == (0, 2, 0)
    assert [one.partition for one in skipped.partitions] == [0], "the other goes on as it is"
    assert table.queried() == [1, 2, 9]
    with pytest.raises(QueryError, match="neither committed nor in Kafka now"):
        run("select id from t", _Source(table), QueryOptions(as_of=seen))
    table.produce(*rows(5))
    table.produce(*rows(10), partition=1)
    table.ingest()  # one batch of both partitions, of two epochs
    epochs = {(row["id"], row[EPOCH]) for row in table.rows(Half.REALTIME)}
    assert epochs == {(1, 0), (2, 0), (5, 1), (9, 0), (10, 0)}

    again = table.reset("0:3")
    assert (again.skipped, again.again) == (0, 2) and "their rows are there twice" in again.sentence
    table.ingest()
    assert table.visible() == table.queried() == [1, 2, 4, 5, 5, 9, 10]
    table.move(None)
    assert table.visible() == table.queried() == [1, 2, 4, 5, 5, 9, 10]
    with pytest.raises(SpecError, match=r"The stream of 't' was reset"):
        held_rows(table.bench, table.spec, table.half(Half.REALTIME).realtime)
    with pytest.raises(StreamError, match="Kafka holds offsets 0 to 5 of partition 0"):
        table.reset("0:6")


def test_an_upsert_table_read_again_has_each_key_once(new_table):
    table = new_table(upsert=True)
    table.produce(*rows(1, 2, value=7), {**rows(1)[0], "value": 9, "ts": HOUR})
    table.ingest()
    table.move()
    found = table.reset("earliest")
    assert found.again == 3 and "twice" not in found.sentence
    table.ingest()
    assert table.visible() == table.queried() == [1, 2]
    table.move(None)
    assert table.visible() == table.queried() == [1, 2]
