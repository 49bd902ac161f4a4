"""Data files of a half that Spark's workers write themselves, and what Delta's log says of each.

Rows that are in Arrow already go to Parquet from there: through the JVM's rows they would take twice as much CPU. The
log entries follow Delta's protocol ("Add File", "Per-file Statistics"); the commit is Delta's own, see
`hybrid.lake.commit.commit_files`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hybrid.runtime import durable
from hybrid.table.columns import SEGMENT
from hybrid.table.names import segment_folder

# A row group at most: what a worker holds in memory of each file that it writes.
_GROUP_ROWS, _GROUP_BYTES = 262_144, 64 << 20
# Characters of a text in the statistics, and the one that sorts behind all others.
_TEXT_MAX, _HIGHEST = 32, "\U0010ffff"
# What stands in the path of a log entry as it is; paths are URIs there.
_PLAIN = "/=-_.~"


@dataclass(frozen=True)
class LaidFile:
    """A whole Parquet file: its name, rows, bytes, when it was written (epoch ms), and Delta's statistics as JSON.

    `partition` numbers the partition of values that all of its rows belong to, where rows are divided so.
    """

    name: str
    rows: int
    bytes: int
    modified_ms: int
    statistics: str
    partition: int | None = None

    def entry(self, segment: str) -> dict[str, object]:
        """What the log says of it as a file of a segment: it lies at `path_in_half(segment, name)` then."""
        entry = {
            "path": quote(path_in_half(segment, self.name), safe=_PLAIN),
            "partitionValues": {SEGMENT: segment},
            "size": self.bytes,
            "modificationTime": self.modified_ms,
            "dataChange": True,
            "stats": self.statistics,
        }
        return {"add": entry}

    def range_of(self, column: str) -> tuple[Any, Any] | None:
        """The minimum and maximum of a column by the statistics; None when they do not tell, or all is null."""
        found = json.loads(self.statistics)
        low, high = found["minValues"].get(column), found["maxValues"].get(column)
        return None if low is None or high is None else (low, high)


def path_in_half(segment: str, name: str) -> str:
    """Where a file of a segment lies."""
    return f"{segment_folder(segment)}/{name}"


def file_name(act_id: str) -> str:
    """A name for a file of an act: `commit_files` knows the files of an act that failed by it."""
    return f"part-{act_id}-{uuid.uuid4()}.c000.snappy.parquet"


class RowsFile:
    """One file of rows of one segment, written piece by piece into `folder` by a worker of the act `act_id`.

    `statistics` are columns whose minimum and maximum are kept in the log. `is_durable`: the bytes are stored on the
    device when it is closed; its name is not yet.
    """

    def __init__(self, folder: Path, act_id: str, statistics: Sequence[str], *, is_durable: bool = True) -> None:
        self._is_durable = is_durable
        self._statistics = statistics
        self._path = folder / file_name(act_id)
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._rows = 0
        self._ranges: dict[str, tuple[Any, Any]] = {}
        self._nulls: dict[str, int] = {}

    def write(self, rows: pa.RecordBatch) -> None:
        """Adds rows, without their segment: it is not in the file."""
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        if self._waiting_rows >= _GROUP_ROWS or self._waiting_bytes >= _GROUP_BYTES:
            self._write_group()

    def close(self) -> LaidFile:
        """Ends the file, which has rows."""
        self._write_group()
        assert self._writer is not None
        self._writer.close()
        if self._is_durable:
            durable.sync(self._path)
        statistics = {
            "numRecords": self._rows,
            "minValues": {name: _prefix(low) for name, (low, _) in self._ranges.items()},
            "maxValues": {name: _above(high) for name, (_, high) in self._ranges.items()},
            "nullCount": self._nulls,
        }
        size, modified_ms = self._path.stat().st_size, time.time_ns() // 1_000_000
        return LaidFile(self._path.name, self._rows, size, modified_ms, json.dumps(statistics))

    def _write_group(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # As Spark writes: a half's files are read together, and a column must have one type in all of them.
            as_spark: dict[str, Any] = {"store_schema": False, "use_deprecated_int96_timestamps": True}
            # Arrow leaves NaN out of a minimum and maximum, by which readers then leave out the rows.
            as_spark["write_statistics"] = [path for field in table.schema for path in _leaves_without_nan(field)]
            self._writer = pq.ParquetWriter(str(self._path), table.schema, compression="snappy", **as_spark)
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._count(table)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def _count(self, table: pa.Table) -> None:
        self._rows += table.num_rows
        for name in self._statistics:
            column = table.column(name)
            self._nulls[name] = self._nulls.get(name, 0) + column.null_count
            found = pc.min_max(column).as_py() if _is_comparable(column.type) else {"min": None}
            if found["min"] is not None:
                low, high = self._ranges.get(name, (found["min"], found["max"]))
                self._ranges[name] = (min(low, found["min"]), max(high, found["max"]))


def _leaves_without_nan(field: pa.Field) -> list[str]:
    """Where Parquet keeps the values of a column that cannot be NaN."""
    is_list = pa.types.is_list(field.type)
    kind = field.type.value_type if is_list else field.type
    return [] if pa.types.is_floating(kind) else [f"{field.name}.list.element" if is_list else field.name]


def _is_comparable(kind: pa.DataType) -> bool:
    """Whether JSON holds its values exactly, and every engine orders them alike."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind))


def _prefix(value: Any) -> Any:
    """A value that is no higher, as short as Delta's own writer has it."""
    return value[:_TEXT_MAX] if isinstance(value, str) else value


def _above(value: Any) -> Any:
    """A value that is no lower, as short as Delta's own writer has it."""
    if not isinstance(value, str) or len(value) <= _TEXT_MAX:
        return value
    end = _TEXT_MAX
    while end < len(value) and value[end] == _HIGHEST:
        end += 1
    return value if end == len(value) else value[:end] + _HIGHEST
