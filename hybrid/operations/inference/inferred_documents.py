"""Builds the documents of a table from inferred columns: schema, table configs, and the job spec that loads a file.

Descriptions hold counts and no values: a document outlives the rows of its table, also those that are erased.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.config.table_config import ARRIVED
from hybrid.config.task_schedules import MOVE_HOURLY
from hybrid.config.upsert_json import MOVE_TASK
from hybrid.errors import UsageError, suggestion
from hybrid.operations.inference.column_sample import TypeChoice
from hybrid.operations.inference.time_column import TimeChoice, bucket_of
from hybrid.query.connection import identifier
from hybrid.schema.types import DataType

Document = dict[str, Any]


@dataclass(frozen=True)
class PlannedColumn:
    """A column of the table: the field that fills it, its type, and how it holds times. `seen` are counts in words."""

    name: str
    field: str
    choice: TypeChoice
    time: TimeChoice | None
    seen: str

    @property
    def data_type(self) -> DataType:
        """The type of a value."""
        return self.time.data_type if self.time is not None else self.choice.data_type

    @property
    def type_name(self) -> str:
        """The type as users see it: `STRING`, or `STRING[]` for several values."""
        return f"{self.data_type}{'[]' if self.choice.is_list else ''}"


def named_column(columns: Sequence[PlannedColumn], name: str, option: str) -> PlannedColumn:
    """The column of a name, or of a field's. UsageError for an unknown one."""
    found = next((column for column in columns if name in {column.name, column.field}), None)
    if found is None:
        names = [column.name for column in columns]
        raise UsageError(
            f"{option}: the sample has no column '{name}'.{suggestion(name, names)} Columns are: "
            f"{', '.join(names[:50])}."
        )
    return found


@dataclass(frozen=True)
class TablePlan:
    """What the documents say. `bucket` None: from the span of the time column."""

    name: str
    columns: Sequence[PlannedColumn]
    time: PlannedColumn | None
    key: Sequence[str] = ()
    bucket: str | None = None

    @property
    def bucket_period(self) -> str | None:
        """The bucket, as a period; None without a time column."""
        if self.time is None or self.time.time is None:
            return None
        return self.bucket or bucket_of(self.time.time)


def schema_document(plan: TablePlan) -> Document:
    """The schema. Nulls are kept as nulls."""
    dimensions = [_dimension(column) for column in plan.columns if column.time is None]
    times = [_date_time(column, column.time) for column in plan.columns if column.time is not None]
    return {
        "schemaName": plan.name,
        "enableColumnBasedNullHandling": True,
        **({"primaryKeyColumns": list(plan.key)} if plan.key else {}),
        **({"dimensionFieldSpecs": dimensions} if dimensions else {}),
        **({"dateTimeFieldSpecs": times} if times else {}),
    }


def _dimension(column: PlannedColumn) -> Document:
    several = {"singleValueField": False} if column.choice.is_list else {}
    return {
        "name": column.name,
        "dataType": str(column.choice.data_type),
        **several,
        "description": column.seen,
    }


def _date_time(column: PlannedColumn, time: TimeChoice) -> Document:
    return {
        "name": column.name,
        "dataType": str(time.data_type),
        "format": time.format,
        "granularity": time.granularity,
        "description": column.seen,
    }


def config_document(plan: TablePlan, half: str, stream: Mapping[str, str] | None = None) -> Document:
    """The table config of a half; `stream` are the streamConfigs of a REALTIME half."""
    segments = {"schemaName": plan.name, **({"timeColumnName": plan.time.name} if plan.time is not None else {})}
    transforms = [
        {"columnName": column.name, "transformFunction": identifier(column.field)}
        for column in plan.columns
        if column.name != column.field
    ]
    bucket = {} if plan.bucket_period is None else {"bucketTimePeriod": plan.bucket_period}
    move = {**bucket, "schedule": MOVE_HOURLY}
    upsert: Document = {"mode": "FULL"}
    if plan.time is None:
        upsert["comparisonColumn"] = ARRIVED
    return {
        "tableName": plan.name,
        "tableType": half,
        "segmentsConfig": segments,
        **({"tableIndexConfig": {"streamConfigs": dict(stream)}} if stream is not None else {}),
        **({"ingestionConfig": {"transformConfigs": transforms}} if transforms else {}),
        **({"task": {"taskTypeConfigsMap": {MOVE_TASK: move}}} if stream is not None else {}),
        **({"upsertConfig": upsert} if plan.key else {}),
    }


def job_text(plan: TablePlan, path: Path, data_format: str, csv: Mapping[str, str] | None) -> str:
    """The job spec that loads a file into the table."""
    lines = [
        f"# hybrid job run {plan.name}_job.yml",
        "jobType: SegmentCreationAndTarPush",
        f"inputDirURI: {_yaml(plain_path(path))}",
        "recordReaderSpec:",
        f"  dataFormat: {data_format}",
    ]
    if csv:
        lines += ["  configs:", *(f"    {key}: {_yaml(value)}" for key, value in csv.items())]
    return "\n".join([*lines, "tableSpec:", f"  tableName: {plan.name}", ""])


def plain_path(path: Path) -> str:
    """The absolute path of a file, without `.` and `..`. A link in it stays, unless `..` follows: it may lead away."""
    return str(path.resolve() if ".." in path.parts else path.absolute())


def _yaml(text: str) -> str:
    """A text in a job spec, where a dollar sign begins a variable."""
    return json.dumps(text.replace("$", r"\$"))
