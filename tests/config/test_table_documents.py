"""Documents as other tools, and our own answers, write them; keys that are read, not used, and would change rows."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid.config.broker_list import plain_brokers
from hybrid.config.table_config import Half
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError
from hybrid.operations.tables.configs import halves_of

Doc = dict[str, Any]
BROKERS = "stream.kafka.broker.list"


def warnings(schema: Doc, *configs: Doc) -> str:
    return "\n".join(parse_table(schema, "s.json", [(one, "t.json") for one in configs]).warnings)


def test_configs_are_read_as_we_answer_them(schema_doc: Doc, realtime_doc: Doc, offline_doc: Doc) -> None:
    """`GET /tables/{t}` gives the halves by name; with `type` one of them."""
    both = {"REALTIME": realtime_doc, "OFFLINE": offline_doc}
    found = parse_table(schema_doc, "s.json", [(both, "t.json")])
    assert found.halves == frozenset(Half)
    assert (found.realtime_doc, found.offline_doc) == (realtime_doc, offline_doc)
    one = {"REALTIME": realtime_doc, "OFFLINE": None}
    assert parse_table(schema_doc, "s.json", [(one, "t.json")]).halves == {Half.REALTIME}
    assert list(halves_of({"OFFLINE": offline_doc}, "body")[1]) == [Half.OFFLINE]
    assert list(halves_of(both, "body")[1]) == [Half.REALTIME, Half.OFFLINE]
    answered = {"tableName": "t", "schema": schema_doc, "realtime": realtime_doc, "warnings": []}
    assert parse_table(schema_doc, "s.json", [(answered, "t.json")]).halves == {Half.REALTIME}
    with pytest.raises(SpecError, match=r"body: tableName: 'other' is not 'orders'"):
        halves_of({**both, "OFFLINE": {**offline_doc, "tableName": "other"}}, "body")
    with pytest.raises(SpecError, match="tableType: is missing"):
        parse_table(schema_doc, "s.json", [({"REALTIME": 1}, "t.json")])


@pytest.mark.parametrize("key", ["rowTimeValueCheck", "segmentTimeValueCheck"])
def test_checks_of_times_that_are_not_made_are_warned_of(schema_doc: Doc, realtime_doc: Doc, key: str) -> None:
    ingestion = realtime_doc.setdefault("ingestionConfig", {})
    ingestion[key] = "true"
    assert f"ingestionConfig.{key}: true has no effect" in warnings(schema_doc, realtime_doc)
    ingestion[key] = False
    assert key not in warnings(schema_doc, realtime_doc)


def test_keys_that_say_nothing_or_are_alike_by_chance(schema_doc: Doc, realtime_doc: Doc) -> None:
    plain = warnings(schema_doc, realtime_doc)
    assert warnings(schema_doc, realtime_doc | {"tierConfigs": None, "quota": {}, "queryConfig": None}) == plain
    told = warnings(schema_doc, realtime_doc | {"quota": {"storage": "1G"}, "tierConfigs": [{"name": "a"}]})
    assert "quota" in told and "tierConfigs" in told and "Did you mean" not in told
    assert "Did you mean 'ingestionConfig'?" in warnings(schema_doc, realtime_doc | {"ingestionConfg": {"a": 1}})


def test_brokers_with_a_scheme(schema_doc: Doc, realtime_doc: Doc) -> None:
    assert plain_brokers("PLAINTEXT://a:9092, b:9093", "x") == "a:9092,b:9093"
    assert plain_brokers("sasl_ssl://[::1]:9093", "x", "SASL_SSL") == "[::1]:9093"
    assert plain_brokers("a:1,b:2", "x", "SSL") == "a:1,b:2"
    with pytest.raises(SpecError, match="says SASL_SSL, and"):
        plain_brokers("SASL_SSL://a:9093", "x")
    with pytest.raises(SpecError, match=r"http:// is no listener of Kafka's"):
        plain_brokers("http://a:9093", "x")
    for text, plain in {
        " a:9092 ,\tb:9093\n": "a:9092,b:9093", "a:1 b:2": "a:1,b:2", "a:09092/": "a:9092", "my-1.x_y:1,": "my-1.x_y:1",
       "a": "a:9092",
        "[fe80::1%eth0]:9092": "[fe80::1%eth0]:9092",
    }.items():  # fmt: skip
        assert plain_brokers(text, "x") == plain
    for text, why in {
        "a:9092/kafka": "has a path", "PLAINTEXT://a:9092/x": "has a path", "a:9092?x=1": "has a path",
        "a:": "no port", "a:x": "no port from 1", "a:70000": "no port from 1", "a:-1": "no port from 1",
        "::1:9092": "in brackets", "a:1;b:2": "commas", " , ": "names no broker", "": "names no broker",
        "u:p@a:9092": "no name and password", "SSL:a:1": "cannot be read",
    }.items():  # fmt: skip
        with pytest.raises(SpecError, match=why) as caught:
            plain_brokers(text, "x")
        assert str(caught.value).startswith("x: ") and "u:p" not in str(caught.value)
    stream = realtime_doc["tableIndexConfig"]["streamConfigs"]
    stream[BROKERS] = "PLAINTEXT://a:9092"
    found = parse_table(schema_doc, "s.json", [(realtime_doc, "t.json")]).stream
    assert found is not None and found.brokers == "a:9092"
    stream[BROKERS] = "SASL_SSL://host:9093"
    with pytest.raises(SpecError, match=r"t\.json: .*broker\.list: 'SASL_SSL://host:9093' says"):
        parse_table(schema_doc, "s.json", [(realtime_doc, "t.json")])


def test_keys_that_would_change_rows_are_said(schema_doc: Doc, realtime_doc: Doc) -> None:
    """None of them is passed over without a word; what only steers Pinot's servers is."""
    ingestion = {"rowTimeValueCheck": True, "segmentTimeValueCheck": "true"}
    told = warnings(schema_doc, realtime_doc | {"ingestionConfig": ingestion})
    assert "rowTimeValueCheck: true has no effect" in told and "segmentTimeValueCheck: true has no effect" in told
    off = {"rowTimeValueCheck": False, "segmentTimeValueCheck": False, "retryOnSegmentBuildPrecheckFailure": True}
    assert warnings(schema_doc, realtime_doc | {"ingestionConfig": off}) == warnings(schema_doc, realtime_doc)
    query = {"useApproximateFunction": True, "expressionOverrideMap": {"a": "b"}}
    assert "queryConfig: this key is not implemented" in warnings(schema_doc, realtime_doc | {"queryConfig": query})
    fields = [{**one, "allowTrailingZeros": True, "maxLength": 5} for one in schema_doc["dimensionFieldSpecs"]]
    told = warnings({**schema_doc, "dimensionFieldSpecs": fields}, realtime_doc)
    assert "allowTrailingZeros: true has no effect" in told and "maxLength: this key is not implemented" in told
    for key in ("enrichmentConfigs", "aggregationConfigs", "schemaConformingTransformerV2Config"):
        with pytest.raises(SpecError, match=f"{key}: .* cannot be honoured"):
            warnings(schema_doc, realtime_doc | {"ingestionConfig": {key: [{"a": 1}]}})


@pytest.mark.parametrize("key", ["metadataManagerClass", "outOfOrderRecordColumn", "dropOutOfOrderRecord"])
def test_keys_of_upsert_that_would_change_rows_are_said(schema_doc: Doc, realtime_doc: Doc, key: str) -> None:
    keyed = {**schema_doc, "primaryKeyColumns": [schema_doc["dimensionFieldSpecs"][0]["name"]]}
    upsert = {"mode": "FULL", "comparisonColumn": schema_doc["dateTimeFieldSpecs"][0]["name"], key: "x"}
    assert f"upsertConfig.{key}: this key is not implemented" in warnings(
        keyed, realtime_doc | {"upsertConfig": upsert}
    )


def test_a_suggestion_ends_its_sentence(schema_doc: Doc, realtime_doc: Doc) -> None:
    transform = {"columnName": schema_doc["dimensionFieldSpecs"][0]["name"], "transformFunction": "lowwer(x)"}
    with pytest.raises(SpecError, match=r"Did you mean 'lower'\?$") as caught:
        warnings(schema_doc, realtime_doc | {"ingestionConfig": {"transformConfigs": [transform]}})
    assert "?." not in str(caught.value)
