"""What a reset of a stream does to each partition, in numbers; and the places that a user may name."""

from dataclasses import replace

import pytest

from hybrid.config.connectors import StartKind
from hybrid.config.offset_place import parse_place
from hybrid.config.table_config import ARRIVED, Half, Partial, StreamConfig, UpsertConfig
from hybrid.errors import ConflictError, StreamError, UsageError
from hybrid.ingest.plan import plan_batch
from hybrid.ingest.reset import ResetReport, _report, plan_accepted, plan_reset
from hybrid.table.boundary import TopicPartition, current_keys, partition_key, topic_key
from hybrid.table.ranges import OffsetRange
from hybrid.table.replays import replay_key
from hybrid.table.state import Act, RealtimeState
from tests.fake_streams import seen
from tests.query.halves import orders_spec
from tests.records.test_decode import table

ACT = Act("create-0", 0, "create", "2021-11-21T00:00:00.000+00:00")
STREAM = StreamConfig(("orders",), "localhost:9092")
KEY = partition_key(STREAM, TopicPartition("orders", 0))
NOW = 1_637_491_080_000


def state(*offsets, topic_id="id-1", **more):
    keys = {KEY._replace(partition=number): offset for number, offset in enumerate(offsets)}
    return RealtimeState(ACT, {**keys, **more.get("others", {})}, {topic_key(STREAM, "orders"): topic_id})


def view(starts, ends, topic_id="id-1"):
    return seen("orders", topic_id, dict(enumerate(starts)), dict(enumerate(ends)))


def counts(known, shown, to):
    found = plan_reset(STREAM, known, shown, "orders", to)
    return {one.partition: (one.epoch, one.to, one.lost, one.skipped, one.again) for one in found}


@pytest.mark.parametrize(
    ("position", "held", "to", "expected"),
    [
        (4, (6, 9), 6, (1, 6, 2, 0, 0)),
        (4, (6, 9), 9, (1, 9, 2, 3, 0)),
        (4, (0, 9), 7, (1, 7, 0, 3, 0)),
        (4, (0, 9), 0, (1, 0, 0, 0, 4)),
        (4, (1, 9), 1, (1, 1, 0, 0, 3)),
        (9, (0, 5), 5, (1, 5, 0, 0, 0)),
        (9, (0, 5), 2, (1, 2, 0, 0, 3)),
    ],
    ids=["expired", "expired, to the end", "skips", "again", "again, as far as held", "truncated", "refilled"],
)
def test_what_is_lost_skipped_and_read_again(position, held, to, expected):
    assert counts(state(position), view([held[0]], [held[1]]), {0: to}) == {0: expected}


def test_only_the_partitions_concerned_get_an_epoch():
    shown = view([6, 0, 0], [9, 9, 9])
    assert counts(state(4, 5, 9), shown, {0: 6, 1: 5, 2: 9}) == {0: (1, 6, 2, 0, 0)}
    assert counts(state(4, 5), shown, {0: 6}) == {0: (1, 6, 2, 0, 0)}, "those that nobody names go on"
    assert counts(state(9, 9, 9), view([0] * 3, [9] * 3), {0: 9, 1: 9, 2: 9}) == {}


def test_of_another_topic_every_partition_gets_one_also_those_that_are_gone():
    found = counts(state(4, 7, 5), view([2, 0], [9, 3], "id-2"), {0: 2, 1: 3})
    assert found == {0: (1, 2, 2, 0, 0), 1: (1, 3, 0, 3, 0), 2: (1, 0, 0, 0, 0)}
    assert counts(state(4, 4), view([0, 0], [9, 9], "id-2"), {0: 4})[1] == (1, 0, 0, 0, 0), "from its beginning"
    found = counts(state(4, 4), view([0, 7], [9, 9], "id-2"), {0: 4})
    assert found[1] == (1, 7, 7, 0, 0), "which is the first offset that Kafka holds: ingestion would stop at 0"


def test_what_is_read_after_a_reset_is_of_the_newest_epoch():
    replayed = replay_key({}, KEY, 0)
    known = state(100, 50, others={KEY._replace(epoch=1): 3, KEY._replace(epoch=2): 7, replayed: 9})
    places = [TopicPartition("orders", number) for number in range(3)]
    keys = [current_keys(STREAM, places, known.offsets)[place] for place in places]
    assert [key.epoch for key in keys] == [2, 0, 0]
    found = plan_batch("orders", STREAM, known, view([0, 0], [9, 60]), 100)
    assert found.ranges == (OffsetRange(keys[1], 50, 60), OffsetRange(keys[0], 7, 9))


def test_what_becomes_of_rows_that_are_read_again():
    """A folding table has a key, and keeps all its rows."""
    one, several = UpsertConfig("ts"), UpsertConfig("c1", further_comparison_columns=("c2",))
    dedup = UpsertConfig(ARRIVED, first_wins=True)
    grows = "4 offsets are read again, and their rows are folded once more: sums and lists grow"
    for upsert, expected in (
        (None, "4 offsets are read again, and their rows are there twice then"),
        (one, "4 offsets are read again, and what backfills have updated or deleted of their rows is as it was"),
        (dedup, "4 offsets are read again"),
        (replace(one, partial=Partial()), grows),
        (several, grows),
    ):
        spec = replace(orders_spec(upsert=upsert is not None), upsert=upsert, stream=STREAM)
        report = _report(spec, state(4), view([0], [9]), "orders", {0: 0})
        assert report.sentence.split("; ")[1] == f"{expected}."
    spec = replace(orders_spec(upsert=True), upsert=one, halves=frozenset({Half.REALTIME}), stream=STREAM)
    report = _report(spec, state(4), view([0], [9]), "orders", {0: 0})
    assert report.sentence.endswith("; 4 offsets are read again."), "nothing was corrected without OFFLINE"


