"""The documents of a flow's table: a schema and configs as every other table has. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hybrid.config.table_config import Half, TableSpec
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.errors import SpecError, suggestion
from hybrid.flow.declared.convert import ColumnType
from hybrid.flow.declared.model import FlowTable
from hybrid.schema.types import DataType

_TASK_KEYS = (
    "bucketTimePeriod", "bufferTimePeriod", "mergeType", "maxNumRecordsPerSegment", "maxNumRecordsPerTask", "schedule",
)  # fmt: skip
_DAY = "1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd"
_MILLIS = "1:MILLISECONDS:EPOCH"

Document = dict[str, Any]


def unified(kinds: Sequence[Sequence[ColumnType]]) -> list[ColumnType]:
    """The columns of a new table from its flows' columns: the wider type for numbers, text for other conflicts."""
    by_name: dict[str, ColumnType] = {}
    for column in (column for columns in kinds for column in columns):
        before = by_name.get(column.name.lower())
        by_name[column.name.lower()] = column if before is None else _wider(before, column)
    return list(by_name.values())


def _wider(one: ColumnType, other: ColumnType) -> ColumnType:
    if (one.data_type, one.single_value) == (other.data_type, other.single_value):
        return one
    order = (DataType.INT, DataType.LONG, DataType.DOUBLE)
    both = {one.data_type, other.data_type}
    single = one.single_value and other.single_value
    if both <= {*order, DataType.FLOAT}:
        wide = DataType.DOUBLE if both & {DataType.FLOAT, DataType.DOUBLE} else DataType.LONG
        return ColumnType(one.name, one.data_type if len(both) == 1 else wide, single)
    if len(both) == 1:
        return ColumnType(one.name, one.data_type, single, one.is_date and other.is_date)
    return ColumnType(one.name, DataType.JSON if both & {DataType.JSON} and single else DataType.STRING, single)


def table_documents(table: FlowTable, kinds: Sequence[ColumnType]) -> tuple[Document, list[Document]]:
    """The schema and the two configs. SpecError when the time column is not among the columns, or no time."""
    name = table.properties.get("hybrid.timeColumn")
    by_name = {column.name.lower(): column for column in kinds}
    time = by_name.get(name.lower()) if name is not None else None
    if name is not None and time is None:
        near = suggestion(name, [column.name for column in kinds])
        shown = ", ".join(column.name for column in kinds)
        raise SpecError(
            f"{table.place}: hybrid.timeColumn: '{name}' is no column of the flows' rows.{near} There are: {shown}."
        )
    schema: Document = {"schemaName": table.name, "enableColumnBasedNullHandling": True}
    if table.comment:
        schema["description"] = table.comment
    schema["dimensionFieldSpecs"] = [field_document(column) for column in kinds if column is not time]
    if time is not None:
        schema["dateTimeFieldSpecs"] = [_time_document(table, time)]
    return schema, _configs(table, time.name if time else None)


def field_document(one: ColumnType) -> Document:
    """A column as an entry of dimensionFieldSpecs."""
    document: Document = {"name": one.name, "dataType": one.data_type.value}
    return document if one.single_value else {**document, "singleValueField": False}


def with_columns(schema_doc: Mapping[str, Any], new: Sequence[ColumnType]) -> Document:
    """A schema with further columns."""
    fields = [*schema_doc.get("dimensionFieldSpecs", []), *map(field_document, new)]
    return {**schema_doc, "dimensionFieldSpecs": fields}


def new_columns(spec: TableSpec, kinds: Sequence[ColumnType]) -> list[ColumnType]:
    """The columns that the table does not have."""
    existing = {name.lower() for name in spec.schema.column_names}
    return [column for column in kinds if column.name.lower() not in existing]


def _time_document(table: FlowTable, time: ColumnType) -> Document:
    declared = table.properties.get("hybrid.timeFormat")
    data_type, form = time.data_type, declared
    if not time.single_value or data_type not in (DataType.TIMESTAMP, DataType.STRING, DataType.INT, DataType.LONG):
        raise SpecError(
            f"{table.place}: hybrid.timeColumn: '{time.name}' is {data_type}{'' if time.single_value else '[]'}, and a "
            "time is a timestamp, a date, an ISO 8601 text or a whole number."
        )
    if data_type in (DataType.INT, DataType.LONG):
        form = declared or _MILLIS
    elif declared is not None:
        raise SpecError(
            f"{table.place}: hybrid.timeFormat: '{declared}' is for whole numbers; '{time.name}' is {data_type}."
        )
    elif time.is_date:
        form = _DAY
    else:
        data_type, form = DataType.TIMESTAMP, "TIMESTAMP"  # ISO text is stored as its instant
    return {"name": time.name, "dataType": data_type.value, "format": form, "granularity": "1:MILLISECONDS"}


def _configs(table: FlowTable, time_column: str | None) -> list[Document]:
    properties = {name.removeprefix("hybrid."): value for name, value in table.properties.items()}
    task = {key: properties[key] for key in _TASK_KEYS if key in properties}
    segments: Document = {"schemaName": table.name, "replication": "1"}
    if time_column is not None:
        segments["timeColumnName"] = time_column
    index: Document = {"sortedColumn": [properties["sortedColumn"]]} if "sortedColumn" in properties else {}
    shared = {"tableName": table.name, "segmentsConfig": segments, "tableIndexConfig": index}
    realtime = {
        **shared,
        "tableType": Half.REALTIME.value,
        "task": {"taskTypeConfigsMap": {MOVE_TASK: task}},
        "metadata": {"customConfigs": {"hybrid.flows": "true"}},
    }
    return [realtime, {**shared, "tableType": Half.OFFLINE.value}]
