"""Writes an inferred table as a CREATE TABLE statement with the connector that fills it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybrid.errors import UsageError
from hybrid.operations.inference.inferred_documents import PlannedColumn, TablePlan, plain_path
from hybrid.operations.inference.record_sample import RecordSample
from hybrid.operations.inference.topic_sample import BROKERS, TOPIC
from hybrid.query.connection import identifier, quoted
from hybrid.schema.types import DataType

SQL_TYPES = {
    DataType.INT: "INTEGER",
    DataType.LONG: "BIGINT",
    DataType.FLOAT: "REAL",
    DataType.DOUBLE: "DOUBLE",
    DataType.BIG_DECIMAL: "DECIMAL(38,18)",
    DataType.BOOLEAN: "BOOLEAN",
    DataType.TIMESTAMP: "TIMESTAMP",
    DataType.STRING: "VARCHAR",
    DataType.JSON: "VARIANT",
    DataType.BYTES: "VARBINARY",
}
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
# Words that begin a clause where the name of a column stands.
_CLAUSES = frozenset({"primary", "foreign", "check", "unique", "constraint"})
_ISO_DATE = "SIMPLE_DATE_FORMAT:yyyy-MM-dd"
_USE_DOCUMENTS = "Leave --ddl out: the schema and table configs say it."
Connector = dict[str, Any]


def ddl_text(plan: TablePlan, connector: Connector | None) -> str:
    """The statement. UsageError for what a statement cannot say: renamed fields, and times in patterns of their own."""
    renamed = [column for column in plan.columns if column.name != column.field]
    if renamed:
        names = ", ".join(f"'{column.field}'" for column in renamed[:5])
        raise UsageError(f"A statement cannot take columns from fields of other names: {names}.", hint=_USE_DOCUMENTS)
    options: dict[str, str] = {}
    if connector is not None:
        options["connectors"] = json.dumps([connector], ensure_ascii=False)
    if plan.time is not None and plan.time.time is not None:
        options["hybrid.timeColumn"] = plan.time.name
        options |= _unit(plan.time)
        options["hybrid.bucketTimePeriod"] = str(plan.bucket_period)
        if plan.key:
            options["hybrid.comparisonColumn"] = plan.time.name
    lines = [_column(plan, column) for column in plan.columns]
    if plan.key:
        lines.append(f"    PRIMARY KEY ({', '.join(map(_name, plan.key))})")
    written = ",\n".join(f"    {quoted(key)} = {quoted(value)}" for key, value in options.items())
    properties = f" WITH (\n{written}\n)" if written else ""
    comments = "".join(f"-- {column.name}: {column.seen}\n" for column in plan.columns)
    return f"{comments}CREATE TABLE {_name(plan.name)} (\n" + ",\n".join(lines) + f"\n){properties};\n"


def kafka_connector(stream: Mapping[str, str], registry: str | None) -> Connector:
    """The connector that reads a topic from its first message."""
    form: Connector = {"name": "json", "config": {"update_format": "raw"}}
    if registry is not None:
        form = {"name": "avro", "config": {"registry_urls": registry.split(",")}}
    config = {"bootstrap.servers": stream[BROKERS], "topic": stream[TOPIC], "start_from": "earliest"}
    return {"transport": {"name": "kafka_input", "config": config}, "format": form}


def file_connector(path: Path, data_format: str, sample: RecordSample) -> Connector | None:
    """The connector that loads a file; None for a format that connectors do not read."""
    form: Connector
    csv = sample.csv
    if data_format == "json":
        form = {"name": "json", "config": {"update_format": "raw", "array": sample.is_array}}
    elif data_format == "parquet":
        form = {"name": "parquet"}
    elif data_format == "csv":
        config = {"headers": "header" not in (csv or {})}
        form = {"name": "csv", "config": {**config, **{key: csv[key] for key in ("delimiter",) if csv and key in csv}}}
    else:
        return None
    return {"transport": {"name": "file_input", "config": {"path": plain_path(path)}}, "format": form}


def _column(plan: TablePlan, column: PlannedColumn) -> str:
    sql_type = SQL_TYPES[column.data_type]
    if column.time is not None and column.time.format.endswith(_ISO_DATE):
        sql_type = "DATE"
    several = " ARRAY" if column.choice.is_list else ""
    required = " NOT NULL" if column is plan.time or column.name in plan.key else ""
    return f"    {_name(column.name)} {sql_type}{several}{required}"


def _unit(column: PlannedColumn) -> dict[str, str]:
    """`hybrid.timeUnit` of a column of numbers."""
    assert column.time is not None
    form = column.time.format
    if form.endswith(":EPOCH"):
        return {"hybrid.timeUnit": form.split(":")[1]}
    if form != "TIMESTAMP" and not form.endswith(_ISO_DATE):
        raise UsageError(
            f"A statement cannot name the time column '{column.name}', whose format is {form}.", hint=_USE_DOCUMENTS
        )
    return {}


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name not in _CLAUSES else identifier(name)
