"""The transports of connectors: Kafka, Delta, files, generated rows."""

from typing import Any

import pytest

from hybrid.config.connectors import (
    ChangeFeed,
    ConnectorCsvFormat,
    Datagen,
    DatagenField,
    DatagenPlan,
    DatagenStrategy,
    DeltaInput,
    DeltaMode,
    FileInput,
    KafkaInput,
    KafkaStart,
    ParquetFormat,
    StartKind,
)
from hybrid.config.connectors_json import connector_warnings, parse_connectors
from tests.config.connector_docs import (
    DELTA,
    JSON,
    KAFKA,
    connector,
    fails,
    fails_delta,
    fails_kafka,
    parse,
    read_datagen,
    read_delta,
    read_kafka,
    top,
)

# Kafka


def test_both_spellings_of_start_from_say_the_same() -> None:
    offsets = KafkaStart(StartKind.OFFSETS, offsets={("t", 0): 42})
    assert read_kafka(start_from={"offsets": [42]}).start == offsets
    old = {"bootstrap.servers": "k:9092", "topics": ["t"]}
    listed = {**old, "start_from": [{"topic": "t", "partition": 0, "offset": 42}]}
    [one] = parse(connector("kafka_input", listed, format=JSON))
    assert isinstance(one.transport, KafkaInput) and one.transport.start == offsets
    assert one.transport == read_kafka(start_from={"offsets": [42]})


@pytest.mark.parametrize(
    ("given", "start"),
    [
        (None, KafkaStart()),
        ("earliest", KafkaStart(StartKind.EARLIEST)),
        ("latest", KafkaStart(StartKind.LATEST)),
        ({"timestamp": 1700000000000}, KafkaStart(StartKind.TIMESTAMP, 1700000000000)),
        ({"offsets": [1, 2]}, KafkaStart(StartKind.OFFSETS, offsets={("t", 0): 1, ("t", 1): 2})),
        ([{"topic": "t", "partition": 7, "offset": 0}], KafkaStart(StartKind.OFFSETS, offsets={("t", 7): 0})),
    ],
)
def test_start_from(given: object, start: KafkaStart) -> None:
    assert read_kafka(start_from=given).start == start


def test_offsets_go_with_the_partitions() -> None:
    found = read_kafka(partitions=[3, 1], start_from={"offsets": [30, 10]})
    assert found.partitions == (3, 1) and found.start.offsets == {("t", 3): 30, ("t", 1): 10}


def test_several_topics() -> None:
    start = [{"topic": "a", "partition": 0, "offset": 1}, {"topic": "b", "partition": 0, "offset": 2}]
    config = {"bootstrap.servers": "k", "topics": ["a", "b"], "start_from": start}
    [one] = parse(connector("kafka_input", config, format=JSON))
    assert isinstance(one.transport, KafkaInput)
    assert one.transport.topics == ("a", "b") and one.transport.start.offsets == {("a", 0): 1, ("b", 0): 2}


def test_auto_offset_reset_says_where_to_start_when_nothing_else_does() -> None:
    assert read_kafka(**{"auto.offset.reset": "smallest"}).start.kind is StartKind.EARLIEST
    assert read_kafka(**{"auto.offset.reset": "end"}).start.kind is StartKind.LATEST
    assert read_kafka(**{"auto.offset.reset": "earliest", "start_from": "latest"}).start.kind is StartKind.LATEST


def test_properties_of_the_connection_are_kept_and_tuning_is_not() -> None:
    given = {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": 5,
        "ssl.ca.location": "/ca", "client.id": "c", "enable.ssl.certificate.verification": True,
        "poller_threads": 4, "group.id": "g", "enable.auto.commit": "false", "fetch.max.bytes": "1",
        "log_level": "info", "group_join_timeout_secs": 10, "socket.keepalive.enable": "true",
        "enable.partition.eof": False,
    }  # fmt: skip
    found = read_kafka(**given)
    assert found.properties == {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "5",
        "ssl.ca.location": "/ca", "client.id": "c",
    }  # fmt: skip
    warnings = list(connector_warnings(top(connector("kafka_input", {**KAFKA, **given}, format=JSON))))
    assert warnings == [
        "t.json: connectors[0].transport.config.enable.ssl.certificate.verification: "
        "this key is not implemented and has no effect."
    ]


