"""Expectations as users write them: in configs, in job specs and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.config.expectations import (
    Expectation,
    ExpectationKind,
    OnFailure,
    named_apart,
    parse_expect,
    parse_expectations,
)
from hybrid.config.job_spec import parse_job_spec
from hybrid.config.schema_json import parse_schema
from hybrid.config.table_json import parse_table
from hybrid.config.table_keys import EXPECTATIONS
from hybrid.errors import SpecError, UsageError
from hybrid.schema.document import Section

SCHEMA_DOC: dict[str, object] = {
    "schemaName": "orders",
    "dimensionFieldSpecs": [
        {"name": "id", "dataType": "INT"},
        {"name": "status", "dataType": "STRING"},
        {"name": "open", "dataType": "BOOLEAN"},
        {"name": "doc", "dataType": "JSON"},
        {"name": "at", "dataType": "TIMESTAMP"},
        {"name": "tags", "dataType": "STRING", "singleValueField": False},
    ],
    "metricFieldSpecs": [{"name": "amount", "dataType": "FLOAT"}],
}
SCHEMA = parse_schema(SCHEMA_DOC, "schema.json")


def parse(*items: object) -> tuple[Expectation, ...]:
    return parse_expectations(Section({EXPECTATIONS: list(items)}, "orders.json", "metadata.customConfigs"), SCHEMA)


def test_each_kind_is_read_and_named() -> None:
    found = parse(
        {"kind": "not_null", "column": "id"},
        {"kind": "range", "column": "amount", "min": 0, "max": 9.5, "on_failure": "warn"},
        {"kind": "range", "column": "amount", "max": 100},
        {"kind": "unique", "columns": ["id", "status"], "on_failure": "drop"},
        {"kind": "accepted_values", "column": "status", "values": ["OPEN", "CLOSED"]},
        {"kind": "row_count_change", "percent": 10},
        {"kind": "sql", "sql": "amount >\n 0", "name": "worth"},
        {"kind": "sql", "sql": "amount >\n 0"},
    )
    assert [one.name for one in found] == [
        "not_null_id", "range_amount", "range_amount_2", "unique_id_status", "accepted_values_status",
        "row_count_change", "worth", "amount > 0",
    ]  # fmt: skip
    assert [one.on_failure.value for one in found] == ["fail", "warn", "fail", "drop", "fail", "fail", "fail", "fail"]
    assert (found[1].low, found[1].high, found[2].low) == (0, 9.5, None)
    assert found[4].values == ("OPEN", "CLOSED")
    assert found[5].percent == 10.0
    assert found[6].place == "orders.json: metadata.customConfigs.hybrid.expectations[6].sql"


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("id > 0", "[0]: 'id > 0' is not an object: write {...}."),
        ({}, "[0].kind: is missing."),
        ({"kind": "notnull"}, "[0].kind: 'notnull' is not known. Did you mean 'not_null'?"),
        ({"kind": "not_null", "column": "idd"}, "[0].column: 'idd' is not a column of 'orders'. Did you mean 'id'?"),
        ({"kind": "not_null"}, "[0].column: is missing."),
        (
            {"kind": "not_null", "column": "id", "onFailure": "warn"},
            "[0].onFailure: not_null has no such key. Did you mean 'on_failure'? Its keys are: kind, name, on_failure",
        ),
        ({"kind": "not_null", "column": "id", "on_failure": "stop"}, "[0].on_failure: 'stop' is not known."),
        ({"kind": "range", "column": "id"}, "[0].min: is missing, and so is max."),
        ({"kind": "range", "column": "id", "min": 2, "max": 1}, "[0].max: 1 is below min, which is 2."),
        ({"kind": "range", "column": "id", "min": "low"}, "[0].min: 'low' does not fit column 'id'; it is an INT"),
        ({"kind": "range", "column": "id", "min": True}, "[0].min: true does not fit"),
        ({"kind": "range", "column": "id", "min": 0.5}, "[0].min: 0.5 does not fit"),
        ({"kind": "range", "column": "status", "min": 5}, "[0].min: 5 does not fit column 'status'; it is a STRING"),
        ({"kind": "range", "column": "at", "min": "soon"}, "[0].min: 'soon' does not fit column 'at'"),
        ({"kind": "range", "column": "open", "min": 0}, "[0].column: 'open' is BOOLEAN; this kind takes INT, LONG"),
        ({"kind": "range", "column": "tags", "min": "a"}, "[0].column: 'tags' holds several values"),
        ({"kind": "unique"}, "[0].columns: is missing."),
        ({"kind": "unique", "columns": ["id", "id"]}, '[0].columns: ["id", "id"] has a column twice.'),
        ({"kind": "unique", "columns": ["ix"]}, "[0].columns: 'ix' is not a column"),
        ({"kind": "accepted_values", "column": "status"}, "[0].values: null is not a list of values."),
        ({"kind": "accepted_values", "column": "status", "values": []}, "[0].values: [] is not a list of values."),
        ({"kind": "accepted_values", "column": "status", "values": ["a", None]}, "[0].values[1]: null is no value"),
        ({"kind": "accepted_values", "column": "id", "values": [1, "x"]}, "[0].values[1]: 'x' does not fit"),
        ({"kind": "accepted_values", "column": "doc", "values": ["{}"]}, "[0].column: 'doc' is JSON"),
        ({"kind": "row_count_change"}, "[0].percent: null is not a number from 0 on."),
        ({"kind": "row_count_change", "percent": "10"}, "[0].percent: '10' is not a number from 0 on."),
        ({"kind": "row_count_change", "percent": -1}, "[0].percent: -1 is not a number from 0 on."),
        ({"kind": "row_count_change", "percent": 1, "on_failure": "drop"}, "[0].on_failure: 'drop' leaves rows out"),
        ({"kind": "sql"}, "[0].sql: is missing."),
    ],
)
def test_what_is_wrong_is_said_at_its_place(item: object, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse(item)
    assert str(refused.value).startswith(f"orders.json: metadata.customConfigs.hybrid.expectations{message}")


@pytest.mark.parametrize(
    "item",
    [
        {"kind": "range", "column": "status", "min": "A", "max": "M"},
        {"kind": "range", "column": "at", "min": "2021-01-01", "max": 1_700_000_000_000},
        {"kind": "accepted_values", "column": "open", "values": [True]},
        {"kind": "not_null", "column": "tags"},
        {"kind": "row_count_change", "percent": 0},
    ],
)
def test_values_of_the_columns_type_are_taken(item: object) -> None:
    assert len(parse(item)) == 1


def test_a_config_holds_them_as_text() -> None:
    text = json.dumps([{"kind": "not_null", "column": "id"}])
    config: dict[str, object] = {
        "tableName": "orders", "tableType": "OFFLINE", "metadata": {"customConfigs": {EXPECTATIONS: text}},
    }  # fmt: skip
    spec = parse_table(SCHEMA_DOC, "schema.json", [(config, "offline.json")])
    assert [one.name for one in spec.expectations] == ["not_null_id"]
    assert not spec.warnings
    config["metadata"] = {"customConfigs": {EXPECTATIONS: "[{"}}
    with pytest.raises(SpecError, match=r"offline.json: metadata.customConfigs.hybrid.expectations: is not JSON"):
        parse_table(SCHEMA_DOC, "schema.json", [(config, "offline.json")])


@pytest.mark.parametrize("as_text", [False, True])
def test_a_job_spec_holds_them(tmp_path: Path, as_text: bool) -> None:
    given: object = [{"kind": "accepted_values", "column": "status", "values": ["${status}"]}]
    doc: dict[str, object] = {
        "jobType": "SegmentCreation",
        "inputDirURI": str(tmp_path),
        "recordReaderSpec": {"dataFormat": "json"},
        "tableSpec": {"tableName": "orders"},
        "executionFrameworkSpec": {"name": "standalone", "extraConfigs": {EXPECTATIONS: given, "other": "${unset}"}},
    }
    if as_text:
        doc["executionFrameworkSpec"] = {"extraConfigs": {EXPECTATIONS: json.dumps(given)}}
    job = parse_job_spec(doc, "job.yml", tmp_path, {"status": "OPEN"})
    assert job.expectations is not None
    (found,) = parse_expectations(job.expectations, SCHEMA)
    assert found.values == ("OPEN",)
    assert found.place == "job.yml: executionFrameworkSpec.extraConfigs.hybrid.expectations[0]"


@pytest.mark.parametrize(
    ("text", "on_failure", "sql"),
    [
        ("amount > 0", OnFailure.FAIL, "amount > 0"),
        ("warn: amount > 0", OnFailure.WARN, "amount > 0"),
        ("DROP:status = 'a: b'", OnFailure.DROP, "status = 'a: b'"),
        (" fail :\namount > 0", OnFailure.FAIL, "amount > 0"),
        ('{"kind": "sql", "sql": "amount > 0", "on_failure": "warn"}', OnFailure.WARN, "amount > 0"),
    ],
)
def test_an_option_is_a_condition_or_an_object(text: str, on_failure: OnFailure, sql: str) -> None:
    (found,) = parse_expect(text, SCHEMA)
    assert (found.kind, found.on_failure, found.sql, found.place) == (ExpectationKind.SQL, on_failure, sql, "--expect")


def test_an_option_may_hold_a_list() -> None:
    found = parse_expect('[{"kind": "not_null", "column": "id"}, {"kind": "sql", "sql": "id > 0"}]', SCHEMA)
    assert [one.place for one in found] == ["--expect: [0]", "--expect: [1]"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "--expect: sql: '' is not a text."),
        ("warn:", "--expect: sql: '' is not a text."),
        ('{"kind"', "--expect: is not JSON: "),
        ("[5]", "--expect: 5 is not an object"),
        ('{"kind": "not_null", "column": "x"}', "--expect: column: 'x' is not a column of 'orders'."),
    ],
)
def test_a_wrong_option_is_wrong_usage(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_expect(text, SCHEMA)
    assert str(refused.value).startswith(message)


def test_no_two_have_one_name() -> None:
    one = Expectation(ExpectationKind.SQL, "a")
    two = Expectation(ExpectationKind.SQL, "a_2")
    assert [found.name for found in named_apart([one, two, one, one])] == ["a", "a_2", "a_3", "a_4"]
