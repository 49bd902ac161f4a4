"""Reads the config of Feldera's `kafka_input`, with `start_from` in both published forms.

After docs.feldera.com/connectors/sources/kafka and, for the older form (`topics`, a list of topic, partition and
offset, `auto.offset.reset`), crates/feldera-types/src/transport/kafka.rs (KafkaInputConfigCompat) of feldera/feldera.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from hybrid.config.broker_list import plain_brokers
from hybrid.config.connectors import KafkaInput, KafkaStart, StartKind
from hybrid.config.kafka_security import of_librdkafka
from hybrid.errors import suggestion
from hybrid.schema.document import Section, shown
from hybrid.schema.secrets import hides

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_WORDS = (StartKind.EARLIEST.value, StartKind.LATEST.value, StartKind.AFTER_HISTORY.value)
_RESETS = {"smallest": "earliest", "earliest": "earliest", "beginning": "earliest",
           "largest": "latest", "latest": "latest", "end": "latest"}  # fmt: skip
_OFFSET_MAX = 2**63 - 1
_START_EXAMPLES = (
    'Write "earliest", "latest", "after_history", {"offsets": [42]}, {"timestamp": 1700000000000} or '
    '[{"topic": "t", "partition": 0, "offset": 42}].'
)
_RESET = "auto.offset.reset"
_SERVERS = "bootstrap.servers"
_USED = {_SERVERS, "topic", "topics", "partitions", "start_from", _RESET}
# The properties of librdkafka that every connection uses.
_KEPT = re.compile(r"(?:security|sasl|ssl)\..+|client\.id|client\.rack")
# Tuning of Feldera's client or of librdkafka, and consumer groups, which neither system uses.
_QUIET = {
    "log_level", "group_join_timeout_secs", "poller_threads", "fault_tolerance", "kafka_service", "debug",
    "enabled_events", "retries", "group.id", "group.instance.id", "enable.auto.commit", "enable.auto.offset.store",
    "enable.partition.eof", "isolation.level", "resume_earliest_if_data_expires", "check.crcs",
}  # fmt: skip
_QUIET_PREFIXES = (
    "fetch.", "max.", "message.", "receive.", "socket.", "reconnect.", "broker.", "api.", "metadata.", "connections.",
    "queued.", "queue.", "statistics.", "session.", "heartbeat.", "topic.metadata.", "retry.", "log.", "auto.commit.",
    "allow.", "partition.assignment.", "request.", "enable.random.", "client.dns.",
)  # fmt: skip
_MUST_BE = {"enable.auto.commit": "false", "enable.auto.offset.store": "false", "enable.partition.eof": "false"}
_REFUSED = {
    "header_filter": "messages are not filtered by their headers yet",
    "resume_earliest_if_data_expires": "offsets that are gone are never skipped silently",
}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def parse_kafka(config: Section, brokers: str | None) -> KafkaInput:
    """The input of a `kafka_input` config; `brokers`, if not None, replaces the config's."""
    for key, reason in _REFUSED.items():
        if config.has(key):
            config.fail(key, f"{shown(config.doc[key])} cannot be honoured: {reason}. Remove the key.")
    _check_fixed(config)
    topics = _topics(config)
    partitions = _partitions(config)
    properties = _properties(config)
    security = of_librdkafka(config, properties)
    place = "--kafka" if brokers else f"{config.source}: {config.at(_SERVERS)}"
    return KafkaInput(
        brokers=plain_brokers(brokers or config.text(_SERVERS), place, security.protocol),
        topics=topics,
        partitions=partitions,
        start=_start(config, topics, partitions),
        properties=properties,
        security=security,
    )


def kafka_warnings(config: Section) -> Iterator[str]:
    """One warning for each key that has no effect."""
    own_keys = _USED | _QUIET | _REFUSED.keys()
    quiet = {key for key in config.doc if key.startswith(_QUIET_PREFIXES) or _KEPT.fullmatch(key)}
    yield from config.unknown(own_keys | quiet)
    if config.has(_RESET):
        what = "has no effect beside start_from" if config.has("start_from") else "is taken for start_from"
        yield f"{config.source}: {config.at(_RESET)}: {what}; Feldera does not start there. Write start_from only."


def _topics(config: Section) -> tuple[str, ...]:
    if config.has("topic") and config.has("topics"):
        config.fail("topics", "is given beside topic. Write one of them.")
    topics = (config.text("topic"),) if not config.has("topics") else config.texts("topics")
    counts = Counter(topics)
    for topic in topics:
        if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            key = "topics" if config.has("topics") else "topic"
            config.fail(key, f"{shown(topic)} is not a topic: letters, digits, '.', '_', '-', at most 249.")
        if counts[topic] > 1:
            config.fail("topics", f"'{topic}' is given twice.")
    return topics


def _partitions(config: Section) -> tuple[int, ...]:
    value = config.doc.get("partitions")
    if value is None:
        return ()
    if not isinstance(value, list) or not value or not all(_is_whole(number, 2**31 - 1) for number in value):
        config.fail("partitions", f"{shown(value)} is not a list of partitions, such as [0, 1].")
    if len(set(value)) < len(value):
        config.fail("partitions", f"{shown(value)} holds a partition twice.")
    return tuple(value)


