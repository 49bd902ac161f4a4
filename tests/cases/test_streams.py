"""Cases of the stream: what Kafka does, and that no row is lost, doubled or skipped by it."""

import json
import time
from contextlib import contextmanager

import pytest
from deltalake import DeltaTable
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError, StreamError
from hybrid.ingest.batch import run_batch
from hybrid.ingest.seal import seal_consuming
from hybrid.kafka.topics import create_topic, describe_topic
from hybrid.runtime.json_values import epoch_ms
from tests.cases.tables import HOUR

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def rows(*ids, **more):
    return [{"id": number, "key": f"k{number}", "ts": number, **more} for number in ids]


@contextmanager
def admin_of(table):
    admin = KafkaAdminClient(bootstrap_servers=table.spec.stream.brokers)
    try:
        yield admin
    finally:
        admin.close()


def recreate_topic(table):
    brokers, topic = table.spec.stream.brokers, table.spec.stream.topics[0]
    with admin_of(table) as admin:
        admin.delete_topics([topic])
    deadline = time.monotonic() + 20
    while describe_topic(brokers, topic) is not None and time.monotonic() < deadline:
        time.sleep(0.1)
    create_topic(brokers, topic, 1)


def await_stable_end(table, offset):
    """Kafka confirms the end of a transaction before its marker is in the partition."""
    partition = TopicPartition(table.spec.stream.topics[0], 0)
    consumer = KafkaConsumer(bootstrap_servers=table.spec.stream.brokers, isolation_level="read_committed")
    try:
        deadline = time.monotonic() + 20
        while (end := consumer.end_offsets([partition])[partition]) != offset:
            assert time.monotonic() < deadline, end
            time.sleep(0.05)
    finally:
        consumer.close()


def on_another_topic(new_table):
    """A table that has read two rows of a topic, in whose place another one of its name holds three."""
    table = new_table()
    table.produce(*rows(1, 2))
    table.ingest()
    recreate_topic(table)
    table.produce(*rows(11, 12, 13))
    return table


def versions(table):
    return [table.half(half).version for half in Half]


def test_a_batch_of_rejected_rows_only_commits_its_offsets(new_table):
    table = new_table()
    table.produce(b"{", b"\xff", json.dumps({"id": 1, "ts": None}).encode())
    report = table.ingest()
    assert (report.rows, report.rejected, report.batches) == (0, 3, 1)
    assert table.offsets == {0: 3}
    assert table.rejected() == {(0, 0), (0, 1), (0, 2)}
    assert table.ingest().batches == 0
    assert "has no realtime rows yet" in table.move().sentence
    table.produce(*rows(7))
    table.ingest()
    assert table.visible() == table.queried() == [7]
    assert table.move().rows_read == 1
    assert table.visible() == table.queried() == [7]


def test_a_commit_says_up_to_when_it_has_all_of_the_stream(new_table):
    table = new_table()

    def complete_ms():
        return table.half(Half.REALTIME).realtime.complete_ms

    table.produce(*rows(1, 2, 3))
    run_batch(table.context, batch_offsets_max=2)
    assert complete_ms() is None, "one is left behind"
    before = table.context.bench.now_ms()
    run_batch(table.context, batch_offsets_max=2)
    complete = complete_ms()
    assert before <= complete <= epoch_ms(table.half(Half.REALTIME).realtime.act.at)
    table.now += 1000
    seal_consuming(table.context)
    table.produce(*rows(4, 5))
    run_batch(table.context, batch_offsets_max=1)
    assert complete_ms() == complete, "no later time is known"
    place = TopicPartition(table.spec.stream.topics[0], 0)
    run_batch(table.context, pause_offsets=lambda: {place: 5})
    assert complete_ms() == complete, "a pause may hold rows back"


def test_topic_idle_for_months_while_a_foreign_tool_optimises_and_checkpoints(new_table):
    table = new_table()
    for number in range(3):
        table.produce(*rows(number))
        table.ingest()
    table.move()
    offsets, boundary = table.offsets, table.boundary
    for half in Half:
        for _ in range(2):
            foreign = DeltaTable(str(table.layout.half(half)))
            foreign.optimize.compact()
            foreign.create_checkpoint()
            foreign.cleanup_metadata()
    assert (table.offsets, table.boundary) == (offsets, boundary)
    assert table.ingest().batches == 0
    assert not table.move().moved
    table.produce(*rows(3, 4))
    table.ingest()
    assert table.move().rows_read == 2, "late rows of the bucket that has moved"
    assert table.visible() == table.queried() == [0, 1, 2, 3, 4]


def test_topic_recreated_or_refilled_past_our_position(new_table):
    table = on_another_topic(new_table)
    before = versions(table)
    with pytest.raises(StreamError, match="was recreated: table 't' has read topic id"):
        table.ingest()
    assert versions(table) == before
    assert table.offsets == {0: 2} and table.visible() == [1, 2]


def test_topic_recreated_while_it_is_read(new_table, monkeypatch):
    from hybrid.kafka import streams as stream

    table = new_table()
    table.produce(*rows(1, 2))
    seen = stream.view_stream(table.spec.stream)
    recreate_topic(table)
    table.produce(*rows(11, 12))
    views = [seen, seen]  # what both plans saw; the rows are the new topic's
    view = stream.view_stream
    monkeypatch.setattr(stream, "view_stream", lambda *args: views.pop() if views else view(*args))
    with pytest.raises(StreamError, match="was recreated"):
        table.ingest()
    assert table.offsets == {0: 0} and table.visible() == []


