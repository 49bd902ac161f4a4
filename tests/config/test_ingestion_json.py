"""ingestionConfig's transforms and filter, a schema's own transforms, and Pinot's old timeFieldSpec."""

import json
import subprocess
import sys
from typing import Any

import pytest

from hybrid.config.table_config import Half, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError
from hybrid.schema.ingestion import IngestionConfig, Transform

Doc = dict[str, Any]


@pytest.fixture
def parse(schema_doc: Doc, realtime_doc: Doc, offline_doc: Doc) -> Any:
    def run(realtime: Doc | None = None, offline: Doc | None = None) -> TableSpec:
        realtime_doc["ingestionConfig"] = realtime or {}
        offline_doc["ingestionConfig"] |= offline or {}
        return parse_table(schema_doc, "s.json", [(realtime_doc, "r.json"), (offline_doc, "o.json")])

    return run


def transforms(**columns: str) -> Doc:
    configs = [{"columnName": name, "transformFunction": text} for name, text in columns.items()]
    return {"transformConfigs": configs}


def test_each_half_has_its_own(parse: Any) -> None:
    realtime = {**transforms(ts="fromEpochSeconds(seconds)"), "filterConfig": {"filterFunction": " amount < 0 "}}
    spec = parse(realtime, {"continueOnError": "true"})
    assert spec.ingestion == {
        Half.REALTIME: IngestionConfig((Transform("ts", "fromEpochSeconds(seconds)"),), "amount < 0"),
        Half.OFFLINE: IngestionConfig(continue_on_error=True),
    }
    assert spec.warnings == ()


def test_transforms_come_in_the_order_of_what_they_read(parse: Any) -> None:
    spec = parse(transforms(amount="gross - tax", ts="amount * 2", gross="net.value + 1", net="jsonStringToMap(raw)",
                            tax="gross / 5"))  # fmt: skip
    assert [one.column for one in spec.ingestion[Half.REALTIME].transforms] == ["net", "gross", "tax", "amount", "ts"]


