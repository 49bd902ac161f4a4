import copy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.errors import SpecError
from hybrid.spec.connectors import (
    Connector,
    CsvFormat,
    Datagen,
    DatagenField,
    DatagenPlan,
    DeltaInput,
    DeltaMode,
    FileInput,
    JsonFormat,
    KafkaInput,
    KafkaStart,
    ParquetFormat,
    StartKind,
    Strategy,
    UpdateFormat,
    find_cycle,
    waits_for,
)
from hybrid.spec.connectors_json import connector_warnings, parse_connectors
from hybrid.spec.document import Section

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


# Names, labels, generic attributes


def test_no_connectors() -> None:
    assert parse_connectors(Section({}, "t.json")) == () == parse()


def test_generic_attributes() -> None:
    [one] = parse(delta(name="h", labels=["a", "b.c", "a"], paused=True, max_batch_size=5, max_queued_records="7"))
    assert (one.name, one.labels, one.paused, one.max_batch_size, one.max_queued_records) == (
        "h", ("a", "b.c"), True, 5, 7,
    )  # fmt: skip
    [one] = parse(delta())
    assert (one.labels, one.start_after, one.paused, one.max_batch_size, one.format) == ((), (), False, None, None)


def test_names_are_given_or_the_first_label_or_a_number() -> None:
    found = parse(delta(name="n", labels=["x"]), delta(labels=["x"]), delta(labels=["x", "y"]), delta(), kafka())
    assert [one.name for one in found] == ["n", "x", "x_2", "delta_table_input_3", "kafka_input_4"]


def test_a_later_connector_does_not_rename_an_earlier_one() -> None:
    before = parse(delta(labels=["x"]), delta())
    after = parse(delta(labels=["x"]), delta(), delta(labels=["x"]))
    assert [one.name for one in before] == [one.name for one in after][:2]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([delta(name="a/b")], "connectors[0].name: 'a/b' is refused"),
        ([delta(name="_a")], "beginning with a letter or digit"),
        ([delta(name="")], "connectors[0].name: '' is not a text"),
        ([delta(name=3)], "connectors[0].name: 3 is not a text"),
        ([delta(labels=["a b"])], "connectors[0].labels: 'a b' is refused"),
        ([delta(labels=[1])], "is not a list of texts"),
        ([delta(name="a"), delta(name="a")], "connectors[1].name: 'a' is the name of two connectors"),
        ([delta(name="x"), delta(name="x_1"), delta(labels=["x"]), delta(name="x_2")], "connectors[2].name"),
        ([delta(paused="perhaps")], "connectors[0].paused: 'perhaps' is neither true nor false"),
        ([delta(max_batch_size=0)], "connectors[0].max_batch_size: 0 is not a whole number from 1 on"),
        ([delta(max_queued_records=-1)], "max_queued_records"),
        ([delta(soft_delete=True)], "connectors[0].soft_delete: True cannot be honoured"),
        ([delta(preprocessor=[{"name": "x"}])], "preprocessor"),
        (["x"], "connectors[0]: 'x' is not an object"),
        ([{}], "connectors[0].transport: is missing"),
        ([{"transport": {"config": {}}}], "connectors[0].transport.name: is missing"),
        ([connector("s3_input", {})], "'s3_input' is known from Feldera and not built here"),
        ([connector("pubsub_input", {})], "known from Feldera and not built here"),
        ([connector("url_input", {})], "There are: kafka_input, delta_table_input, file_input, datagen"),
        ([connector("kafka_output", {})], "'kafka_output' writes"),
        ([connector("http_output", {})], "'http_output' writes"),
        ([connector("redis_output", {})], "'redis_output' writes"),
        ([connector("kafka_inptu", {})], "Did you mean 'kafka_input'?"),
        ([connector("delta_table_input", {**DELTA, "aws_secret_access_key": "${secret:kubernetes:a/b}"})],
         "transport.config.aws_secret_access_key: '${secret:kubernetes:a/b}' is a reference"),
        ([connector("kafka_input", {**KAFKA, "topics": ["${env:T}"]}, format=JSON)], "transport.config.topics[0]: "),
    ],
)  # fmt: skip
def test_wrong_generic_attributes(given: list[object], words: str) -> None:
    assert words in fails(*given)


def test_connectors_that_are_no_list() -> None:
    with pytest.raises(SpecError, match="connectors: 'x' is not a list"):
        parse_connectors(Section({"connectors": "x"}, "t.json"))