def test_offsets_expired(new_table):
    table = new_table()
    table.produce(*rows(1, 2, 3, 4))
    table.ingest(batch_offsets_max=100)
    table.produce(*rows(5, 6, 7))
    with admin_of(table) as admin:
        admin.delete_records({TopicPartition(table.spec.stream.topics[0], 0): 6})
    with pytest.raises(StreamError, match=r"from offset 4, but Kafka's first one there is 6: 2 offsets are gone"):
        table.ingest()
    assert table.offsets == {0: 4} and table.visible() == [1, 2, 3, 4]


def test_new_partitions_are_read_from_their_start(new_table):
    table = new_table(start="largest")
    table.produce(*rows(1))
    table.ingest()
    with admin_of(table) as admin:
        admin.create_partitions({table.spec.stream.topics[0]: 3})
    table.produce(*rows(2, 3), partition=2)
    table.produce(*rows(4), partition=1)
    table.ingest()
    assert table.offsets == {0: 1, 1: 1, 2: 2}
    assert table.visible() == table.queried() == [1, 2, 3, 4]
    table.move()
    assert table.visible() == table.queried() == [1, 2, 3, 4]


def test_largest_and_a_crash_before_the_first_batch(new_table, workbench):
    """The start was committed at creation, so what came since is not skipped however late the first batch is."""
    from hybrid.operations.tables.create import create_halves

    table = new_table(start="largest")
    table.produce(*rows(1, 2))
    create_halves(table.layout, table.spec, table.now)  # created anew, now that the topic holds two rows
    assert table.offsets == {0: 2}
    table.produce(*rows(3, 4))
    table.ingest()
    assert table.visible() == table.queried() == [3, 4]


@pytest.mark.parametrize("start", ["1970-01-01T09:59:30Z", "30s"])
def test_a_start_by_time_is_resolved_and_stored_at_creation(new_table, start):
    from hybrid.operations.tables.create import create_halves

    table = new_table(partitions=2, start=start)
    for number, ago_s in enumerate([60, 31, 30, 10]):
        table.produce(*rows(number), timestamp_ms=table.now - 1000 * ago_s)
    table.produce(*rows(9), partition=1, timestamp_ms=table.now - 99_000)
    create_halves(table.layout, table.spec, table.now)  # created anew, now that the topic holds rows
    assert table.offsets == {0: 2, 1: 1}, "a partition without such messages starts at its end"
    table.now += HOUR
    table.produce(*rows(10), partition=1, timestamp_ms=0)
    table.ingest()
    assert table.visible() == table.queried() == [2, 3, 10]


def test_a_topic_that_is_not_there_yet_starts_at_0(new_table):
    table = new_table(topic=False, start="largest")
    with pytest.raises(NotFoundError, match=r"Topic 't-\w+' does not exist"):
        table.ingest()
    create_topic(table.spec.stream.brokers, table.spec.stream.topics[0], 2)
    table.produce(*rows(1), partition=1)
    table.ingest()
    assert table.visible() == [1]


def test_aborted_and_open_transactions(new_table):
    table = new_table()
    producer = KafkaProducer(
        bootstrap_servers=table.spec.stream.brokers,
        transactional_id=table.spec.stream.topics[0],
        enable_idempotence=True,
    )

    def send(*ids):
        for row in rows(*ids):
            producer.send(table.spec.stream.topics[0], json.dumps(row).encode(), partition=0)
        producer.flush()

    try:
        producer.init_transactions()
        producer.begin_transaction()
        send(1, 2)
        producer.abort_transaction()
        await_stable_end(table, 3)
        assert table.ingest().rows == 0
        assert table.offsets == {0: 3}, "two aborted rows and the marker: a position, not a count"
        producer.begin_transaction()
        send(3)
        table.produce(*rows(4))
        assert table.ingest().batches == 0, "the open transaction holds back what lies behind it"
        assert table.queried() == []
        producer.commit_transaction()
        await_stable_end(table, 6)
    finally:
        producer.close()
    assert table.ingest().rows == 2
    assert table.visible() == table.queried() == [3, 4]
    table.move()
    table.produce(*rows(5))
    table.ingest()
    assert table.visible() == table.queried() == [3, 4, 5]


def test_segments_are_consuming_until_a_threshold_seals_them(new_table):
    table = new_table(flush_rows=3, flush_bytes=10_000, flush_ms=60_000)
    table.produce(*rows(1, 2))
    table.ingest()
    table.produce(*rows(3, 4))
    table.ingest()
    names = sorted(table.segments(Half.REALTIME))
    assert [name.rsplit("__", 1)[0] for name in names] == ["t__0__0", "t__0__1"]
    assert list(table.segments(Half.REALTIME).values()) == [3, 1]
    assert table.half(Half.REALTIME).realtime.consuming_names() == {names[1]}

    table.now += 60_000  # nothing arrives: its age alone seals it
    assert table.ingest().sentence.startswith("Sealed 1 segment of 't' at the time threshold")
    assert table.half(Half.REALTIME).realtime.consuming_names() == set()
    assert table.ingest().batches == 0

    table.produce({**rows(5)[0], "key": "x" * 10_000})
    table.produce(*rows(6))
    table.ingest()
    assert sorted(table.segments(Half.REALTIME).values()) == [1, 1, 1, 3], "a big row fills a segment by its bytes"
    assert len(table.half(Half.REALTIME).realtime.consuming_names()) == 1
    assert table.visible() == [1, 2, 3, 4, 5, 6]
