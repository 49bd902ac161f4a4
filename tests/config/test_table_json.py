import copy
from collections.abc import Callable
from typing import Any

import pytest

from hybrid.config.table_config import (
    ARRIVED,
    BoundaryMode,
    Half,
    MergeType,
    MoveConfig,
    StreamConfig,
    TableSpec,
    UpsertConfig,
)
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError

Change = Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], object]
Parse = Callable[..., TableSpec]

DECODER, PROP = "stream.kafka.decoder.class.name", "stream.kafka.decoder.prop."


@pytest.fixture
def parse(schema_doc: dict[str, Any], realtime_doc: dict[str, Any], offline_doc: dict[str, Any]) -> Parse:
    def run(change: Change = lambda schema, realtime, offline: None, brokers: str | None = None) -> TableSpec:
        change(schema_doc, realtime_doc, offline_doc)
        return parse_table(schema_doc, "s.json", [(realtime_doc, "r.json"), (offline_doc, "o.json")], brokers)

    return run


def stream(doc: dict[str, Any]) -> dict[str, Any]:
    configs: dict[str, Any] = doc["tableIndexConfig"]["streamConfigs"]
    return configs


def boundary(doc: dict[str, Any], mode: str) -> None:
    doc["metadata"] = {"customConfigs": {"hybrid.boundary": mode}}


def task(doc: dict[str, Any]) -> dict[str, Any]:
    configs: dict[str, Any] = doc["task"]["taskTypeConfigsMap"]["RealtimeToOfflineSegmentsTask"]
    return configs


def test_reads_the_recipe_without_a_warning(parse: Parse, realtime_doc: dict[str, Any]) -> None:
    before = copy.deepcopy(realtime_doc)
    spec = parse()
    assert spec.name == "orders" and spec.halves == {Half.REALTIME, Half.OFFLINE} and spec.time_column == "ts"
    assert spec.stream == StreamConfig(("orders",), "kafka:9093", "largest", flush_rows=5)
    assert spec.move == MoveConfig(bucket_ms=7_200_000, buffer_ms=60_000)
    assert spec.upsert is None and spec.primary_key == () and spec.sort_columns == () and not spec.null_handling
    assert spec.warnings == ()
    assert spec.realtime_doc == before and spec.schema_doc is not None and spec.offline_doc is not None


def test_a_numeric_time_column_that_loses_zeros_warns(parse: Parse) -> None:
    def change(schema: dict[str, Any], realtime: dict[str, Any], offline: dict[str, Any]) -> None:
        schema["dateTimeFieldSpecs"][0].update(dataType="INT", format="SIMPLE_DATE_FORMAT|ddMMyyyy")

    (warning,) = parse(change).warnings
    assert warning.startswith("r.json: segmentsConfig.timeColumnName: 'ts' is INT with the pattern 'ddMMyyyy'")
    assert "a time like 02012001 becomes the number 2012001, which the pattern cannot read" in warning


def test_upsert_takes_the_latest_row_by_the_time_column(parse: Parse) -> None:
    spec = parse(
        lambda s, r, o: r.update(upsertConfig={"mode": "FULL", "hashFunction": "NONE", "enableSnapshot": True})
    )
    assert spec.upsert == UpsertConfig("ts") and spec.primary_key == ("order_id",)
    assert spec.move is not None and spec.move.merge_type is MergeType.LATEST
    assert spec.warnings == ()


def test_upsert_with_concat_and_a_delete_column(parse: Parse) -> None:
    def change(schema: dict[str, Any], realtime: dict[str, Any], offline: dict[str, Any]) -> None:
        realtime["upsertConfig"] = {
            "mode": "full", "comparisonColumns": ["amount"], "deleteRecordColumn": "gone", "metadataTTL": 5,
        }  # fmt: skip
        task(realtime)["mergeType"] = "CONCAT"

    spec = parse(change)
    assert spec.upsert == UpsertConfig("amount", "gone")
    assert spec.move is not None and spec.move.merge_type is MergeType.CONCAT
    assert [warning.split(": ")[1] for warning in spec.warnings] == ["upsertConfig.metadataTTL"]


