"""Data files of a half that Spark's workers write themselves, and their entries in Delta's log.

Rows that are in Arrow already are written to Parquet from there: the detour over the JVM's rows would double the CPU
time. The log entries follow Delta's protocol ("Add File", "Per-file Statistics"). `hybrid.lake.commit.commit_files`
commits them.
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

from hybrid.errors import DataError
from hybrid.runtime import durable
from hybrid.runtime.arrow_rows import first_bad_value
from hybrid.table.columns import SEGMENT
from hybrid.table.names import segment_folder

# Limits of a row group, which a worker holds in memory for each file that it writes.
_GROUP_ROWS, _GROUP_BYTES = 262_144, 64 << 20
# The maximal length of a text in the statistics, and the character that sorts behind all others.
_TEXT_MAX, _HIGHEST = 32, "\U0010ffff"
# The characters that stay unescaped in the path of a log entry: paths are URIs there.
_PLAIN = "/=-_.~"


@dataclass(frozen=True)
class LaidFile:
    """A complete Parquet file: name, rows, bytes, time of writing (epoch ms), and Delta's statistics as JSON.

    `partition` numbers the partition of column values that all its rows belong to, where rows are partitioned.
    """

    name: str
    rows: int
    bytes: int
    modified_ms: int
    statistics: str
    partition: int | None = None

    def entry(self, segment: str, *, data_change: bool = True) -> dict[str, object]:
        """The log entry that adds it as a file of a segment, at `path_in_half(segment, name)`.

        `data_change` False: the rows are those of other files, in whose place it is.
        """
        entry = {
            "path": quote(path_in_half(segment, self.name), safe=_PLAIN),
            "partitionValues": {SEGMENT: segment},
            "size": self.bytes,
            "modificationTime": self.modified_ms,
            "dataChange": data_change,
            "stats": self.statistics,
        }
        return {"add": entry}

    def range_of(self, column: str) -> tuple[Any, Any] | None:
        """The minimum and maximum of a column by the statistics; None without them or when all values are null."""
        statistics = json.loads(self.statistics)
        low, high = statistics["minValues"].get(column), statistics["maxValues"].get(column)
        return None if low is None or high is None else (low, high)


def path_in_half(segment: str, name: str) -> str:
    """The path of a segment's file, relative to the half."""
    return f"{segment_folder(segment)}/{name}"


def file_name(act_id: str) -> str:
    """A new name for a file of an operation. `commit_files` finds the files of a failed operation by it."""
    return f"part-{act_id}-{uuid.uuid4()}.c000.snappy.parquet"


class RowsFile:
    """Writer of one file in `folder` with rows of one segment, used by a worker of the operation `act_id`.

    `statistics` are the columns whose minimum and maximum the log keeps. `is_durable`: closing the file syncs its bytes
    to disk; syncing its name is left to the caller. A row group has at most about `group_rows` and `group_bytes`.
    """

    def __init__(
        self,
        folder: Path,
        act_id: str,
        statistics: Sequence[str],
        *,
        is_durable: bool = True,
        group_rows: int = _GROUP_ROWS,
        group_bytes: int = _GROUP_BYTES,
    ) -> None:
        self._is_durable, self._group_rows, self._group_bytes = is_durable, group_rows, group_bytes
        self._statistics = statistics
        self._path = folder / file_name(act_id)
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._rows = 0
        self._ranges: dict[str, tuple[Any, Any]] = {}
        self._nulls: dict[str, int] = {}

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows, without their segment column: the file does not hold it.

        DataError for a text that is not UTF-8: no query could read the file.
        """
        bad = first_bad_value(rows)
        if bad is not None:
            raise DataError(f"Column '{bad.column}' {bad.reason}. Nothing was committed.")
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        if self._waiting_rows >= self._group_rows or self._waiting_bytes >= self._group_bytes:
            self._write_group()

    def close(self) -> LaidFile:
        """Finish the file, which must have rows."""
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
            # Same encoding as Spark: a half's files are read together, so a column needs one type in all of them.
            as_spark: dict[str, Any] = {"store_schema": False, "use_deprecated_int96_timestamps": True}
            # Arrow ignores NaN in a minimum and maximum, so readers that prune by them would miss those rows.
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
            bounds = pc.min_max(column).as_py() if _is_comparable(column.type) else {"min": None}
            if bounds["min"] is not None:
                low, high = self._ranges.get(name, (bounds["min"], bounds["max"]))
                self._ranges[name] = (min(low, bounds["min"]), max(high, bounds["max"]))


def _leaves_without_nan(field: pa.Field) -> list[str]:
    """The Parquet leaf paths of a column whose values cannot be NaN."""
    is_list = pa.types.is_list(field.type)
    kind = field.type.value_type if is_list else field.type
    return [] if pa.types.is_floating(kind) else [f"{field.name}.list.element" if is_list else field.name]


def _is_comparable(kind: pa.DataType) -> bool:
    """Whether JSON holds the type's values exactly, and every engine orders them alike."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind))


def _prefix(value: Any) -> Any:
    """A lower bound of the value, truncated to the length that Delta's own writer uses."""
    return value[:_TEXT_MAX] if isinstance(value, str) else value


def _above(value: Any) -> Any:
    """An upper bound of the value, truncated to the length that Delta's own writer uses."""
    if not isinstance(value, str) or len(value) <= _TEXT_MAX:
        return value
    end = _TEXT_MAX
    while end < len(value) and value[end] == _HIGHEST:
        end += 1
    return value if end == len(value) else value[:end] + _HIGHEST
