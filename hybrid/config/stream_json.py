"""Reads Pinot's streamConfigs: the source of live rows, and when a consuming segment is sealed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hybrid.config.broker_list import plain_brokers
from hybrid.config.kafka_security import java_keys, of_java
from hybrid.config.offset_place import place_time_ms, place_word
from hybrid.config.table_config import StreamConfig
from hybrid.config.table_keys import DECODER
from hybrid.errors import SpecError
from hybrid.schema.document import Section, shown
from hybrid.schema.period import parse_period
from hybrid.schema.schema import Schema

if TYPE_CHECKING:
    from hybrid.formats.avro_messages import AvroMessages
    from hybrid.formats.csv_format import CsvFormat
    from hybrid.formats.registry_messages import RegistryMessages

_BROKERS = "stream.kafka.broker.list"
_TOPIC = "stream.kafka.topic.name"
_FLUSH = "realtime.segment.flush.threshold."
_SIZES = {"": 1, "B": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_ROWS_KEYS = (f"{_FLUSH}rows", f"{_FLUSH}size")
_TIME_KEYS = (f"{_FLUSH}time",)
_SIZE_KEYS = (f"{_FLUSH}segment.size", "realtime.segment.flush.desired.size")
_RESET_KEYS = ("stream.kafka.consumer.prop.auto.offset.reset", "auto.offset.reset")
_ISOLATION_KEYS = ("stream.kafka.consumer.prop.isolation.level", "stream.kafka.isolation.level")
_METADATA_KEYS = ("stream.kafka.metadata.populate", "metadata.populate")
_AUTO_RESET = "realtime.segment.offsetAutoReset.enable"
_AUTO_RESET_LIMITS = {
    "realtime.segment.offsetAutoReset.offsetThreshold", "realtime.segment.offsetAutoReset.timeSecThreshold",
    "realtime.segment.offsetAutoReset.timeThresholdSeconds",
}  # fmt: skip
_USED = {
    "streamType", _TOPIC, _BROKERS, DECODER, *_METADATA_KEYS,
    *_ROWS_KEYS, *_TIME_KEYS, *_SIZE_KEYS, *_RESET_KEYS, *_ISOLATION_KEYS, _AUTO_RESET,
}  # fmt: skip
# Class names, Zookeeper and how Pinot's servers divide their work: ignored without a warning.
_QUIET = {
    "stream.kafka.consumer.type", "stream.kafka.consumer.factory.class.name", "stream.kafka.zk.broker.url",
    "stream.kafka.hlc.zk.connect.string", "stream.kafka.hlc.bootstrap.server", "stream.kafka.hlc.group.id",
    "stream.kafka.fetch.timeout.millis", "stream.kafka.connection.timeout.millis", "stream.kafka.idle.timeout.millis",
    "stream.kafka.buffer.size", "stream.kafka.socket.timeout", "stream.kafka.fetcher.size",
    "stream.kafka.fetcher.minBytes", "stream.kafka.consumer.prop.group.id", "stream.kafka.consumer.prop.client.id",
    "realtime.segment.flush.autotune.initialRows", "realtime.segment.commit.timeoutSeconds",
    "realtime.segment.serverUploadToDeepStore",
}  # fmt: skip


def find_streams(realtime: Section) -> tuple[Section, ...]:
    """The sections of the stream configs, one for each topic, from either of Pinot's places. SpecError without any."""
    old = realtime.section("tableIndexConfig").section("streamConfigs")
    nested = realtime.section("ingestionConfig").section("streamIngestionConfig")
    maps = tuple(nested.sections("streamConfigMaps"))
    if maps and old.doc:
        nested.fail("streamConfigMaps", f"is given beside {old.path}: say in one place which stream is read.")
    streams = tuple(config for config in maps or (old,) if config.doc)
    if not streams:
        realtime.fail("tableIndexConfig.streamConfigs", "is missing: a REALTIME table says which stream it reads.")
    return streams


def parse_stream(sections: Sequence[Section], schema: Schema, brokers: str | None) -> StreamConfig:
    """The stream of a REALTIME table; `brokers`, if not None, replaces the file's broker list.

    SpecError where the sections differ in more than the topic, or name a topic twice.
    """
    first, *others = (_parse(section, schema, brokers) for section in sections)
    topics = list(first.topics)
    for section, stream in zip(sections[1:], others, strict=True):
        if replace(stream, topics=first.topics) != first:
            key = _differing(sections[0], section, lambda other: _parse(other, schema, brokers))
            section.fail(key, f"differs from {sections[0].at(key)}: all topics of a table are read alike.")
        if stream.topics[0] in topics:
            named = sections[topics.index(stream.topics[0])]
            section.fail(_TOPIC, f"'{stream.topics[0]}' is given twice: {named.at(_TOPIC)} names it too.")
        topics += stream.topics
    return replace(first, topics=tuple(topics))