def test_dedup_is_an_order_in_which_the_first_row_wins(parse: Parse) -> None:
    def change(schema: dict[str, Any], realtime: dict[str, Any], offline: dict[str, Any]) -> None:
        realtime["dedupConfig"] = {"dedupEnabled": "true", "hashFunction": "MURMUR3", "preload": "ENABLE"}

    spec = parse(change)
    assert spec.upsert == UpsertConfig(ARRIVED, first_wins=True) and spec.primary_key == ("order_id",)
    assert spec.move is not None and spec.move.merge_type is MergeType.LATEST
    assert spec.warnings == ()


def test_a_ttl_of_dedup_says_that_it_has_no_effect(parse: Parse) -> None:
    def change(schema: dict[str, Any], realtime: dict[str, Any], offline: dict[str, Any]) -> None:
        realtime["dedupConfig"] = {"metadataTTL": 30000.5, "dedupTimeColumn": "ts", "frobnicate": 1}

    warnings = parse(change).warnings
    assert [warning.split(": ")[1] for warning in warnings] == ["dedupConfig.frobnicate", "dedupConfig.metadataTTL"]
    assert "no effect" in warnings[1]


def test_how_long_delete_markers_stay(parse: Parse) -> None:
    config = {"mode": "FULL", "comparisonColumn": "amount", "deleteRecordColumn": "gone", "deletedKeysTTL": "2.5"}
    spec = parse(lambda s, r, o: r.update(upsertConfig=config))
    assert spec.upsert == UpsertConfig("amount", "gone", deleted_keys_ttl=2.5) and spec.warnings == ()


def test_stream_settings(parse: Parse) -> None:
    def change(schema: dict[str, Any], realtime: dict[str, Any], offline: dict[str, Any]) -> None:
        configs = stream(realtime)
        del configs["realtime.segment.flush.threshold.rows"]
        configs.update({
            "stream.kafka.consumer.prop.auto.offset.reset": "earliest",
            "realtime.segment.flush.threshold.size": "7",
            "realtime.segment.flush.threshold.time": "90m",
            "realtime.segment.flush.threshold.segment.size": "1.5M",
            "stream.kafka.consumer.prop.isolation.level": "read_committed",
        })  # fmt: skip

    spec = parse(change, brokers="localhost:1")
    assert spec.stream == StreamConfig(("orders",), "localhost:1", "smallest", 7, 1_572_864, 5_400_000)
    assert spec.warnings == ()


def test_a_schedule(parse: Parse) -> None:
    spec = parse(lambda s, r, o: task(r).update(schedule="0 */10 * ? * *"))
    assert spec.move is not None and spec.move.schedule is not None and spec.warnings == ()
    assert spec.move.schedule.text == "0 */10 * ? * *" and spec.move.schedule.next_after(0) == 600_000


def test_zero_rows_and_plain_milliseconds(parse: Parse) -> None:
    spec = parse(lambda s, r, o: stream(r).update({
        "realtime.segment.flush.threshold.rows": "0", "realtime.segment.flush.threshold.time": 3_600_000,
    }))  # fmt: skip
    assert spec.stream is not None
    assert (spec.stream.flush_rows, spec.stream.flush_ms) == (StreamConfig(("",), "").flush_rows, 3_600_000)


def test_the_new_place_of_stream_configs(parse: Parse) -> None:
    def change(schema: dict[str, Any], realtime: dict[str, Any], offline: dict[str, Any]) -> None:
        configs = realtime["tableIndexConfig"].pop("streamConfigs")
        realtime["ingestionConfig"] = {"streamIngestionConfig": {"streamConfigMaps": [configs]}}

    spec = parse(change)
    assert spec.stream is not None and spec.stream.topics == ("orders",) and spec.warnings == ()


def several(*changes: dict[str, Any]) -> Any:
    """One map for each topic of `changes`, otherwise as the recipe has it."""

    def change(schema: dict[str, Any], realtime: dict[str, Any], offline: dict[str, Any]) -> None:
        configs = realtime["tableIndexConfig"].pop("streamConfigs")
        maps = [{**configs, **one} for one in changes]
        realtime["ingestionConfig"] = {"streamIngestionConfig": {"streamConfigMaps": maps}}

    return change


def named(topic: str, **more: Any) -> dict[str, Any]:
    return {"stream.kafka.topic.name": topic, **more}


