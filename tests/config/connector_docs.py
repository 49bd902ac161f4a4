"""Connectors as users write them, and what reading them says."""

from typing import Any

import pytest

from hybrid.config.connectors import (
    Connector,
    Datagen,
    DeltaInput,
    KafkaInput,
)
from hybrid.config.connectors_json import parse_connectors
from hybrid.errors import SpecError
from hybrid.schema.document import Section

JSON = {"name": "json"}
DELTA = {"uri": "s3://b/t", "mode": "snapshot"}
KAFKA = {"bootstrap.servers": "k:9092", "topic": "t"}


def connector(kind: str, config: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"transport": {"name": kind, "config": config}, **more}


def delta(**more: Any) -> dict[str, Any]:
    return connector("delta_table_input", DELTA, **more)


def kafka(**more: Any) -> dict[str, Any]:
    return connector("kafka_input", KAFKA, format=JSON, **more)


def top(*connectors: object) -> Section:
    return Section({"connectors": list(connectors)}, "t.json")


def parse(*connectors: object) -> tuple[Connector, ...]:
    return parse_connectors(top(*connectors))


def fails(*connectors: object) -> str:
    with pytest.raises(SpecError) as caught:
        parse(*connectors)
    return str(caught.value).removeprefix("t.json: ")


def read_kafka(**config: Any) -> KafkaInput:
    [one] = parse(connector("kafka_input", {**KAFKA, **config}, format=JSON))
    assert isinstance(one.transport, KafkaInput)
    return one.transport


def fails_kafka(**config: Any) -> str:
    doc = {key: value for key, value in {**KAFKA, **config}.items() if value != "remove"}
    return fails(connector("kafka_input", doc, format=JSON)).removeprefix("connectors[0].transport.config.")


def read_delta(**config: Any) -> DeltaInput:
    [one] = parse(connector("delta_table_input", {**DELTA, **config}))
    assert isinstance(one.transport, DeltaInput)
    return one.transport


def fails_delta(**config: Any) -> str:
    message = fails(connector("delta_table_input", {**DELTA, **config}))
    return message.removeprefix("connectors[0].transport.config.")


def read_datagen(**config: Any) -> Datagen:
    [one] = parse(connector("datagen", config))
    assert isinstance(one.transport, Datagen)
    return one.transport