def _differing(first: Section, other: Section, parse: Callable[[Section], StreamConfig]) -> str:
    """The first key whose value makes a difference between two topics. Only the key: its values may be secrets."""
    intended = parse(other)
    keys = [key for key in {**first.doc, **other.doc} if first.doc.get(key) != other.doc.get(key) and key != _TOPIC]

    def matters(key: str) -> bool:
        doc = {name: value for name, value in other.doc.items() if name != key}
        try:
            return parse(replace(other, doc=doc | ({key: first.doc[key]} if key in first.doc else {}))) != intended
        except SpecError:  # a key that conflicts with the others has an effect
            return True

    return next((key for key in keys if matters(key)), keys[0])


def _parse(section: Section, schema: Schema, brokers: str | None) -> StreamConfig:
    section.choice("streamType", ("kafka",), "kafka")
    _check_isolation(section)
    _check_auto_reset(section)
    default = StreamConfig((), "")
    return StreamConfig(
        topics=(section.text(_TOPIC),),
        brokers=_brokers(section, brokers),
        offset_reset=_offset_reset(section),
        flush_rows=_rows(section) or default.flush_rows,
        flush_bytes=_bytes(section) or default.flush_bytes,
        flush_ms=_millis(section) or default.flush_ms,
        codec=_codec(section, schema),
        metadata=_metadata(section),
        security=of_java(section),
    )


def stream_warnings(section: Section) -> Iterator[str]:
    """One warning for each key that has no effect."""
    return section.unknown(_USED | _QUIET | _AUTO_RESET_LIMITS | _decoder_keys(section) | java_keys(section))


def _codec(section: Section, schema: Schema) -> CsvFormat | AvroMessages | RegistryMessages | None:
    if _is_json(section):
        return None
    from hybrid.config.stream_decoder import codec_of

    return codec_of(section, schema)


def _decoder_keys(section: Section) -> set[str]:
    if _is_json(section):
        return set()
    from hybrid.config.stream_decoder import decoder_keys

    return decoder_keys(section)


def _is_json(section: Section) -> bool:
    """Whether messages are JSON, as of most streams: other formats are imported only where they are read."""
    value = section.doc.get(DECODER)
    name = str(value).strip()
    return value is None or (name.endswith("JSONMessageDecoder") and "Confluent" not in name)


def _given(section: Section, keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if section.doc.get(key) not in (None, "")), None)


def _metadata(section: Section) -> bool:
    """Whether keys, headers and coordinates are fields; by default they are not, as in Pinot."""
    key = _given(section, _METADATA_KEYS)
    return section.boolean(key) if key else False


def _check_isolation(section: Section) -> None:
    key = _given(section, _ISOLATION_KEYS)
    if key and section.text(key) != "read_committed":
        section.fail(key, f"{shown(section.doc[key])} cannot be honoured: rows of aborted transactions are never read.")


def _brokers(section: Section, instead: str | None) -> str:
    place = "--kafka" if instead else f"{section.source}: {section.at(_BROKERS)}"
    return plain_brokers(instead or section.text(_BROKERS), place, of_java(section).protocol)


def _check_auto_reset(section: Section) -> None:
    """SpecError for Pinot's offset auto-reset, which skips messages when ingestion is too far behind."""
    if section.boolean(_AUTO_RESET):
        hint = "hybrid connector reset TABLE --to PLACE, when ingestion has stopped or is too far behind"
        section.fail(_AUTO_RESET, "true cannot be honoured: offsets are never skipped without a person.", hint=hint)


def _offset_reset(section: Section) -> str:
    key = _given(section, _RESET_KEYS)
    if key is None:
        return "largest"
    text = section.text(key)
    word = place_word(text)
    if word is None and place_time_ms(text, 0) is None:
        message = f"'{text}' is no place to start from. Write smallest (earliest), largest (latest), a time such as "
        section.fail(key, f"{message}2022-08-09T12:31:38.222Z, or a time ago such as 2d.")
    return word or text.strip()


def _rows(section: Section) -> int:
    key = _given(section, _ROWS_KEYS)
    return section.whole(key, 0) if key else 0


def _millis(section: Section) -> int:
    key = _given(section, _TIME_KEYS)
    if key is None:
        return 0
    text = str(section.doc[key]).strip()
    if text.isascii() and text.isdigit():  # older files give plain milliseconds
        return section.whole(key, 0)
    return parse_period(section.doc[key], section.source, section.at(key))


def _bytes(section: Section) -> int:
    key = _given(section, _SIZE_KEYS)
    if key is None:
        return 0
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([BKMGT]?)B?", str(section.doc[key]).strip().upper())
    if match is None:
        section.fail(key, f"{shown(section.doc[key])} is not a size. Write it like '200M' or '1G'.")
    return int(float(match[1]) * _SIZES[match[2]])