def test_brokers_are_replaced() -> None:
    without = {"topic": "t"}
    [one] = parse_connectors(top(connector("kafka_input", without, format=JSON)), brokers="other:1")
    assert isinstance(one.transport, KafkaInput) and one.transport.brokers == "other:1"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"bootstrap.servers": "remove"}, "bootstrap.servers: is missing"),
        ({"topic": "remove"}, "topic: is missing"),
        ({"topics": ["a"]}, "topics: is given beside topic"),
        ({"topic": "a b"}, "topic: 'a b' is not a topic"),
        ({"topic": ".."}, "topic: '..' is not a topic"),
        ({"topic": "remove", "topics": ["a", "a"]}, "topics: 'a' is given twice"),
        ({"topic": "remove", "topics": ["a", 3]}, "is not a list of texts"),
        ({"partitions": []}, "partitions: [] is not a list of partitions"),
        ({"partitions": [-1]}, "[-1] is not a list of partitions"),
        ({"partitions": [True]}, "is not a list of partitions"),
        ({"partitions": [0, 0]}, "[0, 0] holds a partition twice"),
        ({"start_from": "earlyest"}, "start_from: 'earlyest' is not known. Did you mean 'earliest'?"),
        ({"start_from": 42}, "start_from: 42 says no place to start from"),
        ({"start_from": []}, "start_from: [] says no place to start from"),
        ({"start_from": {"offset": [42]}}, "says no place to start from"),
        ({"start_from": {"offsets": [1], "timestamp": 1}}, "says no place to start from"),
        ({"start_from": {"offsets": 42}}, "start_from.offsets: 42 is not a list of offsets"),
        ({"start_from": {"offsets": [-2]}}, "start_from.offsets: [-2] is not a list of offsets"),
        ({"start_from": {"offsets": [1, 2]}, "partitions": [0]}, "has 2 offsets for 1 partitions"),
        ({"topic": "remove", "topics": ["a", "b"], "start_from": {"offsets": [1]}}, "does not say of which topic"),
        ({"start_from": {"timestamp": "2024-01-01"}}, "start_from.timestamp: '2024-01-01' is not a time in millis"),
        ({"start_from": [{"partition": 0, "offset": 1}]}, "start_from[0].topic: is missing"),
        ({"start_from": [{"topic": "u", "partition": 0, "offset": 1}]}, "'u' is not read here. The topics are: t"),
        ({"start_from": [{"topic": "t", "offset": 1}]}, "start_from[0].partition: is missing"),
        ({"start_from": [{"topic": "t", "partition": 0}]}, "start_from[0].offset: is missing"),
        ({"start_from": [{"topic": "t", "partition": 0, "offset": -1}]}, "offset: -1 is not a whole number from 0"),
        ({"start_from": [{"topic": "t", "partition": 0, "offset": 1}] * 2}, "partition: 0 of 't' is given twice"),
        ({"start_from": [{"topic": "t", "partition": 5, "offset": 1}], "partitions": [0]}, "5 is not one of"),
        ({"start_from": [{"topic": "t", "partition": 0, "offset": 1}], "partitions": [0, 1]},
         "start_from: has no offset for partition 1 of 't'"),
        ({"topic": "remove", "topics": ["t", "u"], "start_from": [{"topic": "t", "partition": 0, "offset": 1}]},
         "has no offset for any partition of 'u'"),
        ({"auto.offset.reset": "begin"}, "auto.offset.reset: 'begin' is not known"),
        ({"security.protocol": "TLS"}, "security.protocol: 'TLS' is not known"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism: 'OAUTHBEARER' is not built yet"),
        ({"sasl.password": ["x"]}, "sasl.password: is not a text"),
        ({"enable.auto.commit": "true"}, "enable.auto.commit: 'true' cannot be honoured: it is always false"),
        ({"enable.partition.eof": "true"}, "enable.partition.eof: 'true' cannot be honoured"),
        ({"isolation.level": "read_uncommitted"}, "rows of aborted transactions are never read"),
        ({"header_filter": {"header": {}}}, 'header_filter: {"header": {}} cannot be honoured'),
        ({"resume_earliest_if_data_expires": True}, "offsets that are gone are never skipped silently"),
    ],
)  # fmt: skip
def test_wrong_kafka_configs(config: dict[str, Any], words: str) -> None:
    assert words in fails_kafka(**config)


