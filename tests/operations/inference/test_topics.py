"""Documents inferred from a topic: the sample's bounds, malformed messages, errors that say what would do."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.config.table_config import StreamConfig
from hybrid.errors import DataError, HybridError, NotFoundError, RegistryError, SpecError, StreamError, UsageError
from hybrid.kafka.sampling import (
    MessageSample,
    SampledMessage,
    SampleLimits,
    UnreadRange,
    sample_messages,
    sample_ranges,
)
from hybrid.kafka.topics import Topic, create_topic, produce
from hybrid.operations.inference import topic_sample
from hybrid.rpc.verbs import VERBS
from hybrid.table.boundary import TopicPartition
from tests.fake_streams import seen, together

BROKERS = "127.0.0.1:9"
FIRST = TopicPartition("rides", 0)
RIDE = {"ride_id": "r-1", "ts": 1764045855732}


@pytest.fixture
def hy(home: Path) -> Hybrid:
    return hybrid.connect(home)


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets the topic rides hold some messages. Of `unread` more, reading them took too long."""

    def held(*values: bytes | None, start: int = 0, unread: int = 0) -> None:
        end = start + len(values)
        view = seen("rides", "id", {0: start}, {0: end + unread})
        monkeypatch.setattr(topic_sample, "view_stream", lambda stream: view)
        messages = [SampledMessage(FIRST, start + number, value) for number, value in enumerate(values)]
        missing = [UnreadRange(FIRST, end, end + unread)] if unread else []
        sample = MessageSample(messages, missing, ["20 s"] if unread else [])
        monkeypatch.setattr(topic_sample, "sample_messages", lambda *_: sample)

    return held