def test_several_topics_are_read_alike(parse: Parse) -> None:
    quiet = {"stream.kafka.consumer.type": "simple", "stream.kafka.consumer.prop.group.id": "x"}
    spec = parse(several(named("a"), named("b", **quiet), named("c", frobnicate=1)))
    assert spec.stream == StreamConfig(("a", "b", "c"), "kafka:9093", "largest", flush_rows=5)
    [warning] = spec.warnings
    assert "streamConfigMaps[2].frobnicate" in warning


MAPS = "ingestionConfig.streamIngestionConfig.streamConfigMaps"
FLUSH = "realtime.segment.flush.threshold."


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("realtime.segment.flush.threshold.rows", 6),
        ("stream.kafka.broker.list", "other:9092"),
        ("auto.offset.reset", "smallest"),
        ("stream.kafka.metadata.populate", "true"),
        ("stream.kafka.decoder.class.name", "org.apache.pinot.plugin.inputformat.csv.CSVMessageDecoder"),
        ("sasl.jaas.config", 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ada" '
                             'password="secret";'),
    ],
)  # fmt: skip
def test_topics_that_are_not_read_alike(parse: Parse, key: str, value: object) -> None:
    more: dict[str, Any] = {key: value}
    if key == "sasl.jaas.config":
        more |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        both: dict[str, Any] = {**more, key: str(value).replace("secret", "other")}
    else:
        both = {}
    with pytest.raises(SpecError) as caught:
        parse(several(named("a", **both), named("b", **more)))
    said = str(caught.value)
    assert f"{MAPS}[1].{key}: differs from {MAPS}[0].{key}: all topics of a table are read alike." in said
    assert "secret" not in said


@pytest.mark.parametrize(
    ("first", "second", "key"),
    [
        ({"stream.kafka.consumer.type": "a", "frobnicate": 1}, {"frobnicate": 2}, "auto.offset.reset"),
        ({f"{FLUSH}size": 1}, {f"{FLUSH}size": 2}, "auto.offset.reset"),
        ({"metadata.populate": "false"}, {}, "auto.offset.reset"),
    ],
    ids=["keys that nobody reads", "behind another key", "the default, written"],
)
def test_the_key_that_is_named_is_one_that_matters(
    parse: Parse, first: dict[str, Any], second: dict[str, Any], key: str
) -> None:
    with pytest.raises(SpecError, match=rf"streamConfigMaps\[1\].{key}: differs from"):
        parse(several(named("a", **first), named("b", **second, **{key: "smallest"})))


def test_a_topic_that_is_named_twice(parse: Parse) -> None:
    with pytest.raises(SpecError) as caught:
        parse(several(named("a"), named("b"), named("a")))
    name = "stream.kafka.topic.name"
    assert f"{MAPS}[2].{name}: 'a' is given twice: {MAPS}[0].{name} names it too." in str(caught.value)


def test_streams_in_two_places(parse: Parse) -> None:
    def change(schema: dict[str, Any], realtime: dict[str, Any], offline: dict[str, Any]) -> None:
        configs = realtime["tableIndexConfig"]["streamConfigs"]
        realtime["ingestionConfig"] = {"streamIngestionConfig": {"streamConfigMaps": [configs]}}

    with pytest.raises(SpecError, match="streamConfigMaps: is given beside tableIndexConfig"):
        parse(change)


def test_offline_only(schema_doc: dict[str, Any], offline_doc: dict[str, Any]) -> None:
    offline_doc["tableName"] = "orders_OFFLINE"
    offline_doc["tableIndexConfig"].update(sortedColumn="order_id", nullHandlingEnabled="true")
    spec = parse_table(schema_doc, "s.json", [(offline_doc, "o.json")])
    assert spec.name == "orders" and spec.halves == {Half.OFFLINE}
    assert spec.stream is None and spec.move is None
    assert spec.sort_columns == ("order_id",) and spec.null_handling


def test_the_boundarys_mode_is_exact_where_the_table_moves_and_pinots_where_others_push(parse: Parse) -> None:
    spec = parse()
    assert spec.boundary_mode is None and spec.first_boundary_mode is BoundaryMode.EXACT
    spec = parse(lambda s, r, o: r.pop("task"))
    assert spec.boundary_mode is None and spec.first_boundary_mode is BoundaryMode.PINOT
    spec = parse(lambda s, r, o: (boundary(r, "EXACT"), boundary(o, "exact")))
    assert spec.boundary_mode is spec.first_boundary_mode is BoundaryMode.EXACT and spec.warnings == ()
    spec = parse(lambda s, r, o: (r.update(metadata={}), boundary(o, "pinot")))
    assert spec.first_boundary_mode is BoundaryMode.PINOT


