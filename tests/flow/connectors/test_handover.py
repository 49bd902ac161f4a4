"""Where a live connector begins, and every way in which its start can be wrong."""

import pytest

from hybrid.config.connectors import KafkaStart, StartKind
from hybrid.errors import SpecError, StreamError
from hybrid.flow.connectors.handover import TopicOffsets, start_offsets, tells_all_of
from hybrid.flow.connectors.history import next_chunk
from hybrid.flow.connectors.source import SourcePiece, coordinates
from tests.fake_streams import by_place

HELD = TopicOffsets(by_place("t", {0: 10, 1: 0}), by_place("t", {0: 50, 1: 7}))


def offsets(**by_partition: int) -> KafkaStart:
    return KafkaStart(StartKind.OFFSETS, offsets={("t", int(name[1:])): at for name, at in by_partition.items()})


@pytest.mark.parametrize(
    ("start", "loaded", "expected"),
    [
        (KafkaStart(StartKind.EARLIEST), None, {0: 10, 1: 0}),
        (KafkaStart(StartKind.LATEST), {"t/0": 4}, {0: 50, 1: 7}),
        (offsets(p0=42, p1=3), None, {0: 42, 1: 3}),
        (offsets(p0=42, p1=3), {"other/0": 99}, {0: 42, 1: 3}),
        (offsets(p0=42, p1=3), {"t/0": 41, "t/1": 2}, {0: 42, 1: 3}),
        (KafkaStart(StartKind.AFTER_HISTORY), {"t/0": 41}, {0: 42, 1: 0}),
    ],
)
def test_starts(start, loaded, expected):
    assert start_offsets("live", start, HELD, loaded) == by_place("t", expected)


BOTH = TopicOffsets(
    {**by_place("t", {0: 0}), **by_place("u", {0: 0, 1: 3})}, {**by_place("t", {0: 50}), **by_place("u", {0: 60, 1: 9})}
)


def both(t0: int, u0: int, u1: int) -> KafkaStart:
    return KafkaStart(StartKind.OFFSETS, offsets={("t", 0): t0, ("u", 0): u0, ("u", 1): u1})


def test_two_topics_with_equal_partitions_start_each_by_its_own():
    after, loaded = KafkaStart(StartKind.AFTER_HISTORY), {"t/0": 41, "u/0": 6}
    expected = {**by_place("t", {0: 42}), **by_place("u", {0: 7, 1: 3})}
    assert start_offsets("live", after, BOTH, loaded) == expected
    assert start_offsets("live", both(42, 7, 3), BOTH, loaded) == expected
    found = start_offsets("live", after, BOTH, {"u/0": 6})
    assert found == {**expected, **by_place("t", {0: 0})}, "what history has nothing of is read from its beginning"


def test_rows_of_a_history_that_do_not_tell_their_topic_may_be_of_one_of_which_nothing_is_told():
    after = KafkaStart(StartKind.AFTER_HISTORY)
    with pytest.raises(SpecError, match="all of its rows that they are none of topic 't'"):
        start_offsets("live", after, BOTH, {"u/0": 6}, tells_all=False)
    told = start_offsets("live", after, BOTH, {"t/0": 41, "u/0": 6}, tells_all=False)
    assert told == start_offsets("live", after, BOTH, {"t/0": 41, "u/0": 6}), "each has offsets of its own"


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [({"t/0": 1, "u/1": 2}, True), ({"t/0": 1}, True), (None, False), ({}, False), ({"t/0": 1, "old-u/1": 2}, False)],
)
def test_what_a_history_tells(offsets, expected):
    assert tells_all_of(["t", "u"], offsets) is expected


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (offsets(p0=42), "no offset for partition 0, 1 of topic 'u'"),
        (both(7, 42, 3), "partition 0 of topic 't', and the history holds it up to 41"),
        (both(42, 8, 3), "partition 0 of topic 'u', and the history ends at 6: offsets 7 to 7 would be in neither"),
        (both(42, 7, 10), "partition 1 of topic 'u', which ends at 9"),
    ],
)
def test_wrong_starts_of_two_topics(start, words):
    with pytest.raises((SpecError, StreamError), match=words):
        start_offsets("live", start, BOTH, {"t/0": 41, "u/0": 6})


def test_a_timestamp_begins_at_its_first_message_and_else_at_the_end():
    start = KafkaStart(StartKind.TIMESTAMP, timestamp_ms=5)
    assert start_offsets("live", start, HELD, None, by_place("t", {0: 20})) == by_place("t", {0: 20, 1: 7})


@pytest.mark.parametrize(
    ("start", "loaded", "error", "words"),
    [
        (offsets(p0=42), None, SpecError, "no offset for partition 1 of topic 't'"),
        (offsets(p0=42, p1=0, p2=0), None, SpecError, "names partition 2, and topic 't' has the partitions 0, 1"),
        (offsets(p0=9, p1=0), None, StreamError, "1 offsets are gone"),
        (offsets(p0=51, p1=0), None, StreamError, "ends at 50: offsets 50 to 50 would be skipped"),
        (offsets(p0=42, p1=0), {"t/0": 42}, StreamError, "1 messages would be there twice"),
        (offsets(p0=42, p1=0), {"t/0": 39}, StreamError, "offsets 40 to 41 would be in neither"),
        (KafkaStart(StartKind.AFTER_HISTORY), None, SpecError, "does not tell topic, partition and offset"),
        (KafkaStart(StartKind.AFTER_HISTORY), {"t/0": 3, "t/1": 2}, StreamError, "6 offsets are gone"),
    ],
)
def test_wrong_starts(start, loaded, error, words):
    with pytest.raises(error, match=words) as raised:
        start_offsets("live", start, HELD, loaded)
    assert "Nothing was read." in str(raised.value) and raised.value.hint


@pytest.mark.parametrize(
    ("first", "rows_max", "expected"), [(0, 100, [0, 1]), (0, 1, [0]), (2, 10, [2]), (3, 10, [3]), (4, 10, [])]
)
def test_a_commit_loads_at_least_one_file_and_no_more_rows_than_it_may(first, rows_max, expected):
    pieces = [SourcePiece("a", 40, 1), SourcePiece("b", 60, 1), SourcePiece("c", 1000, 1), SourcePiece("d", None, 5000)]
    assert next_chunk(pieces, first, rows_max) == expected


def test_coordinates_are_found_whole_or_not_at_all():
    assert coordinates(["A", "Topic", "PARTITION", "offset"]) == ("Topic", "PARTITION", "offset")
    assert coordinates(["topic", "offset"]) is None
    assert coordinates(["_hy_topic", "_hy_partition", "_hy_offset", "x"]) == (
        "_hy_topic",
        "_hy_partition",
        "_hy_offset",
    )
