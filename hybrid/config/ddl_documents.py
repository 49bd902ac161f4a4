"""Writes a DDL table as Pinot's documents: a schema JSON, a REALTIME and an OFFLINE config."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass

from hybrid.config.ddl_columns import Column, Elements
from hybrid.config.ddl_options import BOUNDARY, BUCKET, COMPARISON, Options
from hybrid.config.ddl_time import TimeColumn
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.errors import suggestion
from hybrid.schema.types import DataType

# The comparison column of a table that names none: the timestamp of the message that held the row.
ARRIVAL_COLUMN = "_hy_timestamp"
_BUCKET_DEFAULT = "1d"
_NO_ORDER = {DataType.BOOLEAN, DataType.JSON, DataType.BYTES}

Document = dict[str, object]


@dataclass(frozen=True)
class DdlParts:
    """The parsed parts of a CREATE TABLE. `connectors` is the list as it is written."""

    name: str
    elements: Elements
    options: Options
    connectors: object
    time: TimeColumn | None


def table_documents(parts: DdlParts) -> tuple[Document, list[Document]]:
    """The schema and the two configs, as documents that share no objects."""
    return _schema(parts), [_realtime(parts), _config(parts, "OFFLINE")]


def _schema(parts: DdlParts) -> Document:
    time = parts.time.column if parts.time else None
    doc: Document = {"schemaName": parts.name, "enableColumnBasedNullHandling": True}
    if parts.elements.key:
        doc["primaryKeyColumns"] = list(parts.elements.key)
    doc["dimensionFieldSpecs"] = [_field(column) for column in parts.elements.columns if column is not time]
    if parts.time:
        form = {"format": parts.time.format, "granularity": parts.time.granularity}
        doc["dateTimeFieldSpecs"] = [{**_field(parts.time.column), **form}]
    return doc


def _field(column: Column) -> Document:
    doc: Document = {"name": column.name, "dataType": column.type.data_type.value}
    if column.type.array:
        doc["singleValueField"] = False
    if column.not_null:
        doc["notNull"] = True
    doc["hybrid.sqlType"] = column.type.text
    if column.default:
        doc["hybrid.default"] = column.default[0]
    return doc


def _config(parts: DdlParts, half: str) -> Document:
    segments: Document = {"timeColumnName": parts.time.column.name} if parts.time else {}
    doc: Document = {"tableName": parts.name, "tableType": half, "segmentsConfig": segments}
    if parts.elements.key:
        doc["upsertConfig"] = {"mode": "FULL", "comparisonColumn": _comparison(parts)}
    elif COMPARISON in parts.options:
        parts.options.fail(COMPARISON, "the table has no PRIMARY KEY, and no row replaces another.")
    doc["metadata"] = {"customConfigs": _custom(parts)}
    return doc


def _realtime(parts: DdlParts) -> Document:
    doc = _config(parts, "REALTIME")
    move: Document = {"bucketTimePeriod": parts.options.period(BUCKET) or _BUCKET_DEFAULT}
    if parts.time and parts.time.buffer is not None:
        move["bufferTimePeriod"] = parts.time.buffer
    doc["task"] = {"taskTypeConfigsMap": {MOVE_TASK: move}}
    doc["connectors"] = copy.deepcopy(parts.connectors)
    return doc


def _custom(parts: DdlParts) -> Document:
    """The custom configs. `hybrid.columns` keeps the order of columns, which a schema JSON with a time column loses."""
    custom: Document = {"hybrid.ddl": "true"}
    if parts.time:
        custom["hybrid.columns"] = json.dumps([column.name for column in parts.elements.columns])
    boundary = parts.options.text(BOUNDARY)
    return {**custom, BOUNDARY: boundary} if boundary else custom


def _comparison(parts: DdlParts) -> str:
    name = parts.options.text(COMPARISON)
    if name is None:
        return ARRIVAL_COLUMN
    column = parts.elements.find(name)
    if column is None:
        near = suggestion(name, [other.name for other in parts.elements.columns])
        message = f"'{name}' is not a column of the table.{near} Columns are: {parts.elements.names}."
        parts.options.fail(COMPARISON, message)
    if column.type.array or column.type.data_type in _NO_ORDER:
        message = f"'{column.name}' is {column.type.text} and has no order. Name a number, a time or a text."
        parts.options.fail(COMPARISON, message)
    return column.name
