"""Several topics on one table, with equal partitions and offsets: what is read, named, held and reset of each."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from hybrid.config.connectors import Connector, KafkaInput, KafkaStart, StartKind
from hybrid.config.offset_place import parse_place
from hybrid.config.table_config import StreamConfig
from hybrid.errors import ConflictError, NotFoundError, StreamError, TopicError
from hybrid.ingest.plan import plan_batch, start_offsets
from hybrid.ingest.read import _convert_batch, assigners_for
from hybrid.ingest.reset import ResetReport, _after, _offsets, _report, plan_accepted
from hybrid.ingest.segment_stats import segment_stats_from_json, segment_stats_of, segment_stats_to_json
from hybrid.kafka import streams as ingest_stream
from hybrid.kafka.streams import StreamView, absent_words, require_topics
from hybrid.kafka.topics import existing_topics
from hybrid.operations.tables.create import start_words
from hybrid.records.decode import Decoder
from hybrid.table import columns
from hybrid.table.boundary import PartitionKey, TopicPartition, current_keys, place_of, place_text, read_places
from hybrid.table.names import realtime_group, realtime_segment, replay_segment, topic_in_name
from hybrid.table.ranges import OffsetRange
from hybrid.table.segments import Thresholds
from hybrid.table.state import Act, Consuming, RealtimeState
from tests.fake_streams import seen, together
from tests.records.test_decode import table

ACT = Act("create-0", 0, "create", "2021-11-21T00:00:00.000+00:00")
STREAM = StreamConfig(("a", "b"), "localhost:9092")
A0, A1, B0 = PartitionKey("kafka", "a", 0, 0), PartitionKey("kafka", "a", 0, 1), PartitionKey("kafka", "b", 0, 0)
IDS = {"kafka/a": "id-a", "kafka/b": "id-b"}
SPEC = replace(table({"name": "STRING"}), stream=STREAM)
NO_LIMIT = Thresholds(10**9, 10**9, 10**9)


def state(ids=IDS, **offsets):
    """`a0=3`: the next offset of partition 0 of topic `a`."""
    return RealtimeState(
        ACT, {PartitionKey("kafka", name[0], 0, int(name[1])): at for name, at in offsets.items()}, ids
    )


def view(a=(0, 9), b=(0, 9), a_id="id-a", b_id="id-b"):
    """First and last offsets of partition 0 of both topics; None: the topic is not there."""
    topics = {"a": (a_id, a), "b": (b_id, b)}
    return together(
        *(seen(name, of, {0: held[0]}, {0: held[1]}) for name, (of, held) in topics.items() if held is not None)
    )


def plan(known, shown, most=100, pause_offsets=None):
    return plan_batch("t", STREAM, known, shown, most, pause_offsets)


# Planning


def test_equal_partitions_of_two_topics_are_read_in_one_batch_each_from_its_own_offset():
    found = plan(state(a0=3, b0=7), view())
    assert found.ranges == (OffsetRange(A0, 3, 9), OffsetRange(B0, 7, 9))
    assert found.topic_ids == {"a": "id-a", "b": "id-b"} and found.behind == 0


def test_the_bound_is_shared_over_the_topics():
    found = plan(state(), view(a=(0, 90), b=(0, 2)), most=10)
    assert found.ranges == (OffsetRange(A0, 0, 8), OffsetRange(B0, 0, 2)) and found.behind == 82


@pytest.mark.parametrize(
    ("known", "shown", "words"),
    [
        (state(a0=1, b0=1), view(b_id="id-9"), "Topic 'b' was recreated: table 't' has read topic id id-b"),
        (state(a0=5, b0=1), view(a=(0, 9), b=(3, 9)), "read partition 0 of topic 'b' from offset 1, but Kafka's first"),
        (state(a0=1, b0=12), view(), "read partition 0 of topic 'b' up to offset 12, but it now ends at 9"),
    ],
    ids=["recreated", "expired", "refilled"],
)
def test_one_topic_that_is_not_as_it_was_stops_all_and_is_named(known, shown, words):
    with pytest.raises(StreamError, match=words) as caught:
        plan(known, shown)
    assert "nothing was skipped" in str(caught.value)
    assert "hybrid connector reset t b --to earliest|latest|TIME" in str(caught.value)


def test_a_topic_that_is_not_there_yet_holds_nothing_back_and_is_read_from_its_beginning():
    early = state({"kafka/a": "id-a"}, a0=3)
    assert plan(early, view(b=None)).ranges == (OffsetRange(A0, 3, 9),)
    assert plan(early, view()).ranges == (OffsetRange(A0, 3, 9), OffsetRange(B0, 0, 9))
    with pytest.raises(StreamError, match="2 offsets are gone"):
        plan(early, view(b=(2, 9)))


def test_a_topic_that_was_read_and_is_gone_is_missed(monkeypatch):
    shown = [view(b=None)]
    monkeypatch.setattr(ingest_stream, "view_stream", lambda *_: shown[0])
    assert require_topics(STREAM, {"a": "id-a"}).topic_ids == {"a": "id-a"}
    with pytest.raises(TopicError, match=r"^Topic 'b' of localhost:9092 was read before and does not exist any more"):
        require_topics(STREAM, state().known_ids(STREAM))
    with pytest.raises(NotFoundError, match=r"^Topic 'b' does not exist at localhost:9092"):
        require_topics(STREAM, needed=["b"])
    shown[0] = StreamView({}, {}, {})
    with pytest.raises(NotFoundError, match=r"^Topics 'a' and 'b' do not exist at localhost:9092"):
        require_topics(STREAM)
    with pytest.raises(TopicError, match=r"^Topic 'a' of localhost:9092 was read before"):
        require_topics(replace(STREAM, topics=("a",)), {"a": "id-a"})


class Admin:
    """A cluster that answers for each topic with an error code."""

    def __init__(self, **codes):
        self.codes = codes

    def describe_topics(self, names):
        partitions = {0: [{"partition_index": 0}]}
        return [
            {"name": name, "topic_id": name, "error_code": code, "partitions": partitions.get(code, [])}
            for name, code in self.codes.items()
        ]


def test_only_a_topic_that_kafka_does_not_know_is_not_there():
    assert [one.name for one in existing_topics(Admin(a=0, b=3, c=5), "abc")] == ["a"]
    for code, word in ((29, "TOPIC_AUTHORIZATION_FAILED"), (17, "INVALID_TOPIC")):
        with pytest.raises(TopicError, match=rf"^Kafka refuses topic 'b': {word} \(error {code}\)") as caught:
            existing_topics(Admin(a=0, b=code), "ab")
        assert caught.value.hint


def test_topics_that_are_not_there_yet_in_words():
    assert absent_words(STREAM, ["b", "a"]) is None
    assert absent_words(STREAM, ["a"]) == "topic 'b' is not there yet"
    assert absent_words(STREAM, ()) == "topics 'a' and 'b' are not there yet"


def test_a_connector_that_starts_at_once_says_which_topic_comes_later():
    for kind, later in ((StartKind.LATEST, True), (StartKind.EARLIEST, False)):
        live = Connector("live", KafkaInput("b", STREAM.topics, start=KafkaStart(kind)))
        spec = replace(SPEC, stream=replace(STREAM, connector="live"), connectors=(live,))
        found = start_words(spec, {"a/0": 3})
        assert found.endswith("; topic 'b' is not there yet and will be read from offset 0") is later


def test_a_pause_holds_each_topic_where_it_was():
    held = {TopicPartition("a", 0): 5, TopicPartition("b", 0): 2}
    assert plan(state(a0=3, b0=2), view(), pause_offsets=held).ranges == (OffsetRange(A0, 3, 5),)
    del held[TopicPartition("b", 0)]
    assert plan(state(a0=3), view(), pause_offsets=held).ranges == (OffsetRange(A0, 3, 5),), (
        "one that came meanwhile waits"
    )


def test_an_epoch_is_of_one_topic():
    again = B0._replace(epoch=1)
    known = RealtimeState(ACT, {A0: 9, B0: 50, again: 4}, IDS)
    assert plan(known, view()).ranges == (OffsetRange(again, 4, 9),)
    places = [A0.place, B0.place]
    assert [key.epoch for key in current_keys(STREAM, places, known.offsets).values()] == [0, 1]


def test_where_a_table_of_two_topics_starts():
    assert start_offsets(STREAM, view()) == {A0: 9, B0: 9}
    assert start_offsets(replace(STREAM, offset_reset="smallest"), view(a=(4, 9), b=None)) == {A0: 4}


def test_only_the_partitions_that_are_named_are_read():
    some = replace(STREAM, partitions=(0, 2), connector="live")
    assert read_places(some, "a", [0, 1, 2]) == [TopicPartition("a", 0), TopicPartition("a", 2)]
    assert read_places(STREAM, "a", [0, 1]) == [TopicPartition("a", 0), TopicPartition("a", 1)]
    with pytest.raises(
        StreamError, match="Topic 'a' has no partition 2, which 'partitions' of connector 'live' of tab"
    ):
        plan_batch("t", some, state(), view(), 100)


def test_more_partitions_than_names_of_segments_tell_apart():
    many = together(view(a=None), seen("a", "id-a", {10_000: 0}, {10_000: 1}))
    with pytest.raises(StreamError, match="Topic 'a' has a partition 10000: a table of several topics"):
        plan(state(), many)
    alone = plan_batch("t", replace(STREAM, topics=("a",)), state(), seen("a", "id-a", {10_000: 0}, {10_000: 1}), 9)
    assert len(alone.ranges) == 1, "of one topic there may be any number"


# Names


def test_names_of_segments_number_partitions_as_pinot_does():
    assert [STREAM.group(*place) for place in (("a", 0), ("a", 3), ("b", 0), ("b", 3))] == [0, 3, 10_000, 10_003]
    assert replace(STREAM, topics=("b",)).group("b", 12_345) == 12_345, "names of tables of one topic stay"
    names = [realtime_segment("my__t", 10_003, 5, 0), replay_segment("t", 10_003, 5, 0)]
    assert [realtime_group(name) for name in names] == [10_003, 10_003]
    groups = [realtime_segment("t", number, 5, 0) for number in (0, 9_999, 10_003, 20_000)]
    assert [topic_in_name(STREAM, name) for name in [*groups, "t_1_2_0"]] == ["a", "a", "b", None, None]
    assert topic_in_name(replace(STREAM, topics=("b",)), groups[-1]) == "b"
    assert realtime_group("t__rejected") is None and realtime_group("t_1_2_0") is None


def test_how_a_partition_is_told():
    for topics, place, text in ((("a",), A1.place, "1"), (("a", "b"), A1.place, "a/1"), (("a", "b"), B0.place, "b/0")):
        assert place_text(topics, place) == text and place_of(topics, text) == place
    assert STREAM.words == "topics 'a' and 'b'" and replace(STREAM, topics=("a",)).words == "topic 'a'"


# Rows of a batch


def test_rows_of_two_topics_keep_their_coordinates_and_get_segments_of_their_own():
    keys = {"a": A0, "b": B0._replace(epoch=2)}
    assigners = assigners_for(SPEC, state(), [OffsetRange(key, 0, 9) for key in keys.values()], NO_LIMIT, 0)
    topics, good = ["a", "b", "b", "a"], b'{"name": "x", "ts": 1}'
    batch = pa.RecordBatch.from_pydict(
        {
            "topic": topics,
            "value": pa.array([good, good, b"{", good], pa.binary()),
            "partition": pa.array([0] * 4, pa.int32()),
            "offset": pa.array([0, 0, 1, 1], pa.int64()),
            "timestamp": pa.array([5] * 4, pa.int64()),
        }
    )
    rows, sizes = _convert_batch(batch, SPEC, Decoder(SPEC), assigners)
    segments = ["t__0__0__19700101T0000Z", "t__10000__0__19700101T0000Z", columns.rejected_segment("t")]
    found = [
        (row[columns.TOPIC], row[columns.EPOCH], row[columns.PARTITION], row[columns.OFFSET], row[columns.SEGMENT])
        for row in rows.to_pylist()
    ]
    assert found == [
        ("a", 0, 0, 0, segments[0]), ("b", 2, 0, 0, segments[1]),
        ("b", 2, 0, 1, segments[2]), ("a", 0, 0, 1, segments[0]),
    ]  # fmt: skip
    pieces = segment_stats_from_json(segment_stats_to_json(segment_stats_of(rows, sizes)))
    assert {place: piece.rows for place, piece in pieces.items()} == {
        (A0.place, segments[0]): 2, (B0.place, segments[1]): 1, (B0.place, segments[2]): 1
    }  # fmt: skip


# Resets


def reset(known, shown, topic, to):
    return _report(SPEC, known, shown, topic, to)


def test_a_reset_of_one_topic_leaves_the_other_as_it_is():
    known = replace(
        state(a0=4, b0=4),
        consuming={key: Consuming(key.topic, 0, 0, 4, 4, 0) for key in (A0, B0)},
        sequences={A0: 1, B0: 1},
    )
    report = reset(known, view(a=(6, 9), b=(6, 9), b_id="id-9"), "b", {0: 6})
    assert report.topic == "b" and report.recreated and report.sentence.startswith("Topic 'b' is read into 't' from")
    shown = view(a=(6, 9), b=(6, 9), b_id="id-9")
    after = _after(known, STREAM, shown, report, "reset-1", ACT.at)
    assert after.offsets == {A0: 4, B0: 4, B0._replace(epoch=1): 6}
    assert after.topic_ids == {"kafka/a": "id-a", "kafka/b": "id-9"}
    assert after.consuming.keys() == {A0} and after.sequences == {A0: 1, B0: 1, B0._replace(epoch=1): 1}
    with pytest.raises(StreamError, match="partition 0 of topic 'a' from offset 4"):
        plan(after, view(a=(6, 9), b=(6, 9), b_id="id-9"))


def test_what_was_accepted_of_one_topic_is_not_done_to_another():
    known, shown = state(a0=4, b0=4), view()
    told = ResetReport.from_json(reset(known, shown, "b", {0: 0}).to_json())
    done = plan_accepted(SPEC, known, shown, told)
    assert (done.topic, [(one.partition, one.to) for one in done.partitions]) == ("b", [(0, 0)])
    with pytest.raises(ConflictError, match="not as it was when its reset was accepted") as caught:
        plan_accepted(SPEC, known, shown, replace(told, topic="a"))
    assert str(caught.value.hint).startswith("hybrid connector reset t a --to PLACE once more")


def test_a_reset_to_an_offset_of_a_partition_that_is_not_read():
    some, place = replace(STREAM, partitions=(2, 0), connector="live"), parse_place("1:5", "a", 0, "--to")
    shown = together(seen("a", "id-a", {0: 0, 2: 0}, {0: 9, 2: 9}))
    words = "does not read partition 1 of topic 'a': 'partitions' of connector 'live' names 0, 2. Nothing was changed"
    with pytest.raises(StreamError, match=words):
        _offsets(some, shown, "a", place)
    with pytest.raises(StreamError, match="Topic 'a' has no partition 1: 0, 2"):
        _offsets(STREAM, shown, "a", place)
