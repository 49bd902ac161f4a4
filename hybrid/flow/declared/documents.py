"""The documents of a flow's table: the same schema and configs that describe every other table. Pure."""

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
    """The columns of a new table over what its flows bring: numbers in the wider type; what does not agree is text."""
    found: dict[str, ColumnType] = {}
    for one in (column for columns in kinds for column in columns):
        before = found.get(one.name.lower())
        found[one.name.lower()] = one if before is None else _wider(before, one)
    return list(found.values())


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
    """The schema and the two configs. SpecError when the time column is none of the columns, or no time."""
    name = table.properties.get("hybrid.timeColumn")
    by_name = {one.name.lower(): one for one in kinds}
    time = by_name.get(name.lower()) if name is not None else None
    if name is not None and time is None:
        near = suggestion(name, [one.name for one in kinds])
        shown = ", ".join(one.name for one in kinds)
        raise SpecError(
            f"{table.place}: hybrid.timeColumn: '{name}' is no column of the flows' rows.{near} There are: {shown}."
        )
    schema: Document = {"schemaName": table.name, "enableColumnBasedNullHandling": True}
    if table.comment:
        schema["description"] = table.comment
    schema["dimensionFieldSpecs"] = [field_document(one) for one in kinds if one is not time]
    if time is not None:
        schema["dateTimeFieldSpecs"] = [_time_document(table, time)]
    return schema, _configs(table, time.name if time else None)


def field_document(one: ColumnType) -> Document:
    """A column as one of dimensionFieldSpecs."""
    document: Document = {"name": one.name, "dataType": one.data_type.value}
    return document if one.single_value else {**document, "singleValueField": False}


def with_columns(schema_doc: Mapping[str, Any], new: Sequence[ColumnType]) -> Document:
    """A schema with further columns."""
    fields = [*schema_doc.get("dimensionFieldSpecs", []), *map(field_document, new)]
    return {**schema_doc, "dimensionFieldSpecs": fields}


def new_columns(spec: TableSpec, kinds: Sequence[ColumnType]) -> list[ColumnType]:
    """Those that the table has not."""
    known = {name.lower() for name in spec.schema.column_names}
    return [one for one in kinds if one.name.lower() not in known]


def _time_document(table: FlowTable, time: ColumnType) -> Document:
    given = table.properties.get("hybrid.timeFormat")
    data_type, form = time.data_type, given
    if not time.single_value or data_type not in (DataType.TIMESTAMP, DataType.STRING, DataType.INT, DataType.LONG):
        raise SpecError(
            f"{table.place}: hybrid.timeColumn: '{time.name}' is {data_type}{'' if time.single_value else '[]'}, and a "
            "time is a timestamp, a date, an ISO 8601 text or a whole number."
        )
    if data_type in (DataType.INT, DataType.LONG):
        form = given or _MILLIS
    elif given is not None:
        raise SpecError(
            f"{table.place}: hybrid.timeFormat: '{given}' is for whole numbers; '{time.name}' is {data_type}."
        )
    elif time.is_date:
        form = _DAY
    else:
        data_type, form = DataType.TIMESTAMP, "TIMESTAMP"  # a text in ISO form is kept as the instant that it names
    return {"name": time.name, "dataType": data_type.value, "format": form, "granularity": "1:MILLISECONDS"}


def _configs(table: FlowTable, time_column: str | None) -> list[Document]:
    given = {name.removeprefix("hybrid."): value for name, value in table.properties.items()}
    task = {key: given[key] for key in _TASK_KEYS if key in given}
    segments: Document = {"schemaName": table.name, "replication": "1"}
    if time_column is not None:
        segments["timeColumnName"] = time_column
    index: Document = {"sortedColumn": [given["sortedColumn"]]} if "sortedColumn" in given else {}
    shared = {"tableName": table.name, "segmentsConfig": segments, "tableIndexConfig": index}
    realtime = {
        **shared,
        "tableType": Half.REALTIME.value,
        "task": {"taskTypeConfigsMap": {MOVE_TASK: task}},
        "metadata": {"customConfigs": {"hybrid.flows": "true"}},
    }
    return [realtime, {**shared, "tableType": Half.OFFLINE.value}]
