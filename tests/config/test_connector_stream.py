"""A table's stream as its Kafka connector says it: format, and how the connection is secured."""

import json
from typing import Any

import pytest

from hybrid.config.ddl import parse_ddl
from hybrid.config.kafka_security import KafkaSecurity
from hybrid.config.table_config import StreamConfig, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError
from hybrid.formats.avro_messages import AvroMessages
from hybrid.formats.csv_format import CsvFormat
from hybrid.operations.tables.change import _difference, _keeps_connectors
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Decoded

AVRO = json.dumps({"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}]})
SCHEMA = {
    "schemaName": "t",
    "dimensionFieldSpecs": [
        {"name": "id", "dataType": "INT"},
        {"name": "tags", "dataType": "STRING", "singleValueField": False},
    ],
}


DOCUMENT: dict[str, Any] = {
    "tableName": "t", "tableType": "REALTIME", "segmentsConfig": {"schemaName": "t", "replication": "1"},
    "tableIndexConfig": {}, "metadata": {},
}  # fmt: skip


def stream_of(form: dict[str, Any], **config: Any) -> tuple[StreamConfig, Decoder]:
    kafka = {"name": "kafka_input", "config": {"bootstrap.servers": "b:1", "topic": "t", **config}}
    document = {**DOCUMENT, "connectors": [{"name": "live", "transport": kafka, "format": form}]}
    spec = parse_table(SCHEMA, "s.json", [(document, "t.json")])
    assert spec.stream is not None
    return spec.stream, Decoder(spec)


def rows(decoder: Decoder, payload: bytes) -> list[tuple[object, ...]]:
    return [one.values for one in decoder.decode_all(payload, 0) if isinstance(one, Decoded)]


def test_cells_of_csv_are_the_columns_in_their_order() -> None:
    stream, decoder = stream_of({"name": "csv", "config": {"delimiter": "|", "headers": True}})
    assert isinstance(stream.codec, CsvFormat) and stream.connector == "live"
    assert rows(decoder, b"x|y\n1|a;b\n2|c\n") == [(1, ["a", "b"]), (2, ["c"])]


DDL = """CREATE TABLE t (id INT, ts BIGINT NOT NULL LATENESS 0, name VARCHAR) WITH ('connectors' = '[
  {"name": "live", "transport": {"name": "kafka_input", "config": {"bootstrap.servers": "b:1", "topic": "t"}},
   "format": {"name": "csv"}}]')"""


def test_cells_of_columns_that_were_added_come_last() -> None:
    [made] = parse_ddl(DDL, "t.sql")
    schema, configs = made.schema_doc, [(config, "t") for config in made.configs]
    schema["dimensionFieldSpecs"].insert(0, {"name": "amount", "dataType": "INT"})
    spec = parse_table(schema, "t", configs)
    assert spec.column_order == ("id", "ts", "name", "amount")
    assert spec.stream is not None and isinstance(spec.stream.codec, CsvFormat)
    assert spec.stream.codec.columns == spec.column_order
    [row] = rows(Decoder(spec), b"1,7,a,5\n")
    assert dict(zip(spec.schema.column_names, row, strict=True)) == {"amount": 5, "id": 1, "name": "a", "ts": 7}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("abc", "'abc' is no JSON list of column names"),
        ("5", "'5' is no JSON list"),
        ('"id"', "is no JSON list"),
        ("[1]", "is no JSON list"),
        ("[" * 3000, "is no JSON list"),
        ('["id", "nam"]', "'nam' is not a column of the schema. Did you mean 'name'?"),
        ('["id", "id"]', "'id' is given twice"),
    ],
)
def test_a_wrong_order_of_columns_is_refused(given: str, words: str) -> None:
    [made] = parse_ddl(DDL, "t.sql")
    made.configs[0]["metadata"]["customConfigs"]["hybrid.columns"] = given
    with pytest.raises(SpecError) as caught:
        parse_table(made.schema_doc, "t", [(config, "t") for config in made.configs])
    text = str(caught.value)
    assert text.startswith("t: metadata.customConfigs.hybrid.columns: ") and words in text


@pytest.mark.parametrize(("bare", "payload"), [(True, b"\x02"), (False, b"\x00\x00\x00\x00\x09\x02")])
def test_records_of_avro(bare: bool, payload: bytes) -> None:
    stream, decoder = stream_of({"name": "avro", "config": {"schema": AVRO, "skip_schema_id": bare}})
    assert isinstance(stream.codec, AvroMessages)
    assert rows(decoder, payload) == [(1, ["null"])]


