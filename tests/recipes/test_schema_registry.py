"""Avro and JSON Schema messages by a real schema registry, as a user does it: tables, an evolved schema, an outage."""

from __future__ import annotations

import io
import json
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from hybrid.kafka.topics import TopicRecord, create_topic, produce
from tests.ingest.registry import LocalRegistry
from tests.recipes.conftest import RecipeHome

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(400)]
FIRST = {"type": "record", "name": "visit", "fields": [{"name": "id", "type": "int"}, {"name": "ts", "type": "long"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
SHAPE = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
DECODER = "KafkaConfluentSchemaRegistry{}MessageDecoder"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[LocalRegistry]:
    made = LocalRegistry(tmp_path)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> RecipeHome:
    return RecipeHome(tmp_path / "home", capsys)


def registered(registry: LocalRegistry, subject: str, document: Any, kind: str = "AVRO") -> int:
    with SchemaRegistryClient({"url": registry.url}) as client:
        return client.register_schema(subject, Schema(json.dumps(document), kind))


def framed(number: int, record: Any, schema: Any = None) -> TopicRecord:
    file = io.BytesIO(b"" if schema is not None else json.dumps(record).encode())
    if schema is not None:
        fastavro.schemaless_writer(file, schema, record)
    return TopicRecord(struct.pack(">bI", 0, number) + file.getvalue())


def create(home: RecipeHome, tmp_path: Path, broker: str, name: str, form: str, props: dict[str, str]) -> None:
    schema = {
        "schemaName": name,
        "dimensionFieldSpecs": [{"name": "id", "dataType": "INT"}, {"name": "note", "dataType": "STRING"}],
        "dateTimeFieldSpecs": [
            {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
        ],
    }
    stream = {
        "streamType": "kafka",
        "stream.kafka.topic.name": name,
        "stream.kafka.broker.list": broker,
        "stream.kafka.decoder.class.name": f"org.apache.pinot.plugin.inputformat.avro.confluent.{form}",
        "auto.offset.reset": "smallest",
        **{f"stream.kafka.decoder.prop.{key}": value for key, value in props.items()},
    }
    config = {
        "tableName": name,
        "tableType": "REALTIME",
        "segmentsConfig": {"timeColumnName": "ts", "schemaName": name},
        "tableIndexConfig": {"streamConfigs": stream},
    }
    for file, document in ((f"{name}-schema.json", schema), (f"{name}.json", config)):
        (tmp_path / file).write_text(json.dumps(document))
    home.run(
        "table", "create", "--schema", str(tmp_path / f"{name}-schema.json"), "--config", str(tmp_path / f"{name}.json")
    )


def test_messages_by_a_real_registry(registry: LocalRegistry, home: RecipeHome, broker: str, tmp_path: Path) -> None:
    avro, shaped = (f"t_{uuid.uuid4().hex[:8]}" for _ in range(2))
    for name in (avro, shaped):
        create_topic(broker, name)
    url = {"schema.registry.rest.url": registry.url}
    create(home, tmp_path, broker, avro, DECODER.format("Avro"), url)
    create(home, tmp_path, broker, shaped, DECODER.format("Json"), {**url, "json.fail.invalid.schema": "true"})

    # Two versions of a schema in one topic: each record is read as it was written.
    first, second = registered(registry, "visit", FIRST), registered(registry, "visit", SECOND)
    assert first != second
    rows = [framed(first, {"id": 1, "ts": 1000}, FIRST), framed(second, {"id": 2, "ts": 2000, "note": "b"}, SECOND)]
    produce(broker, avro, [*rows, framed(99_999, {"id": 3, "ts": 3000}, FIRST), TopicRecord(b'{"id": 4}')])
    tail = home.rows(f"select id, note from {avro} order by id")
    home.run("ingest", avro, "--until-caught-up")
    assert home.rows(f"select id, note from {avro} order by id") == tail
    assert [one["id"] for one in tail] == [1, 2] and tail[1]["note"] == "b"
    reasons = [one["reason"] for one in home.run("rejected", "list", avro)]
    assert len(reasons) == 2 and any("its schema 99999 is not in the registry" in one for one in reasons)

    number = registered(registry, "shape", SHAPE, "JSON")
    produce(broker, shaped, [framed(number, {"id": 1, "ts": 1000}), framed(number, {"id": "x", "ts": 1})])
    home.run("ingest", shaped, "--until-caught-up")
    assert [one["id"] for one in home.rows(f"select id from {shaped}")] == [1]
    assert "does not fit its schema" in home.run("rejected", "list", shaped)[0]["reason"]

    # Without the registry nothing is read and nothing is skipped; what is committed is answered with a warning.
    registry.stop()
    third = {**FIRST, "name": "visit", "fields": [*SECOND["fields"], {"name": "more", "type": "int", "default": 0}]}
    produce(broker, avro, [framed(second + 1000, {"id": 5, "ts": 5000, "note": "c", "more": 1}, third)])
    home.run("ingest", avro, "--until-caught-up", code=1)
    assert f"The schema registry {registry.url} does not answer" in home.messages
    assert "Nothing was read or skipped" in home.messages and "Traceback" not in home.messages
    assert [one["id"] for one in home.rows(f"select id from {avro} order by id")] == [1, 2]
    assert "Answered from committed rows only" in home.messages

    registry.start()  # empty, as its data lay in memory: ids are given anew, and this one is not known
    home.run("ingest", avro, "--until-caught-up")
    assert len(home.run("rejected", "list", avro)) == 3