# Order


def test_start_after_takes_a_text_or_a_list() -> None:
    history = [delta(name="a", labels=["x"]), delta(name="b", labels=["x", "y"])]
    for start_after, names in (("x", {"a", "b"}), (["y"], {"b"}), (["x", "y"], {"a", "b"})):
        found = parse(*history, kafka(name="live", start_after=start_after))
        assert waits_for(found) == {"a": set(), "b": set(), "live": names}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([delta(start_after="")], "connectors[0].start_after: '' names no label"),
        ([delta(start_after=[])], "[] names no label"),
        ([delta(start_after=5)], "5 is not a list of texts"),
        ([delta(start_after=["x", None])], "is not a list of texts"),
        ([kafka(start_after="x")], "no connector of this table has the label 'x'. There are no labels"),
        ([delta(labels=["history"]), kafka(start_after="histroy")], "Did you mean 'history'? Labels are: history"),
        ([delta(name="h"), kafka(start_after="h")], "'h' is a name, and connectors are waited for by label"),
        ([delta(labels=["a"], start_after="a")], "it would wait for itself"),
        ([delta(name="b", labels=["b"], start_after="a"), delta(name="a", labels=["a"], start_after="b")],
         "connectors[0].start_after: these wait for each other, and none would start: b -> a -> b"),
        ([delta(labels=["a"], start_after="c"), delta(labels=["b"], start_after="a"),
          delta(labels=["c"], start_after="b"), kafka(start_after="a")], "a -> c -> b -> a"),
        ([kafka(name="k", labels=["l"]), delta(start_after="l")], "waits for 'k', which never ends"),
        ([connector("delta_table_input", {**DELTA, "mode": "follow"}, labels=["l"]), kafka(start_after="l")],
         "connectors[1].start_after: waits for 'l', which never ends"),
        ([connector("datagen", {}, labels=["l"]), kafka(start_after="l")], "which never ends"),
        ([connector("file_input", {"path": "p", "follow": True}, format=JSON, labels=["l"]), kafka(start_after="l")],
         "which never ends"),
        ([connector("kafka_input", {**KAFKA, "start_from": "after_history"}, format=JSON)],
         "connectors[0].transport.config.start_from: 'after_history' needs a start_after"),
    ],
)  # fmt: skip
def test_orders_that_cannot_be_kept(given: list[object], words: str) -> None:
    assert words in fails(*given)


def test_what_ends_can_be_waited_for() -> None:
    ending = [
        delta(labels=["l"]),
        connector("delta_table_input", {**DELTA, "mode": "follow", "end_version": 9}, labels=["l"]),
        connector("datagen", {"plan": [{"limit": 1}]}, labels=["l"]),
        connector("file_input", {"path": "p"}, format=JSON, labels=["l"]),
    ]
    *_, live = parse(
        *ending, connector("kafka_input", {**KAFKA, "start_from": "after_history"}, format=JSON, start_after="l")
    )
    assert isinstance(live.transport, KafkaInput) and live.transport.start.kind is StartKind.AFTER_HISTORY


NAMES = "abcdef"


