"""Two topics with equal partitions and offsets on one table: no row is lost, doubled or taken for the other's."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from hybrid.config.offset_place import parse_place
from hybrid.config.table_config import Half
from hybrid.errors import StreamError, TopicError
from hybrid.ingest.refetch import held_rows
from hybrid.ingest.reset import reset_stream, resolve_reset
from hybrid.kafka.topics import TopicRecord, create_topic, describe_topic, produce
from hybrid.lake.commit_context import CommitContext
from hybrid.query.cache.stream import KafkaStream
from hybrid.query.engine import run
from hybrid.replace.backfill.from_kafka import _goes
from hybrid.table.boundary import PartitionKey
from tests.cases.tables import HOUR, LiveTable, _Source, layout_in, table_spec

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
WAIT_S = 20.0
NewTopics = Callable[..., "Topics"]


class Topics(LiveTable):
    """A table on two topics, of which the second may come later."""

    @property
    def names_of_topics(self) -> tuple[str, str]:
        first, second = self.spec.stream.topics
        return first, second

    def send(self, topic: str, *ids: int, time: int | None = None, **more: object) -> None:
        rows = [{"id": n, "key": f"k{n}", "ts": n if time is None else time, "value": n, **more} for n in ids]
        produce(self.spec.stream.brokers, topic, [TopicRecord(json.dumps(row).encode(), partition=0) for row in rows])

    def committed(self, topic: str) -> int:
        state = self.half(Half.REALTIME).realtime
        return max((at for key, at in state.offsets.items() if key.topic == topic), default=0)

    def seen(self) -> list[int]:
        """The ids that a user sees: asked with the tail, and where all is committed worked out from the files."""
        found = self.queried()
        if all(self.committed(key.topic) == end for key, end in self.ends().items()):
            assert self.visible() == found
        return found

    def ends(self) -> dict[PartitionKey, int]:
        stream = KafkaStream(self.spec, self.half(Half.REALTIME).realtime, self.spec.stream.brokers)
        try:
            return dict(stream.ends())
        finally:
            stream.close()


@pytest.fixture
def new_topics(broker: str, workbench: CommitContext, tmp_path: Path) -> NewTopics:
    def make(*, both: bool = True, **options: object) -> Topics:
        names = tuple(f"t-{uuid.uuid4().hex[:12]}" for _ in range(2))
        for name in names[: 2 if both else 1]:
            create_topic(broker, name)
        made = table_spec(broker, "", **options)
        spec = replace(made, stream=replace(made.stream, topics=names))
        table = Topics(spec, layout_in(tmp_path / names[0]), workbench)
        table.create()
        return table

    return make


def test_rows_of_two_topics_come_move_and_are_corrected_once_each(new_topics: NewTopics) -> None:
    table = new_topics()
    first, second = table.names_of_topics
    table.send(first, 1, 2)
    table.send(second, 11, 12)
    assert table.seen() == [1, 2, 11, 12], "a tail over both"
    report = table.ingest()
    assert (report.rows, report.batches) == (4, 1)
    assert report.sentence == f"Ingested 4 rows from topics '{first}' and '{second}' into 't' in 1 commit."
    assert sorted(name.rsplit("__", 1)[0] for name in table.segments(Half.REALTIME)) == ["t__0__0", "t__10000__0"]
    table.send(second, 13)
    assert table.seen() == [1, 2, 11, 12, 13], "equal offsets of both, one beyond the commit"

    # A move whose frontier covers the second topic further than the first.
    table.ingest()
    held = held_rows(table.bench, table.spec, table.half(Half.REALTIME).realtime)
    again = {(row["_hy_topic"], row["_hy_offset"], row["id"]) for row in held.frame.collect()}
    assert again == {(first, 0, 1), (first, 1, 2), (second, 0, 11), (second, 1, 12), (second, 2, 13)}
    some = replace(held, held_from={key: 1 if key.topic == first else 2 for key in held.held_from})
    stored = table.bench.spark.read.format("delta").load(str(table.layout.half(Half.REALTIME)))
    gone = {row["id"] for row in stored.where(_goes(some)).collect()}
    assert gone == {2, 13}, "what Kafka no longer holds of one topic stays, whatever it holds of the other"
    table.move(None)
    frontier = table.boundary.frontier
    assert {key.topic: at for key, at in frontier.items()} == {first: 2, second: 3}
    assert table.seen() == [1, 2, 11, 12, 13]
    table.send(first, 3)  # late, at an offset that the frontier covers of the other topic
    assert table.seen() == [1, 2, 3, 11, 12, 13]
    table.ingest()
    assert table.seen() == [1, 2, 3, 11, 12, 13]
    table.move(None)
    assert table.seen() == [1, 2, 3, 11, 12, 13] and table.boundary.frontier.keys() == frontier.keys()

    segment = next(name for name, rows in table.segments().items() if rows == 5)
    kept = [{"id": n, "key": f"k{n}", "ts": n, "value": n} for n in (1, 2, 11, 12)]
    table.replace(segment, [*kept, {"id": 99, "key": "k99", "ts": 13, "value": 99}])
    assert table.seen() == [1, 2, 3, 11, 12, 99]
    table.send(first, 4, time=HOUR)
    table.send(second, 14, time=HOUR)
    assert table.seen() == [1, 2, 3, 4, 11, 12, 14, 99]

    # What could not be read comes back, of both topics from the same offset.
    table.send(first, 7, deleted="perhaps")
    table.send(second, 7, deleted="perhaps")
    table.ingest()
    assert table.half(Half.REALTIME).realtime.rejected == 2
    table.lenient()
    assert len(table.replay().segments) == 2
    assert table.seen() == [1, 2, 3, 4, 7, 7, 11, 12, 14, 99]
    table.move(None)
    assert table.seen() == [1, 2, 3, 4, 7, 7, 11, 12, 14, 99]


def test_the_newest_row_of_a_key_wins_whatever_topic_it_comes_by(new_topics: NewTopics) -> None:
    table = new_topics(upsert=True)
    first, second = table.names_of_topics
    table.send(first, 1, key="k", value=10)
    table.send(second, 2, key="k", value=30)
    assert table.seen() == [2]
    table.ingest()
    table.send(first, 3, key="k", value=20)
    assert table.seen() == [2]
    table.ingest()
    table.move(None)
    table.send(first, 4, key="k", value=40)
    assert table.seen() == [4]
    table.send(second, 5, key="k", value=50, deleted=True)
    assert table.seen() == []


def test_a_topic_that_comes_later_and_one_that_is_made_anew(new_topics: NewTopics) -> None:
    table = new_topics(both=False, start="largest")
    first, second = table.names_of_topics
    table.send(first, 1)
    assert table.queried() == [1]
    table.ingest()
    create_topic(table.spec.stream.brokers, second)
    table.send(second, 11)
    stream = KafkaStream(table.spec, table.half(Half.REALTIME).realtime, table.spec.stream.brokers)
    try:
        table.send(first, 2)
        found = polled(stream, 2)
        assert found == {(first, 1), (second, 0)}, "a server follows both"
    finally:
        stream.close()
    assert table.seen() == [1, 2, 11], "it is read from its beginning"
    table.ingest()
    assert table.seen() == [1, 2, 11]

    table.send(first, 3)
    recreate(table.spec.stream.brokers, second, lambda: missed(table, second))
    table.send(first, 4)
    table.send(second, 21, 22)
    with pytest.raises(StreamError, match=f"Topic '{second}' was recreated"):
        table.ingest()
    assert table.queried() == [1, 2, 3, 4, 11], "of the other topic the tail is seen"
    with pytest.raises(StreamError, match=f"Topic '{second}' was recreated"):
        KafkaStream(table.spec, table.half(Half.REALTIME).realtime, table.spec.stream.brokers)
    told = resolve_reset(table.spec, table.layout, second, parse_place("earliest", second, table.now, "--to"))
    done = reset_stream(table.context, told)
    assert (done.topic, [one.epoch for one in done.partitions]) == (second, [1])
    assert table.queried() == [1, 2, 3, 4, 11, 21, 22]
    table.ingest()
    assert table.seen() == [1, 2, 3, 4, 11, 21, 22]
    table.move(None)
    assert table.seen() == [1, 2, 3, 4, 11, 21, 22]


def polled(stream: KafkaStream, count: int) -> set[tuple[str, int]]:
    """Topic and offset of the next messages."""
    deadline, found = time.monotonic() + WAIT_S, set()
    while len(found) < count and time.monotonic() < deadline:
        found |= {(one.key.topic, one.offset) for one in stream.poll(0.1).messages}
    return found


def missed(table: Topics, topic: str) -> None:
    with pytest.raises(TopicError, match=f"Topic '{topic}' of .* was read before and does not exist any more"):
        table.ingest()
    warning = f"Topic '{topic}' does not exist any more: answered from committed rows of it only."
    found = run("select id from t", _Source(table))
    assert (sorted(row[0] for row in found.rows), found.warnings) == ([1, 2, 3, 11], [warning])


def recreate(brokers: str, topic: str, meanwhile: Callable[[], None]) -> None:
    admin = KafkaAdminClient(bootstrap_servers=brokers)
    try:
        admin.delete_topics([topic])
    finally:
        admin.close()
    deadline = time.monotonic() + WAIT_S
    while describe_topic(brokers, topic) is not None and time.monotonic() < deadline:
        time.sleep(0.1)
    meanwhile()
    create_topic(brokers, topic)
