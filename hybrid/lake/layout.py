"""The paths of a table's halves, and their physical columns.

<warehouse>/<table>/REALTIME      Delta table, partitioned by segment
<warehouse>/<table>/OFFLINE       Delta table, partitioned by segment
<warehouse>/<table>/REALTIME.lock, OFFLINE.lock
<warehouse>/<table>/REALTIME.acts, OFFLINE.acts   operations that outlive the log: see hybrid.lake.lineage_archive
<warehouse>/<table>/staging/<act id>/   staged rows of an operation that has not committed; removed with it
<warehouse>/<table>/plans/<id>/   plans of backfills with their staged rows: see hybrid.lake.plans; replacements
                                  in several requests: see hybrid.lake.pushes
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half, TableSpec
from hybrid.runtime.sentence_repr import shown_as
from hybrid.store.plan_files import PLANS_FOLDER
from hybrid.table.columns import ARRIVAL, EPOCH, HIDDEN, OFFSET, PARTITION, REJECTED_ONLY, SEGMENT, TIME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

INDEXED = "delta.dataSkippingStatsColumns"
STAGING_FOLDER = "staging"


@shown_as("{0.root}")
@dataclass(frozen=True)
class TableLayout:
    """The folders of one table."""

    root: Path

    def half(self, half: Half) -> Path:
        """The Delta table of a half."""
        return self.root / half.value

    def lock(self, half: Half) -> Path:
        """The lock file of a half. It is beside the Delta table, whose folder holds only Delta's own files."""
        return self.root / f"{half.value}.lock"

    def staging(self, act_id: str) -> Path:
        """The folder where an operation stages rows before it takes the lock."""
        return self.root / STAGING_FOLDER / act_id

    @property
    def plans(self) -> Path:
        """The folder of backfill plans."""
        return self.root / PLANS_FOLDER

    def plan(self, plan_id: str) -> Path:
        """The folder of one plan, with its staged rows."""
        return self.plans / plan_id

    @property
    def purges(self) -> Path:
        """The folder of purge records."""
        return self.root / "purges"


def fence_of(half: Path) -> str:
    """The txnAppId of a half's writers in Delta: one for all of them, so that a writer with an outdated state fails."""
    return f"hybrid-{half.name}"


def physical_columns(spec: TableSpec, half: Half) -> list[tuple[str, str]]:
    """(name, Spark type) of every stored column of a half, in physical order: hidden columns, then the user's."""
    hidden = [*HIDDEN, *(REJECTED_ONLY if half is Half.REALTIME else ())]
    return [*hidden, *((field.name, field.spark_type) for field in spec.schema.fields)]


def spark_columns(schema: str) -> dict[str, str]:
    """The Spark types of the columns in a Delta schema, which is given as JSON, by name."""
    return {str(column["name"]): _spark_type(column["type"]) for column in json.loads(schema)["fields"]}


def _spark_type(kind: Any) -> str:
    """The Spark type for a type in a Delta schema."""
    if not isinstance(kind, dict):
        return {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}.get(kind, str(kind))
    match kind.get("type"):
        case "array":
            return f"array<{_spark_type(kind['elementType'])}>"
        case "map":
            return f"map<{_spark_type(kind['keyType'])},{_spark_type(kind['valueType'])}>"
        case "struct":
            return (
                "struct<" + ",".join(f"{field['name']}:{_spark_type(field['type'])}" for field in kind["fields"]) + ">"
            )
    return json.dumps(kind)


def ddl_of(fields: Iterable[tuple[str, str]]) -> str:
    """A Spark DDL schema of (name, Spark type) pairs."""
    return ", ".join(f"`{name}` {kind}" for name, kind in fields)


def physical_ddl(spec: TableSpec, half: Half) -> str:
    """A Spark DDL schema of a half's stored columns."""
    return ddl_of(physical_columns(spec, half))


def segment_order(spec: TableSpec) -> list[Column]:
    """The order of rows in the files of OFFLINE: by segment, then by sort columns, time and arrival."""
    return [quoted(name) for name in (SEGMENT, *spec.sort_columns, TIME, *ARRIVAL)]


def in_files(spec: TableSpec, frame: DataFrame) -> DataFrame:
    """Rows arranged for a commit, each segment as one sorted file. Ingestion and moves write their own files."""
    return frame.repartition(SEGMENT).sortWithinPartitions(*segment_order(spec))


def in_stream_files(frame: DataFrame) -> DataFrame:
    """Rows of REALTIME arranged for a commit, each segment as one file in the order of its streams."""
    order = (SEGMENT, EPOCH, PARTITION, OFFSET)
    return frame.repartition(SEGMENT).sortWithinPartitions(*(quoted(name) for name in order))


def statistics_columns(spec: TableSpec, half: Half) -> list[str]:
    """The columns whose minimum and maximum the Delta log keeps, for pruning and planning."""
    hidden = [name for name, kind in HIDDEN[1:] if kind != "string"]
    keys = [*spec.schema.primary_key, *([spec.time_column] if spec.time_column else [])]
    scalar = [field.name for field in spec.schema.fields if field.single_value and field.name in keys]
    return [*hidden, *scalar]


def indexed_columns(properties: Mapping[str, str]) -> list[str]:
    """The columns whose minimum and maximum the log of a half keeps, by its properties."""
    listed = properties.get(INDEXED, "")
    return [plain or name for plain, name in re.findall(r"`([^`]*)`|([^,`]+)", listed)]


def quoted(name: str) -> Column:
    """A column by its exact name; a dot in it does not select a field."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")
