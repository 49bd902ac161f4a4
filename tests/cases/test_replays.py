"""Rejected rows that convert by other settings: brought once, under coordinates of their own, seen at every moment."""

from dataclasses import replace

import pytest

from hybrid.config.table_config import Half, Records
from hybrid.operations.rejected_rows import read_rejected
from hybrid.table.boundary import PartitionKey
from hybrid.table.replays import FIRST_EPOCH
from tests.cases.tables import HOUR

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def rows(*ids, **more):
    return [{"id": number, "key": f"k{number}", "ts": number, **more} for number in ids]


def listed(table, **options):
    files = [file.path for file in table.half(Half.REALTIME).files if file.segment == "t__rejected"]
    return read_rejected(files, 1000, **options)


def key(table, epoch, partition=0):
    return PartitionKey("replay/kafka", table.spec.stream.topics[0], FIRST_EPOCH + epoch, partition)


def test_what_converts_now_comes_once_and_is_seen(new_table):
    table = new_table(partitions=2)
    table.produce(*rows(1), *rows(2, deleted="perhaps"), b"{", *rows(3))
    table.produce(*rows(4, deleted="perhaps"), partition=1)
    table.ingest()
    assert table.replay().sentence.startswith("Nothing to replay: none of 3 rejected rows of 't' converts now (")
    assert table.half(Half.REALTIME).version == 1, "nothing was committed"
    table.move()
    assert table.visible() == table.queried() == [1, 3]

    table.lenient()
    would = table.replay(dry_run=True)
    assert would.sentence.startswith(
        "2 of 3 rejected rows of 't' now convert: would be brought; 1 would stay rejected ("
    )
    assert would.sentence.endswith(" Nothing was changed.")
    assert (would.replayed, would.rows, would.left, would.version) == (2, 2, 1, None)
    assert table.queried() == [1, 3]
    report = table.replay()
    assert (report.rejected, report.replayed, report.rows, report.filtered, report.left) == (3, 2, 2, 0, 1)
    assert report.sentence.startswith("2 of 3 rejected rows of 't' now convert: brought; 1 stay rejected (commonest")
    assert "not one JSON object" in report.reasons[0]["reason"] and report.reasons[0]["rows"] == 1
    # Below the frontier by its origin's offset and time, and seen all the same.
    assert table.visible() == table.queried() == [1, 2, 3, 4]
    state = table.half(Half.REALTIME).realtime
    assert state.offsets[key(table, 0)] == 2 and state.offsets[key(table, 0, 1)] == 1
    assert state.rejected == 1 and state.act.kind == "replay" and state.act.detail["replayed"] == 2
    assert set(report.segments) & state.consuming_names() == set() and len(report.segments) == 2
    assert [one["offset"] for one in listed(table)] == [2]
    everything = listed(table, everything=True)
    assert [(one["partition"], one["offset"], one["state"]) for one in everything] == [
        (0, 1, "replayed"), (0, 2, "rejected"), (1, 0, "replayed"),
    ]  # fmt: skip
    assert "perhaps" in everything[0]["reason"] and "perhaps" in everything[0]["value"], "kept as it was"

    again = table.replay()
    assert again.sentence.startswith("Nothing to replay: none of 1 rejected row of 't' converts now")
    assert table.ingest().batches == 0 and table.queried() == [1, 2, 3, 4]
    assert table.move().late_rows == 2
    assert table.visible() == table.queried() == [1, 2, 3, 4]
    assert table.boundary.frontier[key(table, 0)] == 2
    assert table.move().rows_read == 0


def test_a_second_replay_of_lower_offsets_has_an_epoch_of_its_own(new_table):
    """The frontier covers the first one's offsets after the move, and those below it."""
    table = new_table()
    one = table.spec.stream
    table.spec = replace(table.spec, stream=replace(one, records=Records.ARRAY))
    table.produce(*rows(1, value="much"), *rows(2), b'[{"id": 3, "key": "c", "ts": 3}]')
    table.ingest()
    assert table.queried() == [3], "the others are no arrays"
    table.spec = replace(table.spec, stream=one)
    assert table.replay().rows == 1
    table.move()
    assert table.boundary.frontier[key(table, 0)] == 2 and table.visible() == table.queried() == [2, 3]
    assert table.lenient().replay().rows == 1
    offsets = table.half(Half.REALTIME).realtime.offsets
    assert (offsets[key(table, 0)], offsets[key(table, 1)]) == (2, 1)
    assert table.visible() == table.queried() == [1, 2, 3]
    assert table.move().late_rows == 1
    assert table.visible() == table.queried() == [1, 2, 3]


def test_messages_of_several_records(new_table):
    table = new_table()
    table.spec = replace(table.spec, stream=replace(table.spec.stream, records=Records.LINES))
    good, bad = b'{"id": 1, "key": "a", "ts": 1}', b'{"id": 2, "key": "b", "ts": 2, "value": "much"}'
    table.produce(good + b"\n" + bad, bad + b"\n" + bad.replace(b"2", b"3"))
    table.ingest()
    assert table.half(Half.REALTIME).realtime.rejected == 3
    table.lenient()
    report = table.replay()
    assert (report.replayed, report.rows, report.left) == (2, 2, 1)
    assert report.reasons == ({"reason": "Other records of the message may be in the table already.", "rows": 1},)
    assert table.visible() == table.queried() == [1, 2, 3]


def test_what_the_filter_drops_now_is_taken_and_counted(new_table):
    table = new_table()
    table.produce(*rows(1, value="much"), *rows(2, value="much"))
    table.ingest()
    table.lenient("id = 1")
    report = table.replay()
    assert (report.replayed, report.filtered, report.left) == (1, 1, 0)
    assert report.sentence == (
        "1 of 2 rejected rows of 't' now convert: brought; the table's filter drops 1; 0 stay rejected."
    )
    state = table.half(Half.REALTIME).realtime
    assert (state.rejected, state.filtered) == (0, 1) and table.queried() == [2]
    assert [one["state"] for one in listed(table, everything=True)] == ["filtered", "replayed"]
    assert table.replay().sentence == "Nothing to replay: 't' has no rejected rows."


def test_on_an_upsert_table_the_comparison_decides(new_table):
    table = new_table(upsert=True)
    table.produce(*rows(1, key="a", value=5, deleted="perhaps"), *rows(2, key="a", value=3), *rows(3, key="b", value=9))
    table.produce(*rows(4, key="b", value=2, deleted="perhaps"))
    table.ingest()
    assert table.queried() == [2, 3]
    table.lenient()
    assert table.replay().rows == 2
    assert table.visible() == table.queried() == [1, 3], "the higher value wins, however late it came"
    table.now += 2 * HOUR
    table.move(None)
    assert table.visible() == table.queried() == [1, 3]


def test_ingestion_goes_on_as_before(new_table):
    """A replay is no partition of the stream: its offsets do not move what is read next, nor what is sealed."""
    table = new_table(flush_rows=3)
    table.produce(*rows(1), *rows(2, value="much"))
    table.ingest()
    table.lenient()
    table.replay()
    consuming = dict(table.half(Half.REALTIME).realtime.consuming)
    table.produce(*rows(3))
    assert table.queried() == [1, 2, 3]
    table.ingest()
    state = table.half(Half.REALTIME).realtime
    assert [one.name for one in state.consuming.values()] == [one.name for one in consuming.values()]
    assert table.visible() == table.queried() == [1, 2, 3]