@given(st.dictionaries(st.sampled_from(NAMES), st.frozensets(st.sampled_from(NAMES))))
def test_a_cycle_is_found_if_and_only_if_there_is_one(some: dict[str, frozenset[str]]) -> None:
    waits = {name: some.get(name, frozenset()) for name in NAMES}
    cycle = find_cycle(waits)
    startable: set[str] = set()
    for _ in NAMES:
        startable |= {name for name in NAMES if waits[name] <= startable}
    assert bool(cycle) == (len(startable) < len(NAMES))
    if cycle:
        assert cycle[0] == cycle[-1]
        assert all(after in waits[before] for before, after in pairwise(cycle))


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
        ({"topics": ["a"]}, "topics: stands beside topic"),
        ({"topic": "a b"}, "topic: 'a b' is not a topic"),
        ({"topic": ".."}, "topic: '..' is not a topic"),
        ({"topic": "remove", "topics": ["a", "a"]}, "topics: 'a' stands twice"),
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
        ({"start_from": [{"topic": "t", "partition": 0, "offset": 1}] * 2}, "start_from[1].partition: 0 of 't' stands"),
        ({"start_from": [{"topic": "t", "partition": 5, "offset": 1}], "partitions": [0]}, "5 is not one of"),
        ({"start_from": [{"topic": "t", "partition": 0, "offset": 1}], "partitions": [0, 1]},
         "start_from: has no offset for partition 1 of 't'"),
        ({"topic": "remove", "topics": ["t", "u"], "start_from": [{"topic": "t", "partition": 0, "offset": 1}]},
         "has no offset for any partition of 'u'"),
        ({"auto.offset.reset": "begin"}, "auto.offset.reset: 'begin' is not known"),
        ({"security.protocol": "TLS"}, "security.protocol: 'TLS' is not known"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism: 'OAUTHBEARER' is not built yet"),
        ({"sasl.password": ["x"]}, "sasl.password: ['x'] is not a text"),
        ({"enable.auto.commit": "true"}, "enable.auto.commit: 'true' cannot be honoured: it is always false"),
        ({"enable.partition.eof": "true"}, "enable.partition.eof: 'true' cannot be honoured"),
        ({"isolation.level": "read_uncommitted"}, "rows of aborted transactions are never read"),
        ({"header_filter": {"header": {}}}, "header_filter: {'header': {}} cannot be honoured"),
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
        ({"version": 1, "datetime": "2024-12-09T16:09:53Z"}, "datetime: stands beside version"),
        ({"version": 1, "start_version": 1}, "start_version: says the same as version"),
        ({"datetime": "yesterday"}, "datetime: 'yesterday' is not a time of ISO 8601"),
        ({"datetime": "2024-12-09T16:09:53"}, "has no zone"),
        ({"datetime": "0001-01-01T00:00:00+14:00"}, "is not a time of ISO 8601"),
        ({"end_version": 3}, "end_version: has no meaning in the mode snapshot"),
        ({"mode": "follow", "version": 3, "end_version": 3}, "end_version: 3 must be greater than version, 3"),
        ({"mode": "follow", "snapshot_filter": "a"}, "snapshot_filter: has no meaning in the mode follow"),
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
    assert one.transport == FileInput("in/*.csv") and one.format == CsvFormat() and one.ends
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
                "b": DatagenField(Strategy.UNIFORM, 1, 5, 2, null_percentage=10),
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
        ({"plan": [{"fields": {"a": {"strategy": "zipf"}}}]}, "'zipf' is not built yet; there are increment, uniform"),
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


# Formats


def test_json_and_csv() -> None:
    [one] = parse(connector("kafka_input", KAFKA, format=JSON))
    assert one.format == JsonFormat(UpdateFormat.INSERT_DELETE) and one.can_delete
    raw = {
        "name": "json",
        "config": {"update_format": "raw", "array": True, "lines": "single", "json_flavor": "default"},
    }
    [one] = parse(connector("kafka_input", KAFKA, format=raw))
    assert one.format == JsonFormat(UpdateFormat.RAW, array=True, single_line=True) and not one.can_delete
    csv = {"name": "csv", "config": {"delimiter": "\t", "headers": True, "quote": "'", "escape": "\\"}}
    [one] = parse(connector("kafka_input", KAFKA, format=csv))
    assert one.format == CsvFormat("\t", True, "'", "\\") and not one.can_delete


def test_what_can_delete() -> None:
    assert [one.can_delete for one in parse(delta(), connector("delta_table_input", {**DELTA, "mode": "follow"}))] == [
        False, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "form", "words"),
    [
        ("kafka_input", None, "connectors[0].format: is missing: kafka_input needs one"),
        ("file_input", None, "file_input needs one"),
        ("delta_table_input", JSON, "connectors[0].format: must not be given: delta_table_input has its own"),
        ("datagen", JSON, "datagen has its own"),
        ("kafka_input", {"name": "avro"}, "connectors[0].format.name: 'avro' is not built yet"),
        ("kafka_input", {"name": "raw"}, "'raw' is not built yet"),
        ("kafka_input", {"name": "parquet"}, "'parquet' does not come by kafka_input. Use json or csv"),
        ("kafka_input", {"name": "jsno"}, "'jsno' is not known. Did you mean 'json'?"),
        ("kafka_input", {"config": {}}, "connectors[0].format.name: is missing"),
        ("kafka_input", "json", "connectors[0].format: 'json' is not an object"),
    ],
)
def test_wrong_formats(kind: str, form: object, words: str) -> None:
    configs = {"kafka_input": KAFKA, "file_input": {"path": "p"}, "delta_table_input": DELTA, "datagen": {}}
    assert words in fails(connector(kind, configs[kind], format=form))


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("json", {"update_format": "debezium"}, "format.config.update_format: 'debezium' is not built yet"),
        ("json", {"update_format": "snowflake"}, "'snowflake' is not built yet"),
        ("json", {"update_format": "insert_delet"}, "Did you mean 'insert_delete'?"),
        ("json", {"json_flavor": "pandas"}, "json_flavor: 'pandas' is not built yet"),
        ("json", {"array": "yes"}, "array: 'yes' is neither true nor false"),
        ("json", {"lines": "many"}, "lines: 'many' is not known"),
        ("csv", {"delimiter": "||"}, "delimiter: '||' is not one character of ASCII"),
        ("csv", {"delimiter": "§"}, "is not one character of ASCII"),
        ("csv", {"delimiter": '"'}, "is the quote too"),
        ("csv", {"trim": "all"}, "trim: 'all' is not built yet"),
        ("csv", {"flexible": False}, "flexible: false is not built yet"),
        ("csv", {"headers": 1}, "headers: 1 is neither true nor false"),
    ],
)
def test_wrong_format_configs(name: str, config: dict[str, Any], words: str) -> None:
    assert words in fails(connector("kafka_input", KAFKA, format={"name": name, "config": config}))