def test_topics_and_partitions() -> None:
    stream, _ = stream_of({"name": "json"}, topic=None, topics=["b", "a"], partitions=[2, 0])
    assert (stream.topics, stream.partitions) == (("b", "a"), (2, 0)), "in their order"
    assert stream_of({"name": "json"})[0].partitions == ()
    kafka = {"bootstrap.servers": "b:1", "topic": "t"}
    two = [
        {"name": name, "transport": {"name": "kafka_input", "config": kafka}, "format": {"name": "json"}}
        for name in ("live", "other")
    ]
    with pytest.raises(SpecError, match="'other' is the second one of Kafka; a table has one"):
        parse_table(SCHEMA, "s.json", [({**DOCUMENT, "connectors": two}, "t.json")])


def test_security_is_the_streams() -> None:
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "ada", "sasl.password": "secret"}
    stream, _ = stream_of({"name": "json"}, **{"security.protocol": "SASL_PLAINTEXT", **login})
    assert stream.security == KafkaSecurity("SASL_PLAINTEXT", "PLAIN", "ada", "secret")
    assert "secret" not in repr(stream)


def test_a_changed_secret_is_not_shown() -> None:
    before, after = ({"streamConfigs": {"sasl.jaas.config": text, "topic.name": text}} for text in ("old", "new"))
    told = list(_difference("REALTIME", before, after))
    assert sorted(told) == [
        "REALTIME/streamConfigs/sasl.jaas.config: changed",
        "REALTIME/streamConfigs/topic.name: old -> new",
    ]
    for more in (
        {"ssl.key.password": "new"},
        {"streamConfigs": {"ssl.key.password": "new"}},
        {"a": [{"sasl.password": "new"}]},
    ):
        assert "new" not in " ".join(_difference("REALTIME", {}, more))


def test_whether_files_are_followed_cannot_be_changed() -> None:
    """How far they are read is told otherwise: the connector would stop, and say that its format has changed."""

    def table(path: str, *, follow: bool) -> TableSpec:
        transport = {"name": "file_input", "config": {"path": path, "follow": follow}}
        files = [{"name": "files", "transport": transport, "format": {"name": "csv"}}]
        text = f"CREATE TABLE t (id BIGINT NOT NULL) WITH ('connectors' = '{json.dumps(files)}');"
        (found,) = parse_ddl(text, "t.sql")
        return parse_table(found.schema_doc, "t.sql", [(one, "t.sql") for one in found.configs])

    once, followed = table("/a", follow=False), table("/a", follow=True)
    assert not _keeps_connectors(once, followed) and not _keeps_connectors(followed, once)
    assert _keeps_connectors(followed, table("/b", follow=True)) and _keeps_connectors(once, table("/b", follow=False))


def test_a_followed_table_says_that_rows_go() -> None:
    """Deletes are counted on a table without a key then, so it cannot be changed."""

    def table(key: str = "", **more: str) -> TableSpec:
        config = {"uri": "/lake", "mode": "snapshot_and_follow", **more}
        lake = [{"name": "lake", "transport": {"name": "delta_table_input", "config": config}}]
        text = f"CREATE TABLE t (id BIGINT NOT NULL{key}) WITH ('connectors' = '{json.dumps(lake)}');"
        (found,) = parse_ddl(text, "t.sql")
        return parse_table(found.schema_doc, "t.sql", [(one, "t.sql") for one in found.configs])

    plain, said, keyed = table(), table(change_feed="auto"), table(" PRIMARY KEY", change_feed="auto")
    assert [one.nets_deletes for one in (plain, said, keyed)] == [False, True, False]
    assert not _keeps_connectors(plain, said) and not _keeps_connectors(said, plain)
    assert _keeps_connectors(said, table(change_feed="off")) and _keeps_connectors(keyed, table(" PRIMARY KEY"))
    for config, message in (
        (
            {"mode": "follow"},
            "config.mode: 'follow' cannot be used beside change_feed on a table without a PRIMARY KEY",
        ),
        ({"snapshot_filter": "id > 1"}, "config.snapshot_filter: cannot be used beside change_feed on a table without"),
    ):
        with pytest.raises(SpecError, match=message):
            table(change_feed="auto", **config)
        table(" PRIMARY KEY", change_feed="auto", **config)
        table(**config)
    table(change_feed="auto", filter="id > 1")