@pytest.mark.slow
def test_a_column_outside_the_schema_is_allowed_where_the_filter_reads_it(parse: Any) -> None:
    config = {**transforms(kind="lower(type)"), "filterConfig": {"filterFunction": "kind = 'test'"}}
    assert parse(config).ingestion[Half.REALTIME].transforms == (Transform("kind", "lower(type)"),)


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ({"transformConfigs": "ts"}, ["r.json: ingestionConfig.transformConfigs: 'ts' is not a list"]),
        ({"transformConfigs": ["ts"]}, ["transformConfigs[0]: 'ts' is not an object"]),
        ({"transformConfigs": [{"columnName": "ts"}]}, ["transformConfigs[0].transformFunction: is missing"]),
        ({"transformConfigs": [{"transformFunction": "a"}]}, ["transformConfigs[0].columnName: is missing"]),
        (transforms(amuont="a + 1"), ["transformConfigs[0].columnName: 'amuont' is neither a column of the schema",
                                      "nor read by another transform. Did you mean 'amount'?", "Columns are:"]),
        ({"transformConfigs": [*transforms(ts="a")["transformConfigs"], *transforms(ts="b")["transformConfigs"]]},
         ["transformConfigs[1].columnName: 'ts' has a transform already, at ingestionConfig.transformConfigs[0]."]),
        (transforms(ts="fromEpochSecond(a)"), ["transformConfigs[0].transformFunction: 'fromEpochSecond(a)': function",
                                               "Did you mean 'fromEpochSeconds'?"]),
        (transforms(ts="fromEpochSeconds()"), ["fromEpochSeconds takes 1 argument, not 0."]),
        (transforms(ts="ts * 1000"), ["'ts * 1000' reads 'ts', the column that it fills. Give one"]),
        (transforms(ts="amount + 1", amount="gone", gone="ts"),
         ["transformConfigs: these transforms wait for each other: 'ts' reads 'amount', 'amount' reads 'gone', "
          "'gone' reads 'ts'."]),
        (transforms(ts="Groovy({x * 1000}, x)"), ["Groovy scripts are not run; write \"x * 1000\"."]),
        ({"filterConfig": {"filterFunction": "strcmp(a)"}},
         ["ingestionConfig.filterConfig.filterFunction: 'strcmp(a)': strcmp takes 2 arguments, not 1."]),
        ({"filterConfig": "a > 1"}, ["filterConfig: 'a > 1' is not an object"]),
        ({"filterConfig": {"filterFunction": 5}}, ["filterFunction: 5 is not a text"]),
        ({"continueOnError": "often"}, ["continueOnError: 'often' is neither true nor false"]),
        ({"complexTypeConfig": {"delimiter": ""}}, ["complexTypeConfig.delimiter", "at least one character"]),
        ({"complexTypeConfig": {"collectionNotUnnestedToJson": "SOME"}}, ["'SOME' is not known", "NON_PRIMITIVE"]),
        ({"complexTypeConfig": {"fieldsToUnnest": [1]}}, ["fieldsToUnnest: [1] is not a list of texts"]),
        ({"complexTypeConfig": {"prefixesToRename": {"a.": 1}}}, ["prefixesToRename.a.", "write a text for a text"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(parse: Any, config: Doc, parts: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse(config)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("config", [transforms(amount="amount * 1000"), transforms(amount="gross", gross="amount + 1")])
def test_a_transform_of_its_own_column_gets_the_hint_that_works(parse: Any, config: Doc) -> None:
    with pytest.raises(SpecError) as caught:
        parse(config)
    renames = {"prefixesToRename": {"amount": "amount_sent"}}
    assert f'"complexTypeConfig": {json.dumps(renames)}' in str(caught.value.hint)
    renamed = {"complexTypeConfig": renames, **transforms(amount="amount_sent * 1000")}
    assert parse(renamed).ingestion[Half.REALTIME].transforms == (Transform("amount", "amount_sent * 1000"),)


def test_columns_whose_fields_are_renamed_too_warn(parse: Any, schema_doc: Doc) -> None:
    schema_doc["dimensionFieldSpecs"] += [{"name": name, "dataType": "STRING"} for name in ("tsource", "ts_sent")]
    config = {**transforms(ts="ts_sent"), "complexTypeConfig": {"prefixesToRename": {"ts": "ts_sent"}}}
    (warning,) = parse(config).warnings
    place = "ingestionConfig.complexTypeConfig.prefixesToRename.ts"
    assert warning.endswith(
        f"{place}: it renames every field that begins with 'ts': the column 'tsource' gets nothing from a field of the "
        "same name."
    )
    config["transformConfigs"] += transforms(tsource="ts_sentource")["transformConfigs"]
    assert not parse(config).warnings


def test_keys_without_effect_warn(parse: Any) -> None:
    config: Doc = {**transforms(ts="a"), "filterConfig": {"filterFunction": "a > 1", "filterFuncton": "b"}}
    config["transformConfigs"][0]["note"] = "x"
    places = [warning.split(": ")[1] for warning in parse(config).warnings]
    assert places == ["ingestionConfig.transformConfigs[0].note", "ingestionConfig.filterConfig.filterFuncton"]


def test_a_step_that_looks_like_decimals_is_named(parse: Any, schema_doc: Doc) -> None:
    config: Doc = {**transforms(amount="round(gross, 2)"), "filterConfig": {"filterFunction": "round(a, 3) = 5"}}
    schema_doc["metricFieldSpecs"][0]["transformFunction"] = "ROUND(a, 1)"
    notes = [warning.split(": ", 2)[1:] for warning in parse(config).warnings]
    assert ["metricFieldSpecs[0].transformFunction", "ROUND(a, 1) rounds to a multiple of 1, as in Pinot. "
            "ROUND_DECIMAL(a, 1) rounds to 1 decimal."] in notes  # fmt: skip
    assert ["ingestionConfig.transformConfigs[0].transformFunction", "ROUND(gross, 2) rounds to a multiple of 2, as in "
            "Pinot. ROUND_DECIMAL(gross, 2) rounds to 2 decimals."] in notes  # fmt: skip
    assert [place for place, _ in notes][-1] == "ingestionConfig.filterConfig.filterFunction"


def test_a_schemas_own_transform_holds_in_both_halves_unless_the_config_has_one(parse: Any, schema_doc: Doc) -> None:
    schema_doc["metricFieldSpecs"][0]["transformFunction"] = "price * pieces"
    spec = parse(transforms(amount="net"))
    assert spec.ingestion[Half.REALTIME].transforms == (Transform("amount", "net"),)
    assert spec.ingestion[Half.OFFLINE].transforms == (Transform("amount", "price * pieces"),)


def old_schema(schema_doc: Doc, incoming: Doc, outgoing: Doc | None = None, **more: Any) -> None:
    del schema_doc["dateTimeFieldSpecs"]
    schema_doc["timeFieldSpec"] = {"incomingGranularitySpec": incoming, **more}
    if outgoing is not None:
        schema_doc["timeFieldSpec"]["outgoingGranularitySpec"] = outgoing


def test_an_old_time_field_alone(parse: Any, schema_doc: Doc) -> None:
    old_schema(schema_doc, {"name": "ts", "dataType": "LONG", "timeType": "MILLISECONDS"})
    spec = parse()
    assert spec.time_field is not None and spec.time_field.time_format is not None
    assert spec.time_field.time_format.is_millis
    assert spec.ingestion[Half.REALTIME].transforms == () and spec.warnings == ()


def test_an_old_time_field_is_converted(parse: Any, schema_doc: Doc) -> None:
    incoming = {"name": "raw ts", "dataType": "STRING", "timeType": "DAYS", "timeFormat": "SIMPLE_DATE_FORMAT:yyyyMMdd"}
    outgoing = {"name": "ts", "dataType": "INT", "timeType": "MINUTES", "timeunitSize": 5}
    old_schema(schema_doc, incoming, outgoing, defaultNullValue=7)
    spec = parse()
    assert spec.time_field is not None and spec.time_field.default_null == 7
    assert spec.time_field.time_format is not None and spec.time_field.time_format.text == "5:MINUTES:EPOCH"
    function = "dateTimeConvert(\"raw ts\", '1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd', '5:MINUTES:EPOCH', '1:MILLISECONDS')"
    assert spec.ingestion[Half.OFFLINE].transforms == (Transform("ts", function),)


@pytest.mark.parametrize(
    ("incoming", "outgoing", "part"),
    [
        ({"name": "ts", "dataType": "LONG"}, None, "timeFieldSpec.incomingGranularitySpec.timeType: is missing"),
        ({"name": "ts", "dataType": "LONG", "timeType": "MILLIS"}, None, "Did you mean 'MILLISECONDS'?"),
        ({"name": "ts", "dataType": "LONG", "timeType": "DAYS", "timeUnitSize": 0}, None, "timeUnitSize: 0 is"),
        ({"name": "ts", "dataType": "LONG", "timeType": "DAYS", "timeFormat": "X"}, None, "timeFormat: 'X' is"),
        ({"name": "ts", "dataType": "LONG", "timeType": "SECONDS"},
         {"name": "ts", "dataType": "LONG", "timeType": "MILLISECONDS"}, "also the name of the time as it arrives"),
        ({"name": "a", "dataType": "LONG", "timeType": "DAYS"}, {"name": "ts", "timeType": "DAYS"}, "dataType: is"),
    ],
)  # fmt: skip
def test_a_wrong_old_time_field(parse: Any, schema_doc: Doc, incoming: Doc, outgoing: Doc | None, part: str) -> None:
    old_schema(schema_doc, incoming, outgoing)
    with pytest.raises(SpecError) as caught:
        parse()
    assert part in str(caught.value)


def test_an_old_time_field_warns_of_unknown_keys(parse: Any, schema_doc: Doc) -> None:
    old_schema(schema_doc, {"name": "ts", "dataType": "LONG", "timeType": "MILLISECONDS", "zone": 1}, comment="x")
    places = [warning.split(": ")[1] for warning in parse().warnings]
    assert places == ["timeFieldSpec.comment", "timeFieldSpec.incomingGranularitySpec.zone"]


def test_not_null_counts_only_with_the_schemas_null_handling(parse: Any, schema_doc: Doc, realtime_doc: Doc) -> None:
    """Pinot's table-wide switch knows no notNull."""
    schema_doc["metricFieldSpecs"][0]["notNull"] = True
    realtime_doc["tableIndexConfig"]["nullHandlingEnabled"] = True
    spec = parse()
    assert spec.null_handling and not any(field.not_null for field in spec.schema.fields)
    schema_doc["enableColumnBasedNullHandling"] = True
    assert [field.name for field in parse().schema.fields if field.not_null] == ["amount"]


@pytest.mark.process
def test_a_table_without_transforms_does_not_load_the_parser() -> None:
    code = (
        "import sys; from tests.records.test_decode import table; from hybrid.records.decode import Decoder;"
        "Decoder(table({'a': 'INT'})).decode(b'{}'); sys.exit('sqlglot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
