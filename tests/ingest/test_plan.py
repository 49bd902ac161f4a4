"""Planning a batch: what is read, and when a person has to decide."""

import pytest

from hybrid.errors import StreamError
from hybrid.ingest.plan import check_identity, plan_batch, start_offsets
from hybrid.ingest.stream import missing_topics
from hybrid.spec.table_config import StreamConfig
from hybrid.table.boundary import TopicPartition, partition_key, topic_key
from hybrid.table.ranges import OffsetRange
from hybrid.table.state import Act, RealtimeState
from tests.seen import by_place, seen, together

ACT = Act("create-0", 0, "create", "2021-11-21T00:00:00.000+00:00")
STREAM = StreamConfig(("orders",), "localhost:9092")
KEYS = [partition_key(STREAM, TopicPartition("orders", number)) for number in range(3)]


def state(offsets=(), topic_id="id-1"):
    known = {topic_key(STREAM, "orders"): topic_id} if topic_id else {}
    return RealtimeState(ACT, dict(zip(KEYS, offsets, strict=False)), known)


def view(starts, ends, topic_id="id-1"):
    return seen("orders", topic_id, dict(enumerate(starts)), dict(enumerate(ends)))


def plan(known, shown, most=100):
    return plan_batch("orders", STREAM, known, shown, most)


def test_a_batch_goes_from_the_committed_offsets_to_the_ends():
    found = plan(state([3, 5]), view([0, 0], [10, 5]))
    assert found.ranges == (OffsetRange(KEYS[0], 3, 10),)
    assert (found.behind, found.topic_ids) == (0, {"orders": "id-1"})


def test_a_bounded_batch_says_how_far_it_is_behind():
    found = plan(state([0, 0]), view([0, 0], [100, 2]), most=10)
    assert found.ranges == (OffsetRange(KEYS[0], 0, 8), OffsetRange(KEYS[1], 0, 2))
    assert found.behind == 92


def test_a_new_partition_is_read_from_its_start():
    assert plan(state([5]), view([0, 0], [5, 4])).ranges == (OffsetRange(KEYS[1], 0, 4),)


@pytest.mark.parametrize(
    ("known", "shown", "words"),
    [
        (state([3]), view([0], [9], "id-2"), "Topic 'orders' was recreated: table 'orders' has read topic id id-1"),
        (state([3]), view([7], [9]), "has to read partition 0 of topic 'orders' from offset 3, but Kafka's first one"),
        (state([]), view([2], [9]), "2 offsets are gone"),
        (state([10]), view([0], [9]), "has read partition 0 of topic 'orders' up to offset 10, but it now ends at 9"),
        (state([5, 10]), view([0, 0], [9, 9]), "partition 1"),
    ],
    ids=["recreated", "expired", "new partition expired", "refilled", "one of two refilled"],
)
def test_nothing_is_skipped_without_a_person(known, shown, words):
    with pytest.raises(StreamError) as caught:
        plan(known, shown)
    assert words in str(caught.value)
    assert "nothing was skipped" in str(caught.value)
    assert caught.value.hint


def test_a_topic_whose_id_nobody_knows_yet_may_have_any():
    check_identity("orders", STREAM, state(topic_id=None), view([0], [0], "id-9"))


def test_where_a_table_starts():
    shown = view([4, 0], [9, 7])
    assert start_offsets(STREAM, shown) == {KEYS[0]: 9, KEYS[1]: 7}, "Pinot's default is largest"
    assert start_offsets(StreamConfig(("orders",), "b", "smallest"), shown) == {KEYS[0]: 4, KEYS[1]: 0}
    by_time = StreamConfig(("orders",), "b", "2021-11-21T10:38:00Z")
    assert start_offsets(by_time, shown, by_place("orders", {0: 6})) == {KEYS[0]: 6, KEYS[1]: 7}, (
        "nothing of that time yet: from the end"
    )
    assert start_offsets(STREAM, together()) == {}, "a topic that is not there yet starts at 0"


def test_a_missing_topic_says_how_to_create_it():
    error = missing_topics(STREAM, STREAM.topics)
    assert str(error) == "Topic 'orders' does not exist at localhost:9092."
    assert error.hint == "hybrid kafka topic create orders"
