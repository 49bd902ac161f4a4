"""The stream among a table's connectors: the one of Kafka, as a table config's streamConfigs would say it."""

from __future__ import annotations

from collections.abc import Collection

from hybrid.spec.connectors import Connector, Datagen, FileInput, JsonFormat, KafkaInput
from hybrid.spec.document import Section
from hybrid.spec.table_config import Half, MessageFormat, Records, StreamConfig


def stream_of(top: Section, connectors: tuple[Connector, ...], halves: Collection[Half]) -> StreamConfig | None:
    """The stream of `connectors`; None when none of them reads Kafka. SpecError for what is not built yet."""
    found: StreamConfig | None = None
    for position, one in enumerate(connectors):
        place = f"connectors[{position}]"
        _check_built(top, place, one, halves)
        if isinstance(one.transport, KafkaInput):
            if found is not None:
                top.fail(place, f"'{one.name}' is the second one of Kafka; a table reads one stream. Keep one.")
            found = _stream(top, place, one, one.transport)
    return found


def _stream(top: Section, place: str, one: Connector, kafka: KafkaInput) -> StreamConfig:
    config = f"{place}.transport.config"
    if len(kafka.topics) > 1:
        top.fail(f"{config}.topics", "several topics are not built yet. Name one.")
    if kafka.partitions:
        top.fail(f"{config}.partitions", "some of a topic's partitions are not built yet: all are read. Remove it.")
    if kafka.properties:
        names = ", ".join(sorted(kafka.properties))
        top.fail(config, f"{names}: security settings of Kafka are not passed on yet.")
    if not isinstance(one.format, JsonFormat):
        top.fail(f"{place}.format", "messages are read as JSON only. Write the format json.")
    return StreamConfig(
        topic=kafka.topics[0],
        brokers=kafka.brokers,
        connector=one.name,
        message=MessageFormat(one.format.update_format),
        records=Records.ARRAY if one.format.array else Records.LINES,
        flavor=one.format.flavor,
    )


def _check_built(top: Section, place: str, one: Connector, halves: Collection[Half]) -> None:
    transport = one.transport
    if not isinstance(transport, KafkaInput) and Half.OFFLINE not in halves:
        message = f"'{one.name}' brings history, which lies in the OFFLINE half, and the table has none."
        top.fail(place, message, hint="Add the OFFLINE table config: --config FILE")
    if isinstance(transport, Datagen) and any(plan.limit is None and plan.rate is None for plan in transport.plans):
        message = "neither limit nor rate is given: it would fill the disk. Give each plan one of them."
        top.fail(f"{place}.transport.config.plan", message)
    if isinstance(transport, FileInput) and transport.follow:
        top.fail(f"{place}.transport.config.follow", "true is not built yet: what is there when it starts is loaded.")