# Delta


def test_delta() -> None:
    found = read_delta(
        mode="snapshot_and_follow", start_version=3, end_version="9", filter="a > 1", snapshot_filter="b",
        num_parsers=8, timestamp_column="ts", aws_skip_signature=True, aws_region="eu", timeout="30s",
        max_retries=0, verbose=1,
    )  # fmt: skip
    assert found == DeltaInput(
        "s3://b/t", DeltaMode.SNAPSHOT_AND_FOLLOW, 3, None, 9, "a > 1", "b", "ts",
        {"aws_skip_signature": "true", "aws_region": "eu", "timeout": "30s"},
    )  # fmt: skip
    assert found.reads_snapshot and found.follows and found.ends


def test_delta_change_feed() -> None:
    assert read_delta(mode="follow").change_feed is None
    assert read_delta(mode="follow", change_feed="require").change_feed is ChangeFeed.REQUIRE


def test_delta_by_time() -> None:
    assert read_delta(datetime="2024-12-09T16:09:53+01:00").datetime_ms == 1733756993000
    assert read_delta(start_datetime="2010-12-31 00:00:00Z").datetime_ms == 1293753600000


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"uri": ""}, "uri: '' is not a text"),
        ({"uri": None}, "uri: is missing"),
        ({"mode": None}, "mode: is missing"),
        ({"mode": "snapshott"}, "mode: 'snapshott' is not known. Did you mean 'snapshot'?"),
        ({"mode": "cdc"}, "mode: 'cdc' is not built yet"),
        ({"cdc_order_by": "x"}, "cdc_order_by: belongs to the mode cdc"),
        ({"version": -1}, "version: -1 is not a whole number"),
        ({"version": 1, "datetime": "2024-12-09T16:09:53Z"}, "datetime: is given beside version"),
        ({"version": 1, "start_version": 1}, "start_version: says the same as version"),
        ({"datetime": "yesterday"}, "datetime: 'yesterday' is not a time of ISO 8601"),
        ({"datetime": "2024-12-09T16:09:53"}, "has no zone"),
        ({"datetime": "0001-01-01T00:00:00+14:00"}, "is not a time of ISO 8601"),
        ({"end_version": 3}, "end_version: has no meaning in the mode snapshot"),
        ({"mode": "follow", "version": 3, "end_version": 3}, "end_version: 3 must be greater than version, 3"),
        ({"mode": "follow", "snapshot_filter": "a"}, "snapshot_filter: has no meaning in the mode follow"),
        ({"change_feed": "auto"}, "change_feed: has no meaning in the mode snapshot"),
        ({"mode": "follow", "change_feed": "on"}, "change_feed: 'on' is not known"),
        ({"filter": ""}, "filter: '' is not a text"),
        ({"snapshot_fliter": "a > 1"}, "snapshot_fliter: is not a key of delta_table_input"),
        ({"snapshot_fliter": "a > 1"}, "Did you mean 'snapshot_filter'?"),
        ({"end_versoin": 3}, "Did you mean 'end_version'?"),
        ({"transaction_mode": "some"}, "transaction_mode: 'some' is not known"),
        ({"aws_region": {}}, "aws_region: {} is not a text"),
    ],
)
def test_wrong_delta_configs(config: dict[str, Any], words: str) -> None:
    assert words in fails_delta(**config)


def test_storage_options_that_nobody_knows_are_handed_on_with_a_warning() -> None:
    given = {"customoption1": "v", "aws_region": "eu", "transaction_mode": "always", "skip_unused_columns": True}
    assert read_delta(**given).storage_options == {"customoption1": "v", "aws_region": "eu"}
    warnings = list(connector_warnings(top(connector("delta_table_input", {**DELTA, **given}))))
    assert [warning.split(": ")[1] for warning in warnings] == [
        "connectors[0].transport.config.customoption1",
        "connectors[0].transport.config.transaction_mode",
    ]


