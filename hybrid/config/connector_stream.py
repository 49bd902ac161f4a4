"""Converts a table's Kafka connector to the stream that a table config's streamConfigs would describe."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hybrid.config.connectors import (
    AvroFormat,
    Connector,
    ConnectorCsvFormat,
    Datagen,
    DeltaInput,
    JsonFormat,
    KafkaInput,
)
from hybrid.config.table_config import Half, MessageFormat, Records, StreamConfig
from hybrid.formats import csv_format as csv
from hybrid.formats.avro_messages import REGISTRY_BYTES, AvroMessages
from hybrid.formats.csv_cells import Dialect
from hybrid.schema.document import Section
from hybrid.schema.schema import Schema


def stream_of(
    top: Section,
    schema: Schema,
    columns: tuple[str, ...],
    connectors: tuple[Connector, ...],
    halves: Collection[Half],
) -> StreamConfig | None:
    """The stream of `connectors`; None when none of them reads Kafka. Cells of CSV are `columns` in their order.

    SpecError for a combination that is not built yet.
    """
    stream: StreamConfig | None = None
    for position, connector in enumerate(connectors):
        place = f"connectors[{position}]"
        _check_built(top, place, connector, halves)
        _check_counted(top, f"{place}.transport.config", connector, schema)
        if isinstance(connector.transport, KafkaInput):
            if stream is not None:
                top.fail(
                    place,
                    f"'{connector.name}' is the second one of Kafka; a table has one. "
                    "Give that one both topics (topics).",
                )
            stream = _stream(connector, connector.transport, schema, columns)
    return stream


def csv_format(form: ConnectorCsvFormat, schema: Schema, columns: tuple[str, ...]) -> csv.CsvFormat:
    """The CSV decoder of a connector: cells are the table's columns in their order, as in Feldera, whatever a header
    names.
    """
    return csv.CsvFormat(
        dialect=Dialect(form.delimiter, form.quote, form.escape, trim=False, controls=False),
        columns=columns,
        skip_header=form.headers,
        multi_value=csv.multi_value_columns(schema),
        texts=csv.text_columns(schema),
    )


def _stream(one: Connector, kafka: KafkaInput, schema: Schema, columns: tuple[str, ...]) -> StreamConfig:
    stream = StreamConfig(
        kafka.topics, kafka.brokers, connector=one.name, security=kafka.security, partitions=kafka.partitions
    )
    if isinstance(one.format, ConnectorCsvFormat):
        return replace(stream, codec=csv_format(one.format, schema, columns))
    if isinstance(one.format, AvroFormat):
        if one.format.registry is not None:
            return replace(stream, codec=one.format.registry)
        return replace(stream, codec=AvroMessages(one.format.text, 0 if one.format.bare else REGISTRY_BYTES))
    assert isinstance(one.format, JsonFormat)
    return replace(
        stream,
        message=MessageFormat(one.format.update_format),
        records=Records.ARRAY if one.format.array else Records.LINES,
        flavor=one.format.flavor,
    )


def _check_built(top: Section, place: str, one: Connector, halves: Collection[Half]) -> None:
    transport = one.transport
    if not isinstance(transport, KafkaInput) and Half.OFFLINE not in halves:
        message = f"'{one.name}' brings history, which lies in the OFFLINE half, and the table has none."
        top.fail(place, message, hint="Add the OFFLINE table config: hybrid table create ... --config FILE")
    if isinstance(transport, Datagen) and any(plan.limit is None and plan.rate is None for plan in transport.plans):
        message = "neither limit nor rate is given: it would fill the disk. Give each plan one of them."
        top.fail(f"{place}.transport.config.plan", message)


def _check_counted(top: Section, place: str, one: Connector, schema: Schema) -> None:
    """SpecError where a net-delete table may read the delete of a row that it never loaded.

    Such a delete would remove an equal row that arrives later.
    """
    delta = one.transport
    if not isinstance(delta, DeltaInput) or not one.says_deletes or schema.primary_key:
        return
    rule = "beside change_feed on a table without a PRIMARY KEY: a row that goes takes an equal one away, and"
    if not delta.reads_snapshot:
        message = f"'{delta.mode}' cannot be used {rule} what it has not loaded may go. Use snapshot_and_follow."
        top.fail(f"{place}.mode", message)
    if delta.snapshot_filter is not None:
        top.fail(f"{place}.snapshot_filter", f"cannot be used {rule} what it leaves out may go. Write filter.")
