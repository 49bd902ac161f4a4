"""Documents with several mistakes: one answer names them all, and no error that follows from another one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.connectors_json import parse_connectors
from hybrid.config.ddl import parse_ddl
from hybrid.config.job_document import job_document
from hybrid.config.job_spec import parse_job_spec
from hybrid.config.table_json import parse_table
from hybrid.errors import (
    ERRORS_MAX,
    DataError,
    Gathered,
    HybridError,
    SpecError,
    UsageError,
    error_document,
    with_others,
)
from hybrid.rpc.client import error_of
from hybrid.schema.document import Section

SCHEMA: dict[str, Any] = {
    "schemaName": "orders",
    "dimensionFieldSpecs": [{"name": "id", "dataType": "INT"}, {"name": "who", "dataType": "STRING"}],
    "dateTimeFieldSpecs": [{"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "x"}],
    "primaryKeyColumns": ["id"],
}
OFFLINE: dict[str, Any] = {"tableName": "orders", "tableType": "OFFLINE", "segmentsConfig": {"timeColumnName": "ts"}}
JOB = """
jobType: SegmentCreationAndTarPush
inputDirURI: files
tableSpec: {tableName: orders}
recordReaderSpec: {dataFormat: json}
"""
DDL = """create table a (id int, x money, y decimal(3, foo), z varchar not nul, ts timestamp, primary key (nope));
create view v as select 1;
create table b (id int primary key, x strang);
create table c (id int primary key);
create table c (id int);"""


def sentences(error: HybridError) -> list[str]:
    return [str(found) for found in error.all()]


def refused(schema: dict[str, Any], *configs: dict[str, Any]) -> list[str]:
    with pytest.raises(SpecError) as raised:
        parse_table(schema, "schema.json", [(config, f"{number}.json") for number, config in enumerate(configs)])
    return sentences(raised.value)


def changed(doc: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(doc), **changes}


def test_each_column_of_a_schema() -> None:
    fields = [{"name": "id", "dataType": "INTEGER"}, {"name": "_hy_x", "dataType": "INT"}, {"name": "who"}, 3]
    found = refused(changed(SCHEMA, dimensionFieldSpecs=fields, schemaName=""), OFFLINE)
    assert [sentence.split(": ")[1] for sentence in found] == [
        "dimensionFieldSpecs[3]", "dimensionFieldSpecs[0].dataType", "dimensionFieldSpecs[1].name",
        "dimensionFieldSpecs[2].dataType", "schemaName",
    ]  # fmt: skip


def test_errors_of_schema_and_configs_come_together() -> None:
    fields = [{"name": "id", "dataType": "INTEGER"}, {"name": "_hy_x", "dataType": "INT"}, {"name": "who"}]
    schema = changed(SCHEMA, dimensionFieldSpecs=fields)
    custom = {"metadata": {"customConfigs": {"hybrid.boundary": "maybe", "hybrid.revertWindow": "soon"}}}
    found = refused(schema, changed(OFFLINE, tableName="or ders", **custom))
    assert [sentence.split(": ")[:2] for sentence in found] == [
        ["schema.json", "dimensionFieldSpecs[0].dataType"],
        ["schema.json", "dimensionFieldSpecs[1].name"],
        ["schema.json", "dimensionFieldSpecs[2].dataType"],
        ["0.json", "tableName"],
        ["0.json", "metadata.customConfigs.hybrid.boundary"],
        ["0.json", "metadata.customConfigs.hybrid.revertWindow"],
    ]


def test_parts_of_a_config_that_name_columns() -> None:
    config = changed(
        OFFLINE,
        segmentsConfig={"timeColumnName": "tss", "retentionTimeValue": "5"},
        tableIndexConfig={"sortedColumn": ["nope"], "nullHandlingEnabled": "perhaps"},
    )
    found = refused(SCHEMA, config)
    assert [sentence.split(": ")[1] for sentence in found] == [
        "segmentsConfig.timeColumnName", "tableIndexConfig.nullHandlingEnabled", "tableIndexConfig.sortedColumn",
    ]  # fmt: skip
    # What needs the time column is read once that is right.
    config["segmentsConfig"]["timeColumnName"], config["tableIndexConfig"] = "ts", {}
    (only,) = refused(SCHEMA, config)
    assert "segmentsConfig.retentionTimeUnit" in only


def test_one_mistake_is_one_error_as_before() -> None:
    for schema, config in (
        (changed(SCHEMA, dimensionFieldSpecs=[{"name": "id", "dataType": "INTEGER"}]), OFFLINE),
        (changed(SCHEMA, primaryKeyColumns=["nope"]), OFFLINE),
        (SCHEMA, changed(OFFLINE, tableType="BOTH")),
        (SCHEMA, changed(OFFLINE, upsertConfig={"mode": "SOMETIMES"})),
        (SCHEMA, changed(OFFLINE, segmentsConfig={"timeColumnName": "who"})),
    ):
        assert len(refused(schema, config)) == 1


def test_each_connector() -> None:
    connectors = [
        {"name": "a", "transport": {"name": "kafka"}},
        {"name": "b", "transport": {"name": "file_input", "config": {"path": "http://x"}}},
        {"name": "c", "transport": {"name": "file_input", "config": {"path": "x"}}, "format": {"name": "csv"}},
        {"name": "d"},
    ]
    with pytest.raises(SpecError) as raised:
        parse_connectors(Section({"connectors": connectors}, "t.json"))
    assert [sentence.split(": ")[1] for sentence in sentences(raised.value)] == [
        "connectors[0].transport.name", "connectors[1].transport.config.path", "connectors[3].transport",
    ]  # fmt: skip


def test_each_column_and_table_of_a_ddl() -> None:
    with pytest.raises(SpecError) as raised:
        parse_ddl(DDL, "tables.sql", "127.0.0.1:9092")
    places = [sentence.split(": ")[1] for sentence in sentences(raised.value)]
    assert places == [
        "line 1, column 27", "line 1, column 47", "line 1, column 63", "line 2, column 1", "line 3, column 39",
        "line 5, column 14",
    ]  # fmt: skip


def test_each_part_of_a_job_spec(tmp_path: Path) -> None:
    wrong = JOB.replace("SegmentCreationAndTarPush", "Push").replace("orders", "''").replace("json", "xml")
    text = wrong + "includeFileNamePattern: 'regex:('\npushJobSpec: {pushAttempts: -1}\n"
    with pytest.raises(SpecError) as raised:
        parse_job_spec(job_document(text, "job.yaml"), "job.yaml", tmp_path, {})
    assert [sentence.split(": ")[1] for sentence in sentences(raised.value)] == [
        "jobType", "tableSpec.tableName", "recordReaderSpec.dataFormat", "includeFileNamePattern",
        "pushJobSpec.pushAttempts",
    ]  # fmt: skip
    with pytest.raises(SpecError) as raised:
        parse_job_spec(job_document(wrong.replace("files", "${where}"), "job.yaml"), "job.yaml", tmp_path, {})
    assert raised.value.others == ()


def test_a_bound_ends_the_list() -> None:
    fields = [{"name": f"c{number}", "dataType": "INTEGER"} for number in range(50)]
    assert len(refused(changed(SCHEMA, dimensionFieldSpecs=fields), OFFLINE)) == ERRORS_MAX


def test_what_is_gathered_and_what_is_not() -> None:
    errors = Gathered()
    errors.raise_all()
    with errors:
        raise SpecError("one", hint="do it")
    with errors:
        raise DataError("two").carry([DataError("three"), DataError("one")])
    assert len(errors) == 3
    with pytest.raises(UsageError), errors:
        raise UsageError("not this")
    with pytest.raises(SpecError, match="one") as raised:
        errors.raise_all()
    assert raised.value.__notes__ == ["hint: do it", "two", "three"]


def test_the_list_crosses_to_a_client_and_back() -> None:
    error = SpecError("one", hint="do it").carry([SpecError("two"), SpecError("three", hint="or this")])
    document = error_document(error)
    assert document["error"] == "one" and document["errors"] == [
        {"error": "one", "hint": "do it"}, {"error": "two", "hint": None}, {"error": "three", "hint": "or this"},
    ]  # fmt: skip
    back = error_of(document)
    assert isinstance(back, SpecError) and error_document(back) == document
    assert "errors" not in error_document(SpecError("alone"))
    for strange in ({"errors": 3}, {"errors": [1, 2]}, {"errors": []}, {"errors": [{}, {}]}):
        assert isinstance(with_others(SpecError("x"), strange), SpecError)
