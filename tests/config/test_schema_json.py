from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from hybrid.config.schema_json import parse_schema
from hybrid.errors import SpecError
from hybrid.schema.schema import FieldKind
from hybrid.schema.types import DataType


def one(field: dict[str, Any], kind: str = "dimensionFieldSpecs") -> Any:
    schema = parse_schema({"schemaName": "t", kind: [{"name": "c", **field}]}, "s.json")
    return schema.fields[0]


def fails(doc: dict[str, Any]) -> str:
    with pytest.raises(SpecError) as caught:
        parse_schema(doc, "s.json")
    return str(caught.value)


def test_reads_the_recipe(schema_doc: dict[str, Any]) -> None:
    schema = parse_schema(schema_doc, "s.json")
    assert schema.column_names == ("order_id", "order_status", "gone", "labels", "amount", "ts")
    assert schema.primary_key == ("order_id",)
    assert schema.warnings == ()
    ts = schema.find("ts")
    assert ts is not None and ts.kind is FieldKind.DATE_TIME and ts.time_format is not None and ts.time_format.is_millis
    labels = schema.find("labels")
    assert labels is not None and not labels.single_value


@pytest.mark.parametrize(
    ("data_type", "null"),
    [("INT", -(2**31)), ("LONG", -(2**63)), ("FLOAT", float("-inf")), ("DOUBLE", float("-inf")),
     ("BIG_DECIMAL", Decimal(0)), ("BOOLEAN", False), ("TIMESTAMP", datetime(1970, 1, 1, tzinfo=UTC)),
     ("STRING", "null"), ("JSON", "null"), ("BYTES", b"")],
)  # fmt: skip
def test_default_nulls_of_dimensions(data_type: str, null: object) -> None:
    assert one({"dataType": data_type}).default_null == null


@pytest.mark.parametrize(
    ("data_type", "null"),
    [("INT", 0), ("LONG", 0), ("FLOAT", 0.0), ("DOUBLE", 0.0), ("BIG_DECIMAL", Decimal(0)), ("STRING", "null"),
     ("BYTES", b"")],
)  # fmt: skip
def test_default_nulls_of_metrics(data_type: str, null: object) -> None:
    assert one({"dataType": data_type}, "metricFieldSpecs").default_null == null


@pytest.mark.parametrize(
    ("data_type", "given", "stored"),
    [("INT", "-1", -1), ("INT", 7.0, 7), ("DOUBLE", "-Infinity", float("-inf")), ("STRING", 5, "5"),
     ("BOOLEAN", "true", True), ("BYTES", "0aff", b"\x0a\xff"), ("BIG_DECIMAL", "1.5", Decimal("1.5")),
     ("TIMESTAMP", "2021-09-24 00:00:00", datetime(2021, 9, 24, tzinfo=UTC)), ("JSON", {"a": [1]}, '{"a":[1]}'),
     ("STRING", "", "")],
)  # fmt: skip
def test_default_nulls_are_coerced(data_type: str, given: object, stored: object) -> None:
    assert one({"dataType": data_type, "defaultNullValue": given}).default_null == stored


def test_the_type_of_a_ddl_is_kept_in_its_canonical_text() -> None:
    assert one({"dataType": "STRING", "hybrid.sqlType": "varchar( 5 )"}).sql_type == "VARCHAR(5)"
    assert one({"dataType": "LONG", "hybrid.sqlType": "INT"}).sql_type == "INTEGER", "widened by an earlier build"


def test_errors_name_the_place(schema_doc: dict[str, Any]) -> None:
    schema_doc["dimensionFieldSpecs"][1]["dataType"] = "STRNG"
    message = fails(schema_doc)
    assert message.startswith("s.json: dimensionFieldSpecs[1].dataType: 'STRNG' is not known. Did you mean 'STRING'?")


