"""Creates the empty Delta table of a half, with its first state as operation 0.

No rows are written, so no JVM is started: delta-rs creates the empty table, and Spark writes every row that follows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.failpoints import failpoint, failpoint_inside
from hybrid.lake.layout import physical_columns, statistics_columns
from hybrid.runtime import durable
from hybrid.table.columns import HIDDEN, REJECTED_ONLY, SEGMENT
from hybrid.table.state import HalfState, to_user_metadata

_HOUR_MS = 3_600_000
# The table's folder, the warehouse, the home, and the home's parent: any of them may be new.
_NEW_PARENTS = 4

_ARROW = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary()}


def create_half(path: Path, spec: TableSpec, half: Half, state: HalfState) -> None:
    """Create the Delta table of a half. Raises delta-rs's own error when the table exists."""
    # How long replaced data stays readable and revertible. Time travel refuses older versions, even if their files
    # exist.
    window = f"interval {spec.revert_window_ms // _HOUR_MS} hours"
    failpoint("create", "before")
    with failpoint_inside("create", path):
        DeltaTable.create(
            str(path),
            schema=arrow_schema(spec, half),
            partition_by=[SEGMENT],
            configuration={
                # Delta's own log cleanup would delete the commits that hold our state, which checkpoints do not keep.
                "delta.enableExpiredLogCleanup": "false",
                "delta.logRetentionDuration": window,
                "delta.deletedFileRetentionDuration": window,
                "delta.dataSkippingStatsColumns": ",".join(map(_identifier, statistics_columns(spec, half))),
            },
            commit_properties=CommitProperties(custom_metadata={"userMetadata": to_user_metadata(state)}),
        )
    durable.sync_tree(path)
    for folder in path.parents[:_NEW_PARENTS]:
        durable.sync(folder)
    failpoint("create", "after")


def _identifier(name: str) -> str:
    """A column's name as Delta parses it in a property: in backticks unless it is a plain identifier."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name}`"


def record_batch(schema: pa.Schema, rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    """An Arrow record batch of rows, each with a value for every field of the schema."""
    lists = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [pa.array(list(items), field.type) for items, field in zip(lists, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def delta_fields(spec: TableSpec, half: Half, names: Collection[str]) -> list[dict[str, Any]]:
    """Some columns of a half as a Delta schema has them, in physical order."""
    chosen = [field for field in arrow_schema(spec, half) if field.name in names]
    return list(json.loads(Schema.from_arrow(pa.schema(chosen)).to_json())["fields"])


def arrow_schema(spec: TableSpec, half: Half) -> pa.Schema:
    """The Arrow schema of a half: the equivalent of `physical_columns`, which has Spark types."""
    hidden = dict([*HIDDEN, *REJECTED_ONLY])
    fields = {field.name: field for field in spec.schema.fields}
    return pa.schema(
        [
            (name, _ARROW[hidden[name]] if name in hidden else fields[name].arrow_type())
            for name, _ in physical_columns(spec, half)
        ]
    )