# Files, datagen


def test_files() -> None:
    [one, two, three] = parse(
        connector("file_input", {"path": "in/*.csv", "buffer_size_bytes": 5}, format={"name": "csv"}),
        connector("file_input", {"path": "file:///a/b", "follow": "true"}, format=JSON),
        connector("file_input", {"path": "x.parquet"}, format={"name": "parquet", "config": {}}),
    )
    assert one.transport == FileInput("in/*.csv") and one.format == ConnectorCsvFormat() and one.ends
    assert two.transport == FileInput("/a/b", follow=True) and not two.ends
    assert three.format == ParquetFormat()


@pytest.mark.parametrize(
    ("config", "words"),
    [({}, "path: is missing"), ({"path": "s3://b/x"}, "'s3://b/x' is not a file on this machine"),
     ({"path": "file://x"}, "is not a file on this machine"), ({"path": "p", "follow": 3}, "follow: 3 is neither")],
)  # fmt: skip
def test_wrong_files(config: dict[str, Any], words: str) -> None:
    assert words in fails(connector("file_input", config, format=JSON))


def test_datagen() -> None:
    fields = {
        "a": {},
        "b": {"strategy": "uniform", "range": [1, 5], "scale": 2, "null_percentage": 10},
        "c": {"values": ["x"]},
        "d": {"range": ["2021-01-01", "2022-01-01"]},
    }
    found = read_datagen(plan=[{"limit": 10, "rate": 5, "fields": fields}, {}], seed=1, workers=4)
    assert found == Datagen(
        (
            DatagenPlan(10, 5, {
                "a": DatagenField(),
                "b": DatagenField(DatagenStrategy.UNIFORM, 1, 5, 2, null_percentage=10),
                "c": DatagenField(values=("x",)),
                "d": DatagenField(low="2021-01-01", high="2022-01-01"),
            }),
            DatagenPlan(),
        ),
        seed=1,
    )  # fmt: skip
    assert not found.ends and read_datagen() == Datagen()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"plan": {}}, "plan: {} is not a list"),
        ({"plan": [{}, {"limit": 1}]}, "plan[0].limit: is missing: this plan never ends"),
        ({"plan": [{"rate": 0}]}, "plan[0].rate: 0 is not a whole number from 1 on"),
        ({"plan": [{"limit": -1}]}, "plan[0].limit"),
        ({"seed": "x"}, "seed: 'x' is not a whole number"),
        ({"plan": [{"fields": {"a": 3}}]}, "fields.a: 3 is not an object"),
        ({"plan": [{"fields": {"a": {"strategy": "word"}}}]}, "'word' is not built yet; there are increment, uniform"),
        ({"plan": [{"fields": {"a": {"strategy": "zipf", "e": -1}}}]}, "e: -1.0 is less than 0"),
        ({"plan": [{"fields": {"a": {"value": {"scale": "2"}}}}]}, "a.value.scale: '2' is not a number"),
        ({"plan": [{"fields": {"a": {"strategy": "constant"}}}]}, '"values": [x]'),
        ({"plan": [{"fields": {"a": {"range": [1]}}}]}, "a.range: [1] is not a range"),
        ({"plan": [{"fields": {"a": {"range": [5, 5]}}}]}, "[5, 5] holds nothing"),
        ({"plan": [{"fields": {"a": {"range": ["b", 1]}}}]}, "is not a range of numbers"),
        ({"plan": [{"fields": {"a": {"scale": "2"}}}]}, "scale: '2' is not a number"),
        ({"plan": [{"fields": {"a": {"values": "x"}}}]}, "values: 'x' is not a list"),
        ({"plan": [{"fields": {"a": {"null_percentage": 101}}}]}, "101 is more than 100"),
        ({"plan": [{"fields": {"a": {"fields": {"b": {}}}}}]}, "fields: is not built yet"),
    ],
)
def test_wrong_datagen(config: dict[str, Any], words: str) -> None:
    assert words in fails(connector("datagen", config))