@pytest.mark.parametrize(
    ("text", "kind", "time_ms"),
    [
        ("earliest", StartKind.EARLIEST, None),
        ("Smallest", StartKind.EARLIEST, None),
        ("largest", StartKind.LATEST, None),
        ("2021-11-21T10:38:00Z", StartKind.TIMESTAMP, NOW),
        ("2d", StartKind.TIMESTAMP, NOW - 2 * 86_400_000),
        ("1h30m", StartKind.TIMESTAMP, NOW - 5_400_000),
    ],
)
def test_places(text, kind, time_ms):
    found = parse_place(text, "orders", NOW, "--to")
    assert (found.kind, found.timestamp_ms) == (kind, time_ms)


def test_offsets_by_partition():
    assert parse_place("0:42,1:7", "orders", NOW, "--to").offsets == {("orders", 0): 42, ("orders", 1): 7}


@pytest.mark.parametrize(
    "text", ["", "42", "never", "2021-11-21T10:38:00", "0:1,0:2", "0:-1", "0:1,", "a:1", "x" * 999]
)
def test_what_is_no_place(text):
    with pytest.raises(UsageError, match="--to: "):
        parse_place(text, "orders", NOW, "--to")


SPEC = replace(table({"name": "STRING"}), stream=STREAM)


def told(known, shown, to, **more):
    """What a person was told of a reset, as it comes back from them."""
    found = plan_reset(STREAM, known, shown, "orders", to)
    sums = [sum(getattr(one, name) for one in found) for name in ("lost", "skipped", "again")]
    report = ResetReport(
        "t", "orders", shown.topic_ids["orders"], shown.topic_ids["orders"] != "id-1", found, *sums, None, "", True
    )
    return ResetReport.from_json({**report.to_json(), **more})


def done(known, shown, accepted):
    found = plan_accepted(SPEC, known, shown, accepted)
    return [(one.partition, one.position, one.to) for one in found.partitions]


def test_the_offsets_that_were_accepted_are_taken_though_more_has_come():
    latest = told(state(4), view([0], [9]), {0: 9})
    assert done(state(4), view([0], [20]), latest) == [(0, 4, 9)]
    assert done(state(7), view([0], [20]), latest) == [(0, 7, 9)], "less is skipped than was accepted"
    assert done(state(9), view([0], [20]), latest) == [], "it has come there by itself"
    reset = state(4, others={KEY._replace(epoch=1): 9})
    assert done(reset, view([0], [20]), latest) == [], "told twice it is done once"
    gone = told(state(4, 7), view([0], [9], "id-2"), {0: 0})
    assert done(state(4, 7), view([0], [12], "id-2"), gone) == [(0, 4, 0), (1, 7, 0)]


@pytest.mark.parametrize(
    ("known", "shown"),
    [
        (state(4), view([0], [9], "id-2")),
        (state(6), view([0], [9])),
        (state(4, others={KEY._replace(epoch=1): 3}), view([0], [9])),
        (state(1), view([2], [9])),
    ],
    ids=["recreated", "read on", "reset by somebody else", "truncated and expired"],
)
def test_a_reset_that_costs_more_than_was_accepted_is_refused(known, shown):
    accepted = told(state(4), view([0], [9]), {0: 2})
    with pytest.raises(ConflictError, match=r"not as it was when its reset was accepted. Now: .*Nothing was changed"):
        done(known, shown, accepted)


def test_partitions_that_nobody_was_told_of_and_offsets_that_are_gone():
    accepted = told(state(4), view([0], [9], "id-2"), {0: 9})
    with pytest.raises(ConflictError, match="not as it was"):
        done(state(4), view([0, 0], [9, 9], "id-2"), accepted)
    accepted = told(state(4), view([6], [9]), {0: 6})
    with pytest.raises(StreamError, match="Kafka holds offsets 8 to 9 of partition 0 of topic 'orders', and not 6"):
        done(state(4), view([8], [9]), accepted)
    accepted = told(state(4), view([0], [9]), {0: 9}, table="other")
    with pytest.raises(ConflictError, match="not as it was"):
        done(state(4), view([0], [9]), accepted)


@pytest.mark.parametrize("value", [{}, {"partitions": 1}, {"partitions": [{}]}, {"partitions": []}, {"x": 1}])
def test_what_is_no_report_is_not_accepted(value):
    with pytest.raises(UsageError, match="'accepted' is not what a dry run of a reset has told"):
        ResetReport.from_json(value)


def test_numbers_of_a_report_are_numbers():
    report = told(state(4), view([0], [9]), {0: 9}).to_json()
    for wrong in ("9", None, True, 1.5):
        with pytest.raises(UsageError):
            ResetReport.from_json({**report, "partitions": [{**report["partitions"][0], "to": wrong}]})


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (900, (1, 900, 0, 0, 0)),
        (1000, (1, 1000, 0, 100, 0)),
        (1100, (1, 1100, 0, 200, 0)),
        (0, (1, 0, 0, 0, 900)),
    ],
    ids=["from the cut", "from the position", "to the end", "from the start"],
)
def test_a_reset_of_a_truncated_log_counts_from_the_cut(to, expected):
    """17: what lies behind the cut was never read, whatever the position says."""
    shown = replace(view([0], [1100]), divergences={KEY.place: 900})
    known = replace(state(1000), leader_epochs={KEY: 3})
    assert counts(known, shown, {0: to}) == {0: expected}


def test_a_truncated_partition_that_is_not_named_stays_stopped():
    shown = replace(view([0, 0], [1100, 9]), divergences={KEY.place: 900})
    assert counts(state(1000, 5), shown, {1: 9}) == {1: (1, 9, 0, 4, 0)}
