"""Reads a sample of a topic with the table's own decoder: JSON, CSV, Avro, or by a schema registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybrid.config.table_config import Half, StreamConfig
from hybrid.config.table_json import parse_table
from hybrid.config.table_keys import DECODER
from hybrid.errors import DataError, NotFoundError, StreamError, UsageError, suggestion
from hybrid.kafka.sampling import MessageSample, SampleLimits, sample_messages
from hybrid.kafka.streams import StreamView, view_stream
from hybrid.kafka.topics import list_topics
from hybrid.operations.inference.infer_options import InferOptions
from hybrid.operations.inference.record_sample import MalformedRecord, RecordSample, SampledRecord, UnreadPart
from hybrid.records.decode import Decoder
from hybrid.records.messages import Message
from hybrid.records.outcome import Rejected

TOPIC, BROKERS = "stream.kafka.topic.name", "stream.kafka.broker.list"
_OFFSET_RESET = "stream.kafka.consumer.prop.auto.offset.reset"
_REGISTRY = "stream.kafka.decoder.prop.schema.registry.rest.url"
_AVRO = "org.apache.pinot.plugin.inputformat.avro.confluent.KafkaConfluentSchemaRegistryAvroMessageDecoder"
# A sample is what messages hold before any column of a table is known.
_ANY_SCHEMA: dict[str, object] = {
    "schemaName": "sample",
    "dimensionFieldSpecs": [{"name": "value", "dataType": "STRING"}],
}
_REGISTRY_BYTES, _MALFORMED_SHOWN = 5, 5
_MESSAGES_MAX = 100_000  # a server may read the sample


def stream_configs(topic: str, brokers: str, options: InferOptions) -> dict[str, str]:
    """The streamConfigs of a table that reads a topic from its first message."""
    registry = {DECODER: _AVRO, _REGISTRY: options.registry} if options.registry is not None else {}
    return {
        "streamType": "kafka",
        TOPIC: topic,
        BROKERS: brokers,
        _OFFSET_RESET: "smallest",
        **registry,
        **(options.stream_configs or {}),
    }


def read_topic(configs: Mapping[str, str], messages_max: int) -> RecordSample:
    """The first and last messages of each partition.

    NotFoundError for a missing topic, DataError for one without messages or records, StreamError when Kafka does not
    answer, SpecError for configs that cannot be honoured.
    """
    if messages_max <= 0:
        raise UsageError("A sample of a topic has an end: --sample is at least 1.")
    realtime: dict[str, Any] = {
        "tableName": "sample",
        "tableType": "REALTIME",
        "tableIndexConfig": {"streamConfigs": dict(configs)},
    }
    spec = parse_table(_ANY_SCHEMA, "the sample's schema", [(realtime, "streamConfigs")])
    stream = spec.stream
    assert stream is not None  # the config has streamConfigs
    topic = stream.topics[0]
    view = view_stream(stream)
    if topic not in view.topic_ids:
        raise _missing(stream, topic)
    decoder, records, malformed = Decoder(spec), list[SampledRecord](), list[MalformedRecord]()
    binary = 0
    sample = sample_messages(stream, view, SampleLimits(min(messages_max, _MESSAGES_MAX)))
    for place, offset, value in sample.messages:
        where = f"partition {place.partition}, offset {offset}"
        binary += value is not None and len(value) > _REGISTRY_BYTES and value[0] == 0
        message = Message(value, None, (), place.partition, offset)
        for record in decoder.documents(value, message):
            if isinstance(record, Rejected):
                malformed.append(MalformedRecord(where, record.reason))
            else:
                records.append(SampledRecord(where, record))
    unread = _unread_part(sample)
    _require_records(topic, view, records, malformed, binary, unread)
    available = sum(end - view.starts[place] for place, end in view.ends.items())
    return RecordSample(f"topic '{topic}'", Half.REALTIME, records, malformed, available, unread=unread)


def _unread_part(sample: MessageSample) -> UnreadPart | None:
    """What the limits of a sample have left out, in words."""
    if not sample.unread:
        return None
    ranges = [
        f"partition {place.partition}, offset {start}" + (f" to {end - 1}" if end - start > 1 else "")
        for place, start, end in sorted(sample.unread)
    ]
    return UnreadPart(" and ".join(sample.limits_reached), ranges)


def _missing(stream: StreamConfig, topic: str) -> NotFoundError:
    """The error for a topic that does not exist; names are not looked up on a secured cluster."""
    names = [known.name for known in list_topics(stream.brokers)] if stream.security.is_plain else []
    near = suggestion(topic, names)
    there = f" There are: {', '.join(names[:20])}." if names and not near else ""
    return NotFoundError(
        f"Topic '{topic}' does not exist at {stream.brokers}, and there is no file of that name.{near}{there}",
        hint="hybrid kafka topic list, or hybrid table init TOPIC --kafka HOST:PORT for another cluster. A file is "
        f"named with its path: ./{topic}",
    )


def _require_records(
    topic: str,
    view: StreamView,
    records: list[SampledRecord],
    malformed: list[MalformedRecord],
    binary: int,
    unread: UnreadPart | None,
) -> None:
    """DataError where nothing can be inferred: the topic is empty, or none of its messages is a record.

    StreamError when Kafka has brought none in time.
    """
    if records:
        return
    if not malformed and unread is not None:
        raise StreamError(
            f"Topic '{topic}' has messages, and none of them was read within {unread.limit}.",
            hint="hybrid kafka topic list shows whether the brokers answer. When they do, run hybrid table init TOPIC "
            "again.",
        )
    if not malformed:
        starts = sum(view.starts.values())
        held = "Its messages have expired." if starts else "Nothing has been produced to it."
        raise DataError(
            f"Topic '{topic}' has no messages to infer columns from. {held}",
            hint=f"hybrid kafka produce {topic} FILE, or infer from a file of the same records: hybrid table init FILE "
            f"--topic {topic}",
        )
    shown = "; ".join(f"{at}: {reason}" for at, reason in malformed[:_MALFORMED_SHOWN])
    hint = "Messages of CSV or Avro: hybrid table init TOPIC --stream-config stream.kafka.decoder.class.name=..."
    if binary == len(malformed):
        hint = "They begin like those of a schema registry: hybrid table init TOPIC --registry http://HOST:PORT"
    none = "The only message" if len(malformed) == 1 else f"None of the {len(malformed):,} messages"
    verb = "is no record" if len(malformed) == 1 else "is a record"
    raise DataError(f"{none} of topic '{topic}' {verb}: {shown}", hint=hint)
