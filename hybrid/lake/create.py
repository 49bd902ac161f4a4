"""Creates the empty Delta table of a half, with its first state as operation 0.

No rows are written, so no JVM is started.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import Schema

from hybrid.clock import wall_clock_ms
from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import ConflictError
from hybrid.lake.entry import commit_info, entry_text, put_entry, unknown_outcome
from hybrid.lake.entry_file import Put
from hybrid.lake.failpoints import failpoint
from hybrid.lake.layout import INDEXED, physical_columns, statistics_columns
from hybrid.runtime import durable
from hybrid.store.mirror import mirror_at, new_half_key
from hybrid.table.columns import HIDDEN, REJECTED_ONLY, SEGMENT
from hybrid.table.state import HalfState, to_user_metadata

_HOUR_MS = 3_600_000
# The table's folder, the warehouse, the home, and the home's parent: any of them may be new.
_NEW_PARENTS = 4

_ARROW = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary()}


def create_half(path: Path, spec: TableSpec, half: Half, state: HalfState) -> None:
    """Create the Delta table of a half. ConflictError when it exists."""
    failpoint("create", "before")
    (path / "_delta_log").mkdir(parents=True, exist_ok=True)
    if mirror_at(path) is not None:
        new_half_key(path)
    text = entry_text(
        [
            commit_info(to_user_metadata(state), None, is_append=True),
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {"metaData": _metadata(spec, half)},
        ]
    )
    failpoint("create", "inside")
    match put_entry(path, 0, text):
        case Put.EXISTS:
            raise ConflictError(f"There is a Delta table at {path}.")
        case Put.UNKNOWN:
            raise unknown_outcome(path, 0)
    durable.sync_tree(path)
    for folder in path.parents[:_NEW_PARENTS]:
        durable.sync(folder)
    failpoint("create", "after")


def _metadata(spec: TableSpec, half: Half) -> dict[str, object]:
    """The metadata of a new half, with an id of its own."""
    # How long replaced data stays readable and revertible. Time travel refuses older versions, even if their files
    # exist.
    window = f"interval {spec.revert_window_ms // _HOUR_MS} hours"
    return {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": Schema.from_arrow(arrow_schema(spec, half)).to_json(),
        "partitionColumns": [SEGMENT],
        "createdTime": wall_clock_ms(),
        "configuration": {
            # Delta's own log cleanup would delete the commits that hold our state, which checkpoints do not keep.
            "delta.enableExpiredLogCleanup": "false",
            "delta.logRetentionDuration": window,
            "delta.deletedFileRetentionDuration": window,
            INDEXED: ",".join(map(_identifier, statistics_columns(spec, half))),
        },
    }


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