def _start(config: Section, topics: tuple[str, ...], partitions: tuple[int, ...]) -> KafkaStart:
    key = "start_from"
    value = config.doc.get(key)
    if value is None:
        return KafkaStart(StartKind(_reset(config)))
    if isinstance(value, str):
        return KafkaStart(StartKind(config.choice(key, _WORDS)))
    if isinstance(value, dict):
        return _start_object(config, value, topics, partitions)
    if isinstance(value, list) and value:
        return _start_list(config, topics, partitions)
    config.fail(key, f"{shown(value)} says no place to start from. {_START_EXAMPLES}")


def _reset(config: Section) -> str:
    """The start position when `start_from` is missing."""
    text = config.text(_RESET, "latest")
    if text not in _RESETS:
        config.fail(_RESET, f"'{text}' is not known.{suggestion(text, _RESETS)} Write start_from: earliest or latest.")
    return _RESETS[text]


def _start_object(
    config: Section, value: dict[str, object], topics: tuple[str, ...], partitions: tuple[int, ...]
) -> KafkaStart:
    start = config.section("start_from")
    if len(value) != 1 or next(iter(value)) not in ("offsets", "timestamp"):
        config.fail("start_from", f"{shown(value)} says no place to start from. {_START_EXAMPLES}")
    if "timestamp" in value:
        if not _is_whole(value["timestamp"], _OFFSET_MAX):
            start.fail("timestamp", f"{shown(value['timestamp'])} is not a time in milliseconds since 1970.")
        return KafkaStart(StartKind.TIMESTAMP, timestamp_ms=start.whole("timestamp", 0))
    offsets = value["offsets"]
    if not isinstance(offsets, list) or not offsets or not all(_is_whole(offset, _OFFSET_MAX) for offset in offsets):
        start.fail("offsets", f"{shown(offsets)} is not a list of offsets from 0 on, one for each partition.")
    if len(topics) > 1:
        start.fail("offsets", f"{shown(offsets)} does not say of which topic. {_START_EXAMPLES}")
    places = partitions or tuple(range(len(offsets)))
    if len(places) != len(offsets):
        start.fail("offsets", f"has {len(offsets)} offsets for {len(places)} partitions: give one for each.")
    return KafkaStart(
        StartKind.OFFSETS, offsets={(topics[0], partition): at for partition, at in zip(places, offsets, strict=True)}
    )


def _start_list(config: Section, topics: tuple[str, ...], partitions: tuple[int, ...]) -> KafkaStart:
    offsets: dict[tuple[str, int], int] = {}
    for item in config.sections("start_from"):
        topic = item.text("topic")
        if topic not in topics:
            near = suggestion(topic, topics)
            item.fail("topic", f"'{topic}' is not read here.{near} The topics are: {', '.join(topics)}.")
        partition = _item_number(item, "partition", 2**31 - 1)
        if partitions and partition not in partitions:
            item.fail("partition", f"{partition} is not one of partitions, {list(partitions)}.")
        if (topic, partition) in offsets:
            item.fail("partition", f"{partition} of '{topic}' is given twice.")
        offsets[topic, partition] = _item_number(item, "offset", _OFFSET_MAX)
    _check_every_partition(config, topics, partitions, offsets)
    return KafkaStart(StartKind.OFFSETS, offsets=offsets)


def _check_every_partition(
    config: Section, topics: tuple[str, ...], partitions: tuple[int, ...], offsets: dict[tuple[str, int], int]
) -> None:
    for topic in topics:
        named = [partition for name, partition in offsets if name == topic]
        missing = [partition for partition in partitions if partition not in named]
        if missing or not named:
            which = f"partition {missing[0]}" if missing else "any partition"
            config.fail("start_from", f"has no offset for {which} of '{topic}': every partition needs one.")


def _item_number(item: Section, key: str, high: int) -> int:
    value = item.doc.get(key)
    if not isinstance(value, int) or not _is_whole(value, high):
        item.fail(key, f"{shown(value)} is not a whole number from 0 on." if key in item.doc else "is missing.")
    return value


def _is_whole(value: object, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= high


def _check_fixed(config: Section) -> None:
    for key, only in _MUST_BE.items():
        if str(config.doc.get(key, only)).lower() != only:
            config.fail(key, f"{shown(config.doc[key])} cannot be honoured: it is always {only}. Remove the key.")
    if config.text("isolation.level", "read_committed") != "read_committed":
        level = shown(config.doc["isolation.level"])
        config.fail("isolation.level", f"{level} cannot be honoured: rows of aborted transactions are never read.")


def _properties(config: Section) -> dict[str, str]:
    if config.has("security.protocol"):
        config.choice("security.protocol", _PROTOCOLS)
    for key in ("sasl.mechanism", "sasl.mechanisms"):
        if str(config.doc.get(key, "")).upper() == "OAUTHBEARER":
            config.fail(key, "'OAUTHBEARER' is not built yet. Use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.")
    return {key: plain_text(config, key) for key in config.doc if _KEPT.fullmatch(key)}


def plain_text(config: Section, key: str) -> str:
    """An option's value as text; the boolean true equals Feldera's "true". SpecError for lists and objects."""
    value = config.doc[key]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    config.fail(key, "is not a text." if hides(key, in_options=True) else f"{shown(value)} is not a text.")
