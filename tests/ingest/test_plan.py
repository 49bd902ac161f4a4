"""Planning a batch: what is read, and when a person has to decide."""

from dataclasses import replace

import pytest

from hybrid.config.table_config import StreamConfig
from hybrid.errors import StreamError
from hybrid.ingest.plan import check_identity, leader_epochs_at, plan_batch, start_offsets
from hybrid.kafka.streams import missing_topics
from hybrid.table.boundary import TopicPartition, partition_key, topic_key
from hybrid.table.ranges import OffsetRange
from hybrid.table.state import Act, RealtimeState
from tests.fake_streams import by_place, seen, together

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


def cut(shown, *ends, epochs=()):
    """A view whose partitions are still what was read up to `ends`, of leaders with `epochs`."""
    return replace(
        shown, divergences=by_place("orders", dict(enumerate(ends))), leader_epochs=by_place("orders", dict(epochs))
    )


@pytest.mark.parametrize("end", [900, 950, 1000, 1100], ids=["shorter", "as long as before the cut", "there", "beyond"])
def test_a_log_cut_below_what_was_read_stops_however_long_it_is_now(end):
    """17: the end alone tells it only while it is below the position."""
    with pytest.raises(StreamError, match="up to offset 1000, but from offset 900 on Kafka no longer holds") as caught:
        plan(state([1000]), cut(view([0], [end]), 900))
    assert "hybrid connector reset orders" in str(caught.value) and "--to 0:900" in caught.value.hint


def test_one_of_two_partitions_cut_stops_both():
    with pytest.raises(StreamError, match="partition 1 of topic 'orders' up to offset 10, but from offset 9"):
        plan(state([5, 10]), cut(view([0, 0], [9, 20]), 5, 9))


@pytest.mark.parametrize("same", [1000, 1001, 5000], ids=["at the position", "one beyond", "far beyond"])
def test_a_log_that_still_holds_what_was_read_goes_on(same):
    found = plan(state([1000]), cut(view([0], [1100]), same, epochs=[(0, 7)]))
    assert found.ranges == (OffsetRange(KEYS[0], 1000, 1100),)
    assert found.leader_epochs == {TopicPartition("orders", 0): 7}


def test_an_epoch_is_kept_only_with_an_offset_that_its_leader_had():
    shown = cut(view([0, 0], [10, 10]), epochs=[(0, 3), (1, 4)])
    assert leader_epochs_at(shown, {KEYS[0]: 10, KEYS[1]: 11, KEYS[2]: 0}) == {KEYS[0]: 3}


def test_a_recreated_topic_is_told_as_such_whatever_its_epochs_are():
    with pytest.raises(StreamError, match="was recreated"):
        plan(state([1000]), cut(view([0], [1100], "id-2"), 0))