# Warnings


def test_a_key_that_nobody_reads_gives_one_warning() -> None:
    doc = connector("kafka_input", {**KAFKA, "x": 1}, format={"name": "json", "y": 1, "config": {"z": 1}})
    doc |= {"lables": ["l"], "index": "i", "max_queued_bytes": 1}
    doc["transport"]["w"] = 1
    data = connector("datagen", {"v": 1, "plan": [{"u": 1, "fields": {"a": {"t": 1}}}]})
    warnings = list(connector_warnings(top(doc, data, connector("file_input", {"path": "p", "s": 1}, format=JSON))))
    places = [warning.split(": ")[1].removeprefix("connectors") for warning in warnings]
    assert places == [
        "[0].lables", "[0].index", "[0].transport.w", "[0].transport.config.x", "[0].format.y", "[0].format.config.z",
        "[1].transport.config.v", "[1].transport.config.plan[0].u", "[1].transport.config.plan[0].fields.a.t",
        "[2].transport.config.s",
    ]  # fmt: skip
    assert "Did you mean 'labels'?" in warnings[0] and "has no effect" in warnings[0]


def test_auto_offset_reset_gives_a_warning() -> None:
    [alone] = connector_warnings(top(connector("kafka_input", {**KAFKA, "auto.offset.reset": "earliest"}, format=JSON)))
    assert "auto.offset.reset: is taken for start_from; Feldera does not start there" in alone
    config = {**KAFKA, "auto.offset.reset": "earliest", "start_from": "latest"}
    [beside] = connector_warnings(top(connector("kafka_input", config, format=JSON)))
    assert "has no effect beside start_from" in beside


# Whatever is written, the answer is connectors or an error that names a place

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
EXAMPLES = [
    delta(labels=["a"]),
    connector("delta_table_input", {**DELTA, "version": 1, "datetime": "2024-01-01T00:00:00Z"}),
    kafka(start_after="a"),
    connector("kafka_input", {**KAFKA, "partitions": [0], "start_from": {"offsets": [1]}}, format=JSON),
    connector("kafka_input", {**KAFKA, "start_from": [{"topic": "t", "partition": 0, "offset": 42}]}, format=JSON),
    connector("file_input", {"path": "p"}, format={"name": "csv", "config": {"delimiter": ";"}}),
    connector("datagen", {"plan": [{"limit": 1, "rate": 1, "fields": {"a": {"range": [1, 2], "values": [1]}}}]}),
]


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


@given(st.sampled_from(EXAMPLES), st.data(), VALUES)
def test_hostile_values(example: dict[str, Any], data: st.DataObject, value: object) -> None:
    doc = copy.deepcopy({"connectors": [example, delta(labels=["a"])]})
    *path, last = data.draw(st.sampled_from([place for place in places(doc) if place]))
    holder: Any = doc
    for key in path:
        holder = holder[key]
    holder[last] = value
    try:
        found = parse_connectors(Section(doc, "t.json"))
        assert len({one.name for one in found}) == len(found)
        list(connector_warnings(Section(doc, "t.json")))
    except SpecError as error:
        assert str(error).startswith("t.json: connectors")