def test_a_half_alone_is_not_pushed_to_beside_a_stream(schema_doc: dict[str, Any], offline_doc: dict[str, Any]) -> None:
    spec = parse_table(schema_doc, "s.json", [(offline_doc, "o.json")])
    assert spec.first_boundary_mode is BoundaryMode.EXACT


@pytest.mark.parametrize(
    ("change", "hours"),
    [
        (lambda s, r, o: None, 1),
        (lambda s, r, o: o["ingestionConfig"]["batchIngestionConfig"].update(segmentIngestionFrequency="hourly"), 1),
        (lambda s, r, o: o["ingestionConfig"]["batchIngestionConfig"].update(segmentIngestionFrequency="DAILY"), 24),
        (lambda s, r, o: o.pop("ingestionConfig"), 24),
        (lambda s, r, o: (o.pop("ingestionConfig"), o["segmentsConfig"].update(segmentPushFrequency="HOURLY")), 1),
        (lambda s, r, o: o["segmentsConfig"].update(segmentPushFrequency="DAILY"), 1),
    ],
)
def test_how_far_pinots_boundary_stays_behind(parse: Parse, change: Change, hours: int) -> None:
    spec = parse(change)
    assert spec.boundary_lag_ms == hours * 3_600_000 and spec.warnings == ()