def encoded(*records: Mapping[str, Any]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def test_both_halves_and_the_stream_from_its_beginning(hy: Hybrid, hold: Any) -> None:
    hold(*encoded(RIDE, {**RIDE, "note": "x"}))
    found = hy.infer_table("rides", kafka=BROKERS, key=["ride_id"])
    spec = hy.validate(found.documents())
    assert spec.stream is not None and spec.warnings == ()
    assert (spec.stream.topics, spec.stream.brokers, spec.stream.offset_reset) == (("rides",), BROKERS, "smallest")
    assert spec.primary_key == ("ride_id",) and spec.upsert is not None and spec.move is not None
    assert found.job is None and found.records == 2 and "Read all 2 messages of topic 'rides'" in " ".join(found.notes)


def test_malformed_messages_are_counted_and_shown(hy: Hybrid, hold: Any) -> None:
    hold(b"{", None, b"[1]", b"\xff", b"3", *encoded(RIDE), start=7)
    found = hy.infer_table("rides", kafka=BROKERS)
    assert (found.records, found.malformed) == (1, 5)
    note = next(note for note in found.notes if "no record" in note)
    assert note.startswith("5 messages are no records and become rejected rows: partition 0, offset 7: The message is")
    assert "partition 0, offset 8: The message has no value" in note and note.endswith("; and 2 more")
    hold(b"{", *encoded(RIDE))
    (note,) = [note for note in hy.infer_table("rides", kafka=BROKERS).notes if "no record" in note]
    assert note.startswith("1 message is no record and becomes a rejected row: partition 0, offset 0: The message is")


def test_what_took_too_long_to_read_is_named(hy: Hybrid, hold: Any) -> None:
    hold(*encoded(RIDE, RIDE), unread=4)
    first, second, *_ = hy.infer_table("rides", kafka=BROKERS).notes
    assert first == "Read 2 messages of about 6 of topic 'rides'."
    assert second.startswith("The sample ended early, at its limit of 20 s. Not read: partition 0, offset 2 to 5. Col")
    hold(unread=1)
    with pytest.raises(StreamError, match=r"'rides' has messages, and none of them was read within 20 s\."):
        hy.infer_table("rides", kafka=BROKERS)


def test_conflicts_name_their_message(hy: Hybrid, hold: Any) -> None:
    hold(*encoded({**RIDE, "fare": 1.5}, {**RIDE, "fare": "free"}, {**RIDE, "fare": 2.5}))
    found = hy.infer_table("rides", kafka=BROKERS)
    assert "'fare' holds a number with a fraction in 2 records and a text in 1." in " ".join(found.notes)
    assert 'A text is "free" at partition 0, offset 1.' in " ".join(found.notes)


def test_a_message_whose_time_is_none_is_named_and_becomes_a_rejected_row(hy: Hybrid, hold: Any) -> None:
    hold(*encoded(*[{"id": 1, "at": "2025-11-24T10:00:00Z"}] * 30, {"id": 2, "at": "yesterday"}))
    words = "'at': 30 of 31 values are ISO 8601; \"yesterday\" at partition 0, offset 30 is not."
    with pytest.raises(DataError) as error:
        hy.infer_table("rides", kafka=BROKERS)
    assert str(error.value) == f"No column of topic 'rides' has a time in every record. {words}"
    assert "--time at takes it, and messages without a time become rejected rows" in str(error.value.hint)
    found = hy.infer_table("rides", kafka=BROKERS, time_column="at")
    assert f"{words} Such messages become rejected rows." in found.notes
    assert (found.time_column, found.rejected) == ("at", 1)


def test_a_statement_with_the_topic(hy: Hybrid, hold: Any) -> None:
    hold(*encoded(RIDE))
    found = hy.infer_table("rides", kafka=BROKERS, ddl=True)
    assert found.ddl is not None and '"topic": "rides", "start_from": "earliest"' in found.ddl
    assert '"bootstrap.servers": "127.0.0.1:9"' in found.ddl


def test_registry_and_further_entries_of_the_stream(hy: Hybrid, hold: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(b"\x00\x00\x00\x00\x01x")

    def silent(*_: Any) -> Any:
        raise RegistryError("The schema registry http://r does not answer.")

    monkeypatch.setattr("hybrid.formats.registry_messages.RegistryMessages.read", silent)
    with pytest.raises(RegistryError, match="does not answer"):
        hy.infer_table("rides", kafka=BROKERS, registry="http://r")
    monkeypatch.setattr("hybrid.formats.registry_messages.RegistryMessages.read", lambda *_: dict(RIDE))
    given = {"security.protocol": "SSL"}
    found = hy.infer_table("rides", kafka=BROKERS, registry="http://r", stream_configs=given)
    assert found.realtime is not None
    configs = found.realtime["tableIndexConfig"]["streamConfigs"]
    assert configs["security.protocol"] == "SSL" and "AvroMessageDecoder" in json.dumps(configs)
    stated = hy.infer_table("rides", kafka=BROKERS, registry="http://r", ddl=True)
    assert '"registry_urls": ["http://r"]' in str(stated.ddl)
    with pytest.raises(SpecError, match="is no address"):
        hy.infer_table("rides", kafka=BROKERS, registry="nowhere")


@pytest.mark.parametrize(
    ("values", "words", "hint"),
    [
        ([], "Nothing has been produced to it", "hybrid kafka produce rides"),
        ([b"x", b"y"], "None of the 2 messages of topic 'rides' is a record: partition 0, offset 0", "decoder.class"),
        ([b"\x00\x00\x00\x00\x01x"], "The only message of topic 'rides' is no record: ", "--registry"),
    ],
)
def test_nothing_to_infer_from(hy: Hybrid, hold: Any, values: Sequence[bytes], words: str, hint: str) -> None:
    hold(*values)
    with pytest.raises(DataError, match=words) as error:
        hy.infer_table("rides", kafka=BROKERS)
    assert hint in str(error.value.hint)


def test_expired_messages(hy: Hybrid, hold: Any) -> None:
    hold(start=9)
    with pytest.raises(DataError, match="Its messages have expired"):
        hy.infer_table("rides", kafka=BROKERS)


def test_a_missing_topic(hy: Hybrid, hold: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(*encoded(RIDE))
    monkeypatch.setattr(topic_sample, "list_topics", lambda brokers: [Topic("rides", "id", (0,))])
    with pytest.raises(NotFoundError, match=r"no file of that name\. Did you mean 'rides'\?") as error:
        hy.infer_table("ridse", kafka=BROKERS)
    assert "./ridse" in str(error.value.hint)
    with pytest.raises(NotFoundError, match="There are: rides"):
        hy.infer_table("zzz", kafka=BROKERS)


def test_kafka_that_is_not_there(hy: Hybrid) -> None:
    with pytest.raises(StreamError, match="cannot be reached"):
        hy.infer_table("rides", kafka=BROKERS)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"data_format": "csv"}, "for a file"), ({"topic": "x"}, "for a file"), ({"sample": 0}, "at least 1")],
)
def test_options_of_files_are_refused(hy: Hybrid, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        hy.infer_table("rides", kafka=BROKERS, **options)


def test_the_verb_reads_no_file(hy: Hybrid, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps(RIDE))
    with pytest.raises(HybridError) as error:
        VERBS["table_infer"].call(hy, source=str(tmp_path / "x.jsonl"), kafka=BROKERS)
    assert not isinstance(error.value, DataError)  # it looked for a topic


# The ranges


def ranges(view: Any, messages: int) -> list[dict[int, tuple[int, int]]]:
    return [{place.partition: part for place, part in found.items()} for found in sample_ranges(view, messages)]


def test_few_messages_are_read_whole() -> None:
    assert ranges(seen("t", "id", {0: 5, 1: 0}, {0: 9, 1: 0}), 10) == [{0: (5, 9)}]


def test_of_many_the_first_and_the_last_are_read() -> None:
    assert ranges(seen("t", "id", {0: 5}, {0: 1005}), 10) == [{0: (5, 10)}, {0: (1000, 1005)}]


def test_partitions_share_the_sample() -> None:
    view = seen("t", "id", {0: 0, 1: 0, 2: 0}, {0: 100, 1: 3, 2: 0})
    assert ranges(view, 10) == [{0: (0, 2), 1: (0, 3)}, {0: (97, 100)}]


def test_every_partition_is_read_however_small_the_sample() -> None:
    view = together(seen("t", "id", {number: 0 for number in range(5)}, {number: 50 for number in range(5)}))
    assert ranges(view, 1) == [{number: (0, 1) for number in range(5)}, {number: (49, 50) for number in range(5)}]


class Consumer:
    """A consumer with a hole in its offsets, as transactions leave them, and no end."""

    def __init__(self, size: int = 1) -> None:
        self.position_, self.polls, self.size = 0, 0, size

    def assign(self, parts: Any) -> None:
        self.part = parts[0]

    def seek(self, part: Any, offset: int) -> None:
        self.position_ = offset

    def pause(self, part: Any) -> None: ...

    def close(self) -> None: ...

    def position(self, part: Any) -> int:
        return self.position_

    def poll(self, timeout_ms: int) -> dict[Any, list[Any]]:
        self.polls += 1
        assert self.polls < 100
        offsets = [offset for offset in range(self.position_, self.position_ + 4) if offset % 3]
        self.position_ += 4
        records = [type("R", (), {"offset": offset, "value": b"x" * self.size})() for offset in offsets]
        return {self.part: records}


def read(monkeypatch: pytest.MonkeyPatch, limits: SampleLimits, size: int = 1) -> MessageSample:
    monkeypatch.setattr("hybrid.kafka.sampling.consumer", lambda *_, **__: Consumer(size))
    return sample_messages(StreamConfig(("t",), BROKERS), seen("t", "id", {0: 0}, {0: 100}), limits)


def offsets(sample: MessageSample) -> list[int]:
    return [message.offset for message in sample.messages]


def test_a_sample_ends_at_its_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = read(monkeypatch, SampleLimits(12))
    assert offsets(sample) == [1, 2, 4, 5, 94, 95, 97, 98] and (sample.unread, sample.limits_reached) == ([], [])


def test_a_sample_is_bounded_in_bytes_and_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = read(monkeypatch, SampleLimits(100, bytes=2500), size=1000)
    assert offsets(sample) == [1, 2, 4]
    assert sample.unread == [UnreadRange(TopicPartition("t", 0), 5, 100)] and sample.limits_reached == ["2.5 kB"]


def test_large_messages_leave_bytes_for_the_ends_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = read(monkeypatch, SampleLimits(40, bytes=4 * 1024**2), size=1024**2)
    assert offsets(sample) == [1, 2, 80, 82] and sample.limits_reached == ["4.2 MB"]
    assert [part[1:] for part in sample.unread] == [(4, 20), (83, 100)]


def test_a_sample_is_bounded_in_time_and_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = read(monkeypatch, SampleLimits(12, seconds=0))
    assert sample.messages == [] and sample.limits_reached == ["0 s"]
    assert [part[1:] for part in sample.unread] == [(0, 6), (94, 100)]


@pytest.mark.kafka
def test_both_ends_of_every_partition_are_read(hy: Hybrid, broker: str) -> None:
    topic = f"t-{uuid.uuid4().hex[:12]}"
    create_topic(broker, topic, partitions=4)
    for partition in range(4):
        records = [RIDE] * 1200 if partition < 3 else [*[RIDE] * 1150, *[{**RIDE, "new": 1}] * 50]
        produce(broker, topic, encoded(*records), partition=partition)
    found = hy.infer_table(topic, kafka=broker, sample=2400)
    assert found.notes[0] == f"Read 2,400 messages of about 4,800 of topic '{topic}'."
    assert [column.nulls for column in found.columns if column.name == "new"] == [2350]
    assert "ended early" not in " ".join(found.notes)