@pytest.mark.parametrize(
    ("field", "kind", "part"),
    [
        ({"dataType": "INTEGER"}, "dimensionFieldSpecs", "dataType: 'INTEGER' is not known."),
        ({"dataType": "int"}, "dimensionFieldSpecs", "Did you mean 'INT'?"),
        ({}, "dimensionFieldSpecs", "dataType: is missing"),
        ({"dataType": "INT", "defaultNullValue": "x"}, "dimensionFieldSpecs", "defaultNullValue: 'x' is not an INT"),
        ({"dataType": "BOOLEAN"}, "metricFieldSpecs", "no type of a metric"),
        ({"dataType": "INT", "singleValueField": False}, "metricFieldSpecs", "only a dimension"),
        ({"dataType": "LONG"}, "dateTimeFieldSpecs", "dateTimeFieldSpecs[0].format: is missing"),
        ({"dataType": "LONG", "format": "x"}, "dateTimeFieldSpecs", "format: 'x' is not a time format"),
        (
            {"dataType": "INT", "transformFunction": "f(x)"},
            "dimensionFieldSpecs",
            "dimensionFieldSpecs[0].transformFunction: 'f(x)': function 'f' does not exist.",
        ),
        ({"dataType": "INT", "transformFunction": "c + 1"}, "dimensionFieldSpecs", "'c + 1' reads 'c'"),
        ({"dataType": "INT", "virtualColumnProvider": "x"}, "dimensionFieldSpecs", "cannot be honoured"),
        (
            {"dataType": "STRING", "hybrid.sqlType": "DECIMAL(5, 2)"},
            "dimensionFieldSpecs",
            "hybrid.sqlType: DECIMAL(5,2) is stored as BIG_DECIMAL, and the dataType is STRING. Write that dataType",
        ),
        ({"dataType": "INT", "hybrid.sqlType": "FOO"}, "dimensionFieldSpecs", "sqlType: 'FOO' cannot be read: line 1"),
        ({"dataType": "INT", "hybrid.sqlType": "INT x"}, "dimensionFieldSpecs", "does not belong to a type"),
        ({"dataType": "INT", "hybrid.sqlType": "INT ARRAY"}, "dimensionFieldSpecs", "INTEGER ARRAY holds several"),
        (
            {"dataType": "INT", "hybrid.sqlType": "INT", "singleValueField": False},
            "dimensionFieldSpecs",
            "INTEGER holds one value, and singleValueField is false",
        ),
        ({"dataType": "INT", "name": "_HY_x"}, "dimensionFieldSpecs", "system's own"),
        ({"dataType": "INT", "name": "$x"}, "dimensionFieldSpecs", "system's own"),
        ({"dataType": "INT", "name": "a b"}, "dimensionFieldSpecs", "refused"),
        ({"dataType": "INT", "name": 5}, "dimensionFieldSpecs", "not a text"),
    ],
)
def test_wrong_fields(field: dict[str, Any], kind: str, part: str) -> None:
    assert part in fails({"schemaName": "t", kind: [{"name": "c", **field}]})


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"primaryKeyColumns": ["order_idd"]}, "primaryKeyColumns[0]: 'order_idd' is not a column"),
        ({"primaryKeyColumns": ["labels"]}, "several values"),
        ({"primaryKeyColumns": ["order_id", "order_id"]}, "primaryKeyColumns[1]"),
        ({"timeFieldSpec": {"incomingGranularitySpec": {}, "x": 1}}, "incomingGranularitySpec: is missing"),
        ({"complexFieldSpecs": [{"name": "m"}]}, "not built yet"),
        ({"metricFieldSpecs": [{"name": "TS", "dataType": "INT"}]}, "is given twice"),
        ({"metricFieldSpecs": {"name": "a"}}, "is not a list"),
        ({"metricFieldSpecs": ["a"]}, "metricFieldSpecs[0]: 'a' is not an object"),
        ({"schemaName": None}, "schemaName: is missing"),
    ],
)
def test_wrong_schemas(schema_doc: dict[str, Any], change: dict[str, Any], part: str) -> None:
    assert part in fails({**schema_doc, **change})


def test_all_mistakes_of_a_schema_come_at_once() -> None:
    """Several of one column, those of its transform and of the key too; a key of a column with a mistake is none."""
    doc: dict[str, object] = {
        "schemaName": "orders",
        "primaryKeyColumns": ["id", "nosuch", "id"],
        "complexFieldSpecs": [{"name": "c"}],
        "dimensionFieldSpecs": [
            {"name": "id", "dataType": "INTT", "singleValueField": "maybe", "transformFunction": "nosuch(a)"},
            {"name": "b", "dataType": "INT", "defaultNullValue": "x", "notNull": "often", "virtualColumnProvider": "y"},
        ],
        "metricFieldSpecs": [{"name": "m", "dataType": "BOOLEAN", "singleValueField": False, "defaultNullValue": 7}],
        "dateTimeFieldSpecs": [{"name": "ts", "dataType": "LONG", "format": "1:HOURZ:EPOCH", "defaultNullValue": "y"}],
    }
    with pytest.raises(SpecError) as caught:
        parse_schema(doc, "s.json")
    places = [str(error).split(": ")[1] for error in caught.value.all()]
    b, ts, m = "dimensionFieldSpecs[1].", "dateTimeFieldSpecs[0].", "metricFieldSpecs[0]."
    assert places == [
        "complexFieldSpecs", "dimensionFieldSpecs[0].dataType", "dimensionFieldSpecs[0].singleValueField",
        "dimensionFieldSpecs[0].transformFunction", f"{b}virtualColumnProvider", f"{b}notNull", f"{b}defaultNullValue",
        f"{m}singleValueField", f"{m}dataType", f"{m}defaultNullValue", f"{ts}defaultNullValue", f"{ts}format",
        "primaryKeyColumns[1]", "primaryKeyColumns[2]",
    ]  # fmt: skip


def test_a_column_that_is_given_twice_is_found_with_the_other_mistakes() -> None:
    fields = [{"name": "a", "dataType": "INT"}, {"name": "A", "dataType": "TEXT"}, {"name": "b", "dataType": "X"}]
    with pytest.raises(SpecError) as caught:
        parse_schema({"schemaName": "t", "dimensionFieldSpecs": fields}, "s.json")
    twice, *wrong = [str(error) for error in caught.value.all()]
    assert "column 'A' is given twice" in twice
    assert ["'TEXT' is not known" in wrong[0], "'X' is not known" in wrong[1], len(wrong)] == [True, True, 2]


def test_a_schema_needs_a_column() -> None:
    assert "has no column" in fails({"schemaName": "t"})


def test_unknown_keys_warn_once_each(schema_doc: dict[str, Any]) -> None:
    schema_doc["schemaNam"] = 1
    schema_doc["dimensionFieldSpecs"][0].update(maxLength=5, notNull=True)
    warnings = parse_schema(schema_doc, "s.json").warnings
    assert [warning.split(": ")[1] for warning in warnings] == [
        "schemaNam", "dimensionFieldSpecs[0].maxLength", "dimensionFieldSpecs[0].notNull",
    ]  # fmt: skip


def test_column_based_null_handling(schema_doc: dict[str, Any]) -> None:
    schema_doc["enableColumnBasedNullHandling"] = True
    schema_doc["dimensionFieldSpecs"][0]["notNull"] = True
    schema = parse_schema(schema_doc, "s.json")
    assert schema.null_handling and schema.fields[0].not_null and not schema.fields[1].not_null
    assert schema.warnings == ()


def test_every_data_type_has_a_default() -> None:
    assert all(one({"dataType": str(data_type)}).default_null is not None for data_type in DataType)