def test_a_table_without_a_time_column(parse: Parse) -> None:
    spec = parse(lambda s, r, o: (r["segmentsConfig"].pop("timeColumnName"), o["segmentsConfig"].pop("timeColumnName")))
    assert spec.time_column is None and spec.time_field is None


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda s, r, o: r["segmentsConfig"].update(timeColumnName="tss"),
         ["r.json: segmentsConfig.timeColumnName: 'tss'", "Did you mean 'ts'?", "Columns are: order_id, order_status"]),
        (lambda s, r, o: r["segmentsConfig"].update(timeColumnName="amount"), ["'amount' is a metric field", "(ts)"]),
        (lambda s, r, o: o["segmentsConfig"].pop("timeColumnName"), ["o.json: segmentsConfig.timeColumnName: is miss"]),
        (lambda s, r, o: o["segmentsConfig"].update(schemaName="people"), ["schemaName: 'people'", "'orders'"]),
        (lambda s, r, o: o.update(tableName="people"), ["o.json: tableName: 'people' is not 'orders', as in r.json"]),
        (lambda s, r, o: o.update(tableName="orders_REALTIME"), ["o.json: tableName", "Write 'orders'"]),
        (lambda s, r, o: (o.update(tableName="my-t"), r.update(tableName="my-t")), ["letters, digits and _"]),
        (lambda s, r, o: o.update(tableType="OFLINE"), ["tableType: 'OFLINE' is not known. Did you mean 'OFFLINE'?"]),
        (lambda s, r, o: o.update(tableType="REALTIME"), ["already configured by r.json"]),
        (lambda s, r, o: r["tableIndexConfig"].pop("streamConfigs"), ["tableIndexConfig.streamConfigs: is missing"]),
        (lambda s, r, o: stream(r).pop("stream.kafka.topic.name"), ["stream.kafka.topic.name: is missing"]),
        (lambda s, r, o: stream(r).update(streamType="kinesis"), ["'kinesis' is not known", "kafka"]),
        (lambda s, r, o: stream(r).update({"stream.kafka.decoder.class.name": "x.KafkaAvroMessageDecoder"}),
         ["'x.KafkaAvroMessageDecoder' cannot be honoured"]),
        (lambda s, r, o: stream(r).update({"auto.offset.reset": "2021-01-01T00:00:00"}), ["is no place to start from"]),
        (
            lambda s, r, o: stream(r).update({DECODER: "a.SimpleAvroMessageDecoder"}),
            ["stream.kafka.decoder.prop.schema: is missing"],
        ),
        (
            lambda s, r, o: stream(r).update({DECODER: "CSVMessageDecoder", f"{PROP}delimiter": "||"}),
            ["stream.kafka.decoder.prop.delimiter: '||' is not one character"],
        ),
        (
            lambda s, r, o: stream(r).update({DECODER: "KafkaConfluentSchemaRegistryProtoBufMessageDecoder"}),
            ["cannot be honoured: messages are read as JSON, CSV or Avro"],
        ),
        (
            lambda s, r, o: stream(r).update({DECODER: "KafkaConfluentSchemaRegistryAvroMessageDecoder"}),
            ["stream.kafka.decoder.prop.schema.registry.rest.url: is missing"],
        ),
        (
            lambda s, r, o: stream(r).update(
                {DECODER: "KafkaConfluentSchemaRegistryJsonMessageDecoder", f"{PROP}schema.registry.rest.url": "file:///x"}
            ),
            ["is no address"],
        ),
        (
            lambda s, r, o: stream(r).update(
                {
                    DECODER: "KafkaConfluentSchemaRegistryJsonMessageDecoder",
                    f"{PROP}schema.registry.rest.url": "http://r:1",
                    f"{PROP}schema.registry.ssl.truststore.location": "/x.jks",
                }
            ),
            ["a Java key store is not read"],
        ),
        (lambda s, r, o: stream(r).update({"stream.kafka.metadata.populate": "yes"}), ["neither true nor false"]),
        (lambda s, r, o: o.update({"ingestionConfig": {"complexTypeConfig": {}}}), ["in the REALTIME config only"]),
        (
            lambda s, r, o: stream(r).update({"realtime.segment.offsetAutoReset.enable": "true"}),
            ["realtime.segment.offsetAutoReset.enable", "never skipped without a person"],
        ),
        (lambda s, r, o: stream(r).update({"stream.kafka.isolation.level": "read_uncommitted"}), ["aborted"]),
        (lambda s, r, o: stream(r).update({"realtime.segment.flush.threshold.rows": "many"}), ["'many' is not a"]),
        (lambda s, r, o: stream(r).update({"realtime.segment.flush.threshold.segment.size": "big"}), ["'200M'"]),
        (lambda s, r, o: task(r).update(bucketTimePeriod="2 hours"), ["bucketTimePeriod: '2 hours' is not a period"]),
        (lambda s, r, o: task(r).update(bucketTimePeriod="0h"), ["too short"]),
        (lambda s, r, o: task(r).update(schedule="0 0 0 30 2 ?"), ["r.json: task.", ".schedule: '0 0 0 30 2 ?' never"]),
        (lambda s, r, o: task(r).update(mergeType="roll"), ["mergeType: 'roll' is not known. Did you mean 'rollup'?"]),
        (lambda s, r, o: r.update(upsertConfig={"mode": "PARTIAL"}), ["upsertConfig.mode: 'PARTIAL' needs nulls"]),
        (lambda s, r, o: (s.pop("primaryKeyColumns"), r.update(upsertConfig={"mode": "FULL"})), ["primary key"]),
        (lambda s, r, o: r.update(upsertConfig={"mode": "FULL", "comparisonColumn": "x"}), ["'x' is not a column"]),
        (lambda s, r, o: r.update(upsertConfig={"mode": "FULL", "comparisonColumns": ["ts", "amount"]}), ["several"]),
        (lambda s, r, o: r.update(upsertConfig={"mode": "FULL", "comparisonColumn": "labels"}), ["has no order"]),
        (lambda s, r, o: r.update(upsertConfig={"mode": "FULL", "deleteRecordColumn": "amount"}), ["BOOLEAN"]),
        (lambda s, r, o: (r.update(upsertConfig={"mode": "FULL"}), o.update(upsertConfig={"mode": "NONE"})),
         ["o.json: upsertConfig.mode: 'NONE' here, and 'FULL' in r.json"]),
        (lambda s, r, o: (s.pop("primaryKeyColumns"), r.update(dedupConfig={"dedupEnabled": True})),
         ["r.json: dedupConfig.dedupEnabled: dedup needs a primary key"]),
        (lambda s, r, o: r.update(dedupConfig={"hashFunction": "NONE"}, upsertConfig={"mode": "FULL"}),
         ["r.json: upsertConfig.mode: dedupConfig is enabled too"]),
        (lambda s, r, o: (r.update(dedupConfig={"dedupEnabled": True}), o.update(upsertConfig={"mode": "FULL"})),
         ["o.json: upsertConfig.mode: dedupConfig is enabled too"]),
        (lambda s, r, o: (r.update(dedupConfig={"dedupEnabled": True}), o.update(dedupConfig={"dedupEnabled": False})),
         ["o.json: dedupConfig.dedupEnabled: differs from r.json"]),
        (lambda s, r, o: r.update(dedupConfig={"dedupEnabled": "maybe"}), ["neither true nor false"]),
        (lambda s, r, o: (r["tableIndexConfig"].pop("streamConfigs"),
                          r["metadata"]["customConfigs"].update({"hybrid.flows": "true"}),
                          r.update(dedupConfig={"dedupEnabled": True})), ["r.json: dedupConfig.", "flows bring"]),
        (lambda s, r, o: r.update(upsertConfig={"mode": "FULL", "deletedKeysTTL": "1d"}),
         ["upsertConfig.deletedKeysTTL: '1d' is not a number from 0 on"]),
        (lambda s, r, o: r.update(upsertConfig={"mode": "FULL", "metadataTTL": True}), ["metadataTTL: true is not"]),
        (lambda s, r, o: r.update(upsertConfig={"mode": "FULL", "comparisonColumn": "order_status",
                                                "deletedKeysTTL": 5}), ["'order_status', which is STRING"]),
        (lambda s, r, o: r.update(dedupConfig={"dedupEnabled": True, "metadataTTL": "1d"}),
         ["dedupConfig.metadataTTL: '1d' is not a number from 0 on"]),
        (lambda s, r, o: r.update(dedupConfig={"dedupEnabled": True, "metadataTTL": -1}), ["metadataTTL: -1"]),
        (lambda s, r, o: r.update(dedupConfig={"dedupEnabled": True, "dedupTimeColumn": "tss"}),
         ["dedupConfig.dedupTimeColumn: 'tss' is not a column", "'ts'"]),
        (lambda s, r, o: r.update(ingestionConfig={"transformConfigs": [{"columnName": "a"}]}), ["transformConfigs"]),
        (lambda s, r, o: r.update(ingestionConfig={"enrichmentConfigs": [{}]}), ["enrichmentConfigs"]),
        (lambda s, r, o: r["tableIndexConfig"].update(aggregateMetrics=True), ["aggregateMetrics"]),
        (lambda s, r, o: r["tableIndexConfig"].update(sortedColumn=["nope"]), ["sortedColumn: 'nope'"]),
        (lambda s, r, o: (r["tableIndexConfig"].update(nullHandlingEnabled=True),
                          o["tableIndexConfig"].update(nullHandlingEnabled=False)), ["o.json", "both halves agree"]),
        (lambda s, r, o: (boundary(r, "pinot"), boundary(o, "exact")),
         ["o.json: metadata.customConfigs.hybrid.boundary: 'exact' is not 'pinot', as in r.json"]),
        (lambda s, r, o: r["metadata"]["customConfigs"].update({"hybrid.boundary": "exat"}), ["'exact'"]),
        (lambda s, r, o: o.update(metadata={"customConfigs": {"hybrid.revertWindow": "90m"}}),
         ["o.json: metadata.customConfigs.hybrid.revertWindow: is given in whole hours or days"]),
        (lambda s, r, o: o.update(metadata={"customConfigs": {"hybrid.revertWindow": "long"}}),
         ["o.json: metadata.customConfigs.hybrid.revertWindow: 'long' is not a period"]),
        (lambda s, r, o: r.update(segmentsConfig=[]), ["segmentsConfig: [] is not an object"]),
        (lambda s, r, o: s["dateTimeFieldSpecs"][0].update(dataType="DOUBLE"), ["ts' is DOUBLE; a time column is"]),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_an_error(parse: Parse, change: Change, parts: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse(change)
    for part in parts:
        assert part in str(caught.value)


def test_both_halves_are_not_needed_but_one_is(schema_doc: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="needs a config"):
        parse_table(schema_doc, "s.json", [])


def test_keys_without_effect_warn_once_each(parse: Parse) -> None:
    def change(schema: dict[str, Any], realtime: dict[str, Any], offline: dict[str, Any]) -> None:
        offline["quota"] = {"storage": "1G"}
        realtime["tableIndexConfig"]["frobnicate"] = True
        realtime["metadata"]["customConfigs"].update({"hybrid.bundary": "exact", "owner": "me"})
        realtime["task"]["taskTypeConfigsMap"]["PurgeTask"] = {}
        stream(realtime)["stream.kafka.frobnicate"] = "1"

    places = [warning.split(": ")[1] for warning in parse(change).warnings]
    assert sorted(places) == sorted([
        "quota", "tableIndexConfig.frobnicate",
        "metadata.customConfigs.hybrid.bundary", "task.taskTypeConfigsMap.PurgeTask",
        "tableIndexConfig.streamConfigs.stream.kafka.frobnicate",
    ])  # fmt: skip


def test_what_is_off_is_no_error_and_no_warning(parse: Parse) -> None:
    def change(schema: dict[str, Any], realtime: dict[str, Any], offline: dict[str, Any]) -> None:
        realtime["ingestionConfig"] = {"transformConfigs": [], "filterConfig": None, "continueOnError": False}
        realtime["upsertConfig"] = {"mode": "NONE", "partialUpsertStrategies": {}}
        realtime["dedupConfig"] = {"dedupEnabled": False}
        realtime["tableIndexConfig"]["aggregateMetrics"] = False
        realtime["isDimTable"] = False

    spec = parse(change)
    assert spec.upsert is None and spec.warnings == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda s, r, o: (r.update(upsertConfig={"mode": "FULL", "comparisonColumn": "amount"}),
                             o.update(upsertConfig={"mode": "full"})),
            "o.json: upsertConfig.comparisonColumn: missing here, and 'amount' in r.json: upsert holds over both",
        ),
        (
            lambda s, r, o: (r.update(upsertConfig={"mode": "FULL"}), o.update(upsertConfig={"mode": "NONE"})),
            "o.json: upsertConfig.mode: 'NONE' here, and 'FULL' in r.json",
        ),
        (
            lambda s, r, o: o["segmentsConfig"].update(timeColumName=o["segmentsConfig"].pop("timeColumnName")),
            "o.json: segmentsConfig.timeColumnName: is missing, and in r.json it is 'ts': both halves agree. "
            "Is 'timeColumName' meant?",
        ),
        (
            lambda s, r, o: r["segmentsConfig"].pop("timeColumnName"),
            "r.json: segmentsConfig.timeColumnName: is missing, and in o.json it is 'ts': both halves agree.",
        ),
        (
            lambda s, r, o: (s["dateTimeFieldSpecs"].append({**s["dateTimeFieldSpecs"][0], "name": "other"}),
                             o["segmentsConfig"].update(timeColumnName="other")),
            "o.json: segmentsConfig.timeColumnName: 'other' is not 'ts', as in r.json: both halves agree.",
        ),
        (lambda s, r, o: o.update(connectors=False), "o.json: connectors: false is not a list"),
        (
            lambda s, r, o: stream(r).update({"stream.kafka.decoder.class.name": ""}),
            "streamConfigs.stream.kafka.decoder.class.name: '' is not a text.",
        ),
        (
            lambda s, r, o: stream(r).update({"stream.kafka.topic.nam": stream(r).pop("stream.kafka.topic.name")}),
            "streamConfigs.stream.kafka.topic.name: is missing. "
            "Is 'stream.kafka.topic.nam' meant?",
        ),
    ],
)  # fmt: skip
def test_the_config_and_the_key_that_is_wrong_are_named(parse: Parse, change: Change, words: str) -> None:
    with pytest.raises(SpecError) as error:
        parse(change)
    assert words in str(error.value)


def test_json_columns_that_complex_types_leave_nothing_for_are_named(parse: Parse) -> None:
    def change(schema: dict[str, Any], realtime: dict[str, Any], offline: dict[str, Any]) -> None:
        schema["dimensionFieldSpecs"] += [{"name": name, "dataType": "JSON"} for name in ("device", "extra", "made")]
        realtime["ingestionConfig"] = {
            "complexTypeConfig": {"prefixesToRename": {"amount": "sent"}},
            "transformConfigs": [{"columnName": "made", "transformFunction": "jsonFormat(other)"}],
        }

    assert parse(change).warnings == (
        "r.json: ingestionConfig.complexTypeConfig: it flattens objects: JSON columns 'device', 'extra' are null where "
        "a message has an object.",
    )
